"""Deletion in two steps (retire, then purge), and the closing of an incarnation."""

from __future__ import annotations

from stele.core import queries
from stele.core.commands import CloseSubjects, DeleteSubject, DeleteVersion, Done, Removal, Removed
from stele.core.decide.decision import Decision, require_bindings, require_latest, writable
from stele.core.events import Event, Stamp, SubjectClosed, Unbound, VersionsPurged, VersionsRetired
from stele.core.model import Level, Life, Subject, SubjectKey, Version
from stele.core.state import State
from stele.errors import AlreadyRetired, InUse, InvalidRequest, NotRetired, SpaceNotFound, SubjectNotFound


def delete_version(state: State, command: DeleteVersion, stamp: Stamp) -> Decision:
    """Retire a live version, or purge a retired one."""
    key = command.key
    lives = queries.VISIBLE if command.ordinal is None else queries.KEPT
    version = queries.version(state, key, command.ordinal, lives)
    if command.removal is Removal.CLOSE:
        raise InvalidRequest("a single version can be retired or purged, not closed")
    if command.removal is Removal.RETIRE and version.life is Life.RETIRED:
        raise AlreadyRetired(key.name, version.ordinal)
    if command.removal is Removal.PURGE and version.life is Life.LIVE:
        raise NotRetired(key.name, version.ordinal)
    writable(state, Level(*key))
    if command.seen is not None:
        require_bindings(queries.bindings_of(state, [key]), command.seen)
    _require_unreferred(state, key, [version], command.removal, among_itself=True)
    return _deleted(state, version.subject, (version.ordinal,), command.removal)


def delete_subject(state: State, command: DeleteSubject, stamp: Stamp) -> Decision:
    """Retire all live versions, purge all retired ones, or close the incarnation."""
    key = command.key
    subject = state.subject(key)
    kept = queries.versions(subject, queries.KEPT)
    if subject is None or (not kept and command.removal is not Removal.CLOSE):
        raise SubjectNotFound(key.name)
    live = queries.versions(subject)
    if command.removal is Removal.RETIRE and not live:
        raise AlreadyRetired(key.name)
    if command.removal is Removal.PURGE and live:
        raise NotRetired(key.name)
    require_latest(subject, command.latest)
    writable(state, Level(*key))
    if command.seen is not None:
        require_bindings(queries.bindings_of(state, [key]), command.seen)
    going = live if command.removal is Removal.RETIRE else kept
    _require_unreferred(state, key, going, command.removal, among_itself=False)
    return _deleted(state, subject, tuple(row.ordinal for row in going), command.removal)


def close_subjects(state: State, command: CloseSubjects, stamp: Stamp) -> Decision:
    """Close every subject of a space; what they refer to among themselves does not keep them."""
    space = state.space(command.space)
    if space is None or space.hidden:
        raise SpaceNotFound(f"The space '{command.space}' does not exist.")
    events: list[Event] = []
    for subject in space.subjects.values():
        writable(state, Level(*subject.key))
        for row in queries.versions(subject, queries.KEPT):
            referrers = queries.referrers(state, subject.key, row.ordinal, queries.KEPT)
            if any(referrer.subject.key.space != command.space for referrer in referrers):
                raise InUse(subject.key.name, row.ordinal)
        events += (SubjectClosed(subject.key), *_unbound(state, subject.key, None))
    return Decision(tuple(events), Done())


def _deleted(state: State, subject: Subject, ordinals: tuple[int, ...], removal: Removal) -> Decision:
    match removal:
        case Removal.RETIRE:
            events: tuple[Event, ...] = (VersionsRetired(subject.key, ordinals),)
        case Removal.PURGE:
            events = purged(state, subject, ordinals)
        case Removal.CLOSE:
            events = (SubjectClosed(subject.key), *_unbound(state, subject.key, None))
    return Decision(events, Removed(ordinals))


def purged(state: State, subject: Subject, ordinals: tuple[int, ...]) -> tuple[Event, ...]:
    """The events of purging versions: whatever was bound to what is gone is bound no more."""
    all_gone = len(ordinals) == len(subject.versions)
    return VersionsPurged(subject.key, ordinals), *_unbound(state, subject.key, None if all_gone else ordinals)


def _unbound(state: State, key: SubjectKey, ordinals: tuple[int, ...] | None) -> tuple[Event, ...]:
    """Ends of the bindings to a subject, or only of those to these versions of it."""
    ending = [row.key for row in queries.bindings_of(state, [key]) if ordinals is None or row.ordinal in ordinals]
    return tuple(Unbound(name) for name in sorted(ending))


def _require_unreferred(
    state: State, key: SubjectKey, rows: list[Version], removal: Removal, *, among_itself: bool
) -> None:
    """Retiring asks for live referrers, everything else for any; a whole subject may refer to itself."""
    lives = queries.VISIBLE if removal is Removal.RETIRE else queries.KEPT
    for row in rows:
        for referrer in queries.referrers(state, key, row.ordinal, lives):
            if among_itself or referrer.subject.key != key:
                raise InUse(key.name, row.ordinal)
