"""Deletion in two steps (soft-delete, then purge), and the end of an incarnation."""

from __future__ import annotations

from stele.core import queries
from stele.core.commands import DeletedVersions, DeleteMode, DeleteSubject, DeleteVersion, EmptyOutcome, EndIncarnations
from stele.core.decide.decision import Decision, require_bindings, require_latest, require_writable
from stele.core.events import (
    BindingRemoved,
    Event,
    EventMetadata,
    IncarnationEnded,
    VersionsPurged,
    VersionsSoftDeleted,
)
from stele.core.model import SettingsLevel, Subject, SubjectKey, Version, VersionState
from stele.core.state import State
from stele.errors import AlreadySoftDeleted, InUse, InvalidRequest, NamespaceNotFound, NotSoftDeleted, SubjectNotFound


def delete_version(state: State, command: DeleteVersion, stamp: EventMetadata) -> Decision:
    """Soft-delete an active version, or purge a soft-deleted one."""
    key = command.key
    states = queries.ACTIVE_ONLY if command.version_number is None else queries.ACTIVE_OR_SOFT_DELETED
    version = queries.get_version(state, key, command.version_number, states)
    if command.mode is DeleteMode.END_INCARNATION:
        raise InvalidRequest("a single version can be soft-deleted or deleted for good, not closed")
    if command.mode is DeleteMode.SOFT and version.state is VersionState.SOFT_DELETED:
        raise AlreadySoftDeleted(key.name, version.version_number)
    if command.mode is DeleteMode.HARD and version.state is VersionState.ACTIVE:
        raise NotSoftDeleted(key.name, version.version_number)
    require_writable(state, SettingsLevel(*key))
    if command.expected_bindings is not None:
        require_bindings(queries.bindings_of(state, [key]), command.expected_bindings)
    _require_unreferred(state, key, [version], command.mode, among_itself=True)
    return _deletion_decision(state, version.subject, (version.version_number,), command.mode)


def delete_subject(state: State, command: DeleteSubject, stamp: EventMetadata) -> Decision:
    """Soft-delete all active versions, purge all soft-deleted ones, or end the incarnation."""
    key = command.key
    subject = state.find_subject(key)
    versions = queries.list_versions(subject, queries.ACTIVE_OR_SOFT_DELETED)
    if subject is None or (not versions and command.mode is not DeleteMode.END_INCARNATION):
        raise SubjectNotFound(key.name)
    live = queries.list_versions(subject)
    if command.mode is DeleteMode.SOFT and not live:
        raise AlreadySoftDeleted(key.name)
    if command.mode is DeleteMode.HARD and live:
        raise NotSoftDeleted(key.name)
    require_latest(subject, command.expected_latest)
    require_writable(state, SettingsLevel(*key))
    if command.expected_bindings is not None:
        require_bindings(queries.bindings_of(state, [key]), command.expected_bindings)
    going = live if command.mode is DeleteMode.SOFT else versions
    _require_unreferred(state, key, going, command.mode, among_itself=False)
    return _deletion_decision(state, subject, tuple(row.version_number for row in going), command.mode)


def end_incarnations(state: State, command: EndIncarnations, stamp: EventMetadata) -> Decision:
    """End the incarnations of all subjects of a namespace. References among these subjects do not prevent that."""
    namespace = state.find_namespace(command.namespace)
    if namespace is None or namespace.hidden:
        raise NamespaceNotFound(f"The namespace '{command.namespace}' does not exist.")
    events: list[Event] = []
    for subject in namespace.subjects.values():
        require_writable(state, SettingsLevel(*subject.key))
        for row in queries.list_versions(subject, queries.ACTIVE_OR_SOFT_DELETED):
            referrers = queries.list_referrers(state, subject.key, row.version_number, queries.ACTIVE_OR_SOFT_DELETED)
            if any(referrer.subject.key.namespace != command.namespace for referrer in referrers):
                raise InUse(subject.key.name, row.version_number)
        events += (IncarnationEnded(subject.key), *_removed_bindings(state, subject.key, None))
    return Decision(tuple(events), EmptyOutcome())


def _deletion_decision(
    state: State, subject: Subject, version_numbers: tuple[int, ...], removal: DeleteMode
) -> Decision:
    match removal:
        case DeleteMode.SOFT:
            events: tuple[Event, ...] = (VersionsSoftDeleted(subject.key, version_numbers),)
        case DeleteMode.HARD:
            events = purge_events(state, subject, version_numbers)
        case DeleteMode.END_INCARNATION:
            events = (IncarnationEnded(subject.key), *_removed_bindings(state, subject.key, None))
    return Decision(events, DeletedVersions(version_numbers))


def purge_events(state: State, subject: Subject, version_numbers: tuple[int, ...]) -> tuple[Event, ...]:
    """Return the events that purge versions and remove the bindings to them."""
    all_gone = len(version_numbers) == len(subject.versions)
    return VersionsPurged(subject.key, version_numbers), *_removed_bindings(
        state, subject.key, None if all_gone else version_numbers
    )


def _removed_bindings(state: State, key: SubjectKey, version_numbers: tuple[int, ...] | None) -> tuple[Event, ...]:
    """Return the events that remove the bindings to a subject, or only to some versions of it."""
    ending = [
        row.key
        for row in queries.bindings_of(state, [key])
        if version_numbers is None or row.version_number in version_numbers
    ]
    return tuple(BindingRemoved(name) for name in sorted(ending))


def _require_unreferred(
    state: State, key: SubjectKey, rows: list[Version], removal: DeleteMode, *, among_itself: bool
) -> None:
    """Raise `InUse` if another version refers to one that is to be deleted.

    For a soft-delete only active versions count, else soft-deleted ones, too. References inside the subject count only
    with `among_itself`.
    """
    states = queries.ACTIVE_ONLY if removal is DeleteMode.SOFT else queries.ACTIVE_OR_SOFT_DELETED
    for row in rows:
        for referrer in queries.list_referrers(state, key, row.version_number, states):
            if among_itself or referrer.subject.key != key:
                raise InUse(key.name, row.version_number)
