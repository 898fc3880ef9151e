"""A registry as the records of a `_schemas` topic, in an order in which a new registry of that make can read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from stele.core.governance import Metadata
from stele.migrate.model import DEFAULT_CONTEXT, DEFAULT_LEVEL, Config, Dump, Version, placeholder
from stele.migrate.order import ordered
from stele.migrate.records import Flavour, Record, encode_json

_Pair = tuple[dict[str, Any], dict[str, Any] | None]


class Topic(NamedTuple):
    """The records, offsets from 0 without holes, and what this make of registry has no place for."""

    records: list[Record]
    losses: list[str]


def write(dump: Dump, flavour: Flavour) -> Topic:
    """The records of a registry. Raises nothing: what the format cannot hold is told in losses."""
    fitting, losses = _FITTINGS[flavour](dump)
    records = []
    for offset, (key, value) in enumerate(_pairs(fitting, flavour)):
        if flavour is Flavour.REDPANDA:
            # A record counts where its place is the one it was written for. A tombstone names the record it is for.
            key |= {"seq": offset if value is not None or key["keytype"] == "NOOP" else offset - 1, "node": 0}
        data = None if value is None else encode_json(value)
        records.append(Record(encode_json(key), data, offset, f"record {offset}"))
    return Topic(records, losses)


def _pairs(dump: Dump, flavour: Flavour) -> Iterator[_Pair]:
    if flavour is not Flavour.KARAPACE:
        yield {"keytype": "NOOP", "magic": 0}, None
    for context in dump.contexts:
        if context != DEFAULT_CONTEXT:
            key = {"keytype": "CONTEXT", "tenant": "default", "context": context, "magic": 0}
            yield key, {"tenant": "default", "context": context}
    for level, config in sorted(dump.configs.items()):
        yield _level_key("CONFIG", level, flavour), _subject(level, flavour) | msgspec.to_builtins(config)
    for row in dump.versions:
        yield _schema_key(row), _schema_value(row, flavour)
    for context, most in sorted(dump.max_ids.items()):
        row = placeholder(context, most)
        yield _schema_key(row), _schema_value(row, flavour)
        yield _schema_key(row), None
    for level, mode in sorted(dump.modes.items()):
        yield _level_key("MODE", level, flavour), _subject(level, flavour) | {"mode": mode}


def _schema_key(row: Version) -> dict[str, Any]:
    return {"keytype": "SCHEMA", "subject": row.subject, "version": row.version, "magic": 1}


def _level_key(keytype: str, level: str, flavour: Flavour) -> dict[str, Any]:
    named: dict[str, Any] = {"subject": level}
    if level == DEFAULT_LEVEL:
        named = {"subject": None} if flavour is Flavour.KARAPACE else {}
    return {"keytype": keytype, **named, "magic": 0}


def _subject(level: str, flavour: Flavour) -> dict[str, Any]:
    return {} if level == DEFAULT_LEVEL or flavour is Flavour.KARAPACE else {"subject": level}


def _schema_value(row: Version, flavour: Flavour) -> dict[str, Any]:
    """The members in the order their writers have them; Avro goes without saying outside of Confluent's."""
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


def _all(dump: Dump) -> tuple[Dump, list[str]]:
    return dump, []


def _for_karapace(dump: Dump) -> tuple[Dump, list[str]]:
    """Karapace knows neither contexts nor modes nor attachments, and of settings the compatibility level alone."""
    bare = [row for row in dump.versions if row.context == DEFAULT_CONTEXT and not row.subject.startswith(":.")]
    configs = {level: own for level, own in dump.configs.items() if not level.startswith(":.")}
    losses = [
        _lost(len(dump.versions) - len(bare), "versions outside of the default context"),
        _lost(len(dump.configs) - len(configs), "settings of contexts"),
        _lost(len(dump.modes), "modes"),
    ]
    fitting = Dump(ordered(bare), configs, {}, (DEFAULT_CONTEXT,), _of(dump.max_ids, DEFAULT_CONTEXT))
    fitting, more = _without_attachments(fitting, lambda metadata: None)
    fitting, settings = _levels_only(fitting)
    return fitting, [loss for loss in (*losses, more, settings) if loss]


def _for_redpanda(dump: Dump) -> tuple[Dump, list[str]]:
    """Redpanda knows the properties of metadata and no rule sets, and of settings the compatibility level alone."""
    fitting, attachments = _without_attachments(dump, _properties)
    fitting, settings = _levels_only(fitting)
    return fitting, [loss for loss in (attachments, settings) if loss]


def _of(ids: dict[str, int], context: str) -> dict[str, int]:
    return {name: most for name, most in ids.items() if name == context}


def _properties(metadata: Metadata | None) -> Metadata | None:
    if metadata is None or not metadata.properties:
        return None
    return Metadata(properties=metadata.properties)


def _without_attachments(dump: Dump, keep: Callable[[Metadata | None], Metadata | None]) -> tuple[Dump, str]:
    versions = [msgspec.structs.replace(row, metadata=keep(row.metadata), rule_set=None) for row in dump.versions]
    changed = sum(one != other for one, other in zip(versions, dump.versions, strict=True))
    return msgspec.structs.replace(dump, versions=tuple(versions)), _lost(changed, "versions' metadata or rules")


def _levels_only(dump: Dump) -> tuple[Dump, str]:
    plain = {level: Config(own.compatibility_level) for level, own in dump.configs.items()}
    changed = sum(plain[level] != own for level, own in dump.configs.items())
    kept = {level: own for level, own in plain.items() if own.compatibility_level is not None}
    return msgspec.structs.replace(dump, configs=kept), _lost(changed, "levels' settings beside compatibility")


def _lost(count: int, what: str) -> str:
    return f"{count} {what} have no place in this format" if count else ""


_FITTINGS: dict[Flavour, Callable[[Dump], tuple[Dump, list[str]]]] = {
    Flavour.CONFLUENT: _all,
    Flavour.KARAPACE: _for_karapace,
    Flavour.REDPANDA: _for_redpanda,
}
