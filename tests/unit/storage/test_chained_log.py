"""Whatever happens to stored bytes, a log returns what was appended or names the damaged record."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core.ports import LogEntry
from stele.errors import DamagedLog, StoreError
from stele.storage.chained_log import ChainedLog
from stele.storage.high_water_mark import HighWaterMark, LogPosition
from stele.storage.memory import MemoryLog, MemoryStore
from stele.storage.record_chain import (
    FIRST_LINK,
    Checksum,
    DamagedRecord,
    chain_record,
    chain_records,
    read_link,
    replace_record,
    verify_record,
    verify_records,
)

RECORDS = [b"record %d" % number for number in range(1, 21)]


@given(st.sampled_from(Checksum), st.binary(max_size=60), st.binary(max_size=60), st.data())
def test_a_flipped_bit_is_found(checksum: Checksum, record: bytes, instead: bytes, data: st.DataObject) -> None:
    """A flipped bit, a cut end or a wrong place is detected, in an appended record and in a replaced one."""
    before = bytes(range(16))
    link, whole = chain_record(before, 7, record, checksum)
    assert read_link(whole) == link
    replaced = replace_record(before, 7, whole, instead)
    assert verify_record(before, 7, whole) == (read_link(whole), record)
    assert verify_record(before, 7, replaced) == (read_link(whole), instead)
    for stored in (whole, replaced):
        place = data.draw(st.integers(0, len(stored) * 8 - 1))
        changed = bytearray(stored)
        changed[place // 8] ^= 1 << place % 8
        for link_before, seq, damaged in (
            (before, 7, bytes(changed)),
            (before, 7, stored[: place // 8]),
            (before, 8, stored),
            (FIRST_LINK, 7, stored),
        ):
            with pytest.raises(DamagedRecord):
                verify_record(link_before, seq, damaged)
            with pytest.raises(DamagedRecord):
                verify_records(link_before, [LogEntry(seq, damaged)])


@pytest.mark.parametrize("size", [0, 17, 240, 241, 1024])
def test_no_bit_is_left_out(size: int) -> None:
    """XXH3 detects every flipped bit of a record, for each length that it handles by a different method."""
    record = random.Random(size).randbytes(size)
    _, stored = chain_record(FIRST_LINK, 1, record, Checksum.XXH3)
    number = int.from_bytes(stored, "big")
    for place in range(len(stored) * 8):
        with pytest.raises(DamagedRecord):
            verify_records(FIRST_LINK, [LogEntry(1, (number ^ 1 << place).to_bytes(len(stored), "big"))])


@given(st.lists(st.tuples(st.sampled_from(Checksum), st.lists(st.binary(max_size=40), max_size=4)), max_size=6))
def test_kinds_of_checksums_follow_one_another(appends: list[tuple[Checksum, list[bytes]]]) -> None:
    """Records of both kinds of checksum are verified in one chain.

    Chaining them one by one or together gives equal links.
    """
    link, entries, records = FIRST_LINK, [], []
    for checksum, group in appends:
        alone = link
        for seq, record in enumerate(group, len(records) + 1):
            alone, _ = chain_record(alone, seq, record, checksum)
        link, stored = chain_records(link, len(records) + 1, group, checksum)
        assert link == alone
        records += group
        entries += [LogEntry(seq, whole) for seq, whole in enumerate(stored, len(entries) + 1)]
    assert verify_records(FIRST_LINK, entries) == (link, [LogEntry(*pair) for pair in enumerate(records, 1)])


@pytest.mark.parametrize("damaged", [None, 5, 1.5, "text", b"", b"\xc1"])
def test_what_is_no_record_is_damage(damaged: Any) -> None:
    """A stored value of another type than bytes is reported as damage, when a list of records is verified."""
    _, stored = chain_records(FIRST_LINK, 1, RECORDS[:2], Checksum.XXH3)
    with pytest.raises(DamagedRecord) as caught:
        verify_records(FIRST_LINK, [LogEntry(1, stored[0]), LogEntry(2, damaged), LogEntry(3, b"")])
    assert caught.value.seq == 2


async def _open_filled() -> tuple[MemoryStore, ChainedLog]:
    """Return a log whose first half has the older kind of checksum."""
    store = MemoryStore()
    old = await ChainedLog.open(MemoryLog(store), "test")
    assert await old.append(0, RECORDS[:10])
    log = await ChainedLog.open(MemoryLog(store), "test", checksum=Checksum.XXH3)
    assert await log.append(10, RECORDS[10:])
    return store, log


async def _read_again(store: MemoryStore) -> list[bytes]:
    log = await ChainedLog.open(MemoryLog(store), "test")
    return [entry.record for entry in await log.tail(0, 100)]


async def test_no_record_stands_in_for_another() -> None:
    """A replaced, a swapped and a missing record are detected, and the first wrong place is named."""
    store, log = await _open_filled()
    assert await _read_again(store) == RECORDS
    records = list(store.records)
    for change, place in (
        ([*records[:4], records[5], *records[5:]], 5),
        ([*records[:4], records[3], *records[5:]], 5),
        ([*records[:8], records[9], records[8], *records[10:]], 9),
        ([*records[:2], *records[3:]], 3),
    ):
        store.records[:] = change
        with pytest.raises(DamagedLog, match=rf"Record {place} .*stele log repair"):
            await _read_again(store)
    await log.close()


async def test_the_middle_is_verified_as_the_whole() -> None:
    """Reading from any record on verifies all returned records, starting from the link before them."""
    store, log = await _open_filled()
    chance = random.Random(5)
    for _ in range(30):
        after, limit = chance.randrange(22), chance.randrange(5)
        assert [entry.record for entry in await log.tail(after, limit)] == RECORDS[after : after + limit]
    store.records[11] = store.records[11][:-1]
    assert len(await log.tail(0, 11)) == 11
    assert len(await log.tail(12, 11)) == 8
    for after in (0, 5, 11):
        with pytest.raises(DamagedLog, match="Record 12 "):
            await log.tail(after, 20)


async def test_erased_records_stay_in_the_chain() -> None:
    """The replacement of an erased record is verified, too, and the records after it stay valid."""
    store, log = await _open_filled()
    await log.erase(5, b"nothing")
    await log.erase(5, b"less")
    await log.erase(20, b"end")
    assert await _read_again(store) == [*RECORDS[:4], b"less", *RECORDS[5:19], b"end"]
    assert await log.append(20, [b"more"])
    store.records[4] = store.records[4].replace(b"less", b"mess")
    with pytest.raises(DamagedLog, match="Record 5 "):
        await _read_again(store)
    with pytest.raises(DamagedLog, match="Record 5 "):
        await log.erase(5, b"again")


async def test_a_damaged_snapshot_is_none(caplog: pytest.LogCaptureFixture) -> None:
    """A damaged snapshot is ignored with a warning."""
    store, log = await _open_filled()
    await log.save_snapshot(20, b"state")
    assert await log.load_snapshot() == (20, b"state")
    assert store.snapshot is not None
    for place in (0, 20, 50):
        seq, sealed = store.snapshot
        store.snapshot = (seq, sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :])
        with caplog.at_level(logging.WARNING):
            assert await log.load_snapshot() is None
        assert "replaying the whole log" in caplog.text
        store.snapshot = (seq, sealed)
    store.snapshot = (19, store.snapshot[1])
    assert await log.load_snapshot() is None


async def test_a_snapshot_stands_on_its_own_history(tmp_path: Path) -> None:
    """Loading a snapshot fails if the log ends before its record, or has another record there."""
    store, log = await _open_filled()
    await log.save_snapshot(20, b"state")
    records = list(store.records)
    del store.records[15:]
    other = await ChainedLog.open(MemoryLog(store), "test")
    with pytest.raises(DamagedLog, match="record 20 was acknowledged: 5 records are lost"):
        await other.load_snapshot()
    assert await other.append(15, [b"x"] * 9)
    with pytest.raises(DamagedLog, match="not the one that the snapshot says"):
        await other.load_snapshot()
    store.records[:] = records[:10]
    with pytest.raises(DamagedLog, match="went back before record 20"):
        await log.append(20, [b"more"])
    await log.close()


async def test_a_log_that_went_backwards_does_not_open(tmp_path: Path) -> None:
    """A log that is shorter than its high-water mark, or has another history, does not open."""
    mark = HighWaterMark(tmp_path / "mark")
    store = MemoryStore()
    log = await ChainedLog.open(MemoryLog(store), "test", mark)
    assert not log.may_lack_records()
    for number, record in enumerate(RECORDS):
        assert await log.append(number, [record])
    await asyncio.sleep(0)  # the loop goes on, and puts the mark
    records = list(store.records)
    await ChainedLog.open(MemoryLog(store), "test", HighWaterMark(tmp_path / "mark"))
    del store.records[19:]
    with pytest.raises(DamagedLog, match=r"ends with record 19, but .*mark says that record 20"):
        await ChainedLog.open(MemoryLog(store), "test", mark)
    store.records[:] = []
    other = await ChainedLog.open(MemoryLog(store), "test")
    assert await other.append(0, [b"x"] * 30)
    with pytest.raises(DamagedLog, match="replaced by another one"):
        await ChainedLog.open(MemoryLog(store), "test", mark)
    store.records[:] = records
    await ChainedLog.open(MemoryLog(store), "test", mark)


async def test_a_copy_without_a_mark_may_lack_records(tmp_path: Path) -> None:
    """A store without its mark may lack records, until the first append."""
    store, _ = await _open_filled()
    log = await ChainedLog.open(MemoryLog(store), "test", HighWaterMark(tmp_path / "mark"))
    assert log.may_lack_records()
    assert await log.append(20, [b"more"])
    assert not log.may_lack_records()
    await log.expect_lost_records()
    assert log.may_lack_records()


async def test_a_new_store_has_its_mark_before_its_first_record(tmp_path: Path) -> None:
    """Another process that reads the first record before the append returns does not take the store for a copy."""
    store = MemoryStore()
    other = await ChainedLog.open(MemoryLog(store), "test", HighWaterMark(tmp_path / "mark"))

    class Observed(MemoryLog):
        async def append(self, expected: int, records: Sequence[bytes]) -> bool:
            done = await super().append(expected, records)
            assert [entry.record for entry in await other.tail(expected, 9)] == RECORDS[expected : expected + 1]
            assert not other.may_lack_records()
            return done

    log = await ChainedLog.open(Observed(store), "test", HighWaterMark(tmp_path / "mark"))
    for number in range(2):
        assert await log.append(number, RECORDS[number : number + 1])
    await asyncio.sleep(0)  # the loop goes on, and puts the mark
    assert HighWaterMark(tmp_path / "mark").read() == LogPosition(2, read_link(store.records[-1]))


async def test_a_node_remembers_what_it_has_read(tmp_path: Path) -> None:
    """The mark of a node follows its reads, is not needed by the store, and detects a store that lost records."""
    store, _ = await _open_filled()
    mark = HighWaterMark(tmp_path / "state" / "mark", is_of_node=True)
    log = await ChainedLog.open(MemoryLog(store), "test", mark)
    assert not log.may_lack_records()
    assert not mark.path.exists()
    assert len(await log.tail(0, 15)) == 15
    read = mark.read()
    assert read is not None
    assert read.seq == 20
    again = HighWaterMark(mark.path, is_of_node=True)
    assert await (await ChainedLog.open(MemoryLog(store), "test", again)).head() == 20
    del store.records[14:]
    with pytest.raises(DamagedLog, match=r"ends with record 14, but .*mark says that record 20 was"):
        await ChainedLog.open(MemoryLog(store), "test", again)


async def test_a_mark_that_cannot_be_written_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the mark cannot be written, appends succeed, and one warning is logged."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(HighWaterMark, "write", refuse)
    mark = HighWaterMark(tmp_path / "mark", is_of_node=True)
    log = await ChainedLog.open(MemoryLog(), "test", mark)
    for number in range(3):
        assert await log.append(number, [b"x"])
    assert [row.levelname for row in caplog.records if "cannot be written" in row.getMessage()] == ["WARNING"]


async def test_a_damaged_mark_is_written_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A damaged mark is reported and replaced, and the log opens."""
    store, _ = await _open_filled()
    (tmp_path / "mark").write_bytes(b"stele-mark 1 what")
    log = await ChainedLog.open(MemoryLog(store), "test", HighWaterMark(tmp_path / "mark"))
    assert "is damaged" in caplog.text
    assert not log.may_lack_records()
    assert HighWaterMark(tmp_path / "mark").read() == LogPosition(20, read_link(store.records[-1]))


