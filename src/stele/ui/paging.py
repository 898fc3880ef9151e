"""Pages of long lists. The query holds the number of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from stele.apis.http.requests import parse_whole_number
from stele.ui.pages import PageRequest

PAGE_ROWS: Final = 50
_MOST_PAGES: Final = 1_000_000

T = TypeVar("T")


class Slice(msgspec.Struct, frozen=True):
    """The part of a list that a page shows.

    number  number of the page, from 1
    first   number of its first row, from 1; 0 if it has none
    last    number of its last row
    total   number of rows of the whole list
    """

    number: int
    first: int
    last: int
    total: int


def cut_page(page: PageRequest, rows: Sequence[T], size: int = PAGE_ROWS) -> tuple[Sequence[T], Slice]:
    """Return the rows of the page that the query names, and their position in the list.

    A page behind the end becomes the last one. Raises `InvalidRequest` if the page is not a number.
    """
    number = parse_whole_number("page", page.get_query("page", "1"), 1, _MOST_PAGES)
    number = min(number, max(1, -(-len(rows) // size)))
    start = (number - 1) * size
    part = rows[start : start + size]
    return part, Slice(number, start + 1 if part else 0, start + len(part), len(rows))
