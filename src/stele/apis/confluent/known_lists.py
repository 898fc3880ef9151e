"""Cache of the last lists, so that each page of a list costs no more than its rows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, NamedTuple, TypeVar

from stele.core.state import State

T = TypeVar("T")

_LISTS: Final = 4
"""Largest number of cached lists.

A list takes eight bytes a row, and the name of each subject outside the default context.
"""


class _Basis(NamedTuple):
    """State that a list was computed from. For a list of subjects, `seq` is 0."""

    state: State
    shared_seq: int
    serial: int
    seq: int


class KnownLists:
    """Caches lists until something they depend on changes. Pages are slices of them.

    Lists of subjects depend on which subjects there are, and on records that concern more than a subject
    (`State.shared_seq`); lists of versions on every record.
    """

    def __init__(self) -> None:
        self._lists: dict[Hashable, tuple[_Basis, list[Any]]] = {}

    async def find_subjects(
        self, state: State, key: Hashable, make: Callable[[], Coroutine[Any, Any, list[T]]]
    ) -> list[T]:
        """Return the list of subjects under a key, computed by `make` if it is not cached.

        The key must contain all parameters of the request.
        """
        return await self._find(key, make, lambda: _Basis(state, state.shared_seq, state.serial, 0))

    async def find_versions(
        self, state: State, key: Hashable, make: Callable[[], Coroutine[Any, Any, list[T]]]
    ) -> list[T]:
        """Return the list of versions under a key; see `find_subjects`."""
        return await self._find(key, make, lambda: _Basis(state, state.shared_seq, state.serial, state.seq))

    async def _find(
        self, key: Hashable, make: Callable[[], Coroutine[Any, Any, list[T]]], read_basis: Callable[[], _Basis]
    ) -> list[T]:
        basis = read_basis()
        known = self._lists.get(key)
        if known is not None and known[0] == basis:
            return known[1]
        self._lists.pop(key, None)
        rows = await make()
        if read_basis() == basis:
            if len(self._lists) >= _LISTS:
                self._lists.clear()
            self._lists[key] = basis, rows
        return rows
