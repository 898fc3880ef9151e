"""A table by consecutive ids: a list, or a dict as soon as an id is not one above the highest.

A dict with its keys takes six times the memory of a list.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, ValuesView
from typing import TypeVar

V = TypeVar("V")


class IdTable(MutableMapping[int, V]):
    """Values by id, in the order in which they were added, as in a dict."""

    __slots__ = ("_by_id", "_count", "_row")

    def __init__(self) -> None:
        self._row: list[V | None] = []
        """The values of ids from 1, None for one that is not there."""
        self._by_id: dict[int, V] | None = None
        """All values, once an id was added that is not one above the highest."""
        self._count = 0

    def __getitem__(self, key: int) -> V:
        """Return the value of an id. Raises KeyError for an unknown one."""
        if self._by_id is not None:
            return self._by_id[key]
        value = self._row[key - 1] if 0 < key <= len(self._row) else None
        if value is None:
            raise KeyError(key)
        return value

    def get(self, key: int, default: V | None = None) -> V | None:  # type: ignore[override]  # one default is enough
        """Return the value of an id, default for one that is not there."""
        if self._by_id is not None:
            return self._by_id.get(key, default)
        value = self._row[key - 1] if 0 < key <= len(self._row) else None
        return default if value is None else value

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and self.get(key) is not None

    def __setitem__(self, key: int, value: V) -> None:
        if self._by_id is None:
            if key == len(self._row) + 1:
                self._row.append(value)
                self._count += 1
                return
            if key in self:
                self._row[key - 1] = value
                return
            self._by_id = dict(self.items())
            self._row.clear()
        self._by_id[key] = value

    def __delitem__(self, key: int) -> None:
        """Remove the value of an id. Raises KeyError for an unknown one."""
        if self._by_id is not None:
            del self._by_id[key]
            return
        if key not in self:
            raise KeyError(key)
        self._row[key - 1] = None
        self._count -= 1
        while self._row and self._row[-1] is None:
            self._row.pop()

    def __len__(self) -> int:
        return self._count if self._by_id is None else len(self._by_id)

    def __iter__(self) -> Iterator[int]:
        if self._by_id is not None:
            return iter(self._by_id)
        return (number for number, value in enumerate(self._row, 1) if value is not None)

    def values(self) -> ValuesView[V]:
        """Return the values, without looking up each one."""
        return _Values(self)

    def _iterate_values(self) -> Iterator[V]:
        if self._by_id is not None:
            return iter(self._by_id.values())
        return (value for value in self._row if value is not None)


class _Values(ValuesView[V]):
    """The values of a table."""

    _mapping: IdTable[V]

    def __iter__(self) -> Iterator[V]:
        return self._mapping._iterate_values()  # noqa: SLF001 - of the same file
