"""Questions to a state. Pure reads: nothing here changes anything but the lazily built indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import asdict

from stele.core.chains import find_version, ids_of, twins_of, uses_in, uses_of
from stele.core.commands import Equality
from stele.core.digests import digest_key, digest_keys
from stele.core.governance import merge_metadata, merge_rule_sets
from stele.core.model import (
    RECORD_BITS,
    REGISTRY,
    Attachments,
    Binding,
    BindingPlace,
    Content,
    GlobalId,
    Lane,
    Level,
    Life,
    Mode,
    Reference,
    Settings,
    Space,
    Subject,
    SubjectKey,
    Version,
)
from stele.core.policy import BACKWARD, Policy
from stele.core.rulesets import FIRST
from stele.core.state import State
from stele.errors import (
    ContentNotFound,
    EncodingNotFound,
    SubjectNotFound,
    UnresolvedReference,
    VersionNotFound,
)

VISIBLE = frozenset({Life.LIVE})
KEPT = frozenset({Life.LIVE, Life.RETIRED})
RETIRED = frozenset({Life.RETIRED})

# --- levels ---------------------------------------------------------------------------------------------------------


def settings_for(state: State, level: Level) -> Settings:
    """The settings in force at a level: each one from the nearest level that has it."""
    merged: dict[str, object] = {}
    for place in _upwards(level):
        own = state.settings_at(place)
        if own is not None:
            merged = {**asdict(own), **{name: value for name, value in merged.items() if value is not None}}
    return Settings(**merged)  # type: ignore[arg-type]  # asdict gives the members back under their names


def _upwards(level: Level) -> Iterator[Level]:
    yield level
    if level.subject is not None:
        yield Level(level.space)
    if level.space is not None:
        yield REGISTRY


def policy_for(state: State, key: SubjectKey) -> Policy:
    """The policy in force: the subject's, the one it was created with, its space's, the registry's, BACKWARD."""
    own = state.settings_at(Level(*key))
    if own is not None and own.policy is not None:
        return own.policy
    subject = state.subject(key)
    if subject is not None and subject.default_policy is not None:
        return subject.default_policy
    return settings_for(state, Level(key.space)).policy or BACKWARD


def mode_for(state: State, level: Level) -> Mode:
    """The mode in force at a level. READONLY_OVERRIDE on the registry or a space wins over everything below."""
    chain = [mode for place in _upwards(level) if (mode := state.mode_at(place)) is not None]
    if Mode.READONLY_OVERRIDE in chain:
        return Mode.READONLY_OVERRIDE
    return chain[0] if chain else Mode.READWRITE


def ruleset_version(state: State, format_name: str, name: str) -> int:
    """The version in force of a ruleset by its bare name: the one taken over, else the first."""
    return state.rulesets.get((format_name, name), FIRST)


def adopted_rulesets(state: State, format_name: str) -> tuple[tuple[str, int], ...]:
    """(bare name, version) of all rulesets of a format that were taken over, sorted."""
    return tuple(sorted((name, version) for (fmt, name), version in state.rulesets.items() if fmt == format_name))


# --- subjects and versions ------------------------------------------------------------------------------------------


def versions(subject: Subject | None, lives: frozenset[Life] = VISIBLE) -> list[Version]:
    """Versions of those lives, ascending."""
    return [] if subject is None else [version for version in subject.versions if version.life in lives]


def latest(subject: Subject | None) -> Version | None:
    """The newest live version."""
    return next((v for v in reversed(subject.versions) if v.life is Life.LIVE), None) if subject is not None else None


def version(state: State, key: SubjectKey, ordinal: int | None, lives: frozenset[Life] = VISIBLE) -> Version:
    """One version; ordinal None is the newest of those lives. Raises `SubjectNotFound`, `VersionNotFound`."""
    subject = state.subject(key)
    if subject is None or not subject.versions:
        raise SubjectNotFound(key.name)
    if ordinal is None:
        found = next((v for v in reversed(subject.versions) if v.life in lives), None)
        if found is None:
            raise VersionNotFound("latest")
        return found
    found = find_version(subject, ordinal)
    if found is None or found.life not in lives:
        raise VersionNotFound(ordinal)
    return found


def subjects(state: State, spaces: Iterable[Space], lives: frozenset[Life] = VISIBLE) -> list[Subject]:
    """Subjects with at least one version of those lives, sorted by space and name."""
    found = [
        subject
        for space in spaces
        for subject in space.subjects.values()
        if any(row.life in lives for row in subject.versions)
    ]
    return sorted(found, key=lambda subject: subject.key)


def shown_spaces(state: State) -> list[Space]:
    """Spaces that were not deleted and hold or once held something; the default one always; sorted by name."""
    shown = [
        s for s in state.spaces.values() if not s.hidden and (not s.name or s.explicit or s.gid_high or s.subjects)
    ]
    return sorted(shown, key=lambda space: space.name)


def schema(state: State, space: str, gid: int) -> GlobalId:
    """What a gid stands for. Raises `ContentNotFound`."""
    place = state.spaces.get(space)
    found = None if place is None else place.gids.get(gid)
    if found is None:
        raise ContentNotFound(gid)
    return found


