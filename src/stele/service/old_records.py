"""Records of earlier releases, read by the rules of this one; what is stored stays as it is."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from stele.core.events import Event, LogRecord, SubjectCreated
from stele.core.model import Numbering

_NUMBERS_IN_URIS: Final = frozenset({"cncf"})
"""The `via` of records whose subjects have version numbers in URIs."""


def upgrade_record(record: LogRecord) -> LogRecord:
    """Return a record as this release would have written it.

    Numbers that are parts of URIs never come back. Earlier releases wrote NEVER_REUSE for their subjects, which lets
    them begin again after a deletion.
    """
    if record.metadata.via not in _NUMBERS_IN_URIS:
        return record
    return replace(record, events=tuple(map(_upgrade_numbering, record.events)))


def _upgrade_numbering(event: Event) -> Event:
    if isinstance(event, SubjectCreated) and event.numbering is Numbering.NEVER_REUSE:
        return replace(event, numbering=Numbering.NEVER_RESTART)
    return event
