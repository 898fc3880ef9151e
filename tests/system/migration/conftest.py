"""Registries of these tests log only errors. The default logging is restored after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from stele.server.log_config import configure_logs


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    configure_logs("error", "json")
    yield
    structlog.reset_defaults()
