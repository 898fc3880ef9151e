"""Names of rulesets: `confluent@2` is version 2 of the rules `confluent`; `confluent` alone leaves the version open.

A version never changes its verdicts: corrected rules get the next number, beside the old ones. The log says which
number a registry uses (see `commands.AdoptRulesets`), so a new release alone changes no verdict.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from stele.errors import UnknownRuleset

FIRST: Final = 1
"""The version in force until a registry adopts another one."""

_MARK = "@"
_LONGEST = 9
"""Maximum number of digits of a version number."""


@lru_cache(1024)
def split_ruleset(ruleset: str) -> tuple[str, int | None]:
    """Return name and version of a ruleset; None for no version. Raises `UnknownRuleset` if `@` precedes no number."""
    name, mark, version = ruleset.rpartition(_MARK)
    if not mark:
        return ruleset, None
    number = int(version) if version.isascii() and version.isdigit() and len(version) <= _LONGEST else 0
    if not name or number < FIRST or str(number) != version:
        raise UnknownRuleset(f"{ruleset!r} is not a ruleset: write NAME or NAME@VERSION, with a version from {FIRST}")
    return name, number


def join_ruleset(name: str, version: int) -> str:
    """Return the full name of one version."""
    return f"{name}{_MARK}{version}"
