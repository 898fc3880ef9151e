"""The case files beside this one. `stele.testing.format_cases` reads them and documents their lines."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stele.testing.format_cases import FormatCase, read_cases

CASES = Path(__file__).parent / "cases"
"""The published suites, copied unchanged."""

OWN = Path(__file__).parent / "own"
"""Lines of this project about style, references and data, which the published suites leave out."""


@cache
def published_cases() -> tuple[FormatCase, ...]:
    """Return all lines of the published suites."""
    return tuple(read_cases([CASES]))


def uncontested_cases(format_name: str) -> list[FormatCase]:
    """Return the published lines of a format that no other suite contradicts."""
    return [case for case in published_cases() if case.format == format_name and not case.contested]


def case_id(case: FormatCase) -> str:
    """Return the stable name of a case."""
    return case.id
