"""The audit trail: changes of the log as entries (user, time, address and change), and the writer of the trail.

The log is the source. The trail in a file is a copy for readers without access to the registry. It adds what the log
does not have: refused requests and uses of keys. No entry holds a schema, a document or a secret. Each holds digests of
the content before and after the change instead. Digests of documents leave the secret members out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any, Final

import msgspec
import structlog

from stele.core import events as ev
from stele.core import queries
from stele.core.audit_chain import AuditEntry
from stele.core.model import SubjectKey
from stele.core.sealed_documents import strip_secrets
from stele.errors import NotFound, SteleError, StoreError
from stele.service.audit_file import AuditFile
from stele.service.journal import JournalEntry, list_entries
from stele.service.registry import Registry
from stele.service.secrets import SECRET_MEMBERS
from stele.service.times import current_millis

_logger = structlog.get_logger("stele.audit")

_PAGE: Final = 500
"""Records of the log read at once."""
_PAUSE_SECONDS: Final = 0.2

_printer = msgspec.json.Encoder(order="deterministic")


class AuditPage(msgspec.Struct, frozen=True):
    """Entries in order.

    next is the last record that was read, end the last record of the log. A client reads further pages until both are
    equal.
    """

    entries: list[AuditEntry]
    next: int
    end: int


class AuditReader:
    """Makes audit entries from the records of a log, and remembers the digests of elements that can change.

    Args:
        registry: Registry whose log it reads.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._read_to = 0
        self._newest: dict[tuple[Any, ...], str] = {}
        self._before: dict[tuple[int, int], str] = {}
        self._reading = asyncio.Lock()

    async def read_page(self, after: int, limit: int) -> AuditPage:
        """Return the entries of at most limit records behind a sequence number. Raises `StoreError`."""
        end = (await self._registry.fresh_state()).seq
        limit = min(limit, end - after)
        if limit <= 0:
            return AuditPage([], after, end)
        await self._read_digests(after + limit)
        records = await self._registry.read_log(after, limit)
        entries = [entry for seq, record in records for entry in self._list_entries(seq, record)]
        return AuditPage(entries, records[-1][0] if records else after, end)

    async def _read_digests(self, until: int) -> None:
        """Read the log up to a record, each record once. The content before a change stands in an earlier record."""
        async with self._reading:
            while self._read_to < until:
                for seq, record in await self._registry.read_log(self._read_to, min(_PAGE, until - self._read_to)):
                    for part, (key, after) in enumerate(_list_digests(record)):
                        if key is None:
                            continue
                        if (before := self._newest.pop(key, None)) is not None:
                            self._before[seq, part] = before
                        if after is not None:
                            self._newest[key] = after
                    self._read_to = seq
                await asyncio.sleep(0)

    def _list_entries(self, seq: int, record: ev.LogRecord) -> Iterator[AuditEntry]:
        digests = list(_list_digests(record))
        stamp = record.metadata
        for row, (_, after) in zip(list_entries(seq, record), digests, strict=True):
            before = self._before.get((seq, row.part)) or self._find_version_digest(row)
            yield AuditEntry(
                row.at,
                row.kind,
                row.actor,
                stamp.address,
                stamp.agent,
                stamp.request_id,
                row.via,
                seq,
                row.part,
                row.namespace,
                row.subject,
                row.version,
                row.schema_id,
                row.details,
                before,
                after,
            )

    def _find_version_digest(self, row: JournalEntry) -> str | None:
        """Return the digest of a soft-deleted version, as long as the version exists."""
        if row.kind != "soft_deleted" or row.version is None or row.subject is None:
            return None
        try:
            key = SubjectKey(row.namespace or "", row.subject)
            version = queries.get_version(self._registry.state, key, row.version, queries.ACTIVE_OR_SOFT_DELETED)
        except NotFound:
            return None
        return version.schema.content.sha.hex()


_Digest = tuple[tuple[Any, ...] | None, str | None]
"""Key of the element that changes (None if it cannot change again), and the digest of its content after the change."""


