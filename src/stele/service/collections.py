"""Collections: documents beside the schemas, read from memory and changed on what was seen.

Documents are in the log as they are written, for ever, also once they are changed or removed: what is secret in one is
as safe as the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from stele.core.commands import ChangeItems
from stele.core.state import State
from stele.service.registry import Registry
from stele.service.retry import retry_when_overtaken

Key = tuple[str, ...]
Items = Mapping[Key, bytes]
Changes = Mapping[Key, bytes | None]

T = TypeVar("T")

_NOTHING: Items = {}


async def read_collection(registry: Registry, collection: str) -> Items:
    """Return the documents of a collection by key, up to date; a view, not to be changed."""
    return items_in(await registry.fresh_state(), collection)


def items_in(state: State, collection: str) -> Items:
    """Return the documents of a collection in a state by key; a view, not to be changed."""
    found = state.collections.get(collection)
    return _NOTHING if found is None else found.items


async def edit_collection(
    registry: Registry, collection: str, change: Callable[[Items], tuple[Changes, T]], *, actor: str = "", via: str = ""
) -> T:
    """Change documents by what is there: change gets them all and answers what to write and what to return.

    It is called again on the newer documents when another writer was faster, so it must have no effects of its own.
    Raises what it raises, `ReadOnly`, `InvalidName`, `StoreError`.
    """

    async def attempt(state: State) -> T:
        found = state.collections.get(collection)
        revision, items = (0, _NOTHING) if found is None else (found.revision, found.items)
        changes, answer = change(items)
        if changes:
            await registry.execute(ChangeItems(collection, changes, revision), actor=actor, via=via)
        return answer

    return await retry_when_overtaken(registry, attempt)
