"""Registration: the one command that every dialect has, in a fixed order of steps.

Look-up of an equal version → mode → conditions → references → policy → numbers → events. The look-up comes before the
mode, so that a client can register an existing schema again while a subject is read-only.
"""

from __future__ import annotations

import hashlib

from msgspec.structs import replace

from stele.core import queries
from stele.core.commands import CompatibilityCheck, Equality, RegisterSchema, Registration
from stele.core.compatibility_requests import Verdicts
from stele.core.decide.compatibility import require_compatible
from stele.core.decide.decision import (
    Decision,
    bind_events,
    creation_event,
    merge_dialect_data,
    read_only_error,
    require_latest,
    require_writable,
)
from stele.core.digests import digest_key, digest_keys, pack_digests
from stele.core.events import Event, EventMetadata, SettingsChanged, SubjectChanged, VersionRegistered
from stele.core.metadata import DataRuleSet
from stele.core.model import (
    LATEST_TIME,
    MAX_INT32,
    Attachments,
    Mode,
    Numbering,
    SchemaDocument,
    SchemaEntry,
    Settings,
    SettingsLevel,
    Subject,
    SubjectKey,
    Version,
    VersionState,
)
from stele.core.policy import Policy
from stele.core.state import State, uid_from_bytes
from stele.core.traversal import find_version, list_versions_in_subject, next_kind_version
from stele.errors import (
    AlreadyExists,
    FormatMismatch,
    IdTaken,
    InUse,
    InvalidRequest,
    InvalidVersion,
    PreconditionFailed,
    SubjectNotFound,
    TooLarge,
)


def register_schema(state: State, command: RegisterSchema, stamp: EventMetadata, verdicts: Verdicts) -> Decision:
    """Register a document, or return its existing registration."""
    key = command.key
    subject = state.find_subject(key)
    importing = _is_importing(state, key)
    document, attachments = _fill_from_latest(state, command, importing=importing)
    same = None if command.uid is not None else _find_equal(state, command, document, attachments)
    if same is not None and importing:
        same = _same_schema_at(subject, same, command.version_number)
    if same is not None and _is_repetition(command, same, importing=importing):
        events = (*_policy_events(state, command, subject), *_description_events(state, command, subject))
        return Decision(events, _existing_registration(key, same))
    if importing:
        _require_importable(state, command, document, attachments)
        _require_new_replica(state, command)
    else:
        _require_writable(state, command, subject)
    _require_fitting(state, command, subject, document)
    queries.resolve_references(
        state, attachments.references, queries.ACTIVE_OR_SOFT_DELETED if importing else queries.ACTIVE_ONLY
    )
    policy = command.policy if command.policy is not None else _effective_policy(state, command, subject)
    if not importing and command.check is CompatibilityCheck.POLICY:
        require_compatible(state, command, document, attachments, policy, verdicts)
    return _register_new(state, command, stamp, document, attachments, policy)


# --- what is registered ---------------------------------------------------------------------------------------------


def _fill_from_latest(state: State, command: RegisterSchema, *, importing: bool) -> tuple[SchemaDocument, Attachments]:
    """Return the document, by default the one of the newest version, and its completed attachments.

    Attachments of an import were completed at the source, so nothing is added to them.
    """
    own = Attachments(
        command.references, command.metadata.in_stored_order() if command.metadata else None, command.rule_set or None
    )
    document = command.document
    if document is None:
        before = queries.latest_version(state.find_subject(command.key))
        if before is None:
            raise InvalidRequest("Empty schema")
        text = state.get_text(before.content)
        schema_kind = before.kind
        document = SchemaDocument(
            text, before.content.sha, schema_kind.format, schema_kind.type, custom_format=schema_kind.custom_format
        )
        own = Attachments(before.schema.attachments.references, own.metadata, own.rule_set)
    attachments = own if importing else queries.inherit_attachments(state, command.key, own)
    if isinstance(attachments.rule_set, DataRuleSet):
        attachments.rule_set.validate()
    return document, attachments


