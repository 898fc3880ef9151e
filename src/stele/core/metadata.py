"""Metadata and rule sets of a schema version, and the settings that complete them.

The structs have the shapes that clients exchange (data contracts: tags, properties, rules). Therefore member names are
camel case on every wire, snake case in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from stele.errors import InvalidRuleSet

RULE_KINDS: Final = ("TRANSFORM", "CONDITION")
_MIGRATION_MODES: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DATA_MODES: Final = ("WRITE", "READ", "WRITEREAD")
RULE_MODES: Final = (*_MIGRATION_MODES, *_DATA_MODES)
ENABLE_AT: Final = ("ALL", "CLIENT", "GATEWAY", "SERVER", "NONE")
_PAIR_MODES = {"WRITEREAD", "UPDOWN"}
_LONGEST_RULE_NAME: Final = 256


class Metadata(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Tags by schema path, free properties, and the names of properties that are sensitive."""

    tags: dict[str, tuple[str, ...]] | None = None
    properties: dict[str, str] | None = None
    sensitive: tuple[str, ...] | None = None

    def in_stored_order(self) -> Metadata:
        """Return the same with every map sorted and every set sorted without repeats.

        This form is stored and compared.
        """
        return Metadata(
            tags={path: tuple(sorted(set(self.tags[path]))) for path in sorted(self.tags)} if self.tags else None,
            properties=dict(sorted(self.properties.items())) if self.properties else None,
            sensitive=tuple(sorted(set(self.sensitive))) if self.sensitive else None,
        )


class DataRule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One condition or transformation on data or between versions; see the Confluent data-contract rules."""

    name: str | None = None
    doc: str | None = None
    kind: str = "TRANSFORM"
    mode: str = "WRITEREAD"
    type: str | None = None
    tags: tuple[str, ...] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False


class DataRuleSet(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The rules of one version by phase."""

    migration_rules: tuple[DataRule, ...] | None = None
    domain_rules: tuple[DataRule, ...] | None = None
    encoding_rules: tuple[DataRule, ...] | None = None
    enable_at: str | None = None

    def validate(self) -> None:
        """Raise `InvalidRuleSet` with the name of the first invalid rule."""
        if self.enable_at is not None and self.enable_at not in ENABLE_AT:
            raise InvalidRuleSet(f"enableAt must be one of {', '.join(ENABLE_AT)}, not {self.enable_at!r}")
        names: set[str] = set()
        phases = (
            (self.migration_rules, _MIGRATION_MODES, "Migration"),
            (self.domain_rules, _DATA_MODES, "Domain"),
            (self.encoding_rules, _DATA_MODES, "Encoding"),
        )
        for rules, modes, phase in phases:
            for rule in rules or ():
                _validate_rule(rule, modes, phase)
                name = rule.name or ""
                if name in names:
                    raise InvalidRuleSet(f"Found rule with duplicate name '{name}'")
                names.add(name)


def _validate_rule(rule: DataRule, modes: tuple[str, ...], phase: str) -> None:
    _validate_rule_name(rule.name)
    if not rule.type:
        raise InvalidRuleSet("Missing rule type")
    if rule.kind not in RULE_KINDS:
        raise InvalidRuleSet(f"Rule '{rule.name}' has kind {rule.kind!r}; known: {', '.join(RULE_KINDS)}")
    for action in (rule.on_success, rule.on_failure):
        if action and "," in action and rule.mode not in _PAIR_MODES:
            raise InvalidRuleSet("Multiple actions only valid with WRITEREAD and UPDOWN")
    if rule.mode not in modes:
        raise InvalidRuleSet(f"{phase} rules can only be {', '.join(modes)}")


def _validate_rule_name(name: str | None) -> None:
    """Raise `InvalidRuleSet` unless a name is a letter or `_` and then letters, digits, `_` or `-`, 256 at most."""
    if name is None:
        raise InvalidRuleSet("Missing rule name")
    if not name:
        raise InvalidRuleSet("Empty rule name")
    if len(name) > _LONGEST_RULE_NAME:
        raise InvalidRuleSet("Rule name too long")
    if not (name[0].isalpha() or name[0] == "_"):
        raise InvalidRuleSet(f"Illegal initial character in rule name: {name}")
    if not all(char.isalpha() or char.isdecimal() or char in "_-" for char in name):
        raise InvalidRuleSet(f"Illegal character in rule name: {name}")


def merge_metadata(base: Metadata | None, over: Metadata | None) -> Metadata | None:
    """Return both merged; `over` wins where a key is in both."""
    if base is None or over is None:
        return over if base is None else base
    return Metadata(
        tags=_merge_tags(base.tags, over.tags),
        properties=_merge_tags(base.properties, over.properties),
        sensitive=tuple(sorted({*(base.sensitive or ()), *(over.sensitive or ())})) or None,
    ).in_stored_order()


def merge_rule_sets(base: DataRuleSet | None, over: DataRuleSet | None) -> DataRuleSet | None:
    """Return the rules of both by name; `over` wins. The order of `base` comes first."""
    if base is None or over is None:
        return over if base is None else base
    return DataRuleSet(
        migration_rules=_merge_rules(base.migration_rules, over.migration_rules),
        domain_rules=_merge_rules(base.domain_rules, over.domain_rules),
        encoding_rules=_merge_rules(base.encoding_rules, over.encoding_rules),
        enable_at=over.enable_at or base.enable_at,
    )


def _merge_tags(base: Mapping[str, Any] | None, over: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {**(base or {}), **(over or {})} or None


def _merge_rules(base: tuple[DataRule, ...] | None, over: tuple[DataRule, ...] | None) -> tuple[DataRule, ...] | None:
    named = {rule.name: rule for rule in base or ()}
    for rule in over or ():
        named.pop(rule.name, None)
        named[rule.name] = rule
    return tuple(named.values()) or None
