"""Sets of numbers given as ranges, for reserved numbers and extension ranges."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

Range = tuple[int, int]
"""First and last number, both inclusive."""

_SHOWN = 5


class Ranges:
    """A set of numbers; its ranges are sorted and neither overlap nor touch."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        merged: list[Range] = []
        for start, end in sorted(ranges):
            if merged and start <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))
        self.ranges: Sequence[Range] = merged
        self._ends = [end for _, end in merged]

    def __contains__(self, number: int) -> bool:
        at = bisect_left(self._ends, number)
        return at < len(self.ranges) and self.ranges[at][0] <= number

    def difference(self, other: Ranges) -> list[Range]:
        """Return the ranges of numbers in this set and not in the other, in order; linear in the number of ranges."""
        left: list[Range] = []
        at = 0
        for first, end in self.ranges:
            start = first
            while at < len(other.ranges) and other.ranges[at][0] <= end:
                taken = other.ranges[at]
                if start < taken[0]:
                    left.append((start, taken[0] - 1))
                start = max(start, taken[1] + 1)
                if taken[1] > end:  # reaches into the next range
                    break
                at += 1
            if start <= end:
                left.append((start, end))
        return left


def format_ranges(ranges: Sequence[Range], highest: int) -> str:
    """Return ranges as `.proto` text, the first few of many."""
    words = [str(a) if a == b else f"{a} to {'max' if b >= highest else b}" for a, b in ranges[:_SHOWN]]
    more = len(ranges) - len(words)
    return ", ".join(words) + (f" and {more} more" if more else "")