def _list_digests(record: ev.LogRecord) -> Iterator[_Digest]:
    """Return a digest for each row that the journal makes of a record."""
    for event in record.events:
        rows = len(list_entries(0, ev.LogRecord(record.metadata, (event,))))
        digests = list(_digest_event(event))
        yield from (digests[place] if place < len(digests) else (None, None) for place in range(rows))


def _digest_event(event: ev.Event) -> Iterator[_Digest]:
    match event:
        case ev.VersionRegistered():
            yield None, event.sha.hex()
        case ev.SettingsChanged():
            yield ("settings", event.level), _digest_value(event.settings)
        case ev.ModeChanged():
            yield ("mode", event.level), _digest_value(event.mode)
        case ev.NamespaceCreated() | ev.NamespaceChanged():
            yield ("namespace", event.namespace), _digest_value(event)
        case ev.NamespaceDeleted():
            yield ("namespace", event.namespace), None
        case ev.SubjectCreated() | ev.SubjectChanged():
            yield ("subject", event.key), _digest_value(event)
        case ev.BindingAdded():
            yield ("binding", event.binding.key), _digest_value(event.binding)
        case ev.BindingRemoved():
            yield ("binding", event.key), None
        case ev.RulesetAdopted():
            yield ("ruleset", event.format, event.name), _digest_value(event.version)
        case ev.ItemsChanged():
            for key, document in event.changes:
                yield ("item", event.collection, key), _digest_document(event.collection, document)


def _digest_value(value: object) -> str | None:
    return None if value is None else sha256(_printer.encode(value)).hexdigest()


def _digest_document(collection: str, document: bytes | None) -> str | None:
    if document is None:
        return None
    names = SECRET_MEMBERS.get(collection)
    return sha256(document if names is None else strip_secrets(document, names)).hexdigest()


class AuditWriter:
    """Writes the trail of a registry into a file continuously; `run` goes on until it is cancelled.

    Several processes may write one file. Each change is written by one of them, and each process writes its own notes.
    """

    def __init__(self, registry: Registry, file: AuditFile) -> None:
        self._registry = registry
        self._reader = AuditReader(registry)
        self._file = file
        self._thread = ThreadPoolExecutor(1, "stele-audit")
        self._position = -1
        self.failure: StoreError | None = None
        """Error of the last attempt to write the file; None if that attempt succeeded."""
        registry.audit.is_on = True
        registry.audit.file = file.path

    async def start(self) -> None:
        """Start a new trail at the present end of the log, or continue the existing one. Raises `StoreError`."""
        end = await self._call(self._file.read_end)
        self._position = end.position
        if end.number == 0:
            head = (await self._registry.fresh_state()).seq
            entry = AuditEntry(current_millis(), "trail_started", details={"after": head})
            await self._call(self._file.append, [entry], head, end.position)

    async def run(self) -> None:
        """Write pending notes and changes, again and again."""
        while True:
            await self.write_pending()
            await asyncio.sleep(_PAUSE_SECONDS)

    async def write_pending(self) -> None:
        """Write all pending notes and changes. What fails is tried again with the next call."""
        notes = self._registry.audit.take_notes()
        try:
            if notes:
                await self._call(self._file.append, notes, 0, None)
                notes = []
            await self._write_changes()
        except SteleError as error:
            self._registry.audit.give_back(notes)
            if self.failure is None:
                _logger.error("the audit trail is not written", reason=str(error))
            self.failure = error if isinstance(error, StoreError) else StoreError(str(error))
        else:
            self.failure = None

    async def _write_changes(self) -> None:
        while self._registry.state.seq > self._position:
            position = (await self._call(self._file.read_end)).position
            page = await self._reader.read_page(position, _PAGE)
            if page.next > position:
                await self._call(self._file.append, page.entries, page.next, position)
            self._position = page.next

    async def _call(self, call: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *args)

    async def close(self) -> None:
        """Write what is pending, and release the file."""
        await self.write_pending()
        self._registry.audit.is_on = False
        self._thread.shutdown()
        self._file.close()
