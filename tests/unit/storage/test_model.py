"""Any sequence of operations through several handles has the same effect on a log as on a Python list."""

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.examples import scale_examples

from stele.core.ports import Log
from stele.errors import StoreError
from stele.storage.memory import MemoryLog, MemoryStore
from stele.storage.sqlite import SqliteLog

T = TypeVar("T")

_RECORDS = st.lists(st.binary(max_size=40), max_size=5)
_HANDLES = st.integers(0, 2)


class _Model(RuleBasedStateMachine):
    """Three handles on one log, compared with a list and a snapshot."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.records: list[bytes] = []
        self.snapshot: tuple[int, bytes] | None = None
        self.handles: list[Log] = [self.run(self.open()) for _ in range(3)]
        self.unseen = [True] * 3

    async def open(self) -> Log:
        raise NotImplementedError

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @rule(i=_HANDLES, off=st.sampled_from([0, 0, 0, -2, -1, 1, 7]), records=_RECORDS)
    def append(self, i: int, off: int, records: list[bytes]) -> None:
        expected = len(self.records) + off
        assert self.run(self.handles[i].append(expected, records)) is (off == 0)
        if off == 0 and records:
            self.records += records
            self.unseen = [True if j != i else unseen for j, unseen in enumerate(self.unseen)]

    @rule(i=_HANDLES, after=st.integers(-2, 60), limit=st.integers(-1, 30))
    def tail(self, i: int, after: int, limit: int) -> None:
        first = max(after, 0)
        expected = list(enumerate(self.records, 1))[first : first + max(limit, 0)]
        assert list(self.run(self.handles[i].tail(after, limit))) == expected

    @rule(i=_HANDLES)
    def ask_for_changes(self, i: int) -> None:
        assert self.handles[i].has_changed() or not self.unseen[i]
        self.unseen[i] = False

    @rule(i=_HANDLES, seq=st.integers(-1, 40), record=st.binary(max_size=60))
    def erase(self, i: int, seq: int, record: bytes) -> None:
        there = 1 <= seq <= len(self.records)
        try:
            self.run(self.handles[i].erase(seq, record))
        except StoreError:
            assert not there
        else:
            assert there
            self.records[seq - 1] = record

    @precondition(lambda self: self.records)
    @rule(i=_HANDLES, data=st.data(), state=st.binary(max_size=100))
    def save(self, i: int, data: st.DataObject, state: bytes) -> None:
        seq = data.draw(st.integers(1, len(self.records)))
        self.run(self.handles[i].save_snapshot(seq, state))
        if self.snapshot is None or seq >= self.snapshot[0]:
            self.snapshot = (seq, state)

    @rule(i=_HANDLES)
    def reopen(self, i: int) -> None:
        # Open first: a log in memory lives as long as its store, and a file's last close folds its write-ahead log.
        new = self.run(self.open())
        self.run(self.handles[i].close())
        self.handles[i], self.unseen[i] = new, True

    @invariant()
    def everyone_agrees(self) -> None:
        for handle in self.handles:
            assert self.run(handle.head()) == len(self.records)
            assert self.run(handle.load_snapshot()) == self.snapshot

    def teardown(self) -> None:
        for handle in self.handles:
            self.run(handle.close())
        self.runner.close()


class _MemoryModel(_Model):
    def __init__(self) -> None:
        self.store = MemoryStore()
        super().__init__()

    async def open(self) -> Log:
        return MemoryLog(self.store)


class _SqliteModel(_Model):
    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        super().__init__()

    async def open(self) -> Log:
        return await SqliteLog.open(Path(self.folder.name) / "log.db")

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestMemoryModel = _MemoryModel.TestCase
TestMemoryModel.settings = settings(max_examples=scale_examples(100), stateful_step_count=30, deadline=None)
TestSqliteModel = _SqliteModel.TestCase
TestSqliteModel.settings = settings(
    max_examples=scale_examples(25), stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
