"""Events into state: the only code that changes a `State`. Total, deterministic, and ignorant of schema languages."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from stele.core import events as ev
from stele.core import fold_beside as beside
from stele.core.chains import find_version, ids_of, twins_of
from stele.core.digests import digest_keys, pack_digests
from stele.core.fold_beside import present, space_of
from stele.core.model import (
    PLAIN,
    Attachments,
    Content,
    Extra,
    GlobalId,
    Lane,
    Life,
    Loose,
    Numbering,
    Space,
    Subject,
    SubjectKey,
    Version,
    origin_of,
)
from stele.core.state import Erased, State, uid_of


def fold_record(state: State, seq: int, record: ev.Record) -> None:
    """Apply one log entry."""
    for event in record.events:
        _FOLDS[type(event)](state, event, record.stamp, seq)
    if state.drafting:
        state.change(state, seq=seq)
    else:
        state.seq = seq


def fold(state: State, event: ev.Event, stamp: ev.Stamp, seq: int) -> None:
    """Apply one event."""
    _FOLDS[type(event)](state, event, stamp, seq)


def _shown(state: State, name: str, at: int) -> Space:
    """The space, which a deleted one becomes again."""
    space = space_of(state, name, at)
    if space.hidden:
        state.change(space, hidden=False, at=at)
    return space


# --- spaces and subjects --------------------------------------------------------------------------------------------


def _space_created(state: State, event: ev.SpaceCreated, stamp: ev.Stamp, seq: int) -> None:
    space = _shown(state, event.space, stamp.at)
    state.change(space, explicit=True)
    _describe(state, space, event, stamp, ("format", "description", "labels", "ext"))


def _space_changed(state: State, event: ev.SpaceChanged, stamp: ev.Stamp, seq: int) -> None:
    _describe(state, state.spaces[event.space], event, stamp, ("format", "description", "labels", "ext"))


def _space_deleted(state: State, event: ev.SpaceDeleted, stamp: ev.Stamp, seq: int) -> None:
    space = state.spaces[event.space]
    # The counters stay behind, so that a space of the same name never gives an id twice.
    heir = Space(space.name, stamp.at, gid_high=space.gid_high, gids=space.gids, incarnations=space.incarnations)
    heir.hidden = True
    state.put(state.spaces, event.space, heir)


def _subject_created(state: State, event: ev.SubjectCreated, stamp: ev.Stamp, seq: int) -> None:
    space = _shown(state, event.key.space, stamp.at)
    subject = Subject(
        key=event.key,
        uid=uid_of(event.uid),
        serial=event.serial,
        incarnation=event.incarnation,
        at=stamp.at,
        numbering=event.numbering,
        scope=event.scope,
        default_policy=state.intern(event.default_policy),
        format=event.format,
        variety=event.variety,
        description=event.description,
        labels=event.labels,
        ext=event.ext,
    )
    state.put(space.subjects, event.key.name, subject)
    if state.by_serial is not None:
        state.put(state.by_serial, event.serial, subject)
    state.change(state, serial=event.serial)


def _subject_changed(state: State, event: ev.SubjectChanged, stamp: ev.Stamp, seq: int) -> None:
    _describe(state, present(state, event.key), event, stamp, ("description", "labels", "ext", "default_version"))


def _subject_closed(state: State, event: ev.SubjectClosed, stamp: ev.Stamp, seq: int) -> None:
    subject = present(state, event.key)
    state.change(subject, closed=True)
    for version in subject.versions:
        _unrefer(state, version)
        _unname(state, version)
        state.change(version, life=Life.GONE)
    state.push(state.closed, subject)
    _forget_subject(state, event.key)


def _describe(state: State, target: Space | Subject, event: Any, stamp: ev.Stamp, names: tuple[str, ...]) -> None:
    described = {name: getattr(event, name) for name in names}
    state.change(target, epoch=target.epoch + 1, changed=stamp.at, **described)


def _forget_subject(state: State, key: SubjectKey) -> None:
    space = state.spaces[key.space]
    state.put(space.incarnations, key.name, space.subjects[key.name].incarnation)
    state.drop(space.subjects, key.name)
    state.drop(space.settings, key.name)
    state.drop(space.modes, key.name)


# --- versions -------------------------------------------------------------------------------------------------------


def _registered(state: State, event: ev.Registered, stamp: ev.Stamp, seq: int) -> None:
    space = state.spaces[event.key.space]
    subject = space.subjects[event.key.name]
    schema = _global_id(state, space, event, seq)
    version = Version(
        origin=origin_of(uid_of(event.uid), stamp.at if event.at is None else event.at, seq),
        ordinal=event.ordinal,
        lane=_lane(subject, event),
        lane_version=event.lane_version,
        schema=schema,
        subject=subject,
        policy=event.policy and state.intern(event.policy),
        extra=_extra(state, event, stamp),
        next_use=schema.uses,
    )
    state.touch(schema)
    schema.uses = version
    rival = find_version(subject, event.ordinal)
    if rival is not None:
        _purge(state, subject, [rival])
    _insert(state, subject, version)
    for reference in schema.attachments.references:
        state.refer((reference.space, reference.subject, reference.ordinal), version)
    if state.by_uid is not None:
        state.put(state.by_uid, version.uid, version)
    if state.by_origin is not None and event.origin_uri:
        state.put(state.by_origin, event.origin_uri, version)
    replaced = set(event.replaces) - {event.ordinal}
    if replaced:
        _purge(state, subject, [row for row in subject.versions if row.ordinal in replaced])


def _global_id(state: State, space: Space, event: ev.Registered, seq: int) -> GlobalId:
    known = space.gids.get(event.gid)
    if known is not None:
        return known
    content = _content(state, event, seq)
    schema = GlobalId(space.name, event.gid, content, _attachments(state, event), next=content.ids)
    state.touch(content)
    content.ids = schema
    state.put(space.gids, event.gid, schema)
    if event.gid > space.gid_high:
        state.touch(space)
        space.gid_high = event.gid
    return schema


def _content(state: State, event: ev.Registered, seq: int) -> Content:
    """The text in its language; logs of before texts were told apart by language have it once for all of them."""
    first = state.contents.get(event.sha)
    known = next((row for row in twins_of(first) if row.format == event.format), None)
    if first is not None and (known is not None or event.text is None):
        return known or first
    loose = Loose(event.text, pack_digests(event.digests), seq)
    content = Content(event.sha, loose, state.intern(event.format))
    if first is None:
        state.put(state.contents, event.sha, content)
    else:
        content.twin = first.twin
        state.change(first, twin=content)
    state.keep(content)
    if state.by_digest is not None:
        for key in digest_keys(loose.digests):
            state.put(state.by_digest, key, (*state.by_digest.get(key, ()), content))
    return content


def _attachments(state: State, event: ev.Registered) -> Attachments:
    if event.metadata is None and event.rule_set is None:
        return state.intern(Attachments(event.references)) if event.references else PLAIN
    return Attachments(event.references, event.metadata, event.rule_set)


def _lane(subject: Subject, event: ev.Registered) -> Lane:
    """The lane, as the one object its subject has of it."""
    lane = subject.lane
    if lane is not None and lane.type == event.type and lane.format == event.format and lane.variety == event.variety:
        return lane
    lane = Lane(event.format, event.type, event.variety)
    return next((known for known in subject.lane_high or () if known == lane), lane)


def _extra(state: State, event: ev.Registered, stamp: ev.Stamp) -> Extra | None:
    plain = not (event.description or event.labels or event.media_type or event.origin_uri)
    if plain and event.ancestor is None and event.ext is None:
        return state.intern(Extra(created_by=stamp.actor)) if stamp.actor else None
    extra = Extra(
        description=event.description,
        labels=event.labels,
        media_type=event.media_type,
        origin_uri=event.origin_uri,
        created_by=stamp.actor,
        ancestor=event.ancestor,
        ext=event.ext,
    )
    shared = event.labels is None and event.ext is None and not event.origin_uri
    return state.intern(extra) if shared else extra


def _insert(state: State, subject: Subject, version: Version) -> None:
    rows = subject.versions
    if not rows or rows[-1].ordinal < version.ordinal:
        state.push(rows, version)
    else:
        state.change(subject, versions=sorted([*rows, version], key=lambda row: row.ordinal))
    state.touch(subject)
    if subject.lane is None:
        subject.lane = version.lane
    elif subject.lane_high is None and subject.lane != version.lane:
        subject.lane_high = {subject.lane: subject.ordinal_high}
    if subject.lane_high is not None:
        high = max(subject.lane_high.get(version.lane, 0), version.lane_version)
        state.put(subject.lane_high, version.lane, high)
    subject.ordinal_high = max(subject.ordinal_high, version.ordinal)
    subject.epoch += 1


def _versions_retired(state: State, event: ev.VersionsRetired, stamp: ev.Stamp, seq: int) -> None:
    subject = present(state, event.key)
    for ordinal in event.ordinals:
        version = find_version(subject, ordinal)
        if version is not None:
            _unname(state, version)
            state.change(version, life=Life.RETIRED)
    _undefault(state, subject, event.ordinals)
    state.change(subject, epoch=subject.epoch + 1, changed=stamp.at)


def _undefault(state: State, subject: Subject, ordinals: Container[int]) -> None:
    """A default version that is deleted is none any more: the newest takes its place."""
    if subject.default_version in ordinals:
        state.change(subject, default_version=None)


def _versions_purged(state: State, event: ev.VersionsPurged, stamp: ev.Stamp, seq: int) -> None:
    subject = present(state, event.key)
    numbers = set(event.ordinals)
    _purge(state, subject, [version for version in subject.versions if version.ordinal in numbers])
    state.change(subject, changed=stamp.at)
    if not subject.versions:
        _forget_subject(state, event.key)
        if state.by_serial is not None:
            state.drop(state.by_serial, subject.serial)
    elif subject.numbering is Numbering.CONTINUE:
        state.change(subject, ordinal_high=subject.versions[-1].ordinal, epoch=subject.epoch + 1)
        _recount_lanes(state, subject)


def _recount_lanes(state: State, subject: Subject) -> None:
    if subject.lane_high is None:
        return
    high: dict[Lane, int] = {}
    for version in subject.versions:
        high[version.lane] = max(high.get(version.lane, 0), version.lane_version)
    state.change(subject, lane_high=high)


def _purge(state: State, subject: Subject, going: list[Version]) -> None:
    """Take versions, ascending, out of their subject and out of all that leads to them."""
    numbers = {version.ordinal for version in going}
    state.change(subject, versions=[version for version in subject.versions if version.ordinal not in numbers])
    _undefault(state, subject, numbers)
    # Newest first, as the uses of a schema are chained: each one is found at once.
    for version in reversed(going):
        _unrefer(state, version)
        _unname(state, version)
        _unuse(state, version)
        if state.by_uid is not None:
            state.drop(state.by_uid, version.uid)


def _unrefer(state: State, version: Version) -> None:
    for reference in version.schema.attachments.references:
        key = (reference.space, reference.subject, reference.ordinal)
        left = [row for row in state.referrers.get(key, ()) if row is not version]
        if left:
            state.put(state.referrers, key, left)
        else:
            state.drop(state.referrers, key)


def _unname(state: State, version: Version) -> None:
    """A version that is not live any more leaves its origin URI to others."""
    uri = version.extra.origin_uri if version.extra is not None else None
    if state.by_origin is not None and uri and state.by_origin.get(uri) is version:
        state.drop(state.by_origin, uri)


def _unuse(state: State, version: Version) -> None:
    """Take the version out of its gid; the last one takes the gid and perhaps the content with it."""
    schema = version.schema
    if schema.uses is version:
        state.change(schema, uses=version.next_use)
    else:
        before = schema.uses
        while before is not None and before.next_use is not version:
            before = before.next_use
        if before is not None:
            state.change(before, next_use=version.next_use)
    if schema.uses is not None:
        return
    state.drop(state.spaces[schema.space].gids, schema.gid)
    state.change(state, purges=state.purges + 1)
    content = schema.content
    rest = [other for other in ids_of(content) if other is not schema]
    for position, other in enumerate(rest):
        state.change(other, next=rest[position + 1] if position + 1 < len(rest) else None)
    state.change(content, ids=rest[0] if rest else None)
    if not rest:
        _unlist(state, content)
        if state.by_digest is not None:
            _undigest(state, state.by_digest, content)
        if not state.drafting:
            _erase(state, content)


def _unlist(state: State, content: Content) -> None:
    """Take a content out of the table of texts; twins stay."""
    first = state.contents[content.sha]
    if first is not content:
        before = next(row for row in twins_of(first) if row.twin is content)
        state.change(before, twin=content.twin)
    elif content.twin is not None:
        state.put(state.contents, content.sha, content.twin)
    else:
        state.drop(state.contents, content.sha)


def _undigest(state: State, index: dict[bytes, tuple[Content, ...]], content: Content) -> None:
    for key in digest_keys(state.digests(content)):
        left = tuple(other for other in index.get(key, ()) if other is not content)
        if left:
            state.put(index, key, left)
        else:
            state.drop(index, key)


def _erase(state: State, content: Content) -> None:
    seq = state.seq_of(content)
    if isinstance(content.held, int):
        state.texts.drop(content.held)
    content.held = Loose(None, seq=seq)
    state.erased.append(Erased(seq, content.sha))


_FOLDS: dict[type, Callable[[State, Any, ev.Stamp, int], None]] = {
    ev.SpaceCreated: _space_created,
    ev.SpaceChanged: _space_changed,
    ev.SpaceDeleted: _space_deleted,
    ev.SubjectCreated: _subject_created,
    ev.SubjectChanged: _subject_changed,
    ev.SubjectClosed: _subject_closed,
    ev.Registered: _registered,
    ev.VersionsRetired: _versions_retired,
    ev.VersionsPurged: _versions_purged,
    ev.SettingsChanged: beside.settings_changed,
    ev.ModeChanged: beside.mode_changed,
    ev.CodecAdded: beside.codec_added,
    ev.EncodingAssigned: beside.encoding_assigned,
    ev.Bound: beside.bound,
    ev.Unbound: beside.unbound,
    ev.ItemsChanged: beside.items_changed,
    ev.RulesetAdopted: beside.ruleset_adopted,
}
