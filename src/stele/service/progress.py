"""Progress of the comparisons of a request, for the answer to a request that is aborted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from itertools import islice
from typing import Final

from stele.core.findings import Finding

_MOST_FINDINGS: Final = 1000


class ComparisonProgress:
    """Comparisons of one request. The thread that makes them counts; the caller that aborts them reads."""

    def __init__(self) -> None:
        self._planned = 0
        self._made = 0
        self._findings: list[Finding] = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings so far."""
        return tuple(self._findings)

    def plan_comparisons(self, count: int) -> None:
        """Add a number of planned comparisons."""
        self._planned += count

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Add findings of a comparison. At most the first 1,000 of a request are kept."""
        self._findings += islice(findings, _MOST_FINDINGS - len(self._findings))

    def count_comparison(self) -> None:
        """Count one more finished comparison."""
        self._made += 1

    def take_over(self, other: ComparisonProgress) -> None:
        """Copy the progress of the same comparisons in another process."""
        self._planned, self._made, self._findings = other._planned, other._made, other._findings

    def __str__(self) -> str:
        """Return the progress as text; '' where there is nothing to compare."""
        return f"{self._made} of {self._planned} comparisons were made" if self._planned else ""


_CURRENT: Final = ContextVar[ComparisonProgress]("progress")


@contextlib.contextmanager
def track_progress(progress: ComparisonProgress | None = None) -> Iterator[ComparisonProgress]:
    """Count the comparisons in the block, and in the threads that it runs work in. `progress` is the counter to use."""
    progress = progress or ComparisonProgress()
    token = _CURRENT.set(progress)
    try:
        yield progress
    finally:
        _CURRENT.reset(token)


def current_progress() -> ComparisonProgress:
    """Return the counter of the current comparisons; outside of `track_progress`, one that is not read."""
    return _CURRENT.get(None) or ComparisonProgress()