def _find_equal(
    state: State, command: RegisterSchema, document: SchemaDocument, attachments: Attachments
) -> Version | None:
    if command.origin_uri is not None:
        return _find_by_origin(state, command, document)
    equality, digest = command.equality, b""
    if equality is Equality.DIGEST:
        value = document.digests.get(command.equality_digest)
        if value is None:  # A format without that digest: only the texts can be compared.
            equality = Equality.TEXT
        else:
            digest = digest_key(command.equality_digest, value)
    return queries.find_equal_version(
        state,
        command.key,
        document.sha,
        attachments,
        equality=equality,
        digest=digest,
        kind=document.kind,
        media_type=command.media_type,
    )


def _find_by_origin(state: State, command: RegisterSchema, document: SchemaDocument) -> Version | None:
    """Return the active version that has the origin URI of the command.

    Raises `AlreadyExists` if that version is another schema, even if it is deleted: an assigned URI never names another
    document later.
    """
    there = queries.find_last_version_by_origin(state, command.origin_uri or "")
    if there is None:
        return None
    kind = there.attributes.media_type if there.attributes is not None else ""
    identity = (there.subject.key, there.content.sha, there.kind.format, there.kind.custom_format, kind)
    if identity != (command.key, document.sha, document.format, document.custom_format, command.media_type):
        word = "another" if there.state is VersionState.ACTIVE else "a deleted"
        raise AlreadyExists(f"'{command.origin_uri}' is the name of {word} version")
    return there if there.state is VersionState.ACTIVE else None


def _existing_registration(key: SubjectKey, version: Version) -> Registration:
    return Registration(key, version.version_number, version.schema.schema_id, version.uid, created=False)


# --- importing ------------------------------------------------------------------------------------------------------


def _is_importing(state: State, key: SubjectKey) -> bool:
    return queries.mode_for(state, SettingsLevel(*key)) is Mode.IMPORT


def _is_repetition(command: RegisterSchema, same: Version, *, importing: bool) -> bool:
    """Return whether a command repeats a registration: the same schema and id, in an import the same number, too."""
    if command.schema_id not in (None, same.schema.schema_id):
        return False
    return not importing or command.version_number in (None, same.version_number)


def _same_schema_at(subject: Subject | None, same: Version, version_number: int | None) -> Version:
    """Return the existing version with this number if its schema is the same, else `same`.

    An import may have registered the same schema several times.
    """
    there = find_version(subject, version_number) if subject is not None and version_number else None
    return there if there is not None and there.schema is same.schema and there.state is VersionState.ACTIVE else same


def _require_importable(
    state: State, command: RegisterSchema, document: SchemaDocument, attachments: Attachments
) -> None:
    level = SettingsLevel(*command.key)
    if command.schema_id is None:
        raise read_only_error(level, "not in read-write mode")
    if not 0 < command.schema_id <= MAX_INT32:
        raise InvalidRequest(f"id {command.schema_id} is not between 1 and {MAX_INT32}")
    if command.at is not None and not 0 <= command.at < LATEST_TIME:
        raise InvalidRequest(f"{command.at} is not a time in milliseconds since 1970")
    namespace = state.find_namespace(command.key.namespace)
    holder = None if namespace is None else namespace.schema_entries.get(command.schema_id)
    if holder is not None and (holder.content.sha != document.sha or holder.attachments != attachments):
        raise IdTaken(command.schema_id, command.key.namespace)
    subject = state.find_subject(command.key)
    taken = find_version(subject, command.version_number) if subject is not None and command.version_number else None
    if taken is not None and queries.list_referrers(
        state, command.key, taken.version_number, queries.ACTIVE_OR_SOFT_DELETED
    ):
        raise InUse(command.key.name, taken.version_number)


def _require_new_replica(state: State, command: RegisterSchema) -> None:
    """Raise `AlreadyExists` if a version has the uid, the URI or the number of a replica."""
    if command.uid is None:
        return
    if command.version_number is None:
        raise InvalidRequest("a replica must have the version number of its original")
    if queries.find_version_by_uid(state, uid_from_bytes(command.uid)) is not None:
        raise AlreadyExists(f"a version with the uid {command.uid.hex()} already exists")
    named = queries.find_version_by_origin(state, command.origin_uri) if command.origin_uri else None
    if named is not None:
        raise AlreadyExists(f"'{command.origin_uri}' is the name of another version")
    subject = state.find_subject(command.key)
    if subject is not None and find_version(subject, command.version_number) is not None:
        raise AlreadyExists(f"version {command.version_number} of '{command.key.name}' is another one")


