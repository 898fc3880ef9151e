"""Deletion in two steps (retire, then purge), and the closing of an incarnation."""

from __future__ import annotations

from stele.core import queries
from stele.core.commands import EndIncarnations, DeleteSubject, DeleteVersion, EmptyOutcome, DeleteMode, DeletedVersions
from stele.core.decide.decision import Decision, require_bindings, require_latest, writable
from stele.core.events import Event, EventMetadata, IncarnationEnded, BindingRemoved, VersionsPurged, VersionsSoftDeleted
from stele.core.model import SettingsLevel, VersionState, Subject, SubjectKey, Version
from stele.core.state import State
from stele.errors import AlreadySoftDeleted, InUse, InvalidRequest, NotSoftDeleted, NamespaceNotFound, SubjectNotFound


def delete_version(state: State, command: DeleteVersion, stamp: EventMetadata) -> Decision:
    """Retire a live version, or purge a retired one."""
    key = command.key
    lives = queries.ACTIVE_ONLY if command.version_number is None else queries.ACTIVE_OR_SOFT_DELETED
    version = queries.get_version(state, key, command.version_number, lives)
    if command.mode is DeleteMode.END_INCARNATION:
        raise InvalidRequest("a single version can be retired or purged, not closed")
    if command.mode is DeleteMode.SOFT and version.state is VersionState.SOFT_DELETED:
        raise AlreadySoftDeleted(key.name, version.version_number)
    if command.mode is DeleteMode.HARD and version.state is VersionState.ACTIVE:
        raise NotSoftDeleted(key.name, version.version_number)
    writable(state, SettingsLevel(*key))
    if command.expected_bindings is not None:
        require_bindings(queries.bindings_of(state, [key]), command.expected_bindings)
    _require_unreferred(state, key, [version], command.mode, among_itself=True)
    return _deleted(state, version.subject, (version.version_number,), command.mode)


def delete_subject(state: State, command: DeleteSubject, stamp: EventMetadata) -> Decision:
    """Retire all live versions, purge all retired ones, or close the incarnation."""
    key = command.key
    subject = state.find_subject(key)
    kept = queries.list_versions(subject, queries.ACTIVE_OR_SOFT_DELETED)
    if subject is None or (not kept and command.mode is not DeleteMode.END_INCARNATION):
        raise SubjectNotFound(key.name)
    live = queries.list_versions(subject)
    if command.mode is DeleteMode.SOFT and not live:
        raise AlreadySoftDeleted(key.name)
    if command.mode is DeleteMode.HARD and live:
        raise NotSoftDeleted(key.name)
    require_latest(subject, command.expected_latest)
    writable(state, SettingsLevel(*key))
    if command.expected_bindings is not None:
        require_bindings(queries.bindings_of(state, [key]), command.expected_bindings)
    going = live if command.mode is DeleteMode.SOFT else kept
    _require_unreferred(state, key, going, command.mode, among_itself=False)
    return _deleted(state, subject, tuple(row.version_number for row in going), command.mode)


def close_subjects(state: State, command: EndIncarnations, stamp: EventMetadata) -> Decision:
    """Close every subject of a space; what they refer to among themselves does not keep them."""
    space = state.find_namespace(command.namespace)
    if space is None or space.hidden:
        raise NamespaceNotFound(f"The space '{command.namespace}' does not exist.")
    events: list[Event] = []
    for subject in space.subjects.values():
        writable(state, SettingsLevel(*subject.key))
        for row in queries.list_versions(subject, queries.ACTIVE_OR_SOFT_DELETED):
            referrers = queries.list_referrers(state, subject.key, row.version_number, queries.ACTIVE_OR_SOFT_DELETED)
            if any(referrer.subject.key.namespace != command.namespace for referrer in referrers):
                raise InUse(subject.key.name, row.version_number)
        events += (IncarnationEnded(subject.key), *_unbound(state, subject.key, None))
    return Decision(tuple(events), EmptyOutcome())


def _deleted(state: State, subject: Subject, ordinals: tuple[int, ...], removal: DeleteMode) -> Decision:
    match removal:
        case DeleteMode.SOFT:
            events: tuple[Event, ...] = (VersionsSoftDeleted(subject.key, ordinals),)
        case DeleteMode.HARD:
            events = purged(state, subject, ordinals)
        case DeleteMode.END_INCARNATION:
            events = (IncarnationEnded(subject.key), *_unbound(state, subject.key, None))
    return Decision(events, DeletedVersions(ordinals))


def purged(state: State, subject: Subject, ordinals: tuple[int, ...]) -> tuple[Event, ...]:
    """The events of purging versions: whatever was bound to what is gone is bound no more."""
    all_gone = len(ordinals) == len(subject.versions)
    return VersionsPurged(subject.key, ordinals), *_unbound(state, subject.key, None if all_gone else ordinals)


def _unbound(state: State, key: SubjectKey, ordinals: tuple[int, ...] | None) -> tuple[Event, ...]:
    """Ends of the bindings to a subject, or only of those to these versions of it."""
    ending = [row.key for row in queries.bindings_of(state, [key]) if ordinals is None or row.version_number in ordinals]
    return tuple(BindingRemoved(name) for name in sorted(ending))


def _require_unreferred(
    state: State, key: SubjectKey, rows: list[Version], removal: DeleteMode, *, among_itself: bool
) -> None:
    """Retiring asks for live referrers, everything else for any; a whole subject may refer to itself."""
    lives = queries.ACTIVE_ONLY if removal is DeleteMode.SOFT else queries.ACTIVE_OR_SOFT_DELETED
    for row in rows:
        for referrer in queries.list_referrers(state, key, row.version_number, lives):
            if among_itself or referrer.subject.key != key:
                raise InUse(key.name, row.version_number)
