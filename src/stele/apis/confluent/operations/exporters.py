"""Definitions of exporters: how they are checked and changed, and what answers show. Pure, on the stored documents.

`service.delivery.exporters` keeps them, `apis.confluent.exporting` runs them.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from stele.apis.confluent import models as api
from stele.apis.confluent.errors import (
    ExporterExists,
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
from stele.service.collections import Changes, Items
from stele.service.delivery.exporters import (
    StoredExporter,
    find_progress,
    hide_config,
    read_exporter,
    store_exporter,
)

_CONTEXT_TYPES = ("AUTO", "CUSTOM", "NONE", "DEFAULT")
_LONGEST_NAME = 256
_MOST = 1000
"""Exporters, at most."""


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
    return store_exporter(exporter)


def update_exporter(
    items: Items, name: str, request: api.ExporterRequest, now: int, owner: Owner
) -> tuple[Changes, StoredExporter]:
    """An exporter changed; it belongs to who changes it. Raises `ExporterNotFound` and what is invalid."""
    before = read_exporter(items, name)
    if request.name not in (None, name):
        raise InvalidExporterName
    return store_exporter(replace(_validate(_apply_request(before, request)), ts=now, owner=owner))


def update_config(
    items: Items, name: str, config: dict[str, str], now: int, owner: Owner
) -> tuple[Changes, StoredExporter]:
    """The configuration of an exporter replaced. Raises as `update_exporter` does."""
    return update_exporter(items, name, api.ExporterRequest(config=config), now, owner)


def delete_exporter(items: Items, name: str) -> tuple[Changes, StoredExporter]:
    """An exporter that is no more. Raises `ExporterNotFound`."""
    before = read_exporter(items, name)
    return {(name,): None}, before


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
        config=hide_config(exporter),
    )


def status_out(state: State, exporter: StoredExporter) -> api.ExporterStatus:
    """How far an exporter is: `offset` is a record of the log; `trace` says what stopped it, or was left out."""
    progress = find_progress(state, exporter)
    return api.ExporterStatus(exporter.name, progress.state, progress.offset, progress.ts, progress.trace)
