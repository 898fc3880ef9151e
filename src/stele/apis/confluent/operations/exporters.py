"""Definitions of exporters: how they are stored, checked and changed. Pure, on the documents of one collection.

`apis.confluent.exporting` runs them. How far one is stands in a collection of its own.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from stele.apis.confluent import models as api
from stele.apis.confluent.errors import (
    ExporterExists,
    ExporterNotFound,
    InvalidExporterConfig,
    InvalidExporterName,
    InvalidExporterSubjects,
    TooManyExporters,
)
from stele.apis.confluent.names import parse_context
from stele.apis.confluent.translate import restore_hidden
from stele.core.access import Owner
from stele.core.state import State
from stele.errors import InvalidRequest
from stele.service import collections
from stele.service.change_events import parse_position
from stele.service.collections import Changes, Items
from stele.service.delivery.status import EXPORTERS, DeliveryState, find_status, set_state
from stele.service.disclosure import hide_settings
from stele.service.registry import Registry

COLLECTION: Final = "confluent.exporters"
STATUS_COLLECTION: Final = EXPORTERS
STARTING: Final = "STARTING"
PAUSED: Final = "PAUSED"
_RUNNING: Final = "RUNNING"
_ERROR: Final = "ERROR"

_CONTEXT_TYPES = ("AUTO", "CUSTOM", "NONE", "DEFAULT")
_LONGEST_NAME = 256
_MOST = 1000
"""Exporters, at most."""
_HARMLESS = frozenset(
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


class StoredExporter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored exporter; run is when it was created or last set back to the beginning.

    config holds credentials, too: no answer shows them, and the log has them sealed (`service/secrets.py`). What its
    owner may not read is not exported.
    """

    name: str
    context_type: str = "AUTO"
    context: str = ""
    subjects: tuple[str, ...] = ("*",)
    subject_rename_format: str = ""
    kek_rename_format: str = ""
    config: dict[str, str] = {}
    state: str = STARTING
    ts: int = 0
    run: int = 0
    owner: Owner | None = None

    @property
    def status_name(self) -> str:
        """Key of how far it is: another one after each reset."""
        return f"{self.name}/{self.run}"


def read_exporter(items: Items, name: str) -> StoredExporter:
    """An exporter. Raises `ExporterNotFound`."""
    data = items.get((name,))
    if data is None:
        raise ExporterNotFound(name)
    return msgspec.json.decode(data, type=StoredExporter)


def create_exporter(
    items: Items, request: api.ExporterRequest, now: int, owner: Owner
) -> tuple[Changes, StoredExporter]:
    """An exporter defined. Raises `InvalidExporterName`, `ExporterExists`, `TooManyExporters` and what is invalid."""
    name = request.name or ""
    if not name or len(name) > _LONGEST_NAME or not all(char.isalnum() or char in "._-" for char in name):
        raise InvalidExporterName
    exporter = _validate(_apply_request(StoredExporter(name, ts=now, run=now, owner=owner), request))
    if (name,) in items:
        raise ExporterExists(name)
    if len(items) >= _MOST:
        raise TooManyExporters(_MOST)
    return _store(exporter)


def update_exporter(
    items: Items, name: str, request: api.ExporterRequest, now: int, owner: Owner
) -> tuple[Changes, StoredExporter]:
    """An exporter changed; it belongs to who changes it. Raises `ExporterNotFound` and what is invalid."""
    before = read_exporter(items, name)
    if request.name not in (None, name):
        raise InvalidExporterName
    return _store(replace(_validate(_apply_request(before, request)), ts=now, owner=owner))


def update_config(
    items: Items, name: str, config: dict[str, str], now: int, owner: Owner
) -> tuple[Changes, StoredExporter]:
    """The configuration of an exporter replaced. Raises as `update_exporter` does."""
    return update_exporter(items, name, api.ExporterRequest(config=config), now, owner)


def change_state(items: Items, name: str, state: str, now: int) -> tuple[Changes, StoredExporter]:
    """An exporter paused or resumed. Raises `ExporterNotFound`."""
    before = read_exporter(items, name)
    return _store(replace(before, state=state, ts=now)) if before.state != state else ({}, before)


