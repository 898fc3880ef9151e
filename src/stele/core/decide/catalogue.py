"""Spaces, subjects, codecs, encodings, bindings and collections: everything beside versions and settings."""

from __future__ import annotations

from msgspec.structs import replace

from stele.core import commands as cmd
from stele.core import events as ev
from stele.core import queries
from stele.core.decide.decision import Decision, bound, checked_name, creation, require_bindings, writable
from stele.core.decide.lifecycle import close_subjects
from stele.core.events import Stamp
from stele.core.model import DEFAULT_SPACE, Level, Life, Subject, SubjectKey
from stele.core.state import State, uid_bytes
from stele.errors import (
    AlreadyExists,
    BindingNotFound,
    CodecNotFound,
    NotEmpty,
    PreconditionFailed,
    SpaceNotFound,
    SubjectNotFound,
    VersionNotFound,
)


def create_space(state: State, command: cmd.CreateSpace, stamp: Stamp) -> Decision:
    """Create a space; with replace, change the one that is there, whose format stays while it holds live versions."""
    checked_name(command.space)
    known = state.space(command.space)
    exists = known is not None and not known.hidden and (known.explicit or bool(known.subjects))
    if exists and not command.replace:
        raise AlreadyExists(f"the space '{command.space}' exists already")
    if known is not None and known.format != command.format and queries.subjects(state, [known]):
        raise NotEmpty(command.space)
    writable(state, Level(command.space))
    shape = ev.SpaceChanged if exists else ev.SpaceCreated
    event = shape(command.space, command.format, command.description, command.labels, command.ext)
    return Decision((event,), cmd.Done())


def delete_space(state: State, command: cmd.DeleteSpace, stamp: Stamp) -> Decision:
    """Remove an empty space, or one with what is in it; the default one stays."""
    closing = command.contents is cmd.Contents.CLOSE
    space = state.space(command.space)
    if space is None or space.hidden:
        raise SpaceNotFound(f"The space '{command.space}' does not exist.")
    if command.space == DEFAULT_SPACE or (space.subjects and not closing):
        raise NotEmpty(command.space)
    writable(state, Level(command.space))
    closed = close_subjects(state, cmd.CloseSubjects(command.space), stamp).events if closing else ()
    return Decision((*closed, ev.SpaceDeleted(command.space)), cmd.Done())


def create_subject(state: State, command: cmd.CreateSubject, stamp: Stamp) -> Decision:
    """Create an empty subject."""
    if state.subject(command.key) is not None:
        raise AlreadyExists(f"the subject '{command.key.name}' exists already")
    writable(state, Level(*command.key))
    event = creation(state, command.key, stamp, command.defaults)
    event = replace(event, description=command.description, labels=command.labels, ext=command.ext)
    level = Level(*command.key)
    before = state.settings_at(level)
    if command.defaults.policy is None or before is None or before.policy is None:
        return Decision((event,), cmd.Done())
    # Settings may precede their subject; the policy it is created with is younger than theirs.
    return Decision((event, ev.SettingsChanged(level, replace(before, policy=None))), cmd.Done())


def change_subject(state: State, command: cmd.ChangeSubject, stamp: Stamp) -> Decision:
    """Replace what describes a subject."""
    _subject(state, command.key)
    writable(state, Level(*command.key))
    if command.default_version is not None:
        queries.version(state, command.key, command.default_version)
    event = ev.SubjectChanged(command.key, command.description, command.labels, command.ext, command.default_version)
    return Decision((event,), cmd.Done())


def add_codec(state: State, command: cmd.AddCodec, stamp: Stamp) -> Decision:
    """Add a codec; the same one again changes nothing, other properties are refused."""
    subject = _subject(state, command.key)
    known = (subject.codecs or {}).get(checked_name(command.name))
    if known is not None:
        if known != command.properties:
            raise AlreadyExists(f"the codec '{command.name}' has other properties")
        return Decision((), cmd.Done())
    writable(state, Level(*command.key))
    return Decision((ev.CodecAdded(command.key, command.name, command.properties),), cmd.Done())


def assign_encoding(state: State, command: cmd.AssignEncoding, stamp: Stamp) -> Decision:
    """The encoding id of (version, codec), given now if it was never given. The codec '' needs no registration.

    A retired version keeps the ids it has and gets no new ones.
    """
    subject = _subject(state, command.key)
    if command.codec and command.codec not in (subject.codecs or {}):
        raise CodecNotFound(f"The codec '{command.codec}' is not known to '{command.key.name}'.")
    version = queries.version(state, command.key, command.ordinal, queries.KEPT)
    given = subject.encodings or []
    if (version.uid, command.codec) in given:
        return Decision((), cmd.Encoded(given.index((version.uid, command.codec)) + 1))
    if version.life is not Life.LIVE:
        raise VersionNotFound(command.ordinal)
    writable(state, Level(*command.key))
    number = len(given) + 1
    event = ev.EncodingAssigned(command.key, number, uid_bytes(version.uid), command.codec)
    return Decision((event,), cmd.Encoded(number))


def bind(state: State, command: cmd.Bind, stamp: Stamp) -> Decision:
    """Bind a resource to a live subject; a frozen binding cannot move."""
    binding = command.binding
    _subject(state, binding.subject)
    if binding.ordinal is not None:
        queries.version(state, binding.subject, binding.ordinal)
    events = bound(state, binding)
    if events:
        writable(state, Level(*binding.subject))
    return Decision(events, cmd.Done())


def unbind(state: State, command: cmd.Unbind, stamp: Stamp) -> Decision:
    """End a binding."""
    binding = state.bindings.get(command.key)
    if binding is None:
        raise BindingNotFound(f"'{command.key[2]}' is not bound.")
    writable(state, Level(*binding.subject))
    return Decision((ev.Unbound(command.key),), cmd.Done())


def change_bindings(state: State, command: cmd.ChangeBindings, stamp: Stamp) -> Decision:
    """Bind and unbind at once, unless the bindings around are not the ones the caller saw."""
    if command.seen is not None:
        gone = (state.bindings[key] for key in command.unbound if key in state.bindings)
        require_bindings(queries.bindings_around(state, [*command.bound, *gone]), command.seen)
    ends = [unbind(state, cmd.Unbind(key), stamp) for key in command.unbound]
    starts = [bind(state, cmd.Bind(binding), stamp) for binding in command.bound]
    return Decision(tuple(event for row in (*ends, *starts) for event in row.events), cmd.Done())


def change_items(state: State, command: cmd.ChangeItems, stamp: Stamp) -> Decision:
    """Change documents of a collection, unless it is not the one the caller saw."""
    collection = state.collections.get(command.collection)
    revision = 0 if collection is None else collection.revision
    if command.expected is not None and command.expected != revision:
        raise PreconditionFailed(f"'{command.collection}' was changed meanwhile")
    items = {} if collection is None else collection.items
    changes = tuple((key, value) for key, value in command.changes.items() if items.get(key) != value)
    if not changes:
        return Decision((), cmd.Done())
    for key, _ in changes:
        for part in key:
            checked_name(part)
    writable(state, Level())
    return Decision((ev.ItemsChanged(command.collection, changes),), cmd.Done())


def _subject(state: State, key: SubjectKey) -> Subject:
    subject = state.subject(key)
    if subject is None:
        raise SubjectNotFound(key.name)
    return subject
