"""Suggests known names for an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` if a name resembles a known one, else ''."""
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