def test_marks_only_rise(tmp_path: Path) -> None:
    """Two processes can only raise a mark, in any order of writes; only its owner can read the file."""
    one, two = HighWaterMark(tmp_path / "mark"), HighWaterMark(tmp_path / "mark")
    one.write(LogPosition(5, b"a" * 16))
    two.write(LogPosition(9, b"b" * 16))
    one.write(LogPosition(7, b"c" * 16))
    assert one.read() == LogPosition(9, b"b" * 16)
    assert (tmp_path / "mark").stat().st_mode & 0o777 == 0o600
    two.replace(LogPosition(3, b"d" * 16))
    one.write(LogPosition(4, b"e" * 16))
    assert two.read() == LogPosition(4, b"e" * 16)


async def test_there_is_nothing_to_erase_outside() -> None:
    """Erasing a record outside of the log raises `StoreError`."""
    _, log = await _open_filled()
    for seq in (-1, 0, 21):
        with pytest.raises(StoreError):
            await log.erase(seq, b"x")


@pytest.mark.parametrize("stored", [None, 7, "text", b"", b"short"])
def test_what_is_no_record_is_damaged(stored: Any) -> None:
    """A stored value of another type than bytes is reported as damage, when one record is verified."""
    with pytest.raises(DamagedRecord):
        verify_record(FIRST_LINK, 1, stored)
    with pytest.raises(DamagedRecord):
        read_link(stored)


async def test_the_mark_is_put_before_others_hear_of_an_append(tmp_path: Path) -> None:
    """The mark is written before a task that waits for the append continues, and when the log closes at once."""
    mark = HighWaterMark(tmp_path / "mark")
    log = await ChainedLog.open(MemoryLog(MemoryStore()), "test", mark)
    heard: list[LogPosition | None] = []

    async def append(number: int) -> None:
        assert await log.append(number, [b"record"])

    for number in range(3):
        task = asyncio.create_task(append(number))
        task.add_done_callback(lambda _: heard.append(mark.read()))
        await task
    await asyncio.sleep(0)
    assert [position.seq for position in heard if position] == [1, 2, 3]
    assert await log.append(3, [b"record"])
    await log.close()
    position = mark.read()
    assert position is not None
    assert position.seq == 4
    await asyncio.sleep(0)
    assert mark._descriptor is None  # the loop did not open it again
