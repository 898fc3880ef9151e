"""The audit trail of a server: its file, its writer and its receivers, as configured by the settings."""

from __future__ import annotations

import asyncio
from pathlib import Path

from stele.core.access import ResourceType
from stele.errors import Forbidden, SteleError
from stele.server.asgi import AsgiScope
from stele.server.audit_forwarding import AuditForwarder, make_receiver
from stele.server.settings import ServerSettings
from stele.service.access import Caller
from stele.service.audit import AuditWriter
from stele.service.audit_file import AuditFile
from stele.service.audit_notes import REFUSED_REQUEST, AuditNotes
from stele.service.registry import Registry
from stele.service.secrets import parse_source, read_key_bytes

_PATH_CHARACTERS = 500


class ServerAudit:
    """Writes and forwards the audit trail of one process.

    Args:
        settings: Name the file of the trail and its receivers.
        registry: The registry that the trail is about.

    Raises:
        InvalidRequest: A setting is wrong.
        StoreError: The file cannot be written.
    """

    def __init__(self, settings: ServerSettings, registry: Registry) -> None:
        path = Path(settings.audit_file or Path(settings.state_dir) / "audit.jsonl")
        key = read_key_bytes(parse_source("audit_key", settings.audit_key)) if settings.audit_key else b""
        receivers = {"syslog": settings.audit_syslog, "webhook": settings.audit_webhook}
        self._forwarders = [AuditForwarder(path, name, make_receiver(url)) for name, url in receivers.items() if url]
        file = AuditFile(path, key, max_bytes=settings.audit_file_bytes, most_files=settings.audit_files)
        self._writer = AuditWriter(registry, file)
        self._registry = registry
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start to write and to deliver. Raises `StoreError`."""
        await self._writer.start()
        self._tasks.append(asyncio.create_task(self._writer.run()))
        self._tasks += [asyncio.create_task(forwarder.run()) for forwarder in self._forwarders]

    async def stop(self) -> None:
        """Write the remaining lines. Lines that are not delivered yet are delivered after the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._writer.close()
        for forwarder in self._forwarders:
            forwarder.close()

    @property
    def dropped_lines(self) -> int:
        """Number of notes and lines that were lost before they were written or delivered."""
        return self._registry.audit.dropped + sum(forwarder.dropped for forwarder in self._forwarders)

    @property
    def is_failing(self) -> bool:
        """Whether writing the file fails."""
        return self._writer.failure is not None


def has_audit(settings: ServerSettings) -> bool:
    """Return whether the settings turn on an audit trail."""
    return bool(settings.audit_file or settings.audit_syslog or settings.audit_webhook)


def note_refusal(notes: AuditNotes, caller: Caller, scope: AsgiScope, status: int, error: SteleError) -> None:
    """Record a request that was refused because of its caller: the path without its query, which may hold secrets."""
    operation = error.operation if isinstance(error, Forbidden) else None
    kind, namespace, name = (error.resource if isinstance(error, Forbidden) else None) or (None, None, None)
    notes.note(
        REFUSED_REQUEST,
        caller=caller,
        namespace=namespace or None,
        subject=name if kind == ResourceType.SUBJECT else None,
        status=status,
        error=type(error).__name__,
        operation=operation,
        resource_type=kind,
        resource=name,
        method=scope["method"],
        path=scope["path"][:_PATH_CHARACTERS],
    )
