"""Queries on a state. Pure reads: they change only the lazily built indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import asdict

from stele.core.commands import Equality
from stele.core.digests import digest_key, digest_keys
from stele.core.metadata import merge_metadata, merge_rule_sets
from stele.core.model import (
    DEFAULT_NAMESPACE,
    RECORD_ID_VERSION_BITS,
    REGISTRY_LEVEL,
    SKIPPED_ENCODING,
    Attachments,
    Binding,
    BindingIndexKey,
    Content,
    CreatorUsage,
    Mode,
    Namespace,
    Reference,
    SchemaEntry,
    SchemaKind,
    Settings,
    SettingsLevel,
    Subject,
    SubjectKey,
    Version,
    VersionState,
)
from stele.core.policy import BACKWARD, Policy
from stele.core.rulesets import FIRST
from stele.core.state import OWN, State, settings_slot
from stele.core.traversal import (
    find_creator,
    find_version,
    list_entries,
    list_formats_of_text,
    list_versions_in_subject,
    list_versions_of_entry,
)
from stele.errors import (
    ContentNotFound,
    EncodingNotFound,
    SubjectNotFound,
    UnresolvedReference,
    VersionNotFound,
)

ACTIVE_ONLY = frozenset({VersionState.ACTIVE})
ACTIVE_OR_SOFT_DELETED = frozenset({VersionState.ACTIVE, VersionState.SOFT_DELETED})
SOFT_DELETED_ONLY = frozenset({VersionState.SOFT_DELETED})

# --- levels ---------------------------------------------------------------------------------------------------------

NO_SETTINGS = Settings()
_DEFAULT_LEVEL = SettingsLevel(DEFAULT_NAMESPACE)


def settings_for(state: State, level: SettingsLevel) -> Settings:
    """Return the settings in force at a level: each value from the nearest level that has it."""
    namespace = None if level.namespace is None else state.namespaces.get(level.namespace)
    if namespace is None or not namespace.settings:  # nothing is set below the registry
        return state.settings or NO_SETTINGS
    layers = [own for place in _levels_upwards(level) if (own := state.settings_at(place)) is not None]
    if len(layers) < 2:  # by far the most common cases
        return layers[0] if layers else NO_SETTINGS
    merged: dict[str, object] = {}
    for own in layers:
        merged = {**asdict(own), **{name: value for name, value in merged.items() if value is not None}}
    return Settings(**merged)  # type: ignore[arg-type]  # asdict gives the members back under their names


def _levels_upwards(level: SettingsLevel) -> Iterator[SettingsLevel]:
    yield level
    if level.subject is not None:
        yield SettingsLevel(level.namespace)
    if level.namespace is not None:
        yield REGISTRY_LEVEL


def policy_for(state: State, key: SubjectKey) -> Policy:
    """Return the policy in force.

    The first one set of these: the subject's, the one it was created with, its namespace's, the registry's, BACKWARD.
    """
    own = state.settings_at(SettingsLevel(*key))
    if own is not None and own.policy is not None:
        return own.policy
    subject = state.find_subject(key)
    if subject is not None and subject.default_policy is not None:
        return subject.default_policy
    return settings_for(state, SettingsLevel(key.namespace)).policy or BACKWARD


def mode_for(state: State, level: SettingsLevel) -> Mode:
    """Return the mode in force at a level: that of the nearest level that has one.

    READONLY_OVERRIDE of the default namespace applies everywhere.
    """
    if state.mode_at(_DEFAULT_LEVEL) is Mode.READONLY_OVERRIDE:
        return Mode.READONLY_OVERRIDE
    namespace = None if level.namespace is None else state.namespaces.get(level.namespace)
    if namespace is None or not namespace.modes:
        return state.mode or Mode.READWRITE
    own, of_namespace = namespace.modes.get(settings_slot(level)), namespace.modes.get(OWN)
    return own or of_namespace or state.mode or Mode.READWRITE


def ruleset_version(state: State, format_name: str, name: str) -> int:
    """Return the version in force of a ruleset by its bare name: the adopted one, else version 1."""
    return state.rulesets.get((format_name, name), FIRST)


def adopted_rulesets(state: State, format_name: str) -> tuple[tuple[str, int], ...]:
    """Return (bare name, version) of all adopted rulesets of a format, sorted."""
    return tuple(sorted((name, version) for (fmt, name), version in state.rulesets.items() if fmt == format_name))


# --- subjects and versions ------------------------------------------------------------------------------------------


def list_versions(subject: Subject | None, states: frozenset[VersionState] = ACTIVE_ONLY) -> list[Version]:
    """Return the versions with those states, ascending."""
    return [] if subject is None else [version for version in subject.versions if version.state in states]


def next_version_number(state: State, key: SubjectKey) -> int:
    """Return the number of the next version of a subject, which need not exist yet."""
    subject = state.find_subject(key)
    if subject is not None:
        return subject.highest_version_number + 1
    namespace = state.find_namespace(key.namespace)
    return (namespace.used_version_numbers.get(key.name, 0) if namespace is not None else 0) + 1


def latest_version(subject: Subject | None) -> Version | None:
    """Return the newest active version."""
    if subject is not None:
        for version in reversed(subject.versions):
            if version.state is VersionState.ACTIVE:
                return version
    return None


def get_version(
    state: State, key: SubjectKey, version_number: int | None, states: frozenset[VersionState] = ACTIVE_ONLY
) -> Version:
    """Return one version; version_number None is the newest with those states.

    Raises `SubjectNotFound`, `VersionNotFound`.
    """
    subject = state.find_subject(key)
    if subject is None or not subject.versions:
        raise SubjectNotFound(key.name)
    if version_number is None:
        version = next((v for v in reversed(subject.versions) if v.state in states), None)
        if version is None:
            raise VersionNotFound("latest")
        return version
    version = find_version(subject, version_number)
    if version is None or version.state not in states:
        raise VersionNotFound(version_number)
    return version


def list_subjects(
    state: State, namespaces: Iterable[Namespace], states: frozenset[VersionState] = ACTIVE_ONLY
) -> list[Subject]:
    """Return the subjects with at least one version with those states, sorted by namespace and name."""
    subjects = [
        subject
        for namespace in namespaces
        for subject in namespace.subjects.values()
        if any(row.state in states for row in subject.versions)
    ]
    return sorted(subjects, key=lambda subject: subject.key)


def visible_namespaces(state: State) -> list[Namespace]:
    """Return namespaces that are not deleted and have or had content, and always the default one; sorted by name."""
    namespaces = [
        s
        for s in state.namespaces.values()
        if not s.hidden and (not s.name or s.explicit or s.highest_schema_id or s.subjects)
    ]
    return sorted(namespaces, key=lambda namespace: namespace.name)


def get_schema_entry(state: State, namespace: str, schema_id: int) -> SchemaEntry:
    """Return the entry of a schema id. Raises `ContentNotFound`."""
    place = state.namespaces.get(namespace)
    entry = None if place is None else place.schema_entries.get(schema_id)
    if entry is None:
        raise ContentNotFound(schema_id)
    return entry


def list_referrers(
    state: State, key: SubjectKey, version_number: int, states: frozenset[VersionState] = ACTIVE_ONLY
) -> list[Version]:
    """Return the versions with those states that refer to a version, in order of registration."""
    return [row for row in state.referrers.get((*key, version_number), ()) if row.state in states]


def find_version_by_uid(state: State, uid: int) -> Version | None:
    """Return the version with that uid, also of an ended incarnation; None after a purge."""
    return state.get_index("by_uid", _uid_index).get(uid)


def _uid_index(state: State) -> dict[int, Version]:
    return {row.uid: row for subject in _all_subjects(state) for row in subject.versions}


def get_version_by_record_id(state: State, number: int) -> Version:
    """Return the version with that record id, also of an ended incarnation. Raises `ContentNotFound`."""
    subject = find_incarnation(state, number >> RECORD_ID_VERSION_BITS)
    version = None if subject is None else find_version(subject, number & (1 << RECORD_ID_VERSION_BITS) - 1)
    if version is None:
        raise ContentNotFound(number)
    return version


def find_incarnation(state: State, serial: int) -> Subject | None:
    """Return the incarnation of a subject with that serial, ended or not.

    None when there is none, or all its versions were purged.
    """
    return state.get_index("by_serial", _serial_index).get(serial)


def _serial_index(state: State) -> dict[int, Subject]:
    return {subject.serial: subject for subject in _all_subjects(state)}


def _all_subjects(state: State) -> Iterator[Subject]:
    yield from state.closed
    for namespace in state.namespaces.values():
        yield from namespace.subjects.values()


def find_usage_of_creator(state: State, name: str) -> CreatorUsage:
    """Return how much a caller registered that is not purged; '' stands for all callers without a name together."""
    return state.get_index("by_creator", _creator_index).get(name, CreatorUsage())


def _creator_index(state: State) -> dict[str, CreatorUsage]:
    index: dict[str, CreatorUsage] = {}
    for subject in _all_subjects(state):
        for version in subject.versions:
            creator = find_creator(version)
            usage = index.get(creator, CreatorUsage())
            length = state.get_text_length(version.content)
            index[creator] = CreatorUsage(usage.versions + 1, usage.text_bytes + length)
    return index


def find_version_by_origin(state: State, uri: str) -> Version | None:
    """Return the active version that was registered under that origin URI."""
    version = find_last_version_by_origin(state, uri)
    return version if version is not None and version.state is VersionState.ACTIVE else None


def find_last_version_by_origin(state: State, uri: str) -> Version | None:
    """Return the newest version that was registered under that origin URI, deleted or not; None if it was purged."""
    versions = state.get_index("by_origin", _origin_index).get(uri)
    return versions[-1] if versions else None


def _origin_index(state: State) -> dict[str, tuple[Version, ...]]:
    """Return all versions of each origin URI, deleted ones too, in the order of their registration."""
    versions = (version for subject in _all_subjects(state) for version in subject.versions)
    named = [
        (attributes.origin_uri, each) for each in versions if (attributes := each.attributes) and attributes.origin_uri
    ]
    index: dict[str, tuple[Version, ...]] = {}
    for uri, version in sorted(named, key=lambda pair: pair[1].seq):
        index[uri] = (*index.get(uri, ()), version)
    return index


def list_contents(state: State) -> Iterator[Content]:
    """Return every text in every format in which it was registered."""
    return (content for first in state.contents.values() for content in list_formats_of_text(first))


def find_content_by_digest(state: State, kind: str, digest: bytes) -> Content | None:
    """Return the content with that digest, the oldest one if there are several.

    Kinds: see `digests.KINDS`.
    """
    return min(_contents_with_digest(state, digest_key(kind, digest)), key=state.get_seq, default=None)


def _contents_with_digest(state: State, key: bytes) -> tuple[Content, ...]:
    return state.get_index("by_digest", _digest_index).get(key, ())


def _digest_index(state: State) -> dict[bytes, tuple[Content, ...]]:
    index: dict[bytes, tuple[Content, ...]] = {}
    for content in list_contents(state):
        for key in digest_keys(state.get_digests(content)):
            index[key] = (*index.get(key, ()), content)
    return index


def get_encoding(state: State, key: SubjectKey, number: int) -> tuple[Version, str]:
    """Return the version and codec of an encoding id of a subject.

    The present incarnation is searched first. Ids that it never assigned are searched in the ended ones, newest first,
    since data written then may still exist. Raises `SubjectNotFound`, `EncodingNotFound`.
    """
    present = state.find_subject(key)
    past = (subject for subject in reversed(state.closed) if subject.key == key)
    known = [subject for subject in (present, *past) if subject is not None]
    if not known:
        raise SubjectNotFound(key.name)
    lists = (subject.encodings for subject in known if subject.encodings and 0 < number <= len(subject.encodings))
    encoding = next((rows[number - 1] for rows in lists if rows[number - 1] != SKIPPED_ENCODING), None)
    if encoding is None:
        raise EncodingNotFound(f"Encoding {number} not found.")
    uid, codec = encoding
    version = find_version_by_uid(state, uid)
    if version is None:
        raise EncodingNotFound(f"The version of encoding {number} was purged.")
    return version, codec


# --- bindings -------------------------------------------------------------------------------------------------------


def bindings_of(state: State, subjects: Iterable[SubjectKey]) -> frozenset[Binding]:
    """Return all bindings to any of these subjects."""
    return frozenset(row for key in subjects for row in _bindings_at(state, BindingIndexKey("", *key)))


def bindings_of_resource(state: State, resource_type: str, resource_id: str) -> frozenset[Binding]:
    """Return all bindings of the resource of that id."""
    return frozenset(_bindings_at(state, BindingIndexKey("id", resource_type, resource_id)))


def _bindings_at(state: State, place: BindingIndexKey) -> tuple[Binding, ...]:
    return state.get_index("by_place", _binding_index).get(place, ())


def _binding_index(state: State) -> dict[BindingIndexKey, tuple[Binding, ...]]:
    index: dict[BindingIndexKey, list[Binding]] = {}
    for binding in state.bindings.values():
        for place in binding.index_keys:
            index.setdefault(place, []).append(binding)
    return {place: tuple(rows) for place, rows in index.items()}


def bindings_around(state: State, bindings: Iterable[Binding]) -> frozenset[Binding]:
    """Return all bindings that share with these a subject, a resource by type and id, or a key."""
    near = list(bindings)
    same = (state.bindings[row.key] for row in near if row.key in state.bindings)
    return frozenset(
        (*same, *(binding for row in near for place in row.index_keys for binding in _bindings_at(state, place)))
    )


# --- references -----------------------------------------------------------------------------------------------------


def resolve_references(
    state: State, references: Iterable[Reference], states: frozenset[VersionState] = ACTIVE_OR_SOFT_DELETED
) -> tuple[tuple[str, bytes], ...]:
    """Return (name, SHA-256 of the text) of all direct and indirect references, dependencies first.

    states are the allowed states of the direct targets. Their own references are registered, so they may be
    soft-deleted. Raises `UnresolvedReference`.
    """
    direct = list(references)
    if not direct:  # by far the most common case
        return ()
    for reference in direct:
        _referenced_version(state, reference, states)
    texts: dict[tuple[str, bytes], None] = {}
    pending = [(reference, False) for reference in reversed(direct)]
    seen: set[tuple[str, str, str, int]] = set()
    while pending:
        reference, expanded = pending.pop()
        target = _referenced_version(state, reference, ACTIVE_OR_SOFT_DELETED)
        if expanded:
            texts[reference.name, target.content.sha] = None
            continue
        identity = (reference.name, reference.namespace, reference.subject, reference.version_number)
        if identity in seen:
            continue
        seen.add(identity)
        pending.append((reference, True))
        pending.extend((inner, False) for inner in reversed(target.schema.attachments.references))
    return tuple(texts)


def measure_reference_depth(state: State, references: Iterable[Reference]) -> int:
    """Return the length of the longest chain of references: 0 for none, 1 if the targets have none themselves."""
    depths: dict[tuple[SubjectKey, int], int] = {}
    pending = [(reference, False) for reference in references]
    if not pending:
        return 0
    direct = [(reference.key, reference.version_number) for reference, _ in pending]
    seen: set[tuple[SubjectKey, int]] = set()
    while pending:
        reference, is_expanded = pending.pop()
        place = (reference.key, reference.version_number)
        inner = _referenced_version(state, reference, ACTIVE_OR_SOFT_DELETED).schema.attachments.references
        if is_expanded:
            depths[place] = 1 + max((depths.get((row.key, row.version_number), 0) for row in inner), default=0)
        elif place not in seen:
            seen.add(place)
            pending.append((reference, True))
            pending.extend((row, False) for row in inner)
    return max((depths[place] for place in direct), default=0)


def _referenced_version(state: State, reference: Reference, states: frozenset[VersionState]) -> Version:
    subject = state.find_subject(reference.key)
    target = None if subject is None else find_version(subject, reference.version_number)
    if target is None or target.state not in states:
        raise UnresolvedReference(
            f'No schema reference found for subject "{reference.subject}" and version {reference.version_number}'
        )
    return target


# --- equality -------------------------------------------------------------------------------------------------------


def find_equal_version(
    state: State,
    key: SubjectKey,
    sha: bytes,
    attachments: Attachments,
    *,
    equality: Equality = Equality.IDENTITY,
    digest: bytes = b"",
    kind: SchemaKind | None = None,
    media_type: str = "",
    states: frozenset[VersionState] = ACTIVE_ONLY,
) -> Version | None:
    """Return the version of a subject equal to a document: the newest under IDENTITY, else the lowest active one.

    Source: docs/protocols/model.md#c7.

    kind is the kind of the document. IDENTITY requires the same format (None: any format), DIGEST the same kind.
    """
    subject = state.find_subject(key)
    if equality is Equality.NEVER or subject is None:
        return None
    if equality is Equality.DIGEST:
        known = [schema for content in _contents_with_digest(state, digest) for schema in list_entries(content)]
    else:
        own = kind.format if equality is Equality.IDENTITY and kind is not None else None
        known = schemas_with_text(state, sha, own)
    versions = [
        use
        for schema in known
        if schema.namespace == key.namespace
        and (equality is not Equality.IDENTITY or schema.attachments == attachments)
        for use in list_versions_in_subject(subject, schema)
        if use.state in states and (equality is not Equality.DIGEST or use.kind == kind)
    ]
    if equality is Equality.TEXT_AND_TYPE:
        versions = [use for use in versions if _has_type(use, kind, media_type)]
    if equality is Equality.IDENTITY:
        return max(versions, key=lambda use: use.version_number, default=None)
    return min(versions, key=lambda use: use.version_number, default=None)


def _has_type(version: Version, kind: SchemaKind | None, media_type: str) -> bool:
    own = version.attributes.media_type if version.attributes is not None else ""
    like = kind is None or (version.kind.format, version.kind.custom_format) == (kind.format, kind.custom_format)
    return like and own in ("", media_type)


def live_versions_by_digest(state: State, digest: bytes, kind: SchemaKind) -> list[Version]:
    """Return the active versions of a kind, in all subjects, whose content has a digest (see `digests.digest_key`)."""
    known = (schema for content in _contents_with_digest(state, digest) for schema in list_entries(content))
    return [
        use
        for schema in known
        for use in list_versions_of_entry(schema)
        if use.state is VersionState.ACTIVE and use.kind == kind
    ]


def find_content(state: State, sha: bytes, format_name: str) -> Content | None:
    """Return the content of a text in a format, if it was registered in that format."""
    return next((row for row in list_formats_of_text(state.contents.get(sha)) if row.format == format_name), None)


def schemas_with_text(state: State, sha: bytes, format_name: str | None = None) -> list[SchemaEntry]:
    """Return every schema id, in any namespace, whose text has that SHA-256: as a schema of a format, None of any."""
    twins = list_formats_of_text(state.contents.get(sha))
    return [schema for row in twins if format_name in (None, row.format) for schema in list_entries(row)]


def find_schema_id(
    state: State, namespace: str, sha: bytes, format_name: str, attachments: Attachments
) -> SchemaEntry | None:
    """Return the schema id of a text of a format with those attachments in a namespace.

    It is the lowest one if an import registered several.
    """
    entries = (
        g
        for g in schemas_with_text(state, sha, format_name)
        if g.namespace == namespace and g.attachments == attachments
    )
    return min(entries, key=lambda schema: schema.schema_id, default=None)


def inherit_attachments(state: State, key: SubjectKey, attachments: Attachments) -> Attachments:
    """Return attachments as registered: absent ones come from the newest version, then defaults and overrides apply."""
    settings = settings_for(state, SettingsLevel(*key))
    before = latest_version(state.find_subject(key))
    metadata, rule_set = attachments.metadata, attachments.rule_set
    if before is not None:
        metadata = metadata if metadata is not None else before.schema.attachments.metadata
        rule_set = rule_set if rule_set is not None else before.schema.attachments.rule_set
    if settings is NO_SETTINGS and metadata is None and rule_set is None:
        return attachments  # by far the most common case
    metadata = merge_metadata(merge_metadata(settings.default_metadata, metadata), settings.override_metadata)
    rule_set = merge_rule_sets(merge_rule_sets(settings.default_rule_set, rule_set), settings.override_rule_set)
    return Attachments(attachments.references, metadata.in_stored_order() if metadata else None, rule_set)
