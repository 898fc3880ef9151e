"""Definitions of exporters: validated, created, changed and removed."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from stele.core.access import Owner
from stele.errors import AlreadyExists, Conflict, Invalid, TooLarge
from stele.service.access import make_owner
from stele.service.collections import Changes, Items
from stele.service.delivery.exporters import StoredExporter, edit_exporters, read_exporter, store_exporter
from stele.service.disclosure import restore_settings
from stele.service.registry import Registry
from stele.service.times import current_millis

CONTEXT_TYPES: Final = ("AUTO", "CUSTOM", "NONE", "DEFAULT")
_LONGEST_NAME: Final = 256
_MOST: Final = 1000
"""Maximum number of exporters."""


class InvalidExporterName(Invalid):
    """The name of an exporter is empty, too long, or cannot be part of a path."""

    def __init__(self) -> None:
        super().__init__("Missing or invalid exporter name")


class InvalidExporterConfig(Invalid):
    """The context type, the context, a format or the configuration of an exporter is wrong."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Missing or invalid exporter config: {why}")


class InvalidExporterSubjects(Invalid):
    """A subject of an exporter is empty or has control characters."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"Invalid exporter subjects: '{subject}'")


class ExporterExists(AlreadyExists):
    """An exporter of that name exists already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Exporter '{name}' already exists")


class TooManyExporters(Conflict):
    """The limit of exporters is reached."""

    def __init__(self, most: int) -> None:
        super().__init__(f"A maximum of {most} exporters already exist")


class ExporterChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A requested change of an exporter: an unset value stays as it is, None restores the default.

    A hidden value of config that is sent back as answers show it keeps the stored value.
    """

    name: str | None = None
    context_type: str | UnsetType | None = UNSET
    context: str | UnsetType | None = UNSET
    subjects: list[str] | UnsetType | None = UNSET
    subject_rename_format: str | UnsetType | None = UNSET
    kek_rename_format: str | UnsetType | None = UNSET
    config: dict[str, str] | UnsetType | None = UNSET


# --- managing ---------------------------------------------------------------------------------------------------------


async def create_exporter(registry: Registry, wanted: ExporterChange, via: str) -> StoredExporter:
    """Add an exporter, which begins at once and belongs to the caller. Raises as `add_exporter`, and `TooLarge`."""
    _require_small(registry, wanted)
    return await edit_exporters(
        registry, lambda items: add_exporter(items, wanted, current_millis(), make_owner()), via
    )


async def update_exporter(registry: Registry, name: str, wanted: ExporterChange, via: str) -> StoredExporter:
    """Change an exporter; it belongs to the caller then. Raises as `change_exporter`, and `TooLarge`."""
    _require_small(registry, wanted)
    return await edit_exporters(
        registry, lambda items: change_exporter(items, name, wanted, current_millis(), make_owner()), via
    )


async def delete_exporter(registry: Registry, name: str, via: str) -> StoredExporter:
    """Remove an exporter. What it copied is not deleted. Raises `ExporterNotFound`."""
    return await edit_exporters(registry, lambda items: remove_exporter(items, name), via)


def _require_small(registry: Registry, wanted: ExporterChange) -> None:
    size = len(msgspec.json.encode(wanted))
    if size > registry.limits.schema_bytes:
        raise TooLarge(f"the exporter has {size} bytes, more than a schema may have")


# --- documents --------------------------------------------------------------------------------------------------------


def add_exporter(items: Items, wanted: ExporterChange, now: int, owner: Owner) -> tuple[Changes, StoredExporter]:
    """Return the change that adds an exporter.

    Raises `InvalidExporterName`, `InvalidExporterConfig`, `InvalidExporterSubjects`, `ExporterExists`,
    `TooManyExporters`.
    """
    name = wanted.name or ""
    if not name or len(name) > _LONGEST_NAME or not all(char.isalnum() or char in "._-" for char in name):
        raise InvalidExporterName
    exporter = _validate(_apply_change(StoredExporter(name, ts=now, run=now, owner=owner), wanted))
    if (name,) in items:
        raise ExporterExists(name)
    if len(items) >= _MOST:
        raise TooManyExporters(_MOST)
    return store_exporter(exporter)


def change_exporter(
    items: Items, name: str, wanted: ExporterChange, now: int, owner: Owner
) -> tuple[Changes, StoredExporter]:
    """Return the change of a definition.

    Raises `ExporterNotFound`, `InvalidExporterName`, `InvalidExporterConfig`, `InvalidExporterSubjects`.
    """
    before = read_exporter(items, name)
    if wanted.name not in (None, name):
        raise InvalidExporterName
    return store_exporter(replace(_validate(_apply_change(before, wanted)), ts=now, owner=owner))


def remove_exporter(items: Items, name: str) -> tuple[Changes, StoredExporter]:
    """Return the change that removes an exporter. Raises `ExporterNotFound`."""
    before = read_exporter(items, name)
    return {(name,): None}, before


def _apply_change(before: StoredExporter, wanted: ExporterChange) -> StoredExporter:
    plain = StoredExporter(before.name)
    changes: dict[str, Any] = {}
    for name in ("context_type", "context", "subject_rename_format", "kek_rename_format"):
        if (value := getattr(wanted, name)) is not UNSET:
            changes[name] = value or getattr(plain, name)
    if wanted.subjects is not UNSET:
        changes["subjects"] = tuple(wanted.subjects or plain.subjects)
    if wanted.config is not UNSET:
        changes["config"] = dict(sorted(restore_settings(wanted.config or {}, before.config).items()))
    return replace(before, **changes)


def _validate(exporter: StoredExporter) -> StoredExporter:
    if exporter.context_type.upper() not in CONTEXT_TYPES:
        raise InvalidExporterConfig(f"contextType must be one of {', '.join(CONTEXT_TYPES)}")
    exporter = replace(exporter, context_type=exporter.context_type.upper())
    if (exporter.context_type == "CUSTOM") != bool(exporter.context):
        raise InvalidExporterConfig("a context can be given with contextType CUSTOM only")
    context = exporter.context
    if context.startswith(":.") and context.endswith(":"):
        context = context[1:-1]
    if ":" in context:
        raise InvalidExporterConfig(f"context name '{context}' must not contain a colon")
    for subject in exporter.subjects:
        if not subject or any(char < " " or "\x7f" <= char < "\xa0" for char in subject):
            raise InvalidExporterSubjects(subject)
    return exporter
