"""What a check may spend on comparing simple types, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from stele.formats.xsd.library import accepts_text
from stele.formats.xsd.regex import intersect_charsets
from stele.formats.xsd.terms import Algebra

MAX_STEPS: Final = 250_000
"""Budget of one comparison of languages."""

MAX_UNITS: Final = 20_000
"""Budget for all simple types of one check, in units of which a common machine does about 20 in a millisecond."""

_STEPS_IN_UNIT: Final = 20
_TEXT_UNITS: Final = 4


class InclusionProof(NamedTuple):
    """holds: inclusion is proved. hints: texts worth trying as counterexamples."""

    holds: bool
    hints: tuple[str, ...] = ()


class SimpleTypeBudget:
    """What one check may still spend on simple types, and what it knows of pairs of them."""

    def __init__(self) -> None:
        self.left = MAX_UNITS
        self.known: dict[tuple[int, int, frozenset[tuple[str, ...]]], InclusionProof] = {}

    def try_spend(self, units: int) -> bool:
        """Take units away; False when there are none left: what follows stays unproved."""
        self.left -= units
        return self.left > 0

    def accepts_text(self, kind: Any, text: str) -> bool:
        """Whether a type takes a text; also no when the effort is spent."""
        return self.try_spend(_TEXT_UNITS) and accepts_text(kind, text)

    @contextmanager
    def paid_algebra(self) -> Iterator[Algebra]:
        """An algebra over characters whose steps are paid for."""
        steps = max(0, min(MAX_STEPS, self.left * _STEPS_IN_UNIT))
        made = Algebra(intersect_charsets, steps=steps)
        try:
            yield made
        finally:
            self.try_spend(1 + (steps - made.budget.left) // _STEPS_IN_UNIT)
