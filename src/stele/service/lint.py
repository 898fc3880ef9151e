"""Advice on one schema, without a registry; behind `POST /api/lint` and `stele lint`."""

from __future__ import annotations

import msgspec

from stele.core.findings import Finding
from stele.errors import SteleError
from stele.formats import lint as rules
from stele.formats.registry import get_format, list_formats
from stele.service.check import Candidate, NamedText, parse_candidate
from stele.service.limits import Limits


class LintRequest(msgspec.Struct, frozen=True):
    """A schema to lint, and the rules to use.

    before is the previous version, for rules about changes. rules None means all rules of the format except those that
    are off by default (DOC_REQUIRED); ignore excludes some. name is the schema's own file name, for imports between
    files.
    """

    format: str
    schema: str
    before: Candidate | None = None
    rules: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    references: tuple[NamedText, ...] = ()
    name: str = ""


class LintAnswer(msgspec.Struct, frozen=True):
    """Findings of the rules, in the order of the schema; empty when there are none."""

    findings: tuple[Finding, ...]


class RuleInfo(msgspec.Struct, frozen=True):
    """A lint rule, what it requires, and the formats that have it."""

    rule: str
    asks: str
    formats: tuple[str, ...]


def lint_schema(request: LintRequest, limits: Limits | None = None) -> LintAnswer:
    """Lint a schema. Raises `UnknownFormat`, `UnknownRule`, `MalformedSchema`, `TooLarge`.

    The schema must be valid enough to be registered. The previous version is parsed leniently.
    """
    limits = limits or Limits()
    fmt = get_format(request.format)
    rule_names = rules.default_rules_of(fmt) if request.rules is None else request.rules
    wanted = rules.require_known_rules(fmt, rule_names) - rules.require_known_rules(fmt, request.ignore)
    schema = Candidate(request.schema, request.references, request.name)
    parsed = parse_candidate(fmt, schema, limits, strict=True)
    before = None
    if request.before is not None:
        before = parse_candidate(fmt, request.before, limits, strict=False, role="the previous version")
    return LintAnswer(tuple(rules.lint_schema(fmt, parsed, before, wanted)))


def list_rules() -> tuple[RuleInfo, ...]:
    """Return every rule of every installed format that can be loaded, by name."""
    catalog: dict[str, tuple[str, list[str]]] = {}
    for name in list_formats():
        try:
            sentences = rules.lint_rules_of(get_format(name))
        except SteleError:
            continue
        for rule, asks in sentences.items():
            catalog.setdefault(rule, (asks, []))[1].append(name)
    return tuple(RuleInfo(rule, asks, tuple(formats)) for rule, (asks, formats) in sorted(catalog.items()))
