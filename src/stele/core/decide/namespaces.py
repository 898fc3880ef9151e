"""Deciding on namespaces: create and delete them."""

from __future__ import annotations

from stele.core import commands as cmd
from stele.core import events as ev
from stele.core import queries
from stele.core.decide.decision import (
    Decision,
    check_name,
    require_writable,
)
from stele.core.decide.lifecycle import end_incarnations
from stele.core.events import EventMetadata
from stele.core.model import DEFAULT_NAMESPACE, SettingsLevel
from stele.core.state import State
from stele.errors import (
    AlreadyExists,
    NamespaceNotFound,
    NotEmpty,
)


def create_namespace(state: State, command: cmd.CreateNamespace, stamp: EventMetadata) -> Decision:
    """Create a namespace; with replace, change the one that exists.

    The format of a namespace stays while it holds active versions.
    """
    check_name(command.namespace)
    known = state.find_namespace(command.namespace)
    exists = known is not None and not known.hidden and (known.explicit or bool(known.subjects))
    if exists and not command.replace:
        raise AlreadyExists(f"the space '{command.namespace}' exists already")
    if known is not None and known.format != command.format and queries.list_subjects(state, [known]):
        raise NotEmpty(command.namespace)
    require_writable(state, SettingsLevel(command.namespace))
    shape = ev.NamespaceChanged if exists else ev.NamespaceCreated
    event = shape(command.namespace, command.format, command.description, command.labels, command.dialect_data)
    return Decision((event,), cmd.EmptyOutcome())


def delete_namespace(state: State, command: cmd.DeleteNamespace, stamp: EventMetadata) -> Decision:
    """Remove an empty namespace, or one with what is in it; the default one stays."""
    closing = command.when_subjects is cmd.SubjectsPresent.END_INCARNATIONS
    namespace = state.find_namespace(command.namespace)
    if namespace is None or namespace.hidden:
        raise NamespaceNotFound(f"The space '{command.namespace}' does not exist.")
    if command.namespace == DEFAULT_NAMESPACE or (namespace.subjects and not closing):
        raise NotEmpty(command.namespace)
    require_writable(state, SettingsLevel(command.namespace))
    closed = end_incarnations(state, cmd.EndIncarnations(command.namespace), stamp).events if closing else ()
    return Decision((*closed, ev.NamespaceDeleted(command.namespace)), cmd.EmptyOutcome())
