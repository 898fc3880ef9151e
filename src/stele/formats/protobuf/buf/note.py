"""What a rule reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Violation(NamedTuple):
    """A finding whose rule goes without saying; the members are those of `stele.core.findings.Finding`."""

    path: str
    reader: str
    writer: str
    why: str
    fix: str


Rules = Mapping[str, Callable[[T, T], Iterator[Violation]]]
"""Rule ids to functions of what the reader's and the writer's schema have in the same place."""
