"""Turns pending entities into one transaction: differences from the state become commands, all or none.

Source: docs/protocols/xregistry.md#one-model
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stele.apis.xregistry.models import GroupEntity, ResourceEntity, VersionEntity
from stele.apis.xregistry.pending import PendingEntities
from stele.apis.xregistry.translate import (
    DIALECT,
    REGISTRY_ITEM,
    compares_versions,
    count_schema_changes,
    resolve_format,
    with_own_data,
)
from stele.apis.xregistry.validation import Prepared, list_ancestors
from stele.core import queries
from stele.core.access import REGISTRY_RESOURCE, Operation, namespace_resource
from stele.core.commands import (
    ChangeItems,
    ChangeSettings,
    ChangeSubject,
    Command,
    CreateNamespace,
    CreateSubject,
    DeleteMode,
    DeleteNamespace,
    DeleteSubject,
    DeleteVersion,
    EndIncarnations,
    Equality,
    RegisterSchema,
    SeenSubject,
    SubjectDefaults,
    SubjectsPresent,
    Transaction,
)
from stele.core.decide.transaction import see_namespace, see_subject
from stele.core.model import DEFAULT_NAMESPACE, OPAQUE_FORMAT, Numbering, SettingsLevel
from stele.core.policy import ALLOW_ANY, Policy
from stele.core.policy_json import PolicyJson
from stele.errors import TooLarge
from stele.service.access import AccessControl

_MOST_RECORD_BYTES = 4 * 1024 * 1024
"""Most bytes of the data that this dialect stores of one schema."""


def build_transaction(pending: PendingEntities, prepared: Prepared, access: AccessControl) -> Transaction | None:
    """Return the commands that write pending entities, or None if there are none.

    Args:
        pending: Entities as the request leaves them.
        prepared: Documents to register.
        access: Rights of the caller. Without the right to change a group or the registry, its count of added and
            deleted
            schemas or groups is not updated.

    Raises:
        TooLarge: The data to store of a schema exceed a limit.
    """
    state = pending.loader.state
    groups = [
        group
        for group in pending.groups.values()
        if group is not None
        and group.is_written
        and (group.is_changed or access.allows(Operation.REGISTER, namespace_resource(group.namespace)))
    ]
    commands: list[Command] = []
    for group in groups:
        commands += _open_group(pending, group)
    for group in pending.deleted_groups:
        commands += _delete_group(group)
    deleted = {*pending.emptied_groups, *(group.id for group in pending.deleted_groups)}
    for identifier in pending.emptied_groups:
        commands.append(EndIncarnations(pending.get_group(identifier).namespace))
    for schema in pending.deleted_schemas:
        if schema.group_id not in deleted and schema.subject is not None:
            commands.append(DeleteSubject(schema.key, DeleteMode.END_INCARNATION))
    for schema in pending.written_schemas():
        commands += _write_schema(pending, schema, prepared)
    for group in groups:
        commands.append(_close_group(pending, group))
    registry = pending.registry
    if registry.is_written and (registry.is_changed or access.allows(Operation.REGISTER, REGISTRY_RESOURCE)):
        commands.append(_write_registry(pending))
    if not commands:
        return None
    touched = [*groups, *pending.deleted_groups]
    schemas = [*pending.written_schemas(), *pending.deleted_schemas]
    return Transaction(
        tuple(commands),
        namespaces=tuple(see_namespace(state, group.namespace) for group in touched),
        subjects=tuple(see_subject(state, SeenSubject(schema.key)) for schema in schemas),
    )


# --- groups and the registry


def _core_format(pending: PendingEntities, group: GroupEntity) -> str:
    """Return the format that the namespace of a group has in all dialects; '' if the core has no such format."""
    name = str(group.attributes.get("format", ""))
    if not name:
        return ""
    place = group.place
    if place is not None and place.format and name.casefold() == place.format:
        return place.format
    format_name = resolve_format(name, pending.loader.installed).format
    return "" if format_name == OPAQUE_FORMAT else format_name


def _has_other_format(pending: PendingEntities, group: GroupEntity) -> bool:
    return group.place is not None and group.place.format not in ("", _core_format(pending, group))


def _open_group(pending: PendingEntities, group: GroupEntity) -> Iterator[Command]:
    """Yield the command that creates a new group, or removes the format of one whose format changes.

    The format is removed first, so that the schemas of the group can change theirs before the group gets the new one.
    """
    place = group.place
    if place is not None and _has_other_format(pending, group):
        yield CreateNamespace(group.namespace, True, "", place.description, place.labels, place.dialect_data)
    elif place is None:
        yield CreateNamespace(group.namespace, replace=True)


def _close_group(pending: PendingEntities, group: GroupEntity) -> Command:
    """Return the command that stores a group as the request leaves it."""
    place = group.place or pending.loader.state.find_namespace(group.namespace)
    new_schemas = [
        schema for schema in pending.written_schemas() if schema.group_id == group.id and schema.subject is None
    ]
    deleted_count = sum(
        schema.group_id == group.id and schema.subject is not None for schema in pending.deleted_schemas
    )
    if group.id in pending.emptied_groups and place is not None:
        deleted_count = len(place.subjects)
    attributes = dict(group.attributes)
    description = attributes.pop("description", "") if attributes.get("description") else ""
    labels = attributes.pop("labels", None) if attributes.get("labels") else None
    described = (0 if place is None else place.epoch) + 1
    described += group.place is None or _has_other_format(pending, group)
    if group.place is not None and group.place.format and attributes.get("format", "").casefold() == group.place.format:
        attributes.pop("format")  # Another dialect set it.
    record = {
        "epoch": group.epoch,
        "seen": count_schema_changes(place) + len(new_schemas) + deleted_count,
        "described": described,
        "createdat": group.createdat,
        "modifiedat": group.modifiedat,
        "attributes": attributes,
    }
    others = None if place is None or place.hidden else place.dialect_data
    return CreateNamespace(
        group.namespace, True, _core_format(pending, group), description, labels, with_own_data(others, record)
    )


def _delete_group(group: GroupEntity) -> Iterator[Command]:
    if group.namespace != DEFAULT_NAMESPACE:
        yield DeleteNamespace(group.namespace, SubjectsPresent.END_INCARNATIONS)
        return
    yield EndIncarnations(group.namespace)  # The default namespace always exists.
    yield CreateNamespace(group.namespace, replace=True, dialect_data={DIALECT: {"deleted": True}})


def _write_registry(pending: PendingEntities) -> Command:
    state, entity = pending.loader.state, pending.registry
    new_groups = [
        group for group in pending.groups.values() if group is not None and group.namespace not in state.namespaces
    ]
    record = {
        "epoch": entity.epoch,
        "seen": len(state.namespaces) + len(new_groups),
        "createdat": entity.createdat,
        "modifiedat": entity.modifiedat,
        "attributes": entity.attributes,
    }
    collection = state.collections.get(DIALECT)
    revision = 0 if collection is None else collection.revision
    return ChangeItems(DIALECT, {REGISTRY_ITEM: msgspec.json.encode(record)}, revision)


# --- schemas


def _write_schema(pending: PendingEntities, schema: ResourceEntity, prepared: Prepared) -> Iterator[Command]:
    state, key = pending.loader.state, schema.key
    deleted = [version for owner, version in pending.deleted_versions if owner is schema]
    replaced = [version for version in schema.versions.values() if version.new_document is not None]
    going = [row for version in (*deleted, *replaced) if (row := version.registered) is not None]
    for row in going:
        yield DeleteVersion(key, row.version_number, DeleteMode.SOFT)
    defaults = _subject_defaults(pending, schema)
    fresh = _order_by_ancestors(schema, [each for each in schema.versions.values() if each.new_document])
    if schema.subject is None and not fresh:
        yield CreateSubject(key, defaults)  # It is created without settings, so they follow.
    own = state.settings_at(SettingsLevel(*key))
    before = own.policy if own is not None else None
    if schema.sets_policy and schema.new_policy != before:
        yield ChangeSettings(SettingsLevel(*key), {"policy": schema.new_policy}, prune=True)
    numbers = {
        version.id: row.version_number
        for version in schema.versions.values()
        if version.new_document is None and (row := version.registered) is not None
    }
    active = [row.version_number for row in queries.list_versions(schema.subject)]
    active = [number for number in active if number not in {row.version_number for row in going}]
    number = queries.next_version_number(state, key)
    for version in fresh:
        document = prepared[schema.xid, version.id]
        chain = [numbers[each.id] for each in list_ancestors(schema, version) if each.id in numbers]
        yield RegisterSchema(
            key,
            document.document,
            document.references,
            equality=Equality.NEVER,
            version_number=number,
            defaults=defaults,
            description=str(version.attributes.get("description", "")),
            labels=version.attributes.get("labels") or None,
            media_type=str(version.attributes.get("contenttype", "")),
            lineage=_lineage(schema.policy, chain, active, is_opaque=document.document.format == OPAQUE_FORMAT),
        )
        numbers[version.id] = number
        active.append(number)
        number += 1
    changes = 2 * (number - 1) - len(active)
    yield _describe_subject(schema, numbers, changes)


def _subject_defaults(pending: PendingEntities, schema: ResourceEntity) -> SubjectDefaults:
    above = queries.settings_for(pending.loader.state, SettingsLevel(schema.key.namespace)).policy
    return SubjectDefaults(Numbering.NEVER_REUSE, policy=ALLOW_ANY if above is None else None)


def _order_by_ancestors(schema: ResourceEntity, versions: list[VersionEntity]) -> list[VersionEntity]:
    return sorted(versions, key=lambda version: (len(list_ancestors(schema, version)), version.id.casefold()))


def _lineage(policy: Policy, chain: list[int], active: list[int], *, is_opaque: bool) -> tuple[int, ...] | None:
    """Return the ancestors that the core compares a version with, or None if it would choose the same ones itself."""
    if not compares_versions(policy):
        return None
    if is_opaque:
        return ()
    newest_first = sorted(active, reverse=True)
    own = [number for number, _, _ in policy.list_comparisons([_Numbered(each) for each in chain])]
    usual = [number for number, _, _ in policy.list_comparisons([_Numbered(each) for each in newest_first])]
    return None if own == usual else tuple(chain)


class _Numbered(msgspec.Struct, frozen=True):
    """A version for policies, of which only the number is known."""

    version_number: int


def _describe_subject(schema: ResourceEntity, numbers: dict[str, int], changes: int) -> Command:
    """Return the command that stores the data of this dialect with the subject."""
    subject = schema.subject
    attributes = dict(schema.attributes)
    labels = attributes.pop("labels", None) if attributes.get("labels") else None
    if labels is None and schema.is_new and subject is not None:
        labels = subject.labels  # Another dialect created the subject; this one did not show it yet.
    is_compared = compares_versions(schema.policy) and all(
        version.is_compared for version in schema.versions.values() if version.id in numbers
    )
    record: dict[str, Any] = {
        "epoch": schema.epoch,
        "seen": changes,
        "createdat": schema.createdat,
        "modifiedat": schema.modifiedat,
        "attributes": attributes,
        "sticky": schema.is_sticky,
        "default": schema.default_id if schema.is_sticky else "",
        "xref": schema.xref,
        "highest": schema.highest_generated,
        "compared": msgspec.to_builtins(PolicyJson.from_policy(schema.policy)) if is_compared else None,
        "versions": {
            version.id: {
                **({"number": numbers[version.id]} if version.id in numbers else {}),
                "epoch": version.epoch,
                "createdat": version.createdat,
                "modifiedat": version.modifiedat,
                "ancestorid": version.ancestorid,
                "attributes": version.attributes,
            }
            for version in schema.versions.values()
        },
    }
    record = {name: value for name, value in record.items() if value not in ("", None, {}) or name == "versions"}
    if len(msgspec.msgpack.encode(record)) > _MOST_RECORD_BYTES:
        raise TooLarge(f"the attributes of all versions of {schema.id!r} have more than {_MOST_RECORD_BYTES} bytes")
    others = None if subject is None else subject.dialect_data
    return ChangeSubject(
        schema.key,
        description="" if subject is None else subject.description,
        labels=labels,
        dialect_data=with_own_data(others, record),
        default_version=numbers.get(schema.default_id) if schema.is_sticky else None,
    )
