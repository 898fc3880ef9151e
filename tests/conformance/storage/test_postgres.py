"""The log in a PostgreSQL database satisfies the contract of a log, in one process and in many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.postgres import KINDS, PostgresServer, postgres

from stele.storage import open_log
from stele.storage.postgres.log import PostgresLog
from stele.testing.log_process_suite import LogProcessConformance
from stele.testing.log_suite import LogConformance, Opener


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server of the version in PyPI's package, and one of the system's version."""
    with postgres(request.param) as running:
        yield running


@pytest.fixture
def url(server: PostgresServer) -> Iterator[str]:
    """One empty database."""
    with server.lend_database() as name:
        yield server.url(name)


class TestPostgresDriver(LogConformance):
    """Handles of one process on one database, without checksums."""

    @pytest.fixture
    def opener(self, url: str) -> Opener:
        """Handles on one empty database."""
        return lambda: PostgresLog.open(url)


class TestPostgresLog(LogConformance):
    """Handles of one process on one database."""

    @pytest.fixture
    def opener(self, url: str) -> Opener:
        """Handles on one empty database."""
        return lambda: open_log(url)


class TestPostgresProcesses(LogProcessConformance):
    """Processes on one database."""
