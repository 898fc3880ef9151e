"""Requests that were refused because of who sent them, newest first, from the file of the audit trail."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from stele.core.audit_chain import AuditEntry, AuditLine
from stele.service.audit_file import find_files

MOST_BYTES: Final = 8 * 1024 * 1024
"""Bytes of the files that are read for one answer, from the end."""
_REFUSED: Final = b'"refused"'


class RefusalPage(msgspec.Struct, frozen=True):
    """Refused requests, newest first.

    bytes_read   of the files, from the end
    is_complete  whether the files hold no more
    """

    entries: tuple[AuditEntry, ...]
    bytes_read: int
    is_complete: bool


def read_refusals(path: Path, text: str, limit: int) -> RefusalPage:
    """Return the newest refused requests whose caller, subject or path contains a text.

    Args:
        path: File of the audit trail; its full predecessors are read, too.
        text: In any case; '' takes all.
        limit: Entries at most.

    Raises:
        OSError: A file cannot be read.
    """
    wanted = text.lower()
    found: list[AuditEntry] = []
    read = 0
    for file in reversed(find_files(path)):
        with file.open("rb") as opened:
            size = opened.seek(0, 2)
            start = max(0, size - (MOST_BYTES - read))
            opened.seek(start)
            lines = opened.read(size - start).split(b"\n")
        read += size - start
        for line in reversed(lines[1:] if start else lines):
            entry = _read_entry(line)
            if entry is not None and _matches(entry, wanted):
                found.append(entry)
                if len(found) == limit:
                    return RefusalPage(tuple(found), read, is_complete=False)
        if start or read >= MOST_BYTES:
            return RefusalPage(tuple(found), read, is_complete=False)
    return RefusalPage(tuple(found), read, is_complete=True)


def _read_entry(line: bytes) -> AuditEntry | None:
    """Return the entry of a line if it is a refusal."""
    if _REFUSED not in line:
        return None
    try:
        entry = msgspec.json.decode(msgspec.json.decode(line, type=AuditLine).entry, type=AuditEntry)
    except msgspec.MsgspecError:
        return None
    return entry if entry.kind == "refused" else None


def _matches(entry: AuditEntry, wanted: str) -> bool:
    places = (entry.actor, entry.subject or "", entry.address, str(entry.details.get("path", "")))
    return any(wanted in place.lower() for place in places)
