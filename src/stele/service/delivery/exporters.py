"""Exporters: what they copy into another registry, how far each one is, and how to pause, resume and reset them.

They are documents of one collection; their progress is stored in another collection. `exporter_definitions` creates
them, `apis.confluent` runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from stele.core.access import Owner
from stele.core.state import State
from stele.errors import NotFound
from stele.service import collections
from stele.service.change_events import parse_position
from stele.service.collections import Changes, Items
from stele.service.delivery.status import (
    EXPORTERS,
    DeadEvent,
    DeliveryState,
    DeliveryStatus,
    find_status,
    set_state,
)
from stele.service.disclosure import hide_settings
from stele.service.registry import Registry
from stele.service.times import current_millis

COLLECTION: Final = "confluent.exporters"
_HARMLESS: Final = frozenset(
    {
        "basic.auth.credentials.source",
        "bearer.auth.client.id",
        "bearer.auth.credentials.source",
        "bearer.auth.identity.pool.id",
        "bearer.auth.issuer.endpoint.url",
        "bearer.auth.logical.cluster",
        "bearer.auth.scope",
        "proxy.host",
        "proxy.port",
        "schema.registry.ssl.endpoint.identification.algorithm",
        "schema.registry.ssl.keystore.location",
        "schema.registry.ssl.keystore.type",
        "schema.registry.ssl.protocol",
        "schema.registry.ssl.truststore.location",
        "schema.registry.ssl.truststore.type",
        "schema.registry.url",
    }
)
"""Settings that hold no credentials; the values of all others are hidden."""


class ExporterNotFound(NotFound):
    """No exporter of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Exporter '{name}' not found.")


class ExporterState(StrEnum):
    """Activity of an exporter."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"
    """An error stopped it. It does nothing until it is resumed."""


class StoredExporter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored exporter; run is when it was created or last reset to the beginning.

    config holds credentials, too: no answer shows them, and the log has them sealed (`service/secrets.py`). Schemas
    that its owner may not read are not exported. state is `STARTING` or `PAUSED`.
    """

    name: str
    context_type: str = "AUTO"
    context: str = ""
    subjects: tuple[str, ...] = ("*",)
    subject_rename_format: str = ""
    kek_rename_format: str = ""
    config: dict[str, str] = {}
    state: str = ExporterState.STARTING
    ts: int = 0
    run: int = 0
    owner: Owner | None = None

    @property
    def status_name(self) -> str:
        """Key of its progress, which changes with each reset."""
        return f"{self.name}/{self.run}"


class ExporterProgress(msgspec.Struct, frozen=True):
    """How far an exporter is.

    state   its activity
    offset  the last record of the log that is processed; 0: none
    ts      when that changed (milliseconds since 1970 UTC)
    trace   why it stopped, or what it left out; '' for nothing
    """

    state: ExporterState
    offset: int
    ts: int
    trace: str = ""


class ExporterOverview(msgspec.Struct, frozen=True):
    """An exporter as shown to users: its definition, and how far it is.

    name                   name of the exporter
    owner                  caller that wrote it last, '' if anonymous. What the owner may not read is not exported
    context_type           AUTO (a context named after this registry), CUSTOM, NONE or DEFAULT
    context                context of CUSTOM
    subjects               names or patterns
    subject_rename_format  names of subjects in the other registry; '' keeps them
    config                 how the other registry is reached; credentials are hidden
    state                  its activity
    offset                 the last record of the log that is processed; 0: none
    waiting_records        records of the log after that; any of them may be about its subjects
    delivered              changes that were copied
    failures               failed attempts since the last success
    changed_at             when state, definition or offset changed (milliseconds since 1970 UTC)
    last_delivery_at       when a change was last copied; 0: never
    last_failure_at        when an attempt last failed
    trace                  why it stopped, or what it left out; '' for nothing
    dead                   number of changes that the other registry refused for good; dead_events are the newest of
                           them
    """

    name: str
    owner: str
    context_type: str
    context: str
    subjects: tuple[str, ...]
    subject_rename_format: str
    config: dict[str, str]
    state: ExporterState
    offset: int
    waiting_records: int
    delivered: int
    failures: int
    changed_at: int
    last_delivery_at: int
    last_failure_at: int
    trace: str
    dead: int
    dead_events: tuple[DeadEvent, ...]


# --- documents --------------------------------------------------------------------------------------------------------


def decode_exporter(text: bytes) -> StoredExporter:
    """Return a stored exporter."""
    return msgspec.json.decode(text, type=StoredExporter)


def read_exporter(items: Items, name: str) -> StoredExporter:
    """Return an exporter. Raises `ExporterNotFound`."""
    text = items.get((name,))
    if text is None:
        raise ExporterNotFound(name)
    return decode_exporter(text)


def store_exporter(exporter: StoredExporter) -> tuple[Changes, StoredExporter]:
    """Return the change that writes an exporter, and the exporter."""
    return {(exporter.name,): msgspec.json.encode(exporter)}, exporter


