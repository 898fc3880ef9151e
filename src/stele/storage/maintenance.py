"""Looks after a store that no registry has open: what is damaged, what can be kept, and copies of one that is in use.

`read_stored` of a driver's `StoreFiles` yields whatever is there, damaged or not; what it means is found out here, once
for every driver.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, Protocol, cast

import msgspec

from stele.core.events import (
    EventMetadata,
    IdsSkipped,
    LogRecord,
    VersionRegistered,
    decode_record,
    encode_record,
    has_intact_texts,
)
from stele.core.fold import apply_record
from stele.core.model import MAX_INT32
from stele.core.state import State
from stele.errors import InvalidRequest
from stele.storage.high_water_mark import HighWaterMark, LogPosition
from stele.storage.record_chain import FIRST_LINK, DamagedRecord, chain_record, read_link, read_record, verify_record

__all__ = [
    "Damage",
    "Examination",
    "LostVersion",
    "Repair",
    "StoreCondition",
    "StoreFiles",
    "StoredRecord",
    "examine_store",
    "inspect_store",
    "mark_of",
    "open_files",
    "repair_store",
]

_CONTRADICTIONS = (LookupError, ValueError, TypeError, AttributeError, AssertionError)
"""What folding records comes to when one speaks of things that those before it did not make."""


class StoredRecord(NamedTuple):
    """What a store has at a place: None when there is nothing, or nothing that can be read."""

    seq: int
    stored: bytes | None


class StoreFiles(Protocol):
    """The files of a store, whole or not."""

    @property
    def place(self) -> str:
        """Name of the store in messages."""
        ...

    @property
    def mark(self) -> HighWaterMark:
        """The high-water mark beside them."""
        ...

    @property
    def is_chained(self) -> bool:
        """Whether records have checksums: those of earlier releases have none."""
        ...

    def read_stored(self, until: int) -> Iterator[StoredRecord]:
        """Every place from 1 to the last record, at least to `until`. Raises `StoreError` when nothing can be read."""
        ...

    def write_anew(self, records: Iterable[bytes]) -> Path:
        """Put a new log with these stored records in the place of this one; where the old files are now."""
        ...

    def write_copy(self, file: Path) -> None:
        """Copy the log as of now, also while servers use it. Raises `InvalidRequest`, `StoreError`."""
        ...


MAINTENANCE: Final[Mapping[str, str]] = {"sqlite": "stele.storage.sqlite.maintenance:SqliteFiles"}
"""Scheme → `module:class` of `StoreFiles`, made of the URL."""


def open_files(url: str) -> StoreFiles:
    """The files of a store. Raises `InvalidRequest` when there are none, or none of its kind."""
    scheme = url.partition(":")[0].lower()
    if scheme not in MAINTENANCE:
        known = ", ".join(f"{name}:" for name in MAINTENANCE)
        raise InvalidRequest(f"a store of the kind '{scheme}:' has no files to look after; those of {known} have")
    module, _, name = MAINTENANCE[scheme].partition(":")
    return cast("StoreFiles", getattr(import_module(module), name)(url))


class StoreCondition(NamedTuple):
    """A store as it is found, without opening it.

    place          name of the store in messages
    exists         whether there is one
    is_writable    whether this user may write, or make, it
    layout         version of its format; None: there is none yet
    newest_layout  the version that this release writes
    journal_mode   how its database is written; '' where there is none
    size_bytes     of its main file
    free_bytes     of its disk
    """

    place: str
    exists: bool
    is_writable: bool
    layout: int | None
    newest_layout: int
    journal_mode: str
    size_bytes: int
    free_bytes: int


INSPECTION: Final[Mapping[str, str]] = {"sqlite": "stele.storage.sqlite.inspection:inspect_file"}
"""Scheme → `module:function` that takes the URL and returns a `StoreCondition`."""


def inspect_store(url: str) -> StoreCondition | None:
    """Return the condition of a store, None for a kind that has no files.

    Nothing is created or changed. Raises `InvalidRequest` for a malformed URL, `StoreError` for what is not a store.
    """
    target = INSPECTION.get(url.partition(":")[0].lower())
    if target is None:
        return None
    module, _, name = target.partition(":")
    return cast("StoreCondition", getattr(import_module(module), name)(url))


# --- what is there --------------------------------------------------------------------------------------------------


class Damage(NamedTuple):
    """A place of the log, and what is wrong there."""

    seq: int
    problem: str


class LostVersion(NamedTuple):
    """A version that stands behind the first damage, in a record that can still be read."""

    seq: int
    namespace: str
    subject: str
    version: int
    schema_id: int


class Examination(NamedTuple):
    """What a store has.

    records       of the log, damaged ones included
    acknowledged  the last record that somebody was promised, as far as is known
    intact        records before the first damage
    damages       in order
    lost          versions that would go with a repair, of records that can be read
    """

    records: int
    acknowledged: int
    intact: int
    damages: list[Damage]
    lost: list[LostVersion]

    @property
    def is_whole(self) -> bool:
        """Whether every record that was acknowledged is there as it was written."""
        return not self.damages


class _Reading:
    """One pass over a store: verifies, folds what is good, and goes on behind damage for what can still be told."""

    def __init__(self, files: StoreFiles) -> None:
        self._is_chained = files.is_chained
        self.state = State()
        self.records = 0
        self.damages: list[Damage] = []
        self.lost: list[LostVersion] = []
        self._link: bytes | None = FIRST_LINK
        mark = files.mark.read()
        self.acknowledged = mark.seq if mark is not None else 0
        for seq, stored in files.read_stored(self.acknowledged):
            self._read(seq, stored)
            if mark is not None and seq == mark.seq and stored is not None and self._link not in {None, mark.link}:
                self.damages.append(Damage(seq, "is not the record that was acknowledged: the log was replaced"))

    @property
    def intact(self) -> int:
        """How many records stand before the first damage."""
        return min((damage.seq for damage in self.damages), default=self.records + 1) - 1

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
        """What is wrong with stored bytes, and the record in them if there is one."""
        problem, data = None, stored
        if self._is_chained:
            # Behind a damaged record its successors are held to the link that they claim to follow.
            before, self._link = self._link, None
            try:
                self._link = read_link(stored)
                data = read_record(stored)
                if before is not None:
                    data = verify_record(before, seq, stored).record
            except DamagedRecord:
                problem = "has a wrong checksum"
        try:
            record = decode_record(data)
        except msgspec.MsgspecError:
            return problem or "is no record that this version can read", None
        if problem is None and not has_intact_texts(record):
            problem = "has a text that is not the one of its SHA-256"
        return problem, record


def examine_store(files: StoreFiles) -> Examination:
    """Read a store from its first record to its last. Nothing is changed. Raises `StoreError`."""
    reading = _Reading(files)
    return Examination(reading.records, reading.acknowledged, reading.intact, reading.damages, reading.lost)


# --- repair ---------------------------------------------------------------------------------------------------------


class Repair(NamedTuple):
    """What a repair did.

    kept        records of the old log
    skipped     schema ids that every namespace leaves out from now on
    moved_to    where the damaged files are now
    """

    kept: int
    skipped: int
    moved_to: str


def repair_store(files: StoreFiles, *, schema_ids: int, numbers: int, last_id: int = 0) -> Repair:
    """Go on with the records before the first damage, and leave out every id that the lost ones may have given.

    The damaged files stay beside the new ones. No server may run on the store; one that does refuses to write.

    Args:
        files: Of the store.
        schema_ids: How many schema ids of every namespace to leave out at least.
        numbers: How many encoding ids and version numbers of every subject to leave out.
        last_id: The highest schema id that anybody has seen, if known.

    Raises `StoreError`.
    """
    reading = _Reading(files)
    kept = reading.intact
    given = [lost.schema_id for lost in reading.lost] + [last_id]
    highest = min((row.highest_schema_id for row in reading.state.namespaces.values()), default=0)
    lost = max(reading.records, reading.acknowledged) - kept
    skipped = min(max(schema_ids + lost, *(number - highest for number in given)), MAX_INT32)
    metadata = EventMetadata(os.urandom(16), time.time_ns() // 1_000_000, via="repair")
    own = LogRecord(metadata.not_before(reading.state.latest_at), (IdsSkipped(skipped, numbers),))

    def records() -> Iterator[bytes]:
        link = FIRST_LINK
        for seq, stored in files.read_stored(kept):
            if seq > kept:
                break
            assert stored is not None
            whole = stored if files.is_chained else chain_record(link, seq, stored)[1]
            link = read_link(whole)
            yield whole
        yield chain_record(link, kept + 1, encode_record(own))[1]

    moved_to = files.write_anew(records())
    return Repair(kept, skipped, str(moved_to))


def mark_of(seq: int, stored: bytes) -> LogPosition:
    """The high-water mark of a log whose last record is stored so."""
    return LogPosition(seq, read_link(stored))
