"""Decides commands on bindings of resources to subjects."""

from __future__ import annotations

from stele.core import commands as cmd
from stele.core import events as ev
from stele.core import queries
from stele.core.decide.decision import (
    Decision,
    bind_events,
    require_bindings,
    require_writable,
)
from stele.core.decide.subjects import require_subject
from stele.core.events import EventMetadata
from stele.core.model import SettingsLevel
from stele.core.state import State
from stele.errors import (
    BindingNotFound,
)


def add_binding(state: State, command: cmd.AddBinding, stamp: EventMetadata) -> Decision:
    """Bind a resource to an existing subject, or to an active version of it. A frozen binding cannot be moved."""
    binding = command.binding
    require_subject(state, binding.subject)
    if binding.version_number is not None:
        queries.get_version(state, binding.subject, binding.version_number)
    events = bind_events(state, binding)
    if events:
        require_writable(state, SettingsLevel(*binding.subject))
    return Decision(events, cmd.EmptyOutcome())


def remove_binding(state: State, command: cmd.RemoveBinding, stamp: EventMetadata) -> Decision:
    """Remove a binding."""
    binding = state.bindings.get(command.key)
    if binding is None:
        raise BindingNotFound(f"'{command.key[2]}' is not bound.")
    require_writable(state, SettingsLevel(*binding.subject))
    return Decision((ev.BindingRemoved(command.key),), cmd.EmptyOutcome())


def change_bindings(state: State, command: cmd.ChangeBindings, stamp: EventMetadata) -> Decision:
    """Add and remove bindings together, unless the bindings concerned differ from those that the caller saw."""
    if command.expected is not None:
        removed_bindings = (state.bindings[key] for key in command.removed if key in state.bindings)
        require_bindings(queries.bindings_around(state, [*command.added, *removed_bindings]), command.expected)
    ends = [remove_binding(state, cmd.RemoveBinding(key), stamp) for key in command.removed]
    starts = [add_binding(state, cmd.AddBinding(binding), stamp) for binding in command.added]
    return Decision(tuple(event for row in (*ends, *starts) for event in row.events), cmd.EmptyOutcome())
