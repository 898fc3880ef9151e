"""Folds events into the state: the only code that changes a `State`.

It accepts every event, is deterministic, and knows no schema language.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from msgspec.structs import replace

from stele.core import events as ev
from stele.core.digests import digest_keys, pack_digests
from stele.core.model import (
    MAX_INT32,
    NO_ATTACHMENTS,
    SKIPPED_ENCODING,
    Attachments,
    Collection,
    Content,
    CreatorUsage,
    FormatAndTwin,
    Namespace,
    Numbering,
    SchemaEntry,
    SchemaKind,
    Subject,
    SubjectDetails,
    SubjectKey,
    UnpackedText,
    Version,
    VersionAttributes,
    VersionDetails,
    VersionState,
    pack_origin,
)
from stele.core.state import ErasedText, State, settings_slot, uid_from_bytes
from stele.core.traversal import find_creator, find_version, list_entries, list_formats_of_text


def apply_record(state: State, seq: int, record: ev.LogRecord) -> None:
    """Apply one log entry."""
    concerns_one = _adds_newest_version(state, record.events)
    for event in record.events:
        _FOLDS[type(event)](state, event, record.metadata, seq)
    if not concerns_one:
        state.change(state, shared_seq=seq)
    if state.is_drafting:
        state.change(state, seq=seq)
        state.change(state, latest_at=max(state.latest_at, record.metadata.at))
    else:
        state.seq = seq
        state.latest_at = max(state.latest_at, record.metadata.at)


def _adds_newest_version(state: State, events: Sequence[ev.Event]) -> bool:
    """Return whether events only add the first version of a new subject, or the next one after an active one."""
    last = events[-1] if events else None
    if not isinstance(last, ev.VersionRegistered) or last.replaces:
        return False
    subject = state.find_subject(last.key)
    if subject is None:
        first = events[0]
        return len(events) == 2 and isinstance(first, ev.SubjectCreated) and first.key == last.key
    newest = subject.versions[-1] if subject.versions else None
    return (
        len(events) == 1
        and newest is not None
        and newest.state is VersionState.ACTIVE
        and newest.version_number < last.version_number
    )


def apply_event(state: State, event: ev.Event, stamp: ev.EventMetadata, seq: int) -> None:
    """Apply one event."""
    _FOLDS[type(event)](state, event, stamp, seq)


def _revive_namespace(state: State, name: str, at: int) -> Namespace:
    """Return the namespace. A deleted one exists again then."""
    namespace = _get_or_create_namespace(state, name, at)
    if namespace.hidden:
        state.change(namespace, hidden=False, at=at)
    return namespace


# --- namespaces and subjects ----------------------------------------------------------------------------------------


def _space_created(state: State, event: ev.NamespaceCreated, stamp: ev.EventMetadata, seq: int) -> None:
    namespace = _revive_namespace(state, event.namespace, stamp.at)
    state.change(namespace, explicit=True)
    _set_description(state, namespace, event, stamp, ("format", "description", "labels", "dialect_data"))


def _space_changed(state: State, event: ev.NamespaceChanged, stamp: ev.EventMetadata, seq: int) -> None:
    _set_description(
        state, state.namespaces[event.namespace], event, stamp, ("format", "description", "labels", "dialect_data")
    )


def _space_deleted(state: State, event: ev.NamespaceDeleted, stamp: ev.EventMetadata, seq: int) -> None:
    namespace = state.namespaces[event.namespace]
    # The counters are kept, so that a later namespace of the same name never reuses an id.
    heir = Namespace(
        namespace.name,
        stamp.at,
        highest_schema_id=namespace.highest_schema_id,
        schema_entries=namespace.schema_entries,
        incarnations=namespace.incarnations,
        used_version_numbers=namespace.used_version_numbers,
    )
    heir.hidden = True
    state.set_item(state.namespaces, event.namespace, heir)


def _subject_created(state: State, event: ev.SubjectCreated, stamp: ev.EventMetadata, seq: int) -> None:
    namespace = _revive_namespace(state, event.key.namespace, stamp.at)
    details = SubjectDetails(
        incarnation=event.incarnation,
        numbering=event.numbering,
        comparison_scope=event.comparison_scope,
        default_policy=event.default_policy,
        format=event.format,
        custom_format=event.custom_format,
        description=event.description,
        labels=event.labels,
        dialect_data=event.dialect_data,
    )
    subject = Subject(
        namespace.name,
        event.key.name,
        pack_origin(uid_from_bytes(event.uid), stamp.at, seq),
        event.serial,
        state.share_details(details),
        highest_version_number=namespace.used_version_numbers.get(event.key.name, 0),
    )
    state.set_item(namespace.subjects, event.key.name, subject)
    if state.by_serial is not None:
        state.set_item(state.by_serial, event.serial, subject)
    state.change(state, serial=event.serial)


def _subject_changed(state: State, event: ev.SubjectChanged, stamp: ev.EventMetadata, seq: int) -> None:
    _set_description(
        state,
        _current_incarnation(state, event.key),
        event,
        stamp,
        ("description", "labels", "dialect_data", "default_version"),
    )


def _subject_closed(state: State, event: ev.IncarnationEnded, stamp: ev.EventMetadata, seq: int) -> None:
    subject = _current_incarnation(state, event.key)
    _change_details(state, subject, closed=True)
    for version in subject.versions:
        _remove_referrer(state, version)
        _change_version_state(state, version, VersionState.ARCHIVED)
    state.append_to(state.closed, subject)
    _forget_subject(state, event.key)


def _set_description(
    state: State, target: Namespace | Subject, event: Any, stamp: ev.EventMetadata, names: tuple[str, ...]
) -> None:
    described = {name: getattr(event, name) for name in names}
    if isinstance(target, Subject):
        _change_details(state, target, changed=stamp.at, **described)
        state.change(target, epoch=target.epoch + 1)
    else:
        state.change(target, epoch=target.epoch + 1, changed=stamp.at, **described)


def _change_details(state: State, subject: Subject, **values: Any) -> None:
    state.change(subject, details=state.share_details(replace(subject.details, **values)))


def _change_version_state(state: State, version: Version, life: VersionState) -> None:
    state.change(version, details=state.share_version_details(replace(version.details, state=life)))


def _forget_subject(state: State, key: SubjectKey) -> None:
    namespace = state.namespaces[key.namespace]
    subject = namespace.subjects[key.name]
    state.set_item(namespace.incarnations, key.name, subject.incarnation)
    if subject.numbering is Numbering.NEVER_RESTART or key.name in namespace.used_version_numbers:
        used = max(subject.highest_version_number, namespace.used_version_numbers.get(key.name, 0))
        state.set_item(namespace.used_version_numbers, key.name, used)
    state.remove_item(namespace.subjects, key.name)
    state.remove_item(namespace.settings, key.name)
    state.remove_item(namespace.modes, key.name)


# --- versions -------------------------------------------------------------------------------------------------------


def _version_registered(state: State, event: ev.VersionRegistered, stamp: ev.EventMetadata, seq: int) -> None:
    namespace = state.namespaces[event.key.namespace]
    subject = namespace.subjects[event.key.name]
    schema = _intern_entry(state, namespace, event, seq)
    origin = pack_origin(uid_from_bytes(event.uid), stamp.at if event.at is None else event.at, seq)
    details = VersionDetails(
        event.version_number,
        event.kind_version,
        policy=event.policy and state.intern_value(event.policy),
        attributes=_version_attributes(state, event, stamp),
    )
    version = Version(
        origin=subject.origin if subject.origin == origin else origin,
        kind_or_type=_share_kind(state, subject, schema, event),
        schema=schema,
        subject=subject,
        details=state.share_version_details(details),
        older_version=schema.newest_version,
    )
    state.touch(schema)
    schema.newest_version = version
    kind_before = subject.kind
    rival = find_version(subject, event.version_number)
    if rival is not None:
        _purge_versions(state, subject, [rival])
    _insert_version(state, subject, version, kind_before)
    for reference in schema.attachments.references:
        state.add_referrer((reference.namespace, reference.subject, reference.version_number), version)
    if state.by_uid is not None:
        state.set_item(state.by_uid, version.uid, version)
    _count_for_creator(state, version, 1)
    if state.by_origin is not None and event.origin_uri:
        earlier = state.by_origin.get(event.origin_uri, ())
        state.set_item(state.by_origin, event.origin_uri, (*earlier, version))
    replaced = set(event.replaces) - {event.version_number}
    if replaced:
        _purge_versions(state, subject, [row for row in subject.versions if row.version_number in replaced])


def _intern_entry(state: State, namespace: Namespace, event: ev.VersionRegistered, seq: int) -> SchemaEntry:
    known = namespace.schema_entries.get(event.schema_id)
    if known is not None:
        return known
    content = _intern_content(state, event, seq)
    schema = SchemaEntry(
        namespace.name, event.schema_id, content, _intern_attachments(state, event), older_entry=content.newest_entry
    )
    state.touch(content)
    content.newest_entry = schema
    state.set_item(namespace.schema_entries, event.schema_id, schema)
    if event.schema_id > namespace.highest_schema_id:
        state.touch(namespace)
        namespace.highest_schema_id = event.schema_id
    return schema


def _intern_content(state: State, event: ev.VersionRegistered, seq: int) -> Content:
    """Return the content of the text in its format.

    Old logs did not distinguish texts by format. They hold a text once for all formats.
    """
    first = state.contents.get(event.sha)
    known = next((row for row in list_formats_of_text(first) if row.format == event.format), None)
    if first is not None and (known is not None or event.text is None):
        return known or first
    loose = UnpackedText(event.text, event.sha, pack_digests(event.digests), seq)
    format_and_twin: str | FormatAndTwin = state.intern_value(event.format)
    if first is not None and first.same_text_in_other_format is not None:
        format_and_twin = FormatAndTwin(event.format, first.same_text_in_other_format)
    content = Content(state.packed_texts, loose, format_and_twin)
    if first is None:
        state.set_item(state.contents, event.sha, content)
    else:
        state.change(first, format_and_twin=first.join_format(content))
    state.keep_unpacked(content)
    state.change(state, text_bytes=state.text_bytes + len(event.text or b""))
    if state.by_digest is not None:
        for key in digest_keys(loose.digests):
            state.set_item(state.by_digest, key, (*state.by_digest.get(key, ()), content))
    return content


def _intern_attachments(state: State, event: ev.VersionRegistered) -> Attachments:
    if event.metadata is None and event.rule_set is None:
        return state.intern_value(Attachments(event.references)) if event.references else NO_ATTACHMENTS
    return Attachments(event.references, event.metadata, event.rule_set)


def _share_kind(state: State, subject: Subject, schema: SchemaEntry, event: ev.VersionRegistered) -> SchemaKind | str:
    """Return the kind, or its type, as the object that its subject or another version of this schema already has.

    Most subjects have a type of their own, so a table of all types would take more memory than it saves.
    """
    is_plain = event.format == schema.content.format and not event.custom_format
    kind = event.type if is_plain else SchemaKind(event.format, event.type, event.custom_format)
    versions = subject.versions
    others = (schema.newest_version, versions[-1] if versions else None, versions[0] if versions else None)
    known = (other.kind_or_type for other in others if other is not None)
    return next((each for each in known if each == kind), kind if isinstance(kind, str) else state.intern_value(kind))


def _version_attributes(state: State, event: ev.VersionRegistered, stamp: ev.EventMetadata) -> VersionAttributes | None:
    plain = not (event.description or event.labels or event.media_type or event.origin_uri)
    if plain and event.ancestor is None and event.dialect_data is None:
        return state.intern_value(VersionAttributes(created_by=stamp.actor)) if stamp.actor else None
    extra = VersionAttributes(
        description=event.description,
        labels=event.labels,
        media_type=event.media_type,
        origin_uri=event.origin_uri,
        created_by=stamp.actor,
        ancestor=event.ancestor,
        dialect_data=event.dialect_data,
    )
    shared = event.labels is None and event.dialect_data is None and not event.origin_uri
    return state.intern_value(extra) if shared else extra


def _insert_version(state: State, subject: Subject, version: Version, kind_before: SchemaKind | None) -> None:
    """Add a version to a subject whose kind was kind_before, None if it had no version."""
    rows = subject.stored_versions
    state.touch(subject)
    if not rows:
        subject.stored_versions = version
    elif isinstance(rows, Version):
        subject.stored_versions = sorted([rows, version], key=lambda row: row.version_number)
    elif rows[-1].version_number < version.version_number:
        state.append_to(rows, version)
    else:
        subject.stored_versions = sorted([*rows, version], key=lambda row: row.version_number)
    if kind_before is not None and subject.highest_kind_versions is None and kind_before != version.kind:
        _change_details(state, subject, highest_kind_versions={kind_before: subject.highest_version_number})
    if subject.highest_kind_versions is not None:
        high = max(subject.highest_kind_versions.get(version.kind, 0), version.kind_version)
        state.set_item(subject.highest_kind_versions, version.kind, high)
    subject.highest_version_number = max(subject.highest_version_number, version.version_number)
    subject.epoch += 1


def _versions_retired(state: State, event: ev.VersionsSoftDeleted, stamp: ev.EventMetadata, seq: int) -> None:
    subject = _current_incarnation(state, event.key)
    for version_number in event.version_numbers:
        version = find_version(subject, version_number)
        if version is not None:
            _change_version_state(state, version, VersionState.SOFT_DELETED)
    _clear_default_version(state, subject, event.version_numbers)
    _change_details(state, subject, changed=stamp.at)
    state.change(subject, epoch=subject.epoch + 1)


def _clear_default_version(state: State, subject: Subject, version_numbers: Container[int]) -> None:
    """Clear the default version if it is deleted, so that the newest version takes its place."""
    if subject.default_version in version_numbers:
        _change_details(state, subject, default_version=None)


def _versions_purged(state: State, event: ev.VersionsPurged, stamp: ev.EventMetadata, seq: int) -> None:
    subject = _current_incarnation(state, event.key)
    numbers = set(event.version_numbers)
    _purge_versions(state, subject, [version for version in subject.versions if version.version_number in numbers])
    _change_details(state, subject, changed=stamp.at)
    if not subject.versions:
        _forget_subject(state, event.key)
        if state.by_serial is not None:
            state.remove_item(state.by_serial, subject.serial)
    elif subject.numbering is Numbering.CONTINUE:
        state.change(subject, highest_version_number=subject.versions[-1].version_number, epoch=subject.epoch + 1)
        _recount_kinds(state, subject)


def _recount_kinds(state: State, subject: Subject) -> None:
    if subject.highest_kind_versions is None:
        return
    high: dict[SchemaKind, int] = {}
    for version in subject.versions:
        high[version.kind] = max(high.get(version.kind, 0), version.kind_version)
    _change_details(state, subject, highest_kind_versions=high)


def _purge_versions(state: State, subject: Subject, going: list[Version]) -> None:
    """Remove versions, in ascending order, from their subject and from all indexes."""
    numbers = {version.version_number for version in going}
    left = [version for version in subject.versions if version.version_number not in numbers]
    state.change(subject, stored_versions=left if len(left) > 1 else left[0] if left else None)
    _clear_default_version(state, subject, numbers)
    # Newest first, because the versions of a schema are chained that way: each one is found at once.
    for version in reversed(going):
        _count_for_creator(state, version, -1)
        _remove_referrer(state, version)
        _remove_origin(state, version)
        _remove_from_entry(state, version)
        if state.by_uid is not None:
            state.remove_item(state.by_uid, version.uid)


def _count_for_creator(state: State, version: Version, number: int) -> None:
    """Add a version to the usage of its creator (1), or remove it (-1)."""
    if state.by_creator is None:
        return
    creator = find_creator(version)
    usage = state.by_creator.get(creator, CreatorUsage())
    length = number * state.get_text_length(version.content)
    state.set_item(state.by_creator, creator, CreatorUsage(usage.versions + number, usage.text_bytes + length))


def _remove_referrer(state: State, version: Version) -> None:
    for reference in version.schema.attachments.references:
        key = (reference.namespace, reference.subject, reference.version_number)
        left = [row for row in state.referrers.get(key, ()) if row is not version]
        if left:
            state.set_item(state.referrers, key, left)
        else:
            state.remove_item(state.referrers, key)


def _remove_origin(state: State, version: Version) -> None:
    """Remove a purged version from the index of origin URIs. Other versions with its URI stay."""
    uri = version.attributes.origin_uri if version.attributes is not None else None
    if state.by_origin is None or not uri:
        return
    left = tuple(row for row in state.by_origin.get(uri, ()) if row is not version)
    if left:
        state.set_item(state.by_origin, uri, left)
    else:
        state.remove_item(state.by_origin, uri)


def _remove_from_entry(state: State, version: Version) -> None:
    """Remove the version from its schema id.

    The schema id is removed with its last version. The content is removed with its last schema id.
    """
    schema = version.schema
    if schema.newest_version is version:
        state.change(schema, newest_version=version.older_version)
    else:
        before = schema.newest_version
        while before is not None and before.older_version is not version:
            before = before.older_version
        if before is not None:
            state.change(before, older_version=version.older_version)
    if schema.newest_version is not None:
        return
    state.remove_item(state.namespaces[schema.namespace].schema_entries, schema.schema_id)
    state.change(state, purges=state.purges + 1)
    content = schema.content
    rest = [other for other in list_entries(content) if other is not schema]
    for position, other in enumerate(rest):
        state.change(other, older_entry=rest[position + 1] if position + 1 < len(rest) else None)
    state.change(content, newest_entry=rest[0] if rest else None)
    if not rest:
        _remove_content(state, content)
        state.change(state, text_bytes=state.text_bytes - len(state.get_text(content)))
        if state.by_digest is not None:
            _remove_digests(state, state.by_digest, content)
        if not state.is_drafting:
            _erase_text(state, content)


def _remove_content(state: State, content: Content) -> None:
    """Remove a content from the table of texts. The same text in other formats stays."""
    first = state.contents[content.sha]
    if first is not content:
        before = next(row for row in list_formats_of_text(first) if row.same_text_in_other_format is content)
        state.change(before, format_and_twin=before.join_format(content.same_text_in_other_format))
    elif content.same_text_in_other_format is not None:
        state.set_item(state.contents, content.sha, content.same_text_in_other_format)
    else:
        state.remove_item(state.contents, content.sha)


def _remove_digests(state: State, index: dict[bytes, tuple[Content, ...]], content: Content) -> None:
    for key in digest_keys(state.get_digests(content)):
        left = tuple(other for other in index.get(key, ()) if other is not content)
        if left:
            state.set_item(index, key, left)
        else:
            state.remove_item(index, key)


def _erase_text(state: State, content: Content) -> None:
    seq, sha = state.get_seq(content), content.sha
    if isinstance(content.text_or_handle, int):
        state.packed_texts.drop_text(content.text_or_handle)
    content.text_or_handle = UnpackedText(None, sha, seq=seq)
    state.erased.append(ErasedText(seq, sha))


# --- settings, modes, codecs, encodings, bindings, collections, rulesets ---------------------------------------------


def _get_or_create_namespace(state: State, name: str, at: int) -> Namespace:
    """Return the namespace, which the first event about it creates."""
    namespace = state.namespaces.get(name)
    if namespace is None:
        namespace = Namespace(name, at)
        state.set_item(state.namespaces, name, namespace)
    return namespace


def _current_incarnation(state: State, key: SubjectKey) -> Subject:
    """Return the present incarnation of a subject."""
    return state.namespaces[key.namespace].subjects[key.name]


def _settings_changed(state: State, event: ev.SettingsChanged, stamp: ev.EventMetadata, seq: int) -> None:
    """Set the settings of a level."""
    if event.level.namespace is None:
        state.change(state, settings=event.settings)
        return
    table = _get_or_create_namespace(state, event.level.namespace, stamp.at).settings
    if event.settings is None:
        state.remove_item(table, settings_slot(event.level))
    else:
        state.set_item(
            table, settings_slot(event.level), replace(event.settings, policy=state.intern_value(event.settings.policy))
        )


def _mode_changed(state: State, event: ev.ModeChanged, stamp: ev.EventMetadata, seq: int) -> None:
    """Set the mode of a level."""
    if event.level.namespace is None:
        state.change(state, mode=event.mode)
        return
    table = _get_or_create_namespace(state, event.level.namespace, stamp.at).modes
    if event.mode is None:
        state.remove_item(table, settings_slot(event.level))
    else:
        state.set_item(table, settings_slot(event.level), event.mode)


def _codec_added(state: State, event: ev.CodecAdded, stamp: ev.EventMetadata, seq: int) -> None:
    """Add a codec to a subject."""
    subject = _current_incarnation(state, event.key)
    _change_details(state, subject, codecs={**(subject.codecs or {}), event.name: event.properties})
    state.change(subject, epoch=subject.epoch + 1)


def _encoding_assigned(state: State, event: ev.EncodingAssigned, stamp: ev.EventMetadata, seq: int) -> None:
    """Add the next encoding id of a subject."""
    subject = _current_incarnation(state, event.key)
    if subject.encodings is None:
        _change_details(state, subject, encodings=[])
    assert subject.encodings is not None
    for _ in range(event.encoding - len(subject.encodings) - 1):
        state.append_to(subject.encodings, SKIPPED_ENCODING)
    state.append_to(subject.encodings, (uid_from_bytes(event.version), event.codec))


def _binding_added(state: State, event: ev.BindingAdded, stamp: ev.EventMetadata, seq: int) -> None:
    """Add a binding, or replace one."""
    _remove_from_index(state, event.binding.key)
    if state.by_place is not None:
        for place in event.binding.index_keys:
            state.set_item(state.by_place, place, (*state.by_place.get(place, ()), event.binding))
    state.set_item(state.bindings, event.binding.key, event.binding)


def _binding_removed(state: State, event: ev.BindingRemoved, stamp: ev.EventMetadata, seq: int) -> None:
    """Remove a binding."""
    _remove_from_index(state, event.key)
    state.remove_item(state.bindings, event.key)


def _remove_from_index(state: State, key: tuple[str, str, str, str]) -> None:
    known = state.bindings.get(key)
    if known is None or state.by_place is None:
        return
    for place in known.index_keys:
        left = tuple(row for row in state.by_place.get(place, ()) if row.key != key)
        if left:
            state.set_item(state.by_place, place, left)
        else:
            state.remove_item(state.by_place, place)


def _items_changed(state: State, event: ev.ItemsChanged, stamp: ev.EventMetadata, seq: int) -> None:
    """Change documents of a collection."""
    if event.collection not in state.collections:
        state.set_item(state.collections, event.collection, Collection())
    collection = state.collections[event.collection]
    for key, value in event.changes:
        if value is None:
            state.remove_item(collection.items, key)
        else:
            state.set_item(collection.items, key, value)
    state.change(collection, revision=collection.revision + 1)


def _ruleset_adopted(state: State, event: ev.RulesetAdopted, stamp: ev.EventMetadata, seq: int) -> None:
    """Set the version of a ruleset that decides."""
    state.set_item(state.rulesets, (event.format, event.name), event.version)


def _ids_skipped(state: State, event: ev.IdsSkipped, stamp: ev.EventMetadata, seq: int) -> None:
    """Skip ids where ids exist already. Namespaces and subjects without ids will begin after the skipped ones."""
    state.change(
        state,
        serial=state.serial + event.schema_ids,
        skipped_schema_ids=state.skipped_schema_ids + event.schema_ids,
        skipped_numbers=state.skipped_numbers + event.numbers,
    )
    for namespace in state.namespaces.values():
        if namespace.highest_schema_id:
            highest = min(namespace.highest_schema_id + event.schema_ids, MAX_INT32)
            state.change(namespace, highest_schema_id=highest)
        for subject in namespace.subjects.values():
            if subject.encodings:
                _change_details(state, subject, encodings=[*subject.encodings, *[SKIPPED_ENCODING] * event.numbers])
            if subject.numbering is not Numbering.CONTINUE and subject.highest_version_number:
                state.change(subject, highest_version_number=subject.highest_version_number + event.numbers)


_FOLDS: dict[type, Callable[[State, Any, ev.EventMetadata, int], None]] = {
    ev.NamespaceCreated: _space_created,
    ev.NamespaceChanged: _space_changed,
    ev.NamespaceDeleted: _space_deleted,
    ev.SubjectCreated: _subject_created,
    ev.SubjectChanged: _subject_changed,
    ev.IncarnationEnded: _subject_closed,
    ev.VersionRegistered: _version_registered,
    ev.VersionsSoftDeleted: _versions_retired,
    ev.VersionsPurged: _versions_purged,
    ev.SettingsChanged: _settings_changed,
    ev.ModeChanged: _mode_changed,
    ev.CodecAdded: _codec_added,
    ev.EncodingAssigned: _encoding_assigned,
    ev.BindingAdded: _binding_added,
    ev.BindingRemoved: _binding_removed,
    ev.ItemsChanged: _items_changed,
    ev.RulesetAdopted: _ruleset_adopted,
    ev.IdsSkipped: _ids_skipped,
}