def reset_offset(items: Items, name: str, now: int) -> tuple[Changes, StoredExporter]:
    """An exporter set back to the beginning. Raises `ExporterNotFound`."""
    before = read_exporter(items, name)
    return _store(replace(before, run=max(now, before.run + 1), ts=now))


def delete_exporter(items: Items, name: str) -> tuple[Changes, StoredExporter]:
    """An exporter that is no more. Raises `ExporterNotFound`."""
    before = read_exporter(items, name)
    return {(name,): None}, before


def _store(exporter: StoredExporter) -> tuple[Changes, StoredExporter]:
    return {(exporter.name,): msgspec.json.encode(exporter)}, exporter


def _apply_request(before: StoredExporter, request: api.ExporterRequest) -> StoredExporter:
    """An exporter with the changes of a request; null brings the default back."""
    plain = StoredExporter(before.name)
    changes: dict[str, Any] = {}
    for name in ("context_type", "context", "subject_rename_format", "kek_rename_format"):
        if (value := getattr(request, name)) is not UNSET:
            changes[name] = value or getattr(plain, name)
    if request.subjects is not UNSET:
        changes["subjects"] = tuple(request.subjects or plain.subjects)
    if request.config is not UNSET:
        sent = request.config or {}
        changes["config"] = restore_hidden(sent, before.config)
    return replace(before, **changes)


def _validate(exporter: StoredExporter) -> StoredExporter:
    if exporter.context_type.upper() not in _CONTEXT_TYPES:
        raise InvalidExporterConfig(f"contextType is one of {', '.join(_CONTEXT_TYPES)}")
    exporter = replace(exporter, context_type=exporter.context_type.upper())
    if (exporter.context_type == "CUSTOM") != bool(exporter.context):
        raise InvalidExporterConfig("a context belongs to contextType CUSTOM, and to no other")
    try:
        parse_context(exporter.context)
    except InvalidRequest as error:
        raise InvalidExporterConfig(str(error)) from None
    for subject in exporter.subjects:
        if not subject or any(char < " " or "\x7f" <= char < "\xa0" for char in subject):
            raise InvalidExporterSubjects(subject)
    return exporter


async def clear_failure(registry: Registry, name: str) -> None:
    """Let an exporter that an error stopped try again."""
    exporter = read_exporter(await collections.read_collection(registry, COLLECTION), name)
    status = find_status(registry.state, EXPORTERS, exporter.status_name)
    if status is not None and status.state is DeliveryState.PAUSED:
        await set_state(registry, EXPORTERS, exporter.status_name, status, DeliveryState.ACTIVE)


# --- answers --------------------------------------------------------------------------------------------------------


def exporter_out(exporter: StoredExporter) -> api.Exporter:
    """An exporter as the API shows it."""
    return api.Exporter(
        name=exporter.name,
        context_type=exporter.context_type,
        context=exporter.context,
        subjects=list(exporter.subjects),
        subject_rename_format=exporter.subject_rename_format,
        kek_rename_format=exporter.kek_rename_format,
        config=config_out(exporter),
    )


def config_out(exporter: StoredExporter) -> dict[str, str]:
    """The configuration of an exporter; what is sent back with a hidden value keeps the one there is."""
    return hide_settings(exporter.config, _HARMLESS)


def status_out(state: State, exporter: StoredExporter) -> api.ExporterStatus:
    """How far an exporter is: `offset` is a record of the log; `trace` says what stopped it, or was left out."""
    status = find_status(state, EXPORTERS, exporter.status_name)
    name = exporter.name
    if status is None:
        return api.ExporterStatus(name, PAUSED if exporter.state == PAUSED else STARTING, 0, exporter.ts, "")
    offset = parse_position(status.position)
    seq = offset.seq if offset.part >= 0 else offset.seq - 1
    shown, trace = _RUNNING, ""
    if exporter.state == PAUSED:
        shown = PAUSED
    elif status.state is DeliveryState.PAUSED:
        shown, trace = _ERROR, f"{status.last_code} {status.last_status or ''} {status.last_detail}".strip()
    elif status.failures:
        trace = f"{status.failures} attempts failed: {status.last_code} {status.last_detail}"
    elif status.dead:
        trace = f"{status.dead} versions were left out, the last one {status.dead_events[-1].subject}"
    return api.ExporterStatus(name, shown, seq, max(status.last_delivery_at, exporter.ts), trace)
