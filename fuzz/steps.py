"""Duration and outcome of the steps of one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Broken(AssertionError):
    """Something that must hold for every input does not hold for this one."""


class Steps:
    """Collects durations and outcomes of one input.

    longest     (seconds, step) of the longest step; wall clock, so an upper bound of its processor time
    accepted    number of documents that were accepted
    notes       outcomes; equal for inputs that took the same way
    current     the running step
    """

    def __init__(self) -> None:
        self.longest: tuple[float, str] = (0.0, "")
        self.accepted = 0
        self.notes: set[str] = set()
        self.current = ""

    def run_step(self, name: str, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run and time one step."""
        self.current = name
        start = time.perf_counter()
        try:
            return work(*args, **kwargs)
        finally:
            self.longest = max(self.longest, (time.perf_counter() - start, name))

    def record_outcome(self, *words: str) -> None:
        """Add the outcome of a step to the notes."""
        self.notes.add(" ".join(words))
