"""Decides commands on namespaces: create and delete them."""

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
from stele.core.model import DEFAULT_NAMESPACE, Namespace, SettingsLevel
from stele.core.state import State
from stele.errors import (
    AlreadyExists,
    NamespaceNotFound,
    NotEmpty,
)


def create_namespace(state: State, command: cmd.CreateNamespace, stamp: EventMetadata) -> Decision:
    """Create a namespace; with replace, change an existing one.

    A namespace can get a format only if all its active versions have it.
    """
    check_name(command.namespace)
    known = state.find_namespace(command.namespace)
    exists = known is not None and not known.hidden and (known.explicit or bool(known.subjects))
    if exists and not command.replace:
        raise AlreadyExists(f"the namespace '{command.namespace}' exists already")
    if known is not None and command.format not in ("", known.format) and _has_other_formats(known, command.format):
        raise NotEmpty(command.namespace)
    require_writable(state, SettingsLevel(command.namespace))
    shape = ev.NamespaceChanged if exists else ev.NamespaceCreated
    event = shape(command.namespace, command.format, command.description, command.labels, command.dialect_data)
    return Decision((event,), cmd.EmptyOutcome())


def _has_other_formats(namespace: Namespace, format_name: str) -> bool:
    rows = (row for subject in namespace.subjects.values() for row in queries.list_versions(subject))
    return any(row.kind.format != format_name for row in rows)


def delete_namespace(state: State, command: cmd.DeleteNamespace, stamp: EventMetadata) -> Decision:
    """Delete an empty namespace, or one with its subjects. The default one cannot be deleted."""
    closing = command.when_subjects is cmd.SubjectsPresent.END_INCARNATIONS
    namespace = state.find_namespace(command.namespace)
    if namespace is None or namespace.hidden:
        raise NamespaceNotFound(f"The namespace '{command.namespace}' does not exist.")
    if command.namespace == DEFAULT_NAMESPACE or (namespace.subjects and not closing):
        raise NotEmpty(command.namespace)
    require_writable(state, SettingsLevel(command.namespace))
    closed = end_incarnations(state, cmd.EndIncarnations(command.namespace), stamp).events if closing else ()
    return Decision((*closed, ev.NamespaceDeleted(command.namespace)), cmd.EmptyOutcome())
