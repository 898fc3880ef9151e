"""How long work says where it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told after each step: what is being done, how many are done, and of how many (None: unknown)."""

    def __call__(self, verb: str, done: int, total: int | None) -> None:
        """Take note."""
        ...


def report_nothing(verb: str, done: int, total: int | None) -> None:
    """Takes no note."""
