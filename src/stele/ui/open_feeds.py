"""Counts of open journal streams: in total, and of each caller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MOST_FEEDS: Final = 200
"""Maximum number of open streams in one process."""
MOST_OF_CALLER: Final = 20
"""Maximum number of open streams of one user, or of one address without a user."""


class OpenFeeds:
    """Counts the streams that are open: all of them, and those of each caller."""

    def __init__(self) -> None:
        self._of_callers: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """Number of open streams."""
        return self._of_callers.total()

    def find_refusal(self, caller: str) -> str:
        """Return why a caller may not open another stream; '' if the caller may."""
        if self._of_callers[caller] >= MOST_OF_CALLER:
            return f"you follow the journal {MOST_OF_CALLER} times already, which is the limit"
        if self.count >= MOST_FEEDS:
            return f"the journal is followed {MOST_FEEDS} times already, which is the limit"
        return ""

    @contextmanager
    def hold(self, caller: str) -> Iterator[None]:
        """Count a stream of a caller until the block ends."""
        self._of_callers[caller] += 1
        try:
            yield
        finally:
            self._of_callers[caller] -= 1
            self._of_callers += Counter()  # This drops callers without a stream.
