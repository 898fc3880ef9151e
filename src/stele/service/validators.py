"""The validators that a policy can name (`Policy.validators`), as AVRO-1124 defines them.

| name              | refuses                                                                                    |
|-------------------|--------------------------------------------------------------------------------------------|
| `lint`            | a schema with a finding of any lint rule of the format                                     |
| `lint:RULE`       | a schema with a finding of that rule; nothing where the format has no such rule            |
| `ruleset:NAME`    | a schema that cannot read the newest version by that ruleset, whatever else the policy says |
| `repo.reject`     | everything                                                                                 |

More are loaded from the entry point group `stele.validators`. The entry point's name is the name of the validator. Its
value is a callable `(format, parsed, before) -> list[Finding]`, where before is the newest version, None for the first
document of a subject. It is called from several threads. The names above, and names that begin like them, are reserved.

Findings of lint and of plug-ins always refuse the schema, whatever their severity. Findings of a ruleset keep their
severity, so its warnings do not refuse. A name that is not installed raises `UnknownRuleset`: a policy with an unknown
validator accepts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from msgspec.structs import replace

from stele.core.findings import Finding, Severity
from stele.core.ports import Format, Parsed
from stele.errors import SteleError, UnknownRule, UnknownRuleset
from stele.formats import rulesets
from stele.formats.lint import lint_schema, require_known_rules
from stele.service.rulesets import installed_formats

GROUP: Final = "stele.validators"
"""Name of the entry point group."""

LINT: Final = "lint"
"""The validator of all lint rules, and the prefix of validators for a single rule."""

RULESET: Final = "ruleset"
"""Prefix of the names of validators for a ruleset."""

REJECT: Final = "repo.reject"
"""The validator that refuses everything (schema-repo has it under this name)."""

Validator = Callable[[Format[Any], Parsed, Parsed | None], list[Finding]]

__all__ = [
    "GROUP",
    "LINT",
    "REJECT",
    "RULESET",
    "Validator",
    "list_validators",
    "reload_plug_ins",
    "require_known",
    "run_validator",
]


def list_validators() -> tuple[str, ...]:
    """Return the validators there are: built-in ones (`lint:` and `ruleset:` take a name), then plug-ins.

    This imports no plug-in.
    """
    return (LINT, f"{LINT}:RULE", f"{RULESET}:NAME", REJECT, *sorted(_find_plug_ins()))


def run_validator(
    name: str, fmt: Format[Any], parsed: Parsed, before: Parsed | None, adopted: Mapping[str, int] | None = None
) -> tuple[Finding, ...]:
    """Return the findings of a validator about a schema that follows another one (None: it is the first).

    `adopted` has the versions of rulesets that the registry adopted, by name. Raises `UnknownRuleset` for a name that
    is not installed, and for a plug-in that cannot be loaded.
    """
    kind, colon, rest = name.partition(":")
    if kind == LINT:
        return _raise_severity(_run_lint(name, fmt, parsed, before, rest if colon else None))
    if kind == RULESET and colon:
        return _run_ruleset(fmt, parsed, before, rest, adopted or {})
    if name == REJECT:
        return (_REJECTED,)
    return _raise_severity(_get_plug_in(name)(fmt, parsed, before))


def require_known(names: Iterable[str]) -> None:
    """Raise `UnknownRuleset` for the first name that no installed format or plug-in has. Called before a policy is set.

    Loads the formats, so it may take a while.
    """
    for name in names:
        _require_validator(name)


def _require_validator(name: str) -> None:
    kind, colon, rest = name.partition(":")
    if kind == LINT:
        _require_of_some_format(name, lambda fmt: require_known_rules(fmt, [rest] if colon else []))
    elif kind == RULESET and colon:
        _require_of_some_format(name, lambda fmt: rulesets.newest_ruleset(fmt, rest))
    elif name != REJECT:
        _get_plug_in(name)


def _require_of_some_format(name: str, find: Callable[[Format[Any]], object]) -> None:
    reasons: list[str] = []
    for fmt in installed_formats():
        try:
            find(fmt)
        except (UnknownRule, UnknownRuleset) as error:
            reasons.append(str(error))
        else:
            return
    raise UnknownRuleset(f"no validator {name!r} is installed: {reasons[0] if reasons else 'there is no format'}")


def reload_plug_ins() -> None:
    """Search the installed packages for plug-ins again on the next call."""
    _find_plug_ins.cache_clear()
    _get_plug_in.cache_clear()


def _run_lint(name: str, fmt: Format[Any], parsed: Parsed, before: Parsed | None, rule: str | None) -> list[Finding]:
    try:
        return lint_schema(fmt, parsed, before, None if rule is None else [rule])
    except UnknownRule as error:
        raise UnknownRuleset(f"no validator {name!r} is installed: {error}") from None


def _run_ruleset(
    fmt: Format[Any], parsed: Parsed, before: Parsed | None, name: str, adopted: Mapping[str, int]
) -> tuple[Finding, ...]:
    """Return findings on whether the schema reads the one before it, by the version of the ruleset that is adopted."""
    rulesets.newest_ruleset(fmt, name)  # raises for an unknown name, for which the next line would take the default
    chosen = rulesets.require_effective(fmt, name, adopted)
    return () if before is None else tuple(rulesets.run_ruleset(fmt, parsed, before, chosen))


def _raise_severity(findings: list[Finding]) -> tuple[Finding, ...]:
    return tuple(replace(finding, level=Severity.ERROR) for finding in findings)


@cache
def _get_plug_in(name: str) -> Validator:
    point = _find_plug_ins().get(name)
    if point is None:
        raise UnknownRuleset(f"no validator {name!r} is installed; there are {', '.join(list_validators())}")
    try:
        loaded = point.load()
    except SteleError:
        raise
    except (ImportError, AttributeError) as error:
        raise UnknownRuleset(f"the validator {name!r} ({point.value}) cannot be loaded: {error}") from error
    if not callable(loaded):
        raise UnknownRuleset(f"the validator {name!r} ({point.value}) cannot be called")
    validator: Validator = loaded
    return validator


@cache
def _find_plug_ins() -> dict[str, EntryPoint]:
    """Return the plug-ins by name. The first distribution with a name wins."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name, point)
    return points


_REJECTED: Final = Finding(
    rule="REPO_REJECT",
    path="",
    why="the validator repo.reject of this subject's policy refuses every schema",
    fix="register under another subject, or have the validator removed by the subject's owner",
)
