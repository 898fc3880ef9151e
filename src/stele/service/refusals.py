"""Refusals, newest first: requests of callers without the right, and registrations that the policy refused.

Both are entries of the audit trail. They are read from its file if there is one. Otherwise this process has the newest
registrations that it refused since it started.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from stele.core import commands as cmd
from stele.core.audit_chain import AuditEntry, AuditLine
from stele.core.findings import Finding
from stele.core.model import SchemaDocument
from stele.errors import Incompatible, InvalidRequest, StoreError
from stele.service.audit_file import find_files
from stele.service.audit_notes import REFUSED_REGISTRATION, REFUSED_REQUEST, AuditNotes

MOST_REFUSALS: Final = 500
"""Maximum number of refusals in one answer."""
MOST_BYTES: Final = 8 * 1024 * 1024
"""Maximum number of bytes that are read from the end of the files for one answer."""
KINDS: Final = (REFUSED_REGISTRATION, REFUSED_REQUEST)
_DAY: Final = 86_400
_MOST_FINDINGS: Final = 20
"""Maximum number of findings of one refusal that are kept. The total is kept, too."""
_MOST_CHARACTERS: Final = 500
"""Characters of each text of a finding that are kept."""
_REFUSED: Final = tuple(f'"{kind}"'.encode() for kind in KINDS)


class RefusedSchema(msgspec.Struct, frozen=True):
    """A text that was not registered.

    format    format of the text; '' where the request had none and meant that of the latest version
    against   number of the version with which it conflicts; None: the policy itself or a validator refused it
    findings  why it was refused, the first ones
    omitted   number of findings that are left out
    sha256    digest of the text; '' where the request had none
    bytes     its length
    text      the text itself, if it is short enough for the setting `refused_text_bytes`; '' if not
    """

    format: str = ""
    against: int | None = None
    findings: tuple[Finding, ...] = ()
    omitted: int = 0
    sha256: str = ""
    bytes: int = 0
    text: str = ""


class RefusalEntry(msgspec.Struct, frozen=True):
    """A refused request or registration.

    at         milliseconds since 1970 UTC
    kind       `registration_refused` (by the policy), or `refused` (for lack of a right)
    actor      name of the caller, '' for an anonymous caller
    address, agent, request_id, via   of the request, as far as known; via is the API
    status     HTTP status of the answer to a request, error the kind of the error
    operation  the missing right, '' for none; resource is the resource of that right
    schema     the refused schema; null for a request
    """

    at: int
    kind: str
    actor: str
    address: str
    agent: str
    request_id: str
    via: str
    namespace: str | None
    subject: str | None
    method: str = ""
    path: str = ""
    status: int = 0
    error: str = ""
    operation: str = ""
    resource: str = ""
    schema: RefusedSchema | None = None


class RefusalPage(msgspec.Struct, frozen=True):
    """Refusals, newest first.

    is_durable   whether they come from the file of the audit trail, else from the memory of one process
    is_complete  whether there are no more
    """

    refusals: tuple[RefusalEntry, ...]
    is_durable: bool
    is_complete: bool


def note_refused_registration(notes: AuditNotes, command: cmd.Command, error: Incompatible) -> None:
    """Note that the policy refused a command that registers a schema."""
    registration = _find_registration(command, error.subject)
    if registration is None:
        return
    document = registration.document
    text = _find_text(document) if document is not None else b""
    findings = error.findings[:_MOST_FINDINGS]
    refused = RefusedSchema(
        format=document.format if document is not None else "",
        against=error.against,
        findings=tuple(_shorten(finding) for finding in findings),
        omitted=len(error.findings) - len(findings),
        sha256=sha256(text).hexdigest() if document is not None else "",
        bytes=len(text),
        text=text.decode("utf-8", "replace") if len(text) <= notes.text_bytes else "",
    )
    key = registration.key
    notes.note(REFUSED_REGISTRATION, namespace=key.namespace, subject=key.name, schema=msgspec.to_builtins(refused))


def _find_registration(command: cmd.Command, subject: str) -> cmd.RegisterSchema | None:
    """Return the part of a command that registers a version of a subject with this name."""
    parts = command.commands if isinstance(command, cmd.Transaction) else (command,)
    return next((part for part in parts if isinstance(part, cmd.RegisterSchema) and part.key.name == subject), None)


def _find_text(document: SchemaDocument) -> bytes:
    """Return a text as its author sent it."""
    return document.submitted.text if document.submitted is not None else document.text


def _shorten(finding: Finding) -> Finding:
    names = ("path", "reader", "writer", "why", "fix", "witness")
    shortened: dict[str, Any] = {
        name: value[:_MOST_CHARACTERS] for name in names if (value := getattr(finding, name)) is not None
    }
    return msgspec.structs.replace(finding, **shortened)


class RefusalCounter:
    """Number of registrations that the policy refused today. The files are read again only every `HOLDS` seconds.

    Args:
        notes: Notes of the process.
        clock: Returns seconds since 1970 UTC.
    """

    HOLDS: Final = 30.0
    """Seconds for which a number is cached."""

    def __init__(self, notes: AuditNotes, clock: Callable[[], float] = time.time) -> None:
        self._notes, self._clock = notes, clock
        self._until = float("-inf")
        self._count = 0

    async def count_today(self) -> int:
        """Return the number of refusals since midnight UTC, `MOST_REFUSALS` at most. Raises `StoreError`."""
        now = self._clock()
        if now >= self._until:
            midnight = int(now // _DAY * _DAY * 1000)
            page = await asyncio.to_thread(read_refusals, self._notes, "", REFUSED_REGISTRATION, MOST_REFUSALS)
            self._count = sum(entry.at >= midnight for entry in page.refusals)
            self._until = now + self.HOLDS
        return self._count


def read_refusals(notes: AuditNotes, text: str, kind: str, limit: int) -> RefusalPage:
    """Return the newest refusals whose caller, subject, address, path or digest contains a text. Reads files.

    Args:
        notes: Notes of the process.
        text: Text to find, in any case; '' matches all.
        kind: One of `KINDS`; '' selects both.
        limit: Maximum number of refusals.

    Raises:
        InvalidRequest: There is no such kind.
        StoreError: A file cannot be read.
    """
    if kind not in ("", *KINDS):
        raise InvalidRequest(f"kind must be one of {', '.join(KINDS)}")
    if notes.file is None:
        entries, is_complete = list(reversed(notes.recent)), True
    else:
        try:
            entries, is_complete = _read_files(notes.file, text.lower(), kind, limit)
        except OSError as error:
            raise StoreError(f"the file of the audit trail cannot be read: {error.strerror}") from error
    matches = [entry for entry in entries if _matches(entry, text.lower(), kind)]
    return RefusalPage(
        tuple(_describe(entry) for entry in matches[:limit]),
        notes.file is not None,
        is_complete and len(matches) <= limit,
    )


def _read_files(path: Path, wanted: str, kind: str, limit: int) -> tuple[list[AuditEntry], bool]:
    """Return matching entries, newest first, one more than the limit at most; and whether the files hold no more."""
    matches: list[AuditEntry] = []
    read = 0
    for file in reversed(find_files(path)):
        with file.open("rb") as opened:
            size = opened.seek(0, 2)
            start = max(0, size - (MOST_BYTES - read))
            opened.seek(start)
            lines = opened.read(size - start).split(b"\n")
        read += size - start
        for entry in _read_entries(reversed(lines[1:] if start else lines)):
            if _matches(entry, wanted, kind):
                matches.append(entry)
                if len(matches) > limit:
                    return matches, False
        if start or read >= MOST_BYTES:
            return matches, False
    return matches, True


def _read_entries(lines: Iterable[bytes]) -> Iterable[AuditEntry]:
    for line in lines:
        if any(kind in line for kind in _REFUSED):
            try:
                yield msgspec.json.decode(msgspec.json.decode(line, type=AuditLine).entry, type=AuditEntry)
            except msgspec.MsgspecError:
                continue


def _matches(entry: AuditEntry, wanted: str, kind: str) -> bool:
    if entry.kind not in KINDS or kind not in ("", entry.kind):
        return False
    digest = (entry.details.get("schema") or {}).get("sha256", "")
    places = (entry.actor, entry.subject or "", entry.address, str(entry.details.get("path", "")), digest)
    return any(wanted in place.lower() for place in places)


def _describe(entry: AuditEntry) -> RefusalEntry:
    details = entry.details
    schema = details.get("schema")
    return RefusalEntry(
        at=entry.at,
        kind=entry.kind,
        actor=entry.actor,
        address=entry.address,
        agent=entry.agent,
        request_id=entry.request_id,
        via=entry.via,
        namespace=entry.namespace,
        subject=entry.subject,
        method=str(details.get("method") or ""),
        path=str(details.get("path") or ""),
        status=int(details.get("status") or 0),
        error=str(details.get("error") or ""),
        operation=str(details.get("operation") or ""),
        resource=" ".join(str(details[name]) for name in ("resource_type", "resource") if details.get(name)),
        schema=msgspec.convert(schema, RefusedSchema) if schema else None,
    )
