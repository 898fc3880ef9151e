"""The log in memory satisfies the contract of a log, with and without checksums."""

import pytest

from stele.core.ports import Log
from stele.storage.chained_log import ChainedLog
from stele.storage.memory import MemoryLog, MemoryStore
from stele.testing.log_suite import LogConformance, Opener


class TestMemoryLog(LogConformance):
    """Handles share one store, as processes share a file."""

    durable = False

    @pytest.fixture
    def opener(self) -> Opener:
        """Handles on one new store."""
        store = MemoryStore()

        async def open_one() -> Log:
            return MemoryLog(store)

        return open_one


class TestChainedMemoryLog(LogConformance):
    """Handles that share one store, with checksums."""

    durable = False

    @pytest.fixture
    def opener(self) -> Opener:
        """Handles on one new store."""
        store = MemoryStore()

        async def open_one() -> Log:
            return await ChainedLog.open(MemoryLog(store), "in memory")

        return open_one
