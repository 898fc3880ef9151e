"""The data of a migration: the versions, settings, modes, contexts and keys of a registry, in a neutral form.

Subjects have the names of the Confluent API: bare in the default context, `:.team:orders` elsewhere. A *level* is
an object with settings and modes: a subject, `:.team:` for a context, '' for the default one, `:.__GLOBAL:` for all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from stele.client.names import split_subject
from stele.core.metadata import Metadata
from stele.migrate.extras import RegistryExtras
from stele.protocol.confluent import Config, Rule, RuleSet, SchemaReference

DEFAULT_LEVEL = ""
"""The default context."""
REGISTRY_LEVEL = ":.__GLOBAL:"
"""The level above all contexts."""
DEFAULT_CONTEXT = "."

_PLACEHOLDER = "stele-reserved-ids"

_encode = msgspec.json.Encoder(order="deterministic").encode


class DumpVersion(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One version of a subject with its schema. `normalize_version` makes it, so equal versions have equal members."""

    subject: str
    version: int
    id: int
    schema: str
    schema_type: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    deleted: bool = False
    ts: int | None = None
    """Registration time in milliseconds since 1970 UTC; None if the source does not return it."""

    @property
    def key(self) -> tuple[str, int]:
        """Identifies the version in its registry."""
        return self.subject, self.version

    @property
    def context(self) -> str:
        """The context it is in, with its dot."""
        return context_of(self.subject)

    def referenced_keys(self) -> list[tuple[str, int]]:
        """Return the keys of the versions it refers to."""
        return [
            (_absolute_subject(reference.subject, self.subject), reference.version) for reference in self.references
        ]

    def content_digest(self) -> str:
        """SHA-256 (hex) of what an id stands for: type, text, references, metadata and rules."""
        content = (self.schema_type, self.schema, self.references, self.metadata, self.rule_set)
        return hashlib.sha256(_encode(content)).hexdigest()


