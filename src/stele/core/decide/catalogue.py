"""Namespaces, subjects, codecs, encodings, bindings and collections: everything beside versions and settings."""

from __future__ import annotations

from msgspec.structs import replace

from stele.core import commands as cmd
from stele.core import events as ev
from stele.core import queries
from stele.core.decide.decision import Decision, bound, checked_name, creation, require_bindings, writable
from stele.core.decide.lifecycle import close_subjects
from stele.core.events import EventMetadata
from stele.core.model import DEFAULT_NAMESPACE, SettingsLevel, Subject, SubjectKey, VersionState
from stele.core.state import State, uid_to_bytes
from stele.errors import (
    AlreadyExists,
    BindingNotFound,
    CodecNotFound,
    NamespaceNotFound,
    NotEmpty,
    PreconditionFailed,
    SubjectNotFound,
    VersionNotFound,
)


def create_space(state: State, command: cmd.CreateNamespace, stamp: EventMetadata) -> Decision:
    """Create a namespace; with replace, change the one that exists.

    The format of a namespace stays while it holds active versions.
    """
    checked_name(command.namespace)
    known = state.find_namespace(command.namespace)
    exists = known is not None and not known.hidden and (known.explicit or bool(known.subjects))
    if exists and not command.replace:
        raise AlreadyExists(f"the space '{command.namespace}' exists already")
    if known is not None and known.format != command.format and queries.list_subjects(state, [known]):
        raise NotEmpty(command.namespace)
    writable(state, SettingsLevel(command.namespace))
    shape = ev.NamespaceChanged if exists else ev.NamespaceCreated
    event = shape(command.namespace, command.format, command.description, command.labels, command.dialect_data)
    return Decision((event,), cmd.EmptyOutcome())


def delete_space(state: State, command: cmd.DeleteNamespace, stamp: EventMetadata) -> Decision:
    """Remove an empty namespace, or one with what is in it; the default one stays."""
    closing = command.when_subjects is cmd.SubjectsPresent.END_INCARNATIONS
    namespace = state.find_namespace(command.namespace)
    if namespace is None or namespace.hidden:
        raise NamespaceNotFound(f"The space '{command.namespace}' does not exist.")
    if command.namespace == DEFAULT_NAMESPACE or (namespace.subjects and not closing):
        raise NotEmpty(command.namespace)
    writable(state, SettingsLevel(command.namespace))
    closed = close_subjects(state, cmd.EndIncarnations(command.namespace), stamp).events if closing else ()
    return Decision((*closed, ev.NamespaceDeleted(command.namespace)), cmd.EmptyOutcome())


def create_subject(state: State, command: cmd.CreateSubject, stamp: EventMetadata) -> Decision:
    """Create an empty subject."""
    if state.find_subject(command.key) is not None:
        raise AlreadyExists(f"the subject '{command.key.name}' exists already")
    writable(state, SettingsLevel(*command.key))
    event = creation(state, command.key, stamp, command.defaults)
    event = replace(event, description=command.description, labels=command.labels, dialect_data=command.dialect_data)
    level = SettingsLevel(*command.key)
    before = state.settings_at(level)
    if command.defaults.policy is None or before is None or before.policy is None:
        return Decision((event,), cmd.EmptyOutcome())
    # Settings may precede their subject; the policy it is created with is younger than theirs.
    return Decision((event, ev.SettingsChanged(level, replace(before, policy=None))), cmd.EmptyOutcome())


def change_subject(state: State, command: cmd.ChangeSubject, stamp: EventMetadata) -> Decision:
    """Replace what describes a subject."""
    _subject(state, command.key)
    writable(state, SettingsLevel(*command.key))
    if command.default_version is not None:
        queries.get_version(state, command.key, command.default_version)
    event = ev.SubjectChanged(
        command.key, command.description, command.labels, command.dialect_data, command.default_version
    )
    return Decision((event,), cmd.EmptyOutcome())


def add_codec(state: State, command: cmd.AddCodec, stamp: EventMetadata) -> Decision:
    """Add a codec; the same one again changes nothing, other properties are refused."""
    subject = _subject(state, command.key)
    known = (subject.codecs or {}).get(checked_name(command.name))
    if known is not None:
        if known != command.properties:
            raise AlreadyExists(f"the codec '{command.name}' has other properties")
        return Decision((), cmd.EmptyOutcome())
    writable(state, SettingsLevel(*command.key))
    return Decision((ev.CodecAdded(command.key, command.name, command.properties),), cmd.EmptyOutcome())


def assign_encoding(state: State, command: cmd.AssignEncoding, stamp: EventMetadata) -> Decision:
    """The encoding id of (version, codec), given now if it was never given. The codec '' needs no registration.

    A soft-deleted version keeps the ids it has and gets no new ones.
    """
    subject = _subject(state, command.key)
    if command.codec and command.codec not in (subject.codecs or {}):
        raise CodecNotFound(f"The codec '{command.codec}' is not known to '{command.key.name}'.")
    version = queries.get_version(state, command.key, command.version_number, queries.ACTIVE_OR_SOFT_DELETED)
    given = subject.encodings or []
    if (version.uid, command.codec) in given:
        return Decision((), cmd.EncodingOutcome(given.index((version.uid, command.codec)) + 1))
    if version.state is not VersionState.ACTIVE:
        raise VersionNotFound(command.version_number)
    writable(state, SettingsLevel(*command.key))
    number = len(given) + 1
    event = ev.EncodingAssigned(command.key, number, uid_to_bytes(version.uid), command.codec)
    return Decision((event,), cmd.EncodingOutcome(number))


def bind(state: State, command: cmd.AddBinding, stamp: EventMetadata) -> Decision:
    """Bind a resource to a active subject; a frozen binding cannot move."""
    binding = command.binding
    _subject(state, binding.subject)
    if binding.version_number is not None:
        queries.get_version(state, binding.subject, binding.version_number)
    events = bound(state, binding)
    if events:
        writable(state, SettingsLevel(*binding.subject))
    return Decision(events, cmd.EmptyOutcome())


def unbind(state: State, command: cmd.RemoveBinding, stamp: EventMetadata) -> Decision:
    """End a binding."""
    binding = state.bindings.get(command.key)
    if binding is None:
        raise BindingNotFound(f"'{command.key[2]}' is not bound.")
    writable(state, SettingsLevel(*binding.subject))
    return Decision((ev.BindingRemoved(command.key),), cmd.EmptyOutcome())


def change_bindings(state: State, command: cmd.ChangeBindings, stamp: EventMetadata) -> Decision:
    """Bind and unbind at once, unless the bindings around are not the ones the caller saw."""
    if command.expected is not None:
        gone = (state.bindings[key] for key in command.removed if key in state.bindings)
        require_bindings(queries.bindings_around(state, [*command.added, *gone]), command.expected)
    ends = [unbind(state, cmd.RemoveBinding(key), stamp) for key in command.removed]
    starts = [bind(state, cmd.AddBinding(binding), stamp) for binding in command.added]
    return Decision(tuple(event for row in (*ends, *starts) for event in row.events), cmd.EmptyOutcome())


def change_items(state: State, command: cmd.ChangeItems, stamp: EventMetadata) -> Decision:
    """Change documents of a collection, unless it is not the one the caller saw."""
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
            checked_name(part)
    writable(state, SettingsLevel())
    return Decision((ev.ItemsChanged(command.collection, changes),), cmd.EmptyOutcome())


def _subject(state: State, key: SubjectKey) -> Subject:
    subject = state.find_subject(key)
    if subject is None:
        raise SubjectNotFound(key.name)
    return subject
