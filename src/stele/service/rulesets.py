"""Installed rulesets, the versions that decide in a registry, and the adoption of other versions.

A registry uses version 1 of every ruleset until it adopts another one, whatever is installed. Its log says which
version decides. `ruleset_impact` reports in advance what an adoption would change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stele.core.ports import Format
from stele.errors import SteleError
from stele.formats import rulesets
from stele.formats.lint import OFF_BY_DEFAULT, lint_rules_of
from stele.formats.registry import get_format, list_formats


class RulesetVersion(msgspec.Struct, frozen=True):
    """One installed version; summary describes it in one sentence."""

    version: int
    summary: str


class RulesetInfo(msgspec.Struct, frozen=True):
    """The versions of one ruleset, ascending.

    in_force   the version that decides in this registry where settings name none
    installed  whether that version is installed here; if not, writes that need it are refused
    default    whether the ruleset decides where settings name none
    """

    format: str
    name: str
    in_force: int
    installed: bool
    default: bool
    versions: tuple[RulesetVersion, ...]


class AdviceRule(msgspec.Struct, frozen=True):
    """A lint rule, which gives advice on valid schemas.

    asks        what it requires
    formats     formats whose schemas it checks
    is_default  whether it applies without being named
    """

    name: str
    asks: str
    formats: Sequence[str]
    is_default: bool


def list_rulesets(adopted: Mapping[tuple[str, str], int]) -> list[RulesetInfo]:
    """Return all rulesets of all installed formats, in the formats' order.

    `adopted` has the versions that a registry adopted.

    Loads the formats, so it may take a while. A format that cannot be loaded is left out.
    """
    return [info for fmt in installed_formats() for info in _rulesets_of_format(fmt, adopted)]


def get_ruleset(format_name: str, name: str, adopted: Mapping[tuple[str, str], int]) -> RulesetInfo:
    """Return one ruleset by its bare name. Raises `UnknownFormat`, `UnknownRuleset`."""
    fmt = get_format(format_name)
    name, _ = rulesets.split_ruleset(rulesets.newest_ruleset(fmt, name))
    return next(info for info in _rulesets_of_format(fmt, adopted) if info.name == name)


def newest_versions() -> tuple[tuple[str, str, int], ...]:
    """Return (format, name, newest version) of every installed ruleset whose newest version is above 1."""
    newest = ((info.format, info.name, info.versions[-1].version) for info in list_rulesets({}))
    return tuple(each for each in newest if each[2] > rulesets.FIRST)


def list_advice() -> list[AdviceRule]:
    """Return the lint rules of all installed formats, by name. Loads the formats."""
    sentences: dict[str, str] = {}
    formats: dict[str, list[str]] = {}
    for fmt in installed_formats():
        for rule, asks in lint_rules_of(fmt).items():
            sentences[rule] = asks
            formats.setdefault(rule, []).append(fmt.name)
    return [AdviceRule(rule, sentences[rule], formats[rule], rule not in OFF_BY_DEFAULT) for rule in sorted(sentences)]


def installed_formats() -> Iterator[Format[Any]]:
    """Return every format that can be loaded, by name."""
    for name in list_formats():
        try:
            yield get_format(name)
        except SteleError:
            continue


def _rulesets_of_format(fmt: Format[Any], adopted: Mapping[tuple[str, str], int]) -> Iterator[RulesetInfo]:
    order: dict[str, list[int]] = {}
    for full in rulesets.installed_rulesets(fmt):
        name, version = rulesets.split_ruleset(full)
        order.setdefault(name, []).append(version or rulesets.FIRST)
    for name, numbers in order.items():
        number = adopted.get((fmt.name, name), rulesets.FIRST)
        yield RulesetInfo(
            format=fmt.name,
            name=name,
            in_force=number,
            installed=number in numbers,
            default=name == rulesets.default_ruleset(fmt),
            versions=tuple(
                RulesetVersion(version, rulesets.ruleset_summary(fmt, rulesets.join_ruleset(name, version)))
                for version in sorted(numbers)
            ),
        )
