"""Registries of these tests log trouble alone."""

from __future__ import annotations

import pytest

from stele.server.logs import configure_logs


@pytest.fixture(autouse=True)
def _quiet() -> None:
    configure_logs("error", "json")
