"""Writes a registry as the records of a `_schemas` topic.

The records are in an order in which a new registry of that make can read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from stele.core.metadata import Metadata
from stele.migrate.dependency_order import sort_by_dependency
from stele.migrate.extras import MigratedAssociation, RegistryExtras
from stele.migrate.model import DEFAULT_CONTEXT, DEFAULT_LEVEL, Dump, DumpVersion, placeholder_version
from stele.migrate.topic_records import Flavour, Record, encode_json
from stele.protocol.confluent import Config

_Pair = tuple[dict[str, Any], dict[str, Any] | None, int | None]
"""Key, value and time."""


class Topic(NamedTuple):
    """The records, with offsets from 0 without gaps, and the losses: what this make of registry does not support.

    keys are records of the topic for encryption keys, which Confluent keeps in another topic.
    """

    records: list[Record]
    losses: list[str]
    keys: list[Record]


def write_records(dump: Dump, flavour: Flavour) -> Topic:
    """Return the records of a registry. Raises nothing: what the format does not support is listed in losses."""
    fitting, losses = _FITTINGS[flavour](dump)
    records = []
    for offset, (key, value, ts) in enumerate(_record_pairs(fitting, flavour)):
        if flavour is Flavour.REDPANDA:
            # A record counts only if `seq` is its own offset. The `seq` of a tombstone is the offset of its record.
            key |= {"seq": offset if value is not None or key["keytype"] == "NOOP" else offset - 1, "node": 0}
        records.append(_build_record(offset, key, value, ts))
    keys = [_build_record(offset, *pair) for offset, pair in enumerate(_key_pairs(fitting.extras))]
    return Topic(records, losses, keys)


def build_version_record(row: DumpVersion, flavour: Flavour, *, is_gone: bool = False) -> Record:
    """Return the record that adds or changes one version in a topic, or (is_gone) removes it.

    Redpanda's records contain their offsets, so they cannot be made one by one.
    """
    value = None if is_gone else encode_json(_schema_value(row, flavour))
    return Record(encode_json(_schema_key(row)), value, None, f"{row.subject} version {row.version}", row.ts)


def _build_record(offset: int, key: dict[str, Any], value: dict[str, Any] | None, ts: int | None) -> Record:
    data = None if value is None else encode_json(value)
    return Record(encode_json(key), data, offset, f"record {offset}", ts)


def _key_pairs(extras: RegistryExtras) -> Iterator[_Pair]:
    for kek in extras.keks:
        members = {name: value for name, value in msgspec.to_builtins(kek).items() if name not in ("ts", "context")}
        key = {"keytype": "KEK", "tenant": "default", "name": kek.name}
        yield key, {"shared": False, **members, "deleted": kek.deleted}, kek.ts
    for dek in extras.deks:
        named = {"kekName": dek.kek_name, "subject": dek.subject, "algorithm": dek.algorithm, "version": dek.version}
        value = {**named, "encryptedKeyMaterial": dek.encrypted_key_material, "deleted": dek.deleted}
        yield {"keytype": "DEK", "tenant": "default", **named}, value, dek.ts


def _association_pair(row: MigratedAssociation) -> _Pair:
    resource = {
        "resourceName": row.resource_name,
        "resourceNamespace": row.resource_namespace,
        "resourceType": row.resource_type,
        "associationType": row.association_type,
    }
    key = {"keytype": "ASSOC", "tenant": "default", **resource, "subject": row.subject, "magic": 0}
    more = {"resourceId": row.resource_id, "lifecycle": row.lifecycle, "frozen": row.frozen}
    return key, {"subject": row.subject, "guid": row.guid, "tenant": "default", **resource, **more}, None


def _record_pairs(dump: Dump, flavour: Flavour) -> Iterator[_Pair]:
    if flavour is not Flavour.KARAPACE:
        yield {"keytype": "NOOP", "magic": 0}, None, None
    for context in dump.contexts:
        if context != DEFAULT_CONTEXT:
            key = {"keytype": "CONTEXT", "tenant": "default", "context": context, "magic": 0}
            yield key, {"tenant": "default", "context": context}, None
    for level, config in sorted(dump.configs.items()):
        yield _level_key("CONFIG", level, flavour), _subject_pairs(level, flavour) | msgspec.to_builtins(config), None
    for row in dump.versions:
        yield _schema_key(row), _schema_value(row, flavour), row.ts
    for context, most in sorted(dump.max_ids.items()):
        row = placeholder_version(context, most)
        yield _schema_key(row), _schema_value(row, flavour), None
        yield _schema_key(row), None, None
    for bound in dump.extras.associations:
        yield _association_pair(bound)
    for level, mode in sorted(dump.modes.items()):
        yield _level_key("MODE", level, flavour), _subject_pairs(level, flavour) | {"mode": mode}, None


def _schema_key(row: DumpVersion) -> dict[str, Any]:
    return {"keytype": "SCHEMA", "subject": row.subject, "version": row.version, "magic": 1}


def _level_key(keytype: str, level: str, flavour: Flavour) -> dict[str, Any]:
    named: dict[str, Any] = {"subject": level}
    if level == DEFAULT_LEVEL:
        named = {"subject": None} if flavour is Flavour.KARAPACE else {}
    return {"keytype": keytype, **named, "magic": 0}


def _subject_pairs(level: str, flavour: Flavour) -> dict[str, Any]:
    return {} if level == DEFAULT_LEVEL or flavour is Flavour.KARAPACE else {"subject": level}


def _schema_value(row: DumpVersion, flavour: Flavour) -> dict[str, Any]:
    """Return the members in the order in which their writers have them.

    Only Confluent's records name the type of an Avro schema.
    """
    value: dict[str, Any] = {"subject": row.subject, "version": row.version, "id": row.id}
    if flavour is Flavour.CONFLUENT or row.schema_type != "AVRO":
        value["schemaType"] = row.schema_type
    if row.references:
        value["references"] = msgspec.to_builtins(row.references)
    if row.metadata is not None:
        value["metadata"] = msgspec.to_builtins(row.metadata)
    if row.rule_set is not None:
        value["ruleSet"] = msgspec.to_builtins(row.rule_set)
    return value | {"schema": row.schema, "deleted": row.deleted}


# --- what has no place in a format ----------------------------------------------------------------------------------


def _for_confluent(dump: Dump) -> tuple[Dump, list[str]]:
    """Return the dump without what Confluent's topic does not support, and the losses.

    It has no exporters, no keys of contexts, and no policies besides compatibility levels.
    """
    extras = dump.extras
    keks = tuple(row for row in extras.keks if row.context == DEFAULT_CONTEXT)
    deks = tuple(row for row in extras.deks if row.context == DEFAULT_CONTEXT)
    losses = [
        _describe_losses(len(extras.exporters), "exporters"),
        _describe_losses(len(extras.keks) - len(keks) + len(extras.deks) - len(deks), "keys of contexts"),
        _describe_losses(
            sum(own.stele_compatibility is not None for own in dump.configs.values()), "policies no level names"
        ),
    ]
    configs = {level: msgspec.structs.replace(own, stele_compatibility=None) for level, own in dump.configs.items()}
    fitting = msgspec.structs.replace(extras, keks=keks, deks=deks, exporters=())
    return msgspec.structs.replace(dump, extras=fitting, configs=configs), [loss for loss in losses if loss]


def _without_beside(dump: Dump) -> tuple[Dump, str]:
    count = sum(1 for _ in dump.extras.items())
    return msgspec.structs.replace(dump, extras=RegistryExtras()), _describe_losses(
        count, "keys, associations and exporters"
    )


def _for_karapace(dump: Dump) -> tuple[Dump, list[str]]:
    """Return the dump without what Karapace does not support, and the losses.

    It has no contexts, modes, metadata, rule sets, keys, associations and exporters. Its only setting is the
    compatibility level.
    """
    bare = [row for row in dump.versions if row.context == DEFAULT_CONTEXT and not row.subject.startswith(":.")]
    configs = {level: own for level, own in dump.configs.items() if not level.startswith(":.")}
    losses = [
        _describe_losses(len(dump.versions) - len(bare), "versions outside of the default context"),
        _describe_losses(len(dump.configs) - len(configs), "settings of contexts"),
        _describe_losses(len(dump.modes), "modes"),
        _without_beside(dump)[1],
    ]
    fitting = Dump(sort_by_dependency(bare), configs, {}, (DEFAULT_CONTEXT,), _of(dump.max_ids, DEFAULT_CONTEXT))
    fitting, more = _without_attachments(fitting, lambda metadata: None)
    fitting, settings = _levels_only(fitting)
    return fitting, [loss for loss in (*losses, more, settings) if loss]


def _for_redpanda(dump: Dump) -> tuple[Dump, list[str]]:
    """Return the dump without what Redpanda does not support, and the losses.

    It has no metadata besides properties, and no rule sets, keys, associations and exporters. Its only setting is the
    compatibility level.
    """
    fitting, attachments = _without_attachments(dump, _keep_properties)
    fitting, settings = _levels_only(fitting)
    fitting, extras = _without_beside(fitting)
    return fitting, [loss for loss in (attachments, settings, extras) if loss]


def _of(ids: dict[str, int], context: str) -> dict[str, int]:
    return {name: most for name, most in ids.items() if name == context}


def _keep_properties(metadata: Metadata | None) -> Metadata | None:
    if metadata is None or not metadata.properties:
        return None
    return Metadata(properties=metadata.properties)


def _without_attachments(dump: Dump, keep: Callable[[Metadata | None], Metadata | None]) -> tuple[Dump, str]:
    versions = [msgspec.structs.replace(row, metadata=keep(row.metadata), rule_set=None) for row in dump.versions]
    changed = sum(one != other for one, other in zip(versions, dump.versions, strict=True))
    return msgspec.structs.replace(dump, versions=tuple(versions)), _describe_losses(
        changed, "versions' metadata or rules"
    )


def _levels_only(dump: Dump) -> tuple[Dump, str]:
    plain = {level: Config(compatibility_level=own.compatibility_level) for level, own in dump.configs.items()}
    changed = sum(plain[level] != own for level, own in dump.configs.items())
    configs = {level: own for level, own in plain.items() if own.compatibility_level is not None}
    return msgspec.structs.replace(dump, configs=configs), _describe_losses(
        changed, "levels' settings beside compatibility"
    )


def _describe_losses(count: int, what: str) -> str:
    return f"{count} {what} have no place in this format" if count else ""


_FITTINGS: dict[Flavour, Callable[[Dump], tuple[Dump, list[str]]]] = {
    Flavour.CONFLUENT: _for_confluent,
    Flavour.KARAPACE: _for_karapace,
    Flavour.REDPANDA: _for_redpanda,
}
