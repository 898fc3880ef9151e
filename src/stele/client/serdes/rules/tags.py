"""Tags of fields by path, from the metadata of a schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

_KEPT = 16_384
_TOKEN = re.compile(r"\*\*|.", re.DOTALL)


def tags_at(full_name: str, tags: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the tags of every pattern that matches a field's full name; see `matches_path`."""
    return frozenset(tag for pattern, own in tags.items() if matches_path(pattern, full_name) for tag in own)


@lru_cache(_KEPT)
def matches_path(pattern: str, name: str) -> bool:
    """Return whether a dotted name matches a pattern.

    `?` is one character other than a dot, `*` any number of them, `**` any number of any characters. The time is at
    most proportional to pattern length times name length.
    """
    tokens = _TOKEN.findall(pattern.replace("**.*", "**"))
    at = _expand_stars(tokens, {0})
    for character in name:
        at = _expand_stars(tokens, {state for spot in at for state in _match_after(tokens, spot, character)})
        if not at:
            return False
    return len(tokens) in at


def _expand_stars(tokens: Sequence[str], at: set[int]) -> set[int]:
    """Return all positions in the pattern that are reachable from these without a character."""
    reached = set(at)
    for spot in at:
        while spot < len(tokens) and tokens[spot] in {"*", "**"}:
            spot += 1  # noqa: PLW2901 - a star may stand for nothing
            reached.add(spot)
    return reached


def _match_after(tokens: Sequence[str], spot: int, character: str) -> set[int]:
    """Return the positions in the pattern after matching one character at `spot`."""
    match tokens[spot : spot + 1]:
        case ["**"]:
            return {spot}
        case ["*"]:
            return {spot} if character != "." else set()
        case ["?"]:
            return {spot + 1} if character != "." else set()
        case [token]:
            return {spot + 1} if token == character else set()
    return set()
