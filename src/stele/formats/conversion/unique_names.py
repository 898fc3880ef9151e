"""Names that are each given once."""

from __future__ import annotations

from collections.abc import Iterable


class UniqueNames:
    """Gives out names: the one wanted where it is free, else with the first free number behind it; linear in all."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._last: dict[str, int] = {}

    def claim_name(self, wanted: str, separator: str = "") -> str:
        """Return a name that is not taken yet, and take it."""
        made, count = wanted, self._last.get(wanted, 1)
        while made in self.taken:
            count += 1
            made = f"{wanted}{separator}{count}"
        self._last[wanted] = count
        self.taken.add(made)
        return made