# --- gates ----------------------------------------------------------------------------------------------------------


def _require_writable(state: State, command: RegisterSchema, subject: Subject | None) -> None:
    level = SettingsLevel(*command.key)
    require_writable(state, level)
    if command.schema_id is not None or command.at is not None or command.uid is not None:
        raise read_only_error(level, "not in import mode")
    expected = queries.next_version_number(state, command.key)
    if command.version_number not in (None, expected):
        raise InvalidRequest(
            f"Version is not one more than previous version: expected {expected}, got {command.version_number}"
        )
    if expected > MAX_INT32:
        raise TooLarge(f"subject '{command.key.name}' has no version number left")


def _require_fitting(state: State, command: RegisterSchema, subject: Subject | None, document: SchemaDocument) -> None:
    if command.version_number is not None and not 0 < command.version_number <= MAX_INT32:
        raise InvalidVersion(str(command.version_number))
    if subject is None and not command.defaults.create:
        raise SubjectNotFound(command.key.name)
    require_latest(subject, command.expected_latest)
    _require_no_other_spelling(state, command, subject, document)
    namespace = state.find_namespace(command.key.namespace)
    own = subject if subject is not None else command.defaults
    for gate, custom_format in ((own.format, own.custom_format), (namespace.format if namespace else "", "")):
        if (gate and gate != document.format) or (custom_format and custom_format != document.custom_format):
            there = document.custom_format or document.format
            raise FormatMismatch(f"'{command.key.name}' takes {custom_format or gate} schemas, not {there}")


def _require_no_other_spelling(
    state: State, command: RegisterSchema, subject: Subject | None, document: SchemaDocument
) -> None:
    """Raise `PreconditionFailed` for a later version that may be the same schema, which the caller has not compared."""
    compared_seq = command.compared_seq
    if compared_seq is None or subject is None or not subject.versions or subject.versions[-1].seq <= compared_seq:
        return
    digests = set(digest_keys(pack_digests(document.digests)))
    for row in reversed(subject.versions):
        if row.seq <= compared_seq:
            return
        if row.kind.format != document.format or row.state is not VersionState.ACTIVE:
            continue
        has_references = row.schema.attachments.references and not command.references
        if has_references or not digests.isdisjoint(digest_keys(state.get_digests(row.content))):
            raise PreconditionFailed(f"version {row.version_number} was registered meanwhile")


def _effective_policy(state: State, command: RegisterSchema, subject: Subject | None) -> Policy:
    """Return the policy in force.

    For a subject that does not exist yet, the default of its dialect applies unless it has a policy of its own.
    """
    own = state.settings_at(SettingsLevel(*command.key))
    if subject is None and command.defaults.policy is not None and (own is None or own.policy is None):
        return command.defaults.policy
    return queries.policy_for(state, command.key)


def _policy_events(state: State, command: RegisterSchema, subject: Subject | None) -> tuple[Event, ...]:
    """Return the event that sets the command's policy on the subject, if another one is in force. Raises `ReadOnly`."""
    if command.policy is None or command.policy == _effective_policy(state, command, subject):
        return ()
    level = SettingsLevel(*command.key)
    require_writable(state, level)
    before = state.settings_at(level) or Settings()
    return (SettingsChanged(level, replace(before, policy=command.policy)),)


def _description_events(state: State, command: RegisterSchema, subject: Subject | None) -> tuple[Event, ...]:
    """Return the event that updates the subject's description, if the command changes it. Raises `ReadOnly`."""
    if command.subject_update is None:
        return ()
    before = (subject.description, subject.labels, subject.dialect_data, subject.default_version) if subject else ("",)
    event = SubjectChanged(command.key, *before)
    description = (
        event.description if command.subject_update.description is None else command.subject_update.description
    )
    after = replace(
        event,
        description=description,
        dialect_data=merge_dialect_data(event.dialect_data, command.subject_update.dialect_data),
    )
    if after == event:
        return ()
    require_writable(state, SettingsLevel(*command.key))
    return (after,)


