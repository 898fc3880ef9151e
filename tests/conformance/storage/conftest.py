"""Enables assertion messages of the shared suite, forks its workers, and shortens its load in everyday runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.examples import PROFILE
from tests.support.fork_server import Process, start_process_with_pipes

pytest.register_assert_rewrite("stele.testing.log_suite", "stele.testing.log_process_suite", "stele.testing.log_crew")


def _start_worker(options: Sequence[str]) -> Process:
    return start_process_with_pipes(["-m", "stele.testing.log_worker", *options], Path.cwd())


@pytest.fixture(autouse=True)
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork workers, which start faster, so that more of them are killed in less time."""
    monkeypatch.setattr("stele.testing.log_crew.start_worker", _start_worker)


@pytest.fixture(autouse=True)
def short_load(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time in which writers contend and are killed, except in the long form."""
    if PROFILE != "everyday":
        return
    if hasattr(request.cls, "contention_seconds"):
        monkeypatch.setattr(request.cls, "contention_seconds", request.cls.contention_seconds / 3)
    if "STELE_KILL_SECONDS" not in os.environ:
        monkeypatch.setenv("STELE_KILL_SECONDS", "1.5")
