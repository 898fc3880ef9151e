"""What somebody may have meant by a name that is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for a name that is nearly a known one, else nothing."""
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