# --- the events -----------------------------------------------------------------------------------------------------


def _register_new(
    state: State,
    command: RegisterSchema,
    stamp: EventMetadata,
    document: SchemaDocument,
    attachments: Attachments,
    policy: Policy,
) -> Decision:
    subject = state.find_subject(command.key)
    events: list[Event] = []
    if subject is None:
        events.append(creation_event(state, command.key, stamp, command.defaults))
    events.extend(_policy_events(state, command, subject))
    events.extend(_description_events(state, command, subject))
    namespace = state.find_namespace(command.key.namespace)
    if command.schema_id is not None:
        known = None if namespace is None else namespace.schema_entries.get(command.schema_id)
    else:
        known = queries.find_schema_id(state, command.key.namespace, document.sha, document.format, attachments)
    stored = queries.find_content(state, document.sha, document.format) is not None
    schema_id = command.schema_id or (
        known.schema_id if known is not None else _next_schema_id(state, command.key.namespace)
    )
    version_number = command.version_number or queries.next_version_number(state, command.key)
    registered = VersionRegistered(
        key=command.key,
        uid=command.uid or stamp.uid,
        version_number=version_number,
        kind_version=next_kind_version(subject, document.kind, version_number),
        schema_id=schema_id,
        sha=document.sha,
        format=document.format,
        type=document.type,
        custom_format=document.custom_format,
        text=None if stored else document.text,
        digests={} if stored else dict(document.digests),
        references=attachments.references,
        metadata=attachments.metadata,
        rule_set=attachments.rule_set,
        policy=policy,
        replaces=_replaced_versions(state, command, known, version_number),
        description=command.description,
        labels=command.labels,
        media_type=command.media_type,
        origin_uri=command.origin_uri,
        ancestor=command.ancestor,
        dialect_data=command.dialect_data,
        at=command.at,
    )
    outcome = Registration(command.key, version_number, schema_id, uid_from_bytes(registered.uid), created=True)
    mine = (replace(binding, subject=command.key, version_number=version_number) for binding in command.bindings)
    return Decision((*events, registered, *(event for row in mine for event in bind_events(state, row))), outcome)


def _next_schema_id(state: State, space_name: str) -> int:
    namespace = state.find_namespace(space_name)
    highest = namespace.highest_schema_id if namespace is not None else 0
    schema_id = max(highest, state.skipped_schema_ids) + 1
    if schema_id > MAX_INT32:
        raise TooLarge(f"namespace '{space_name}' has no schema id left")
    return schema_id


def _replaced_versions(
    state: State, command: RegisterSchema, known: SchemaEntry | None, version_number: int
) -> tuple[int, ...]:
    """Return the numbers of the versions that a registration replaces.

    These are the version that has its number, which occurs only in an import, and earlier soft-deleted versions of the
    same schema. A soft-deleted version stays if another version refers to it, if the subject never reuses numbers, or
    if it has an encoding id: data may have been written with it. An import replaces no soft-deleted versions, because
    it lists them itself.
    """
    subject = state.find_subject(command.key)
    own = (version_number,) if subject is not None and find_version(subject, version_number) is not None else ()
    if known is None or command.equality is Equality.NEVER or _is_importing(state, command.key):
        return own
    if subject is None or subject.numbering is not Numbering.CONTINUE:
        return own
    encoded = {uid for uid, _ in subject.encodings or ()}
    retired = (
        row.version_number
        for row in list_versions_in_subject(subject, known)
        if row.state is VersionState.SOFT_DELETED
        and row.version_number < version_number
        and row.uid not in encoded
        and not queries.list_referrers(state, command.key, row.version_number, queries.ACTIVE_OR_SOFT_DELETED)
    )
    return (*retired, *own)


def make_document(text: bytes, format_name: str, type_name: str = "") -> SchemaDocument:
    """Return a document whose only digest is its SHA-256."""
    return SchemaDocument(text, hashlib.sha256(text).digest(), format_name, type_name)
