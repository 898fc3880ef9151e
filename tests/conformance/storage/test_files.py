"""The log in a folder of files satisfies the contract of a log, in one process and in many."""

from pathlib import Path

import pytest

from stele.storage import open_log
from stele.storage.files.log import FilesLog
from stele.testing.log_process_suite import LogProcessConformance
from stele.testing.log_suite import LogConformance, Opener


class TestFilesDriver(LogConformance):
    """Handles of one process on one folder, without checksums."""

    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        """Handles on one new folder."""
        return lambda: FilesLog.open(tmp_path / "log")


class TestFilesLog(LogConformance):
    """Handles of one process on one folder."""

    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        """Handles on one new folder."""
        return lambda: open_log(f"files:///{tmp_path}/log")


class TestFilesProcesses(LogProcessConformance):
    """Processes on one folder."""

    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        """One new folder."""
        return f"files:///{tmp_path}/log"
