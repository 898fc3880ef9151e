"""Definitions of exporters: how they are stored, checked and changed. Pure, on the documents of one collection.

Nothing runs exporters yet. So each is shown as PAUSED and can be changed and reset; the state that is stored says
whether it is to run once something does.
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
from stele.errors import InvalidRequest
from stele.service.collections import Changes, Items
from stele.service.disclosure import hide_settings

COLLECTION: Final = "confluent.exporters"
STARTING: Final = "STARTING"
PAUSED: Final = "PAUSED"
NOT_ACTIVE: Final = "exporters are stored, and nothing runs them yet"

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
    """A stored exporter; offset is the position in the log it has copied up to.

    config holds credentials, too: no answer shows them, and the log has them sealed (`service/secrets.py`).
    """

    name: str
    context_type: str = "AUTO"
    context: str = ""
    subjects: tuple[str, ...] = ("*",)
    subject_rename_format: str = ""
    kek_rename_format: str = ""
    config: dict[str, str] = {}
    state: str = STARTING
    offset: int = 0
    ts: int = 0


def read_exporter(items: Items, name: str) -> StoredExporter:
    """An exporter. Raises `ExporterNotFound`."""
    data = items.get((name,))
    if data is None:
        raise ExporterNotFound(name)
    return msgspec.json.decode(data, type=StoredExporter)


def create_exporter(items: Items, request: api.ExporterRequest, now: int) -> tuple[Changes, StoredExporter]:
    """An exporter defined. Raises `InvalidExporterName`, `ExporterExists`, `TooManyExporters` and what is invalid."""
    name = request.name or ""
    if not name or len(name) > _LONGEST_NAME or not all(char.isalnum() or char in "._-" for char in name):
        raise InvalidExporterName
    exporter = _validate(_apply_request(StoredExporter(name, ts=now), request))
    if (name,) in items:
        raise ExporterExists(name)
    if len(items) >= _MOST:
        raise TooManyExporters(_MOST)
    return _store(exporter)


def update_exporter(items: Items, name: str, request: api.ExporterRequest, now: int) -> tuple[Changes, StoredExporter]:
    """An exporter changed. Raises `ExporterNotFound` and what is invalid."""
    before = read_exporter(items, name)
    if request.name not in (None, name):
        raise InvalidExporterName
    return _store(replace(_validate(_apply_request(before, request)), ts=now))


def update_config(items: Items, name: str, config: dict[str, str], now: int) -> tuple[Changes, StoredExporter]:
    """The configuration of an exporter replaced. Raises as `update_exporter` does."""
    return update_exporter(items, name, api.ExporterRequest(config=config), now)


def change_state(items: Items, name: str, state: str, now: int) -> tuple[Changes, StoredExporter]:
    """An exporter paused or resumed. Raises `ExporterNotFound`."""
    before = read_exporter(items, name)
    return _store(replace(before, state=state, ts=now)) if before.state != state else ({}, before)


def reset_offset(items: Items, name: str, now: int) -> tuple[Changes, StoredExporter]:
    """An exporter set back to the beginning. Raises `ExporterNotFound`."""
    return _store(replace(read_exporter(items, name), offset=0, ts=now))


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


def status_out(exporter: StoredExporter) -> api.ExporterStatus:
    """How far an exporter is; `trace` says why it does not run."""
    return api.ExporterStatus(exporter.name, PAUSED, exporter.offset, exporter.ts, NOT_ACTIVE)