def referrers(state: State, key: SubjectKey, ordinal: int, lives: frozenset[Life] = VISIBLE) -> list[Version]:
    """Versions of those lives that refer to a version, in order of registration."""
    return [row for row in state.referrers.get((*key, ordinal), ()) if row.life in lives]


def by_uid(state: State, uid: int) -> Version | None:
    """The version with that uid, of a closed incarnation too; None after a purge."""
    return state.index("by_uid", _uids).get(uid)


def _uids(state: State) -> dict[int, Version]:
    return {row.uid: row for subject in _all_subjects(state) for row in subject.versions}


def by_record_id(state: State, number: int) -> Version:
    """The version with that record id, of a closed incarnation too. Raises `ContentNotFound`."""
    subject = incarnation(state, number >> RECORD_BITS)
    found = None if subject is None else find_version(subject, number & (1 << RECORD_BITS) - 1)
    if found is None:
        raise ContentNotFound(number)
    return found


def incarnation(state: State, serial: int) -> Subject | None:
    """The incarnation of a subject with that serial, closed or not; None when there is none, or all was purged."""
    return state.index("by_serial", _serials).get(serial)


def _serials(state: State) -> dict[int, Subject]:
    return {subject.serial: subject for subject in _all_subjects(state)}


def _all_subjects(state: State) -> Iterator[Subject]:
    yield from state.closed
    for space in state.spaces.values():
        yield from space.subjects.values()


def by_origin(state: State, uri: str) -> Version | None:
    """The live version that was registered under that origin URI."""
    return state.index("by_origin", _origins).get(uri)


def _origins(state: State) -> dict[str, Version]:
    rows = (row for space in state.spaces.values() for subject in space.subjects.values() for row in subject.versions)
    return {row.extra.origin_uri: row for row in rows if row.life is Life.LIVE and row.extra and row.extra.origin_uri}


def contents(state: State) -> Iterator[Content]:
    """Every text in every language it was registered in."""
    return (content for first in state.contents.values() for content in twins_of(first))


def by_digest(state: State, kind: str, digest: bytes) -> Content | None:
    """The content with that digest, the one known for longest if there are several. Kinds: see `digests.KINDS`."""
    return min(_digested(state, digest_key(kind, digest)), key=state.seq_of, default=None)


def _digested(state: State, key: bytes) -> tuple[Content, ...]:
    return state.index("by_digest", _digests).get(key, ())


def _digests(state: State) -> dict[bytes, tuple[Content, ...]]:
    index: dict[bytes, tuple[Content, ...]] = {}
    for content in contents(state):
        for key in digest_keys(state.digests(content)):
            index[key] = (*index.get(key, ()), content)
    return index


def encoding(state: State, key: SubjectKey, number: int) -> tuple[Version, str]:
    """The version and codec an encoding id of a subject stands for.

    The present incarnation answers first; ids it never gave are looked for in the closed ones, newest first, since
    data written then is still there. Raises `SubjectNotFound`, `EncodingNotFound`.
    """
    present = state.subject(key)
    past = (subject for subject in reversed(state.closed) if subject.key == key)
    known = [subject for subject in (present, *past) if subject is not None]
    if not known:
        raise SubjectNotFound(key.name)
    given = next((subject.encodings for subject in known if 0 < number <= len(subject.encodings or ())), None)
    if given is None:
        raise EncodingNotFound(f"Encoding {number} not found.")
    uid, codec = given[number - 1]
    found = by_uid(state, uid)
    if found is None:
        raise EncodingNotFound(f"The version of encoding {number} was purged.")
    return found, codec


# --- bindings -------------------------------------------------------------------------------------------------------


def bindings_of(state: State, subjects: Iterable[SubjectKey]) -> frozenset[Binding]:
    """All bindings to any of these subjects."""
    return frozenset(row for key in subjects for row in _placed(state, BindingPlace("", *key)))


def bindings_of_resource(state: State, resource_type: str, resource_id: str) -> frozenset[Binding]:
    """All bindings of the resource of that id."""
    return frozenset(_placed(state, BindingPlace("id", resource_type, resource_id)))


def _placed(state: State, place: BindingPlace) -> tuple[Binding, ...]:
    return state.index("by_place", _places).get(place, ())


def _places(state: State) -> dict[BindingPlace, tuple[Binding, ...]]:
    index: dict[BindingPlace, list[Binding]] = {}
    for binding in state.bindings.values():
        for place in binding.places:
            index.setdefault(place, []).append(binding)
    return {place: tuple(rows) for place, rows in index.items()}


def bindings_around(state: State, bindings: Iterable[Binding]) -> frozenset[Binding]:
    """All bindings to the subjects of these ones, or of the resources they are of by type and id, or by key."""
    near = list(bindings)
    same = (state.bindings[row.key] for row in near if row.key in state.bindings)
    return frozenset((*same, *(found for row in near for place in row.places for found in _placed(state, place))))


# --- references -----------------------------------------------------------------------------------------------------


