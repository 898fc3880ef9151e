"""The steps of one run: how long each took, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Broken(AssertionError):
    """Something that must hold for every input does not hold for this one."""


class Steps:
    """Collects what happens to one input.

    longest     (seconds, step) of the step that took longest; wall clock, so an upper bound of its processor time
    accepted    how many documents were accepted
    notes       short texts that are equal for inputs that were treated alike
    current     the step under way
    """

    def __init__(self) -> None:
        self.longest: tuple[float, str] = (0.0, "")
        self.accepted = 0
        self.notes: set[str] = set()
        self.current = ""

    def run_step(self, name: str, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do and time one step."""
        self.current = name
        start = time.perf_counter()
        try:
            return work(*args, **kwargs)
        finally:
            self.longest = max(self.longest, (time.perf_counter() - start, name))

    def record_outcome(self, *words: str) -> None:
        """Remember what came of a step."""
        self.notes.add(" ".join(words))