def change_state(items: Items, name: str, state: ExporterState, now: int) -> tuple[Changes, StoredExporter]:
    """Pause or resume an exporter. Raises `ExporterNotFound`."""
    before = read_exporter(items, name)
    return store_exporter(replace(before, state=state, ts=now)) if before.state != state else ({}, before)


def reset_offset(items: Items, name: str, now: int) -> tuple[Changes, StoredExporter]:
    """Set an exporter back to the beginning. Raises `ExporterNotFound`."""
    before = read_exporter(items, name)
    return store_exporter(replace(before, run=max(now, before.run + 1), ts=now))


def hide_config(exporter: StoredExporter) -> dict[str, str]:
    """Return the configuration as answers show it; a hidden value that is sent back keeps the one there is."""
    return hide_settings(exporter.config, _HARMLESS)


def find_progress(state: State, exporter: StoredExporter) -> ExporterProgress:
    """Return how far an exporter is."""
    status = find_status(state, EXPORTERS, exporter.status_name)
    is_paused = exporter.state == ExporterState.PAUSED
    if status is None:
        return ExporterProgress(ExporterState.PAUSED if is_paused else ExporterState.STARTING, 0, exporter.ts)
    offset = parse_position(status.position)
    seq = offset.seq if offset.part >= 0 else offset.seq - 1
    exporter_state, trace = ExporterState.RUNNING, ""
    if is_paused:
        exporter_state = ExporterState.PAUSED
    elif status.state is DeliveryState.PAUSED:
        exporter_state = ExporterState.ERROR
        trace = f"{status.last_code} {status.last_status or ''} {status.last_detail}".strip()
    elif status.failures:
        trace = f"{status.failures} attempts failed: {status.last_code} {status.last_detail}"
    elif status.dead:
        trace = f"{status.dead} versions were left out, the last one {status.dead_events[-1].subject}"
    return ExporterProgress(exporter_state, seq, max(status.last_delivery_at, exporter.ts), trace)


# --- managing ---------------------------------------------------------------------------------------------------------


async def list_exporters(registry: Registry) -> list[ExporterOverview]:
    """Return all exporters, by name."""
    items = await collections.read_collection(registry, COLLECTION)
    return [_describe(registry.state, decode_exporter(text)) for _, text in sorted(items.items())]


async def get_exporter(registry: Registry, name: str) -> ExporterOverview:
    """Return one exporter. Raises `ExporterNotFound`."""
    items = await collections.read_collection(registry, COLLECTION)
    return _describe(registry.state, read_exporter(items, name))


async def pause_exporter(registry: Registry, name: str, via: str) -> StoredExporter:
    """Pause an exporter; it continues at the same position when it is resumed. Raises `ExporterNotFound`."""
    return await edit_exporters(
        registry, lambda items: change_state(items, name, ExporterState.PAUSED, current_millis()), via
    )


async def resume_exporter(registry: Registry, name: str, via: str) -> StoredExporter:
    """Resume an exporter that is paused, or that an error stopped. Raises `ExporterNotFound`."""
    exporter = await edit_exporters(
        registry, lambda items: change_state(items, name, ExporterState.STARTING, current_millis()), via
    )
    status = find_status(registry.state, EXPORTERS, exporter.status_name)
    if status is not None and status.state is DeliveryState.PAUSED:
        await set_state(registry, EXPORTERS, exporter.status_name, status, DeliveryState.ACTIVE)
    return exporter


async def reset_exporter(registry: Registry, name: str, via: str) -> StoredExporter:
    """Reset an exporter to the beginning: it copies everything again. Raises `ExporterNotFound`."""
    return await edit_exporters(registry, lambda items: reset_offset(items, name, current_millis()), via)


async def edit_exporters(
    registry: Registry, change: Callable[[Items], tuple[Changes, StoredExporter]], via: str
) -> StoredExporter:
    """Change the document of an exporter, and return it. Raises what the change raises."""
    return await collections.edit_collection(registry, COLLECTION, change, via=via)


def _describe(state: State, exporter: StoredExporter) -> ExporterOverview:
    status = find_status(state, EXPORTERS, exporter.status_name) or DeliveryStatus("0")
    progress = find_progress(state, exporter)
    return ExporterOverview(
        name=exporter.name,
        owner=exporter.owner.name if exporter.owner is not None else "",
        context_type=exporter.context_type,
        context=exporter.context,
        subjects=exporter.subjects,
        subject_rename_format=exporter.subject_rename_format,
        config=hide_config(exporter),
        state=progress.state,
        offset=progress.offset,
        waiting_records=max(state.seq - progress.offset, 0),
        delivered=status.delivered,
        failures=status.failures,
        changed_at=progress.ts,
        last_delivery_at=status.last_delivery_at,
        last_failure_at=status.last_failure_at,
        trace=progress.trace,
        dead=status.dead,
        dead_events=status.dead_events,
    )