def closure(
    state: State, references: Iterable[Reference], lives: frozenset[Life] = KEPT
) -> tuple[tuple[str, bytes], ...]:
    """(name, SHA-256 of the text) of all references, theirs too, dependencies first.

    lives are those the targets themselves may have; what they refer to in turn is registered, so it may be retired.
    Raises `UnresolvedReference`.
    """
    direct = list(references)
    for reference in direct:
        _target(state, reference, lives)
    found: dict[tuple[str, bytes], None] = {}
    pending = [(reference, False) for reference in reversed(direct)]
    seen: set[tuple[str, str, str, int]] = set()
    while pending:
        reference, expanded = pending.pop()
        target = _target(state, reference, KEPT)
        if expanded:
            found[reference.name, target.content.sha] = None
            continue
        identity = (reference.name, reference.space, reference.subject, reference.ordinal)
        if identity in seen:
            continue
        seen.add(identity)
        pending.append((reference, True))
        pending.extend((inner, False) for inner in reversed(target.schema.attachments.references))
    return tuple(found)


def _target(state: State, reference: Reference, lives: frozenset[Life]) -> Version:
    subject = state.subject(reference.key)
    target = None if subject is None else find_version(subject, reference.ordinal)
    if target is None or target.life not in lives:
        raise UnresolvedReference(
            f'No schema reference found for subject "{reference.subject}" and version {reference.ordinal}'
        )
    return target


# --- equality -------------------------------------------------------------------------------------------------------


def find_same(
    state: State,
    key: SubjectKey,
    sha: bytes,
    attachments: Attachments,
    *,
    equality: Equality = Equality.IDENTITY,
    digest: bytes = b"",
    lane: Lane | None = None,
    media_type: str = "",
    lives: frozenset[Life] = VISIBLE,
) -> Version | None:
    """The version of a subject equal to a document: the newest under IDENTITY, else the lowest live one.

    Source: docs/protocols/model.md#c7.

    lane is the document's: identity is that of its format alone, None of any.
    """
    subject = state.subject(key)
    if equality is Equality.NEVER or subject is None:
        return None
    if equality is Equality.DIGEST:
        known = [schema for content in _digested(state, digest) for schema in ids_of(content)]
    else:
        own = lane.format if equality is Equality.IDENTITY and lane is not None else None
        known = same_text(state, sha, own)
    found = [
        use
        for schema in known
        if schema.space == key.space and (equality is not Equality.IDENTITY or schema.attachments == attachments)
        for use in uses_in(subject, schema)
        if use.life in lives and (equality is not Equality.DIGEST or use.lane == lane)
    ]
    if equality is Equality.TYPED:
        found = [use for use in found if _is_typed(use, lane, media_type)]
    if equality is Equality.IDENTITY:
        return max(found, key=lambda use: use.ordinal, default=None)
    return min(found, key=lambda use: use.ordinal, default=None)


def _is_typed(version: Version, lane: Lane | None, media_type: str) -> bool:
    own = version.extra.media_type if version.extra is not None else ""
    like = lane is None or (version.lane.format, version.lane.variety) == (lane.format, lane.variety)
    return like and own in ("", media_type)


def live_uses(state: State, digest: bytes, lane: Lane) -> list[Version]:
    """Live versions of a lane, in all subjects, whose content has that digest (see `digests.digest_key`)."""
    known = (schema for content in _digested(state, digest) for schema in ids_of(content))
    return [use for schema in known for use in uses_of(schema) if use.life is Life.LIVE and use.lane == lane]


def content_of(state: State, sha: bytes, format_name: str) -> Content | None:
    """What a text is in a language, if it was registered in it."""
    return next((row for row in twins_of(state.contents.get(sha)) if row.format == format_name), None)


def same_text(state: State, sha: bytes, format_name: str | None = None) -> list[GlobalId]:
    """Every gid, in any space, whose text has that SHA-256: as a schema of a format, None of any."""
    twins = twins_of(state.contents.get(sha))
    return [schema for row in twins if format_name in (None, row.format) for schema in ids_of(row)]


def known_id(state: State, space: str, sha: bytes, format_name: str, attachments: Attachments) -> GlobalId | None:
    """The gid a space gave to a text of a format with those attachments, the lowest where an import brought several."""
    found = (g for g in same_text(state, sha, format_name) if g.space == space and g.attachments == attachments)
    return min(found, key=lambda schema: schema.gid, default=None)


def filled(state: State, key: SubjectKey, attachments: Attachments) -> Attachments:
    """Attachments as registered: what is absent comes from the newest version, all between defaults and overrides."""
    settings = settings_for(state, Level(*key))
    before = latest(state.subject(key))
    metadata, rule_set = attachments.metadata, attachments.rule_set
    if before is not None:
        metadata = metadata if metadata is not None else before.schema.attachments.metadata
        rule_set = rule_set if rule_set is not None else before.schema.attachments.rule_set
    metadata = merge_metadata(merge_metadata(settings.default_metadata, metadata), settings.override_metadata)
    rule_set = merge_rule_sets(merge_rule_sets(settings.default_rule_set, rule_set), settings.override_rule_set)
    return Attachments(attachments.references, metadata.ordered() if metadata else None, rule_set)
