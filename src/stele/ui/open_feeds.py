"""How many streams of the journal are open, of all callers and of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MOST_FEEDS: Final = 200
"""Streams that one process serves at a time."""
MOST_OF_CALLER: Final = 20
"""Of these, how many one user, or one address without a user, may have."""


class OpenFeeds:
    """Counts the streams that are open: all of them, and those of each caller."""

    def __init__(self) -> None:
        self._of_callers: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """How many are open."""
        return self._of_callers.total()

    def find_refusal(self, caller: str) -> str:
        """Return why there may be no further stream of a caller; '' where there may."""
        if self._of_callers[caller] >= MOST_OF_CALLER:
            return f"you follow the journal {MOST_OF_CALLER} times already, which is the limit"
        if self.count >= MOST_FEEDS:
            return f"the journal is followed {MOST_FEEDS} times already, which is the limit"
        return ""

    @contextmanager
    def hold(self, caller: str) -> Iterator[None]:
        """Count a stream of a caller while it is open."""
        self._of_callers[caller] += 1
        try:
            yield
        finally:
            self._of_callers[caller] -= 1
            self._of_callers += Counter()  # Callers without a stream are forgotten.
