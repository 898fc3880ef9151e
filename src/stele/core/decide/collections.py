"""Decides commands on the documents of a collection."""

from __future__ import annotations

from stele.core import commands as cmd
from stele.core import events as ev
from stele.core.decide.decision import (
    Decision,
    check_name,
    require_writable,
)
from stele.core.events import EventMetadata
from stele.core.model import SettingsLevel
from stele.core.state import State
from stele.errors import (
    PreconditionFailed,
)


def change_items(state: State, command: cmd.ChangeItems, stamp: EventMetadata) -> Decision:
    """Change documents of a collection, unless it changed since the caller saw it."""
    collection = state.collections.get(command.collection)
    revision = 0 if collection is None else collection.revision
    if command.expected is not None and command.expected != revision:
        raise PreconditionFailed(f"'{command.collection}' was changed meanwhile")
    items = {} if collection is None else collection.items
    changes = tuple((key, value) for key, value in command.changes.items() if items.get(key) != value)
    if not changes:
        return Decision((), cmd.EmptyOutcome())
    for key, _ in changes:
        for part in key:
            check_name(part)
    require_writable(state, SettingsLevel())
    return Decision((ev.ItemsChanged(command.collection, changes, command.sealed),), cmd.EmptyOutcome())
