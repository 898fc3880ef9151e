"""Reads records of earlier releases in the form of this release, without changing the stored records."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from stele.core.events import Event, LogRecord, NewerRecord, SubjectCreated, decode_record
from stele.core.model import Numbering
from stele.core.ports import LogEntry
from stele.errors import NewerLog, StoreError

_NUMBERS_IN_URIS: Final = frozenset({"cncf"})
"""The `via` of records whose subjects have version numbers in URIs."""


def read_entry(entry: LogEntry) -> LogRecord:
    """Return the record of an entry, as this release would have written it.

    Raises `NewerLog` for one of a newer release, `StoreError` for one that cannot be read.
    """
    return upgrade_record(decode_entry(entry))


def decode_entry(entry: LogEntry) -> LogRecord:
    """Return the record of an entry as it was written. Raises as `read_entry`."""
    try:
        return decode_record(entry.record)
    except NewerRecord as error:
        raise NewerLog(
            f"Record {entry.seq} of the log was written by a newer release: {error}; upgrade this node"
        ) from error
    except msgspec.MsgspecError as error:
        raise StoreError(f"record {entry.seq} of the log cannot be read by this version: {error}") from error


def upgrade_record(record: LogRecord) -> LogRecord:
    """Return a record as this release would have written it.

    Version numbers that are parts of URIs are never reused. Earlier releases wrote NEVER_REUSE for the subjects of such
    URIs, which lets their numbers begin again after a deletion.
    """
    if record.metadata.via not in _NUMBERS_IN_URIS:
        return record
    return replace(record, events=tuple(map(_upgrade_numbering, record.events)))


def _upgrade_numbering(event: Event) -> Event:
    if isinstance(event, SubjectCreated) and event.numbering is Numbering.NEVER_REUSE:
        return replace(event, numbering=Numbering.NEVER_RESTART)
    return event
