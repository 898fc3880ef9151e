"""Examines and repairs a store that no registry has open: what is damaged, and what can be kept.

`read_stored` of a driver's `StoreFiles` yields everything that is there, damaged or not. This module interprets it, for
all drivers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple, cast

import msgspec

from stele.core.events import (
    EventMetadata,
    IdsSkipped,
    LogRecord,
    NewerRecord,
    VersionRegistered,
    decode_record,
    encode_record,
    has_intact_texts,
)
from stele.core.fold import apply_record
from stele.core.model import MAX_INT32
from stele.core.state import State
from stele.errors import InvalidRequest, NewerLog, StoreError
from stele.storage.drivers import StoreCondition, StoreFiles, find_driver
from stele.storage.high_water_mark import HighWaterMark, LogPosition
from stele.storage.record_chain import FIRST_LINK, DamagedRecord, chain_record, read_link, read_record, verify_record

__all__ = [
    "Damage",
    "Examination",
    "LostVersion",
    "Repair",
    "examine_store",
    "inspect_store",
    "open_files",
    "repair_store",
]


def open_files(url: str) -> StoreFiles:
    """Return the files of a store. Raises `InvalidRequest` when there are none, or the kind of store has none."""
    driver = find_driver(url)
    if driver.open_files is None:
        raise InvalidRequest(f"a store of the kind '{url.partition(':')[0]}:' has no files to maintain")
    return driver.open_files(url)


def inspect_store(url: str) -> StoreCondition | None:
    """Return the condition of a store, None for a kind that cannot be inspected.

    Nothing is created or changed. Raises `InvalidRequest` for a malformed URL, `StoreError` for what is not a store.
    """
    driver = find_driver(url)
    return None if driver.inspect is None else driver.inspect(url)


_UNREADABLE = "is not a record that this version can read"
_CONTRADICTIONS = (LookupError, ValueError, TypeError, AttributeError, AssertionError)
"""Errors of folding a record that refers to things which no earlier record created."""


# --- what is there --------------------------------------------------------------------------------------------------


class Damage(NamedTuple):
    """A damaged place of the log, and a description of the damage."""

    seq: int
    problem: str


class LostVersion(NamedTuple):
    """A version after the first damage, in a record that can still be read."""

    seq: int
    namespace: str
    subject: str
    version: int
    schema_id: int


class Examination(NamedTuple):
    """The result of examining a store.

    records       number of records of the log, damaged ones included
    acknowledged  the last record that was acknowledged to a client, as far as is known
    intact        number of records before the first damage
    damages       in order
    lost          versions that a repair would drop, from records that can be read
    """

    records: int
    acknowledged: int
    intact: int
    damages: list[Damage]
    lost: list[LostVersion]

    @property
    def is_whole(self) -> bool:
        """Whether every acknowledged record is present and unchanged."""
        return not self.damages


class _Reading:
    """One pass over a store. It verifies all records, folds the intact ones, and reads what it can after damage."""

    def __init__(self, files: StoreFiles, mark: HighWaterMark | None) -> None:
        self._is_chained = files.is_chained
        self.state = State()
        self.records = 0
        self.damages: list[Damage] = []
        self.lost: list[LostVersion] = []
        self._link: bytes | None = FIRST_LINK
        acknowledged = mark.read() if mark is not None else None
        self.acknowledged = acknowledged.seq if acknowledged is not None else 0
        for seq, stored in files.read_stored(self.acknowledged):
            self._read(seq, stored)
            if seq == self.acknowledged and acknowledged is not None and stored is not None:
                self._compare_link(acknowledged)

    @property
    def intact(self) -> int:
        """Number of records before the first damage."""
        return min((damage.seq for damage in self.damages), default=self.records + 1) - 1

    def _compare_link(self, acknowledged: LogPosition) -> None:
        if self._link not in {None, acknowledged.link}:
            problem = "is not the record that was acknowledged: the log was replaced"
            self.damages.append(Damage(acknowledged.seq, problem))

    def _read(self, seq: int, stored: bytes | None) -> None:
        if stored is None:
            self._link = None
            self.damages.append(Damage(seq, "is missing or cannot be read"))
            return
        self.records = seq
        problem, record = self._open_record(seq, stored)
        if problem is None and not self.damages:
            try:
                apply_record(self.state, seq, cast("LogRecord", record))
            except _CONTRADICTIONS:
                problem = "does not follow from those before it"
            self.state.erased.clear()
            self.state.pack_texts()
        if problem is not None:
            self.damages.append(Damage(seq, problem))
        if self.damages and record is not None:
            self.lost += [
                LostVersion(seq, event.key.namespace, event.key.name, event.version_number, event.schema_id)
                for event in record.events
                if isinstance(event, VersionRegistered)
            ]

    def _open_record(self, seq: int, stored: bytes) -> tuple[str | None, LogRecord | None]:
        """Return what is wrong with stored bytes, None if nothing; and the record in them, if there is one."""
        problem, data = None, stored
        if self._is_chained:
            # After a damaged record, the next ones are verified against the link that they claim to follow.
            before, self._link = self._link, None
            try:
                self._link = read_link(stored)
                data = read_record(stored)
                if before is not None:
                    _, data = verify_record(before, seq, stored)
            except DamagedRecord:
                problem = "has a wrong checksum"
        try:
            record = decode_record(data)
        except NewerRecord as error:
            if problem is not None or not self._is_chained:
                return problem or _UNREADABLE, None
            raise NewerLog(
                f"Record {seq} of the log was written by a newer release: {error}; use that release"
            ) from error
        except msgspec.MsgspecError:
            return problem or _UNREADABLE, None
        if problem is None and not has_intact_texts(record):
            problem = "has a text whose SHA-256 does not match"
        return problem, record


def examine_store(files: StoreFiles, mark: HighWaterMark | None = None) -> Examination:
    """Read a store from its first record to its last; mark records how far it went. Nothing is changed.

    Raises `StoreError`; `NewerLog` for records that only a newer release can read.
    """
    reading = _Reading(files, mark)
    return Examination(reading.records, reading.acknowledged, reading.intact, reading.damages, reading.lost)


# --- repair ---------------------------------------------------------------------------------------------------------


class Repair(NamedTuple):
    """The result of a repair.

    kept        number of records kept from the old log
    skipped     how many schema ids every namespace skips
    moved_to    where the damaged files are now
    """

    kept: int
    skipped: int
    moved_to: str


def repair_store(
    files: StoreFiles, mark: HighWaterMark | None, *, schema_ids: int, numbers: int, last_id: int = 0
) -> Repair:
    """Keep the records before the first damage, and skip every id that the lost records may have assigned.

    The damaged files stay beside the new ones. No server may run on the store; a server that does refuses to write.

    Args:
        files: Files of the store.
        mark: How far the log went, if that is known. It is set to the new end of the log.
        schema_ids: How many schema ids of every namespace to skip at least.
        numbers: How many encoding ids and version numbers of every subject to skip.
        last_id: The highest schema id that is known to be in use, if any.

    Raises `StoreError`; `NewerLog`, with nothing changed, for records that only a newer release can read.
    """
    reading = _Reading(files, mark)
    last_intact = reading.intact
    known_ids = [lost.schema_id for lost in reading.lost] + [last_id]
    highest = min((row.highest_schema_id for row in reading.state.namespaces.values()), default=0)
    lost = max(reading.records, reading.acknowledged) - last_intact
    skipped = min(max(schema_ids + lost, *(number - highest for number in known_ids)), MAX_INT32)
    metadata = EventMetadata(os.urandom(16), time.time_ns() // 1_000_000, via="repair")
    own = LogRecord(metadata.not_before(reading.state.latest_at), (IdsSkipped(skipped, numbers),))

    link = FIRST_LINK

    def records() -> Iterator[bytes]:
        nonlocal link
        for seq, stored in files.read_stored(last_intact):
            if seq > last_intact:
                break
            assert stored is not None
            whole = stored if files.is_chained else chain_record(link, seq, stored)[1]
            link = read_link(whole)
            yield whole
        link, stored = chain_record(link, last_intact + 1, encode_record(own))
        yield stored

    moved_to = files.write_anew(records())
    if mark is not None:
        try:
            mark.replace(LogPosition(last_intact + 1, link))
        except OSError as error:
            raise StoreError(f"The high-water mark {mark.path} cannot be written: {error.strerror}") from error
    return Repair(last_intact, skipped, moved_to)
