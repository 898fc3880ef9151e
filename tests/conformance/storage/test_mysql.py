"""The log in a MySQL or MariaDB database satisfies the contract of a log, in one process and in many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.mariadb import MariadbServer, mariadb

from stele.storage import open_log
from stele.storage.mysql.log import MysqlLog
from stele.testing.log_process_suite import LogProcessConformance
from stele.testing.log_suite import LogConformance, Opener

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbServer]:
    """A server of the system's packages."""
    with mariadb() as running:
        yield running


@pytest.fixture
def url(server: MariadbServer) -> str:
    """One new database."""
    return server.url(server.create_database())


class TestMysqlDriver(LogConformance):
    """Handles of one process on one database, without checksums."""

    @pytest.fixture
    def opener(self, url: str) -> Opener:
        """Handles on one new database."""
        return lambda: MysqlLog.open(url)


class TestMysqlLog(LogConformance):
    """Handles of one process on one database."""

    @pytest.fixture
    def opener(self, url: str) -> Opener:
        """Handles on one new database."""
        return lambda: open_log(url)


class TestMysqlProcesses(LogProcessConformance):
    """Processes on one database."""
