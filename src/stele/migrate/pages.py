"""Reads lists of a registry page by page."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, TypeVar

__all__ = ["PAGE", "read_pages"]

PAGE: Final = 1000
"""Number of rows to request at a time."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def read_pages(ask_page: Callable[[int], Sequence[T]], key: Callable[[T], K]) -> Iterator[list[T]]:
    """Read a list to its end; yield the new rows of each page.

    A server may return fewer rows than requested, so the first page is never known to be the last one. A server
    without pages returns the first one again.

    Args:
        ask_page: Returns the rows after so many.
        key: Identifies a row.
    """
    seen: set[K] = set()
    longest = 0
    while True:
        page = ask_page(len(seen))
        rows = {key(row): row for row in page}
        yield [row for each, row in rows.items() if each not in seen]
        if rows.keys() <= seen or len(page) < longest:
            return
        seen |= rows.keys()
        longest = len(page)
