"""What is moved: the versions, settings, modes, contexts and keys of a registry, in no vendor's form.

Subjects have the names the Confluent API shows: bare in the default context, `:.team:orders` elsewhere. A *level* is
where settings and modes hang: a subject, `:.team:` for a context, '' for the default one, `:.__GLOBAL:` for all.
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
"""What stands above all contexts."""
DEFAULT_CONTEXT = "."

_PLACEHOLDER = "stele-reserved-ids"

_encode = msgspec.json.Encoder(order="deterministic").encode


class DumpVersion(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One version of a subject with its schema. Made by `version`, so equal ones have equal members."""

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
    """When it was registered, in milliseconds since 1970 UTC, where the source tells."""

    @property
    def key(self) -> tuple[str, int]:
        """What names it in its registry."""
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
    """A registry.

    versions   each after those it refers to; see `order.ordered`
    configs    settings by level, only of levels that have their own
    modes      likewise
    contexts   names with their dots, sorted; `.` is always there
    max_ids    by context: the highest id ever given, where that is known and no version left has it
    notes      sentences on what the source has and this form has not
    beside     keys, associations and exporters
    """

    versions: tuple[DumpVersion, ...] = ()
    configs: dict[str, Config] = {}
    modes: dict[str, str] = {}
    contexts: tuple[str, ...] = (DEFAULT_CONTEXT,)
    max_ids: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    extras: RegistryExtras = RegistryExtras()

    def levels(self) -> list[str]:
        """Return every level this dump speaks of, those above before those below."""
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
    """Return a version with everything in its normal form: what is empty is absent, what has no order is sorted."""
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
    """Settings in their normal form."""
    members: dict[str, Any] = {name: getattr(config, name) or None for name in config.__struct_fields__}
    for name in ("normalize", "validate_fields", "validate_new_schemas", "validate_rules"):
        members[name] = getattr(config, name)  # false is set, and differs from nothing
    for name in ("compatibility_level", "compatibility_policy"):
        members[name] = members[name] and members[name].upper()
    for name in ("default_metadata", "override_metadata"):
        members[name] = _normalize_metadata(members[name])
    for name in ("default_rule_set", "override_rule_set"):
        members[name] = _normalize_rule_set(members[name])
    return Config(**members)


def effective_level(configs: Mapping[str, Config], level: str) -> str:
    """Return the compatibility level in force at a level."""
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
    """Return the level a context is."""
    return DEFAULT_LEVEL if context == DEFAULT_CONTEXT else f":{context}:"


def placeholder_version(context: str, schema_id: int) -> DumpVersion:
    """Return a version that is there for a moment, so that its context exists and never gives the id again."""
    return DumpVersion(f"{'' if context == DEFAULT_CONTEXT else f':{context}:'}{_PLACEHOLDER}", 1, schema_id, '"null"')


def is_context(level: str) -> bool:
    """Whether a level is a context, the default one included, or the whole registry."""
    return level == DEFAULT_LEVEL or (level.startswith(":.") and not split_subject(level).subject)


def level_rank(level: str) -> tuple[int, str]:
    """Sorts levels so that the registry comes first, then contexts, then subjects."""
    return (0 if level == REGISTRY_LEVEL else 1 if is_context(level) else 2), level


def _levels_upwards(level: str) -> list[str]:
    context = context_level(context_of(level))
    places = [level, context, REGISTRY_LEVEL] if level != REGISTRY_LEVEL else [level]
    return list(dict.fromkeys(places))


def _absolute_subject(subject: str, within: str) -> str:
    """Return a reference's subject as a name that stands by itself."""
    if subject.startswith(":."):
        return str(split_subject(subject))
    context = split_subject(within).context
    return f":.{context}:{subject}" if context else subject


def _relative_subject(subject: str, within: str) -> str:
    """Return a reference's subject as schemas of a context name it."""
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
