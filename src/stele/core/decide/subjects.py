"""Decides commands on subjects: create and describe them, add their codecs, assign their encoding ids."""

from __future__ import annotations

from msgspec.structs import replace

from stele.core import commands as cmd
from stele.core import events as ev
from stele.core import queries
from stele.core.decide.decision import (
    Decision,
    check_name,
    creation_event,
    require_writable,
)
from stele.core.events import EventMetadata
from stele.core.model import SettingsLevel, Subject, SubjectKey, VersionState
from stele.core.state import State, uid_to_bytes
from stele.errors import (
    AlreadyExists,
    CodecNotFound,
    SubjectNotFound,
    VersionNotFound,
)


def create_subject(state: State, command: cmd.CreateSubject, stamp: EventMetadata) -> Decision:
    """Create an empty subject."""
    if state.find_subject(command.key) is not None:
        raise AlreadyExists(f"the subject '{command.key.name}' exists already")
    require_writable(state, SettingsLevel(*command.key))
    event = creation_event(state, command.key, stamp, command.defaults)
    event = replace(event, description=command.description, labels=command.labels, dialect_data=command.dialect_data)
    level = SettingsLevel(*command.key)
    before = state.settings_at(level)
    if command.defaults.policy is None or before is None or before.policy is None:
        return Decision((event,), cmd.EmptyOutcome())
    # Settings may exist before their subject; the policy of its creation is newer than theirs.
    return Decision((event, ev.SettingsChanged(level, replace(before, policy=None))), cmd.EmptyOutcome())


def change_subject(state: State, command: cmd.ChangeSubject, stamp: EventMetadata) -> Decision:
    """Replace the descriptive attributes of a subject."""
    require_subject(state, command.key)
    require_writable(state, SettingsLevel(*command.key))
    if command.default_version is not None:
        queries.get_version(state, command.key, command.default_version)
    event = ev.SubjectChanged(
        command.key, command.description, command.labels, command.dialect_data, command.default_version
    )
    return Decision((event,), cmd.EmptyOutcome())


def add_codec(state: State, command: cmd.AddCodec, stamp: EventMetadata) -> Decision:
    """Add a codec; the same one again changes nothing, other properties are refused."""
    subject = require_subject(state, command.key)
    known = (subject.codecs or {}).get(check_name(command.name))
    if known is not None:
        if known != command.properties:
            raise AlreadyExists(f"the codec '{command.name}' has other properties")
        return Decision((), cmd.EmptyOutcome())
    require_writable(state, SettingsLevel(*command.key))
    return Decision((ev.CodecAdded(command.key, command.name, command.properties),), cmd.EmptyOutcome())


def assign_encoding(state: State, command: cmd.AssignEncoding, stamp: EventMetadata) -> Decision:
    """Return the encoding id of (version, codec), assigned now if it is new. The codec '' needs no registration.

    A soft-deleted version keeps its ids and gets no new ones.
    """
    subject = require_subject(state, command.key)
    if command.codec and command.codec not in (subject.codecs or {}):
        raise CodecNotFound(f"The codec '{command.codec}' is not known to '{command.key.name}'.")
    version = queries.get_version(state, command.key, command.version_number, queries.ACTIVE_OR_SOFT_DELETED)
    encodings = subject.encodings or []
    if (version.uid, command.codec) in encodings:
        return Decision((), cmd.EncodingOutcome(encodings.index((version.uid, command.codec)) + 1))
    if version.state is not VersionState.ACTIVE:
        raise VersionNotFound(command.version_number)
    require_writable(state, SettingsLevel(*command.key))
    number = max(len(encodings), state.skipped_numbers) + 1
    event = ev.EncodingAssigned(command.key, number, uid_to_bytes(version.uid), command.codec)
    return Decision((event,), cmd.EncodingOutcome(number))


def require_subject(state: State, key: SubjectKey) -> Subject:
    """Return the current incarnation of a subject. Raises `SubjectNotFound`."""
    subject = state.find_subject(key)
    if subject is None:
        raise SubjectNotFound(key.name)
    return subject
