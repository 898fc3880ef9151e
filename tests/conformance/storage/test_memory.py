"""The log in memory keeps the contract of a log."""

import pytest

from stele.storage.memory import MemoryLog, MemoryStore
from stele.testing.log_suite import LogConformance, Opener


class TestMemoryLog(LogConformance):
    """Handles share one store, as processes share a file."""

    durable = False

    @pytest.fixture
    def opener(self) -> Opener:
        """Handles on one new store."""
        store = MemoryStore()

        async def open_one() -> MemoryLog:
            return MemoryLog(store)

        return open_one
