"""How far the comparisons of a request have come, for an answer to one that is given up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from itertools import islice
from typing import Final

from stele.core.findings import Finding

_MOST_FINDINGS: Final = 1000


class ComparisonProgress:
    """Comparisons of one request, counted by the thread that makes them and read by whoever gives them up."""

    def __init__(self) -> None:
        self._planned = 0
        self._made = 0
        self._findings: list[Finding] = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What has been found so far."""
        return tuple(self._findings)

    def plan_comparisons(self, count: int) -> None:
        """Note how many more comparisons there are to make."""
        self._planned += count

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Note what a comparison has found; of very many findings the first are kept."""
        self._findings += islice(findings, _MOST_FINDINGS - len(self._findings))

    def count_comparison(self) -> None:
        """Note that one more comparison is made."""
        self._made += 1

    def take_over(self, other: ComparisonProgress) -> None:
        """Be as far as the same comparisons are in another process."""
        self._planned, self._made, self._findings = other._planned, other._made, other._findings

    def __str__(self) -> str:
        """Say how far it is; '' where there is nothing to compare."""
        return f"{self._made} of {self._planned} comparisons were made" if self._planned else ""


_CURRENT: Final = ContextVar[ComparisonProgress]("progress")


@contextlib.contextmanager
def track_progress(progress: ComparisonProgress | None = None) -> Iterator[ComparisonProgress]:
    """Count what is compared in the block, and in the threads that it runs work in; progress: what counts it."""
    progress = progress or ComparisonProgress()
    token = _CURRENT.set(progress)
    try:
        yield progress
    finally:
        _CURRENT.reset(token)


def current_progress() -> ComparisonProgress:
    """Return what counts the comparisons made here; where nobody tracks them, one that nobody reads."""
    return _CURRENT.get(None) or ComparisonProgress()
