"""Progress reports of long work."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called after each step with the kind of work, the number of finished items, and the total (None: unknown)."""

    def __call__(self, verb: str, done: int, total: int | None) -> None:
        """Report a step."""
        ...


def report_nothing(verb: str, done: int, total: int | None) -> None:
    """Ignore a report."""
