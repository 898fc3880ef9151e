"""The log in a SQLite file satisfies the contract of a log, in one process and in many."""

from pathlib import Path

import pytest

from stele.storage import open_log
from stele.storage.sqlite import SqliteLog
from stele.testing.log_process_suite import LogProcessConformance
from stele.testing.log_suite import LogConformance, Opener


class TestSqliteDriver(LogConformance):
    """Handles of one process on one file, without checksums."""

    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        """Handles on one new file."""
        return lambda: SqliteLog.open(tmp_path / "log.db")


class TestSqliteLog(LogConformance):
    """Handles of one process on one file."""

    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        """Handles on one new file."""
        return lambda: open_log(f"sqlite:///{tmp_path}/log.db")


class TestSqliteProcesses(LogProcessConformance):
    """Processes on one file."""

    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        """One new file."""
        return f"sqlite:///{tmp_path}/log.db"
