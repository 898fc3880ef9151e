"""Lists of names as they were made last, so that a page costs no more than its names."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final

from stele.core.state import State

_LISTS: Final = 4
"""Lists that are kept: each has eight bytes for a subject, and the name of one outside the default context."""


class NameLists:
    """Lists of names as they were made last, until something they depend on changes: a page is a part of one.

    They depend on which subjects there are, and on records that concern more than a subject (`State.shared_seq`).
    """

    def __init__(self) -> None:
        self._lists: dict[Hashable, list[str]] = {}
        self._basis: tuple[State, int, int] | None = None

    async def find_names(
        self, state: State, key: Hashable, make: Callable[[], Coroutine[Any, Any, list[str]]]
    ) -> list[str]:
        """Return the names under a key, which says all that was asked for; they are made if they are not known."""
        basis = (state, state.shared_seq, state.serial)
        if basis != self._basis:
            self._basis = basis
            self._lists.clear()
        known = self._lists.get(key)
        if known is not None:
            return known
        names = await make()
        if (state, state.shared_seq, state.serial) == basis == self._basis:
            if len(self._lists) >= _LISTS:
                self._lists.clear()
            self._lists[key] = names
        return names
