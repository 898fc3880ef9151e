"""Bulk imports: many versions, keys, associations and exporters at once, with their times in the source registry.

Items that an earlier import created are left as they are, so a request can be repeated. A refused item does not affect
the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from stele.apis.confluent.errors import (
    ErrorContext,
    InvalidKey,
    KeyExists,
    ResourceTaken,
    TooManyAssociations,
    find_error_answer,
)
from stele.apis.confluent.models import CreateKekRequest
from stele.apis.confluent.names import parse_context, parse_subject_key, qualify_subject, require_valid_key
from stele.apis.confluent.operations import keys
from stele.apis.confluent.operations.keys import current_millis
from stele.apis.confluent.operations.schemas import Operations
from stele.apis.confluent.operations.versions import execute_registration
from stele.apis.confluent.translate import references_in, restore_hidden
from stele.core import queries
from stele.core.access import REGISTRY_RESOURCE, Operation, key_resource, subject_resource
from stele.core.commands import ChangeBindings, DeleteMode, DeleteVersion, RegisterSchema
from stele.core.decide.decision import read_only_error
from stele.core.model import Binding, Mode, SettingsLevel, SubjectKey
from stele.core.state import State
from stele.errors import SteleError
from stele.protocol import confluent as api
from stele.protocol.confluent import Association
from stele.service.access import make_owner
from stele.service.collections import Changes, Items
from stele.service.delivery.exporter_definitions import ExporterChange, add_exporter
from stele.service.delivery.exporters import COLLECTION as EXPORTERS
from stele.service.delivery.exporters import ExporterState, StoredExporter, read_exporter
from stele.service.kms import ALGORITHMS

_AT_ONCE = 256
"""Most versions that are imported concurrently: as many as the log takes in one batch."""

R = TypeVar("R")


async def apply_import(operations: Operations, request: api.ImportRequest) -> api.ImportResponse:
    """Import the items of a request, and return those that are refused. Raises `StoreError`."""
    refusals = [row async for row in _import_versions(operations, request.versions)]
    refusals += await _import_keys(operations, request)
    refusals += [row async for row in _import_associations(operations, request.associations)]
    refusals += await _import_exporters(operations, request.exporters)
    return api.ImportResponse(refusals)


def _refusal_out(operations: Operations, kind: str, name: str, number: int, error: SteleError) -> api.ImportRefusal:
    fault = find_error_answer(error, ErrorContext(name, "", operations.options))
    if fault.status >= 500:
        raise error
    return api.ImportRefusal(kind, name, number, fault.code, fault.message)


def _require_import_mode(state: State, level: SettingsLevel) -> None:
    if queries.mode_for(state, level) is not Mode.IMPORT:
        raise read_only_error(level, "not in import mode")


# --- versions -------------------------------------------------------------------------------------------------------


async def _import_versions(
    operations: Operations, rows: Sequence[api.ImportedVersion]
) -> AsyncIterator[api.ImportRefusal]:
    for wave in _split_into_waves(rows):
        results = await asyncio.gather(*(_import_version(operations, row) for row in wave), return_exceptions=True)
        for row, error in zip(wave, results, strict=True):
            if isinstance(error, SteleError):
                yield _refusal_out(operations, "version", row.subject, row.version, error)
            elif error is not None:
                raise error


def _split_into_waves(rows: Sequence[api.ImportedVersion]) -> Iterator[list[api.ImportedVersion]]:
    """Yield the rows in parts. No row refers to a row of its own part, so a part can be imported in any order."""
    wave: list[api.ImportedVersion] = []
    coming: set[tuple[SubjectKey, int]] = set()
    for row in rows:
        key = parse_subject_key(row.subject)
        targets = {(target.key, target.version_number) for target in references_in(row.references, key.namespace)}
        if len(wave) == _AT_ONCE or targets & coming or (key, row.version) in coming:
            yield wave
            wave, coming = [], set()
        wave.append(row)
        coming.add((key, row.version))
    if wave:
        yield wave


async def _import_version(operations: Operations, row: api.ImportedVersion) -> None:
    """Register one version under its number and id. If the row is marked as deleted, soft-delete the version."""
    key = parse_subject_key(row.subject)
    require_valid_key(key)
    operations.registry.access.require(Operation.IMPORT, subject_resource(key))
    state = await operations.registry.fresh_state()
    _require_import_mode(state, SettingsLevel(*key))
    sent = api.RegisterSchemaRequest(row.schema, row.schema_type, row.references, row.metadata, row.rule_set)
    draft = await operations.parse_draft(state, key, sent, normalize=False)
    command = RegisterSchema(
        key=key,
        document=draft.document,
        references=draft.attachments.references,
        metadata=draft.attachments.metadata,
        rule_set=draft.attachments.rule_set,
        version_number=row.version,
        schema_id=row.id,
        at=row.ts,
    )
    await execute_registration(operations, command, lambda _state, _version: None, expects_change=True)
    if row.deleted:
        await operations.execute(DeleteVersion(key, row.version, DeleteMode.SOFT))


# --- keys -----------------------------------------------------------------------------------------------------------


async def _import_keys(operations: Operations, request: api.ImportRequest) -> list[api.ImportRefusal]:
    if not request.keks and not request.deks:
        return []
    state = await operations.registry.fresh_state()

    def change(items: Items) -> tuple[Changes, list[api.ImportRefusal]]:
        after = dict(items)
        refusals: list[api.ImportRefusal] = []
        for kek in request.keks:
            refusals += _collect_refusal(
                operations, "kek", kek.name, 0, partial(_import_kek, operations, state, after, kek)
            )
        for dek in request.deks:
            refusals += _collect_refusal(
                operations, "dek", dek.subject, dek.version, partial(_import_dek, operations, state, after, dek)
            )
        return {key: data for key, data in after.items() if items.get(key) != data}, refusals

    return await keys.edit_keys(operations, change)


def _collect_refusal(
    operations: Operations, kind: str, name: str, number: int, step: Callable[[], None]
) -> list[api.ImportRefusal]:
    try:
        step()
    except SteleError as error:
        return [_refusal_out(operations, kind, name, number, error)]
    return []


def _import_kek(
    operations: Operations, state: State, items: dict[tuple[str, ...], bytes], row: api.ImportedKek
) -> None:
    """Add one KEK to the stored keys. Raises `InvalidKey`, `KeyExists` for another key of that name, `TooManyKeys`."""
    operations.registry.access.require(Operation.MANAGE_KEYS, key_resource(row.name))
    space = parse_context(row.context)
    _require_import_mode(state, SettingsLevel(space))
    key = keys.make_kek_key(space, row.name)
    request = CreateKekRequest(row.name, row.kms_type, row.kms_key_id, row.kms_props, row.doc, row.shared, row.deleted)
    kek = keys.kek_in(request, current_millis() if row.ts is None else row.ts)
    if key in items:
        known = keys.read_kek(items, key, deleted=True)
        if (known.kms_type, known.key_id) != (kek.kms_type, kek.key_id):
            raise KeyExists(row.name)
        properties = restore_hidden(kek.properties, known.properties, keys.hidden_properties(known))
        kek = replace(kek, properties=properties, ts=known.ts if row.ts is None else row.ts)
    else:
        keys.require_room(items, key.kind, operations.registry.limits.keys)
    items[key] = msgspec.json.encode(kek)


def _import_dek(
    operations: Operations, state: State, items: dict[tuple[str, ...], bytes], row: api.ImportedDek
) -> None:
    """Add one DEK to the stored keys. Raises as `_import_kek`, and `KeyNotFound` without its KEK."""
    operations.registry.access.require(Operation.MANAGE_KEYS, key_resource(row.kek_name))
    owner = parse_subject_key(row.subject)
    require_valid_key(owner)
    _require_import_mode(state, SettingsLevel(*owner))
    if row.algorithm not in ALGORITHMS:
        raise InvalidKey("algorithm")
    if row.version < keys.FIRST_VERSION:
        raise InvalidKey("version")
    home = keys.make_kek_key(parse_context(row.context), row.kek_name)
    keys.read_kek(items, home, deleted=True)
    key = keys.make_dek_key(row.kek_name, owner, row.algorithm, row.version)
    dek = keys.StoredDek(
        home.space, row.encrypted_key_material, current_millis() if row.ts is None else row.ts, row.deleted
    )
    if key in items:
        known = keys.read_dek(items, key, deleted=True)
        if (known.material, known.kek_space) != (dek.material, dek.kek_space):
            raise KeyExists(qualify_subject(owner))
        dek = replace(dek, ts=known.ts if row.ts is None else row.ts)
    else:
        keys.require_room(items, key.kind, operations.registry.limits.keys)
    items[key] = msgspec.json.encode(dek)


# --- associations and exporters -------------------------------------------------------------------------------------


async def _import_associations(operations: Operations, rows: Sequence[Association]) -> AsyncIterator[api.ImportRefusal]:
    for row in rows:
        try:
            await _import_association(operations, row)
        except SteleError as error:
            yield _refusal_out(operations, "association", row.subject, 0, error)


async def _import_association(operations: Operations, row: Association) -> None:
    key = parse_subject_key(row.subject)
    require_valid_key(key)
    operations.registry.access.require(Operation.BIND, subject_resource(key))
    state = await operations.registry.fresh_state()
    _require_import_mode(state, SettingsLevel(*key))
    binding = Binding(
        cluster=row.resource_namespace,
        resource_type=row.resource_type,
        resource=row.resource_name,
        role=row.association_type,
        subject=key,
        lifecycle=row.lifecycle,
        frozen=row.frozen,
        resource_id=row.resource_id,
        guid=row.guid,
    )
    known = state.bindings.get(binding.key)
    if known is not None and known.subject != key:
        raise ResourceTaken(row.association_type, row.resource_id or row.resource_name)
    if known is None and len(state.bindings) >= operations.registry.limits.associations:
        raise TooManyAssociations(operations.registry.limits.associations)
    await operations.execute(ChangeBindings((binding,)))


async def _import_exporters(operations: Operations, rows: Sequence[api.ImportedExporter]) -> list[api.ImportRefusal]:
    if not rows:
        return []
    state = await operations.registry.fresh_state()

    def change(items: Items) -> tuple[Changes, list[api.ImportRefusal]]:
        after = dict(items)
        refusals: list[api.ImportRefusal] = []
        for row in rows:
            refusals += _collect_refusal(
                operations, "exporter", row.name, 0, partial(_import_exporter, operations, state, after, row)
            )
        return {key: data for key, data in after.items() if items.get(key) != data}, refusals

    return await operations.edit_items(EXPORTERS, change)


def _import_exporter(
    operations: Operations, state: State, items: dict[tuple[str, ...], bytes], row: api.ImportedExporter
) -> None:
    """Add one exporter to the stored exporters, paused, because it may still run in the source registry.

    Raises what `add_exporter` raises.
    """
    operations.registry.access.require(Operation.MANAGE_EXPORTERS, REGISTRY_RESOURCE)
    _require_import_mode(state, SettingsLevel(""))
    key = (row.name,)
    others = {name: data for name, data in items.items() if name != key}
    before = read_exporter(items, row.name) if key in items else StoredExporter(row.name)
    members: dict[str, Any] = {name: getattr(row, name) for name in ExporterChange.__struct_fields__}
    members["config"] = restore_hidden(row.config, before.config)
    at = (before.ts or current_millis()) if row.ts is None else row.ts
    _, exporter = add_exporter(others, ExporterChange(**members), at, make_owner())
    items[key] = msgspec.json.encode(replace(exporter, state=ExporterState.PAUSED))
