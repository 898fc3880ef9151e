"""Named, versioned rulesets: a container for those of one format, and functions for the rulesets of any format.

A format writes

    RULESETS = Rulesets("mine", Ruleset("strict@1", strict.check, "Refuses …."), Ruleset("loose@1", loose.check, "…."))

and implements the port's `rulesets` with `RULESETS.names` and its `check` with `RULESETS.check`. The contract:

- a released version keeps its verdicts for ever; corrected rules are added as the next version, beside the old one;
- the name of the first ruleset is the format's default, and must not change;
- a ruleset that is added to a released format under a new name starts at version 2. Settings may have named it before
  the format had it; they are then refused with a clear error in place of a verdict that differs from before.

If a plug-in lists a bare name, it counts as version 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from stele.core.findings import Finding
from stele.core.ports import Format
from stele.core.rulesets import FIRST, join_ruleset, split_ruleset
from stele.errors import UnknownRuleset

__all__ = [
    "FIRST",
    "HasRulesetSummaries",
    "Ruleset",
    "Rulesets",
    "default_ruleset",
    "effective_name",
    "installed_rulesets",
    "join_ruleset",
    "newest_ruleset",
    "require_effective",
    "ruleset_summary",
    "run_ruleset",
    "split_ruleset",
]

P = TypeVar("P")


class Ruleset(NamedTuple, Generic[P]):
    """One version of named rules.

    name     full name, `confluent@1`
    check    the findings about a reader's and a writer's schema
    summary  one sentence on what the rules look at
    """

    name: str
    check: Callable[[P, P], list[Finding]]
    summary: str


@runtime_checkable
class HasRulesetSummaries(Protocol):
    """A format that has a one-sentence summary of each of its rulesets."""

    @property
    def ruleset_summaries(self) -> Mapping[str, str]:
        """One sentence for each ruleset, by full name."""
        ...


class Rulesets(Generic[P]):
    """The rulesets of one format by full name, in order; the name of the first is the default."""

    def __init__(self, format_name: str, *rulesets: Ruleset[P]) -> None:
        self._format = format_name
        self._rulesets = {ruleset.name: ruleset for ruleset in rulesets}
        if len(self._rulesets) < len(rulesets) or any(split_ruleset(name)[1] is None for name in self._rulesets):
            raise ValueError(f"the rulesets of {format_name} need different names, each with a version")

    @property
    def names(self) -> tuple[str, ...]:
        """Full names, in order."""
        return tuple(self._rulesets)

    @property
    def summaries(self) -> Mapping[str, str]:
        """What each looks at, by full name."""
        return {name: ruleset.summary for name, ruleset in self._rulesets.items()}

    def find_ruleset(self, ruleset: str = "") -> Ruleset[P]:
        """Return the ruleset with that full name, or the newest version of that bare name; '' means the default.

        Raises `UnknownRuleset`, which lists the rulesets of the format.
        """
        return self._rulesets[_select_name(self._format, self.names, ruleset)]

    def check(self, reader: P, writer: P, ruleset: str = "") -> list[Finding]:
        """Return the findings of a ruleset, named as for `find_ruleset`. Raises `UnknownRuleset`."""
        return self.find_ruleset(ruleset).check(reader, writer)


# --- of any format --------------------------------------------------------------------------------------------------


def installed_rulesets(fmt: Format[Any]) -> tuple[str, ...]:
    """Return the full names of a format's rulesets, in its order."""
    return tuple(_full_name(name) for name in fmt.rulesets)


def default_ruleset(fmt: Format[Any]) -> str:
    """Return the bare name of the default ruleset, '' when the format compares nothing."""
    return split_ruleset(fmt.rulesets[0])[0] if fmt.rulesets else ""


def newest_ruleset(fmt: Format[Any], name: str = "") -> str:
    """Return the full name of the newest version of a bare name ('': the default). A full name is returned as it is.

    Raises `UnknownRuleset`.
    """
    return _select_name(fmt.name, installed_rulesets(fmt), name)


def effective_name(fmt: Format[Any], preferred: str, adopted: Mapping[str, int]) -> str:
    """Return the full name of the ruleset a registry judges by, installed or not; '' when the format compares nothing.

    preferred is the name in the registry's settings. If it is '' or a name that this format does not have, the format's
    default is used. adopted holds the version that the registry has adopted, by bare name.
    """
    names = installed_rulesets(fmt)
    if not names:
        return ""
    name, version = split_ruleset(preferred)
    if name not in {split_ruleset(known)[0] for known in names}:
        name, version = default_ruleset(fmt), None
    return join_ruleset(name, version or adopted.get(name, FIRST))


def require_effective(fmt: Format[Any], preferred: str, adopted: Mapping[str, int]) -> str:
    """Return `effective_name`. Raises `UnknownRuleset` if that version is not installed.

    No other version is used in its place, because its verdicts may differ.
    """
    names, full = installed_rulesets(fmt), effective_name(fmt, preferred, adopted)
    if full and full not in names:
        name = split_ruleset(full)[0]
        pinned = split_ruleset(preferred) == split_ruleset(full)
        mend = (
            "or name another ruleset in the settings"
            if pinned
            else f"or: stele ruleset adopt {fmt.name} {newest_ruleset(fmt, name)}"
        )
        raise UnknownRuleset(
            f"this registry judges {fmt.name} schemas by {full}, which is not installed here; there are "
            f"{', '.join(names)}: install the release that has it, {mend}"
        )
    return full


def run_ruleset(fmt: Format[Any], reader: Any, writer: Any, ruleset: str) -> list[Finding]:
    """Return the findings of an installed ruleset, given by its full name.

    The format is called with the name that it lists itself, which may be bare.
    """
    spoken = next((name for name in fmt.rulesets if _full_name(name) == ruleset), ruleset)
    return fmt.check(reader, writer, spoken)


def ruleset_summary(fmt: Format[Any], ruleset: str) -> str:
    """Return what a ruleset looks at, in one sentence; '' where the format does not say."""
    return fmt.ruleset_summaries.get(ruleset, "") if isinstance(fmt, HasRulesetSummaries) else ""


@lru_cache(1024)
def _full_name(name: str) -> str:
    bare, version = split_ruleset(name)
    return join_ruleset(bare, version or FIRST)


def _select_name(format_name: str, names: Sequence[str], ruleset: str) -> str:
    """Return the one of the full names that a full or bare ruleset name selects."""
    if not names:
        raise UnknownRuleset(f"{format_name} schemas cannot be compared: the format has no ruleset")
    name, version = split_ruleset(ruleset or split_ruleset(names[0])[0])
    if version is not None and join_ruleset(name, version) in names:
        return join_ruleset(name, version)
    versions = [number for known, number in map(split_ruleset, names) if known == name and number is not None]
    if version is not None or not versions:
        raise UnknownRuleset(f"{format_name} has no ruleset {ruleset!r}; it has {', '.join(names)}")
    return join_ruleset(name, max(versions))