class Dump(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The data of a registry.

    versions   each after those it refers to; see `dependency_order.sort_by_dependency`
    configs    settings by level, only of levels that have their own
    modes      modes by level, only of levels that have their own
    contexts   names with their dots, sorted; `.` is always there
    max_ids    by context: the highest id ever assigned, if it is known and higher than the ids of all versions
    notes      sentences on data of the source that this form cannot represent
    extras     keys, associations and exporters
    """

    versions: tuple[DumpVersion, ...] = ()
    configs: dict[str, Config] = {}
    modes: dict[str, str] = {}
    contexts: tuple[str, ...] = (DEFAULT_CONTEXT,)
    max_ids: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    extras: RegistryExtras = RegistryExtras()

    def levels(self) -> list[str]:
        """Return every level in this dump, higher levels before lower ones."""
        subjects = {row.subject for row in self.versions} - {""}
        named = subjects | {context_level(context) for context in self.contexts} | {REGISTRY_LEVEL, DEFAULT_LEVEL}
        return sorted(named | set(self.configs) | set(self.modes), key=level_rank)


def normalize_version(
    subject: str,
    number: int,
    schema_id: int,
    schema: str,
    *,
    schema_type: str | None = None,
    references: list[SchemaReference] | tuple[SchemaReference, ...] | None = None,
    metadata: Metadata | None = None,
    rule_set: RuleSet | None = None,
    deleted: bool = False,
    ts: int | None = None,
) -> DumpVersion:
    """Return a version in its normal form: empty members are absent, members without an order are sorted."""
    relative_references = [
        SchemaReference(row.name, _relative_subject(row.subject, subject), row.version) for row in references or ()
    ]
    return DumpVersion(
        subject,
        number,
        schema_id,
        schema,
        schema_type or "AVRO",
        tuple(relative_references),
        _normalize_metadata(metadata),
        _normalize_rule_set(rule_set),
        deleted,
        ts,
    )


def normalize_config(config: Config) -> Config:
    """Return settings in their normal form."""
    members: dict[str, Any] = {name: getattr(config, name) or None for name in config.__struct_fields__}
    for name in ("normalize", "validate_fields", "validate_new_schemas", "validate_rules"):
        members[name] = getattr(config, name)  # False is a value of its own, different from None
    for name in ("compatibility_level", "compatibility_policy"):
        members[name] = members[name] and members[name].upper()
    for name in ("default_metadata", "override_metadata"):
        members[name] = _normalize_metadata(members[name])
    for name in ("default_rule_set", "override_rule_set"):
        members[name] = _normalize_rule_set(members[name])
    return Config(**members)


def effective_level(configs: Mapping[str, Config], level: str) -> str:
    """Return the effective compatibility level of a level: its own or an inherited one."""
    for place in _levels_upwards(level):
        own = configs.get(place)
        if own is not None and own.compatibility_level is not None:
            return own.compatibility_level
    return "BACKWARD"


# --- names ----------------------------------------------------------------------------------------------------------


def context_of(subject: str) -> str:
    """Return the context of a subject or level, with its dot."""
    return f".{split_subject(subject).context}"


def context_level(context: str) -> str:
    """Return the level of a context."""
    return DEFAULT_LEVEL if context == DEFAULT_CONTEXT else f":{context}:"


def placeholder_version(context: str, schema_id: int) -> DumpVersion:
    """Return a temporary version, which creates its context and reserves the id there."""
    return DumpVersion(f"{'' if context == DEFAULT_CONTEXT else f':{context}:'}{_PLACEHOLDER}", 1, schema_id, '"null"')


def is_context(level: str) -> bool:
    """Return whether a level is a context, the default one included, or the whole registry."""
    return level == DEFAULT_LEVEL or (level.startswith(":.") and not split_subject(level).subject)


def level_rank(level: str) -> tuple[int, str]:
    """Return a sort key that puts the registry first, then contexts, then subjects."""
    return (0 if level == REGISTRY_LEVEL else 1 if is_context(level) else 2), level


def _levels_upwards(level: str) -> list[str]:
    context = context_level(context_of(level))
    places = [level, context, REGISTRY_LEVEL] if level != REGISTRY_LEVEL else [level]
    return list(dict.fromkeys(places))


def _absolute_subject(subject: str, within: str) -> str:
    """Return the subject of a reference as a complete name."""
    if subject.startswith(":."):
        return str(split_subject(subject))
    context = split_subject(within).context
    return f":.{context}:{subject}" if context else subject


def _relative_subject(subject: str, within: str) -> str:
    """Return the subject of a reference as schemas of a context name it."""
    context, bare = split_subject(subject)
    if not subject.startswith(":.") or context == split_subject(within).context:
        return bare
    return f":.{context}:{bare}"


# --- normal forms ---------------------------------------------------------------------------------------------------


def _normalize_metadata(metadata: Metadata | None) -> Metadata | None:
    ordered = metadata.in_stored_order() if metadata is not None else None
    return None if ordered == Metadata() else ordered


def _normalize_rule_set(rule_set: RuleSet | None) -> RuleSet | None:
    if rule_set is None:
        return None
    normal = RuleSet(
        migration_rules=_normalize_rules(rule_set.migration_rules),
        domain_rules=_normalize_rules(rule_set.domain_rules),
        encoding_rules=_normalize_rules(rule_set.encoding_rules),
        enable_at=rule_set.enable_at or None,
    )
    return None if normal == RuleSet() else normal


def _normalize_rules(rules: list[Rule] | None) -> list[Rule] | None:
    return [_normalize_rule(rule) for rule in rules] if rules else None


def _normalize_rule(rule: Rule) -> Rule:
    return Rule(
        name=rule.name,
        doc=rule.doc or None,
        kind=rule.kind or "TRANSFORM",
        mode=rule.mode or "WRITEREAD",
        type=rule.type,
        tags=sorted(set(rule.tags)) if rule.tags else None,
        params=dict(sorted(rule.params.items())) if rule.params else None,
        expr=rule.expr or None,
        on_success=rule.on_success or None,
        on_failure=rule.on_failure or None,
        disabled=bool(rule.disabled),
    )
