"""A table of contents by the SHA-256 of their texts: sorted columns instead of a dict.

A dict whose keys are digests takes 120 bytes per key, the columns take 20, because contents store their digests
themselves. Contents that were added since the last sort are in a dict. Sorting a million takes a second, so it is done
only at start-up and for a snapshot.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, MutableMapping, ValuesView
from itertools import chain
from typing import Final, NamedTuple, TypeVar, overload

from stele.core.model import Content

__all__ = ["ContentTable", "SortedDigests"]

_UNSORTED: Final = 20_000
"""Number of added contents from which on sorting them in is worthwhile."""
_PREFIX_BYTES: Final = 8
_ROW_BITS: Final = 32

T = TypeVar("T")


class SortedDigests(NamedTuple):
    """The first bytes of all digests as sorted numbers, and for each the row of its content."""

    prefixes: array[int]
    rows: array[int]


class ContentTable(MutableMapping[bytes, Content]):
    """Contents by SHA-256, in the order in which they were added."""

    __slots__ = ("_added", "_count", "_row", "_sorted")

    def __init__(self) -> None:
        self._row: list[Content | None] = []
        """The contents that are sorted, None for one that was removed since."""
        self._sorted = SortedDigests(array("Q"), array("I"))
        self._count = 0
        """Number of contents in the row."""
        self._added: dict[bytes, Content] = {}

    @classmethod
    def load(cls, contents: list[Content], digests: SortedDigests) -> ContentTable:
        """Return a table from contents and the digests that `dump` returned."""
        table = cls()
        table._row, table._sorted, table._count = [*contents], digests, len(contents)
        return table

    def dump(self) -> SortedDigests:
        """Sort in the added contents, and return the digests with the positions of their contents in `values`."""
        self._sort()
        return self._sorted

    def sort_added(self) -> None:
        """Sort in the contents that were added since the last time, if there are many."""
        if len(self._added) > max(_UNSORTED, self._count):
            self._sort()

    def __getitem__(self, key: bytes) -> Content:
        """Return the content of a digest. Raises KeyError for an unknown one."""
        content = self.get(key)
        if content is None:
            raise KeyError(key)
        return content

    @overload
    def get(self, key: bytes, default: None = None, /) -> Content | None: ...

    @overload
    def get(self, key: bytes, default: Content | T, /) -> Content | T: ...

    def get(self, key: bytes, default: Content | T | None = None, /) -> Content | T | None:
        """Return the content of a digest, default for one that is not there."""
        content = self._added.get(key)
        if content is None and (place := self._find_row(key)) is not None:
            content = self._row[place]
        return default if content is None else content

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and self.get(key) is not None

    def __setitem__(self, key: bytes, value: Content) -> None:
        place = self._find_row(key)
        if place is None:
            self._added[key] = value
        else:
            self._row[place] = value

    def __delitem__(self, key: bytes) -> None:
        """Remove the content of a digest. Raises KeyError for an unknown one."""
        place = self._find_row(key)
        if place is None:
            del self._added[key]
        else:
            self._row[place] = None
            self._count -= 1

    def __len__(self) -> int:
        return self._count + len(self._added)

    def __iter__(self) -> Iterator[bytes]:
        return (content.sha for content in self._iterate_values())

    def values(self) -> ValuesView[Content]:
        """Return the contents, without looking up each one."""
        return _Values(self)

    def _iterate_values(self) -> Iterator[Content]:
        return chain((content for content in self._row if content is not None), self._added.values())

    def _find_row(self, key: bytes) -> int | None:
        """Return the position of a digest in the row; None if it is not there."""
        prefixes, rows = self._sorted
        wanted = _read_prefix(key)
        place = bisect_left(prefixes, wanted)
        while place < len(prefixes) and prefixes[place] == wanted:
            content = self._row[rows[place]]
            if content is not None and content.sha == key:
                return rows[place]
            place += 1
        return None

    def _sort(self) -> None:
        """Sort in the added contents, and remove gaps."""
        if not self._added and self._count == len(self._row):
            return
        numbers: list[int | None] = [None] * len(self._row)
        """New positions by old positions in the row."""
        left = 0
        for place, content in enumerate(self._row):
            if content is not None:
                numbers[place], left = left, left + 1
        pairs = [
            prefix << _ROW_BITS | number
            for prefix, place in zip(*self._sorted, strict=True)
            if (number := numbers[place]) is not None
        ]
        pairs += [_read_prefix(sha) << _ROW_BITS | number for number, sha in enumerate(self._added, left)]
        pairs.sort()
        self._row = list(self._iterate_values())
        self._sorted = SortedDigests(
            array("Q", (pair >> _ROW_BITS for pair in pairs)),
            array("I", (pair & (1 << _ROW_BITS) - 1 for pair in pairs)),
        )
        self._count = len(self._row)
        self._added = {}


def _read_prefix(sha: bytes) -> int:
    return int.from_bytes(sha[:_PREFIX_BYTES], "big")


class _Values(ValuesView[Content]):
    """The contents of a table."""

    _mapping: ContentTable

    def __iter__(self) -> Iterator[Content]:
        return self._mapping._iterate_values()  # noqa: SLF001 - of the same file
