"""Collections: JSON documents beside the schemas, read from memory and changed with optimistic locking.

Documents stay in the log for ever, even after they are changed or removed. Their secret members are sealed there
(`service/secrets.py`). Only this module opens them for readers, and seals them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from stele.core.commands import ChangeItems
from stele.core.sealed_documents import read_seal
from stele.core.state import State
from stele.service.registry import Registry
from stele.service.retry import retry_when_overtaken

Key = tuple[str, ...]
Items = Mapping[Key, bytes]
Changes = Mapping[Key, bytes | None]

T = TypeVar("T")

_NOTHING: Items = {}


async def read_collection(registry: Registry, collection: str) -> Items:
    """Return the documents of a collection by key, up to date; a view, not to be changed.

    Reading one raises `SecretsLocked` where the key to its secrets is missing.
    """
    state = await registry.fresh_state()
    await registry.secrets.load_wrapped_keys(state)
    return items_in(registry, state, collection)


def items_in(registry: Registry, state: State, collection: str) -> Items:
    """Return the documents of a collection in a state by key; a view, not to be changed."""
    documents = state.collections.get(collection)
    return _NOTHING if documents is None else registry.secrets.open_items(collection, documents.items)


async def edit_collection(
    registry: Registry, collection: str, change: Callable[[Items], tuple[Changes, T]], *, via: str = ""
) -> T:
    """Change documents of a collection. `change` gets all of them, and returns what to write and what to return.

    `change` is called again with the newer documents when another writer was faster, so it must have no side effects.
    Raises what `change` raises, `ReadOnly`, `InvalidName`, `InvalidRequest`, `SecretsLocked`, `StoreError`.
    """

    async def attempt(state: State) -> T:
        await registry.secrets.load_wrapped_keys(state)
        documents = state.collections.get(collection)
        revision, stored = (0, _NOTHING) if documents is None else (documents.revision, documents.items)
        changes, answer = change(registry.secrets.open_items(collection, stored))
        if changes:
            written = registry.secrets.seal_changes(collection, stored, changes)
            is_sealed = any(read_seal(document) is not None for document in written.values())
            command = ChangeItems(collection, written, revision, sealed=is_sealed)
            await registry.execute(command, via=via)
        return answer

    return await retry_when_overtaken(registry, attempt)
