"""Operations on schemas that take several steps: finding, rendering, parsing and checking them.

`Operations` belongs to one request. `AppState` holds what all requests share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, TypeVar, cast

import msgspec
from litestar import Request
from litestar.types import Scope

from stele.apis.confluent import karapace
from stele.apis.confluent import models as api
from stele.apis.confluent.errors import FailedLookup, RefusedChange, RefusedText
from stele.apis.confluent.guid import GuidIndex
from stele.apis.confluent.known_lists import KnownLists
from stele.apis.confluent.metadata import equals_except_version_hint, find_reserved_name_violations
from stele.apis.confluent.names import (
    SubjectRef,
    parse_subject,
    parse_subject_key,
    parse_version,
    qualify_subject,
)
from stele.apis.confluent.options import ConfluentOptions
from stele.apis.confluent.profiles import TextStyle
from stele.apis.confluent.translate import (
    RenderingOptions,
    format_messages,
    is_compiled,
    is_descriptor,
    minify_json,
    parse_schema_type,
    references_in,
    rule_set_in,
)
from stele.apis.http.dependencies import depend_on_names, depend_on_subject
from stele.apis.http.requests import read_body, read_bytes
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.commands import Command, Outcome, RegisterSchema
from stele.core.compatibility_requests import SchemaSource
from stele.core.digests import KINDS, digest_key
from stele.core.findings import Finding
from stele.core.model import (
    Attachments,
    Mode,
    Reference,
    SchemaDocument,
    SchemaEntry,
    SettingsLevel,
    SubjectKey,
    Version,
    VersionState,
)
from stele.core.policy import ALL_VERSIONS
from stele.core.ports import TextForm
from stele.core.state import State
from stele.core.traversal import list_versions_of_entry
from stele.errors import (
    ContentNotFound,
    MalformedSchema,
    SubjectNotFound,
    TooLarge,
    VersionNotFound,
)
from stele.service import collections
from stele.service.access import AccessControl
from stele.service.collections import Changes, Items
from stele.service.registry import Registry
from stele.service.schemas import PreparedSchema
from stele.service.usage import Usage

VIA = "confluent"
"""Name of this API in the audit trail."""

T = TypeVar("T")

_FEW_VERSIONS = 1000
"""Most versions of a subject that are scanned without interruption, in about a millisecond."""


class AppState(msgspec.Struct, frozen=True):
    """State that all requests share."""

    registry: Registry
    options: ConfluentOptions
    guids: GuidIndex
    usage: Usage
    lists: KnownLists


class SchemaDraft(msgspec.Struct, frozen=True):
    """The parsed schema of a request, before its registration."""

    prepared: PreparedSchema
    attachments: Attachments
    is_normalized: bool = False
    """Whether the text is the normalized one, so that differences of style are ignored."""

    @property
    def document(self) -> SchemaDocument:
        """The text as it would be stored."""
        return self.prepared.document


class Operations:
    """Serves one request for one caller."""

    def __init__(self, app_state: AppState, scope: Scope) -> None:
        self.registry = app_state.registry
        self.options = app_state.options
        self.profile = app_state.options.differences
        self.guids = app_state.guids
        self.usage = app_state.usage
        self.lists = app_state.lists
        self._scope = cast("MutableMapping[str, Any]", scope)

    def rendering_options(self, *, reference_format: str = "", find_tags: list[str] | None = None) -> RenderingOptions:
        """Return how this request asks for schemas to be shown."""
        return RenderingOptions(self.profile.has_guids, reference_format == "qualified", tuple(find_tags or ()))

    async def execute(self, command: Command, *, expects_change: bool = False) -> Outcome:
        """Carry out a command in the caller's name; see `Registry.execute`."""
        return await self.registry.execute(command, via=VIA, expects_change=expects_change)

    async def register(
        self, command: RegisterSchema, make_answer: Callable[[State, Version], T], *, expects_change: bool = False
    ) -> T:
        """Register a schema in the caller's name; see `Registry.register`."""
        _, answer = await self.registry.register(command, make_answer, via=VIA, expects_change=expects_change)
        return answer

    # --- documents beside the schemas -------------------------------------------------------------------------------

    async def read_items(self, collection: str) -> Items:
        """Return the documents of a collection."""
        return await collections.read_collection(self.registry, collection)

    async def edit_items(self, collection: str, change: Callable[[Items], tuple[Changes, T]]) -> T:
        """Change documents of a collection in the caller's name; see `collections.edit`."""
        return await collections.edit_collection(self.registry, collection, change, via=VIA)

    # --- finding ----------------------------------------------------------------------------------------------------

    async def resolve_subject(
        self, segment: str, context: str, operation: Operation = Operation.READ
    ) -> tuple[State, SubjectRef]:
        """Return the present state, and the subject that a path names; for an alias, its target.

        Raises `Forbidden` unless the caller may do `operation` with the subject.
        """
        state = await self.registry.fresh_state()
        subject_ref = _resolve_alias(state, segment, context)
        self.registry.access.require(operation, subject_resource(subject_ref.key))
        return state, subject_ref

    def resolve_across_contexts(
        self, state: State, requested: SubjectRef, lives: frozenset[VersionState]
    ) -> SubjectKey:
        """Return the requested key, or the same name in another context.

        Other contexts are searched for an unqualified name that the default context does not have. Subjects that the
        caller may not read are skipped.
        """
        if requested.is_qualified or has_versions(state, requested.key, lives):
            return requested.key
        for space in _other_namespaces(state, requested.key.namespace):
            key = SubjectKey(space, requested.key.name)
            if has_versions(state, key, lives) and self.registry.access.can_read(key):
                return key
        return requested.key

    async def find_version(self, segment: str, number: str, context: str, *, deleted: bool) -> tuple[State, Version]:
        """Return the present state and the version that a path names.

        Raises `SubjectNotFound`, `VersionNotFound`, `InvalidVersion`.
        """
        ordinal = parse_version(number)

        def look(state: State) -> tuple[State, Version]:
            lives = queries.ACTIVE_OR_SOFT_DELETED if deleted else queries.ACTIVE_ONLY
            subject_ref = _resolve_alias(state, segment, context)
            self.registry.access.require(Operation.READ, subject_resource(subject_ref.key))
            key = self.resolve_across_contexts(state, subject_ref, lives)
            if not has_versions(state, key, lives):
                raise SubjectNotFound(qualify_subject(key))
            return state, queries.get_version(state, key, ordinal, queries.ACTIVE_ONLY if ordinal is None else lives)

        return (
            look(await self.registry.fresh_state()) if ordinal is None else await self.registry.read_or_catch_up(look)
        )

    async def render_version(self, state: State, version: Version, style: str) -> str | None:
        """Return a version's text in another style; see `render_schema`."""
        return await self.render_schema(state, version.schema, style)

    async def render_schema(self, state: State, schema: SchemaEntry, style: str) -> str | None:
        """Return a schema's text in another style, or None.

        None means that the stored text is the answer: the style is the default, or the format does not have it. In the
        default style, a schema that is stored as serialized descriptors is printed.
        """
        default = style in {"", "default"}
        if default and not is_compiled(state, schema):
            return None
        if not default:
            self.registry.access.require_references(state, schema.attachments.references)
        content = schema.content
        fmt, parsed = await self.registry.parser.parse_registered(
            state, content.format, content.sha, schema.attachments.references
        )
        if default:
            return (await asyncio.to_thread(fmt.canonical, parsed, TextForm.PRINTED)).decode()
        return await asyncio.to_thread(fmt.render, parsed, style)

    def note_dependency(
        self, requested: SubjectRef, key: SubjectKey, request: api.RegisterSchemaRequest | None = None
    ) -> None:
        """Note that the answer depends on one subject alone, if it does.

        It does not if `key` is another subject than the requested one, or if the schema of `request` refers to other
        schemas.
        """
        if key == requested.key and not (request is not None and request.references):
            depend_on_subject(self._scope, key)

    def note_names(self) -> None:
        """Note that the answer depends on which subjects there are."""
        depend_on_names(self._scope)

    # --- drafting ---------------------------------------------------------------------------------------------------

    async def parse_draft(
        self,
        state: State,
        key: SubjectKey,
        request: api.RegisterSchemaRequest,
        *,
        normalize: bool,
        needs_digests: bool = True,
    ) -> SchemaDraft:
        """Parse the schema of a request. A schema that is only checked needs no digests.

        Raises `RefusedText`, `UnknownFormat`, `UnresolvedReference`, `TooLarge`.
        """
        settings = queries.settings_for(state, SettingsLevel(*key))
        importing = queries.mode_for(state, SettingsLevel(*key)) is Mode.IMPORT
        normalize = normalize or (bool(settings.normalize) and not importing)
        lenient = settings.validate_new_schemas is False or importing
        references = references_in(request.references, key.namespace)
        self.registry.access.require_references(state, references)
        if normalize:
            references = _normalize_references(references)
        if not (request.schema or "").strip():
            raise MalformedSchema("Empty schema")
        format_name = parse_schema_type(request.schema_type)
        text_style = None if normalize or is_descriptor(request) else self.profile.texts.get(format_name)
        text = (request.schema or "").encode()
        if text_style is TextStyle.MINIFIED:
            text = minify_json(text)
        try:
            prepared = await self.registry.parser.prepare_schema(
                state,
                format_name,
                text,
                references,
                form=None if text_style is not None else _text_form(request, normalize=normalize, importing=importing),
                strict=not lenient,
                checks_defaults=self.profile.checks_defaults,
                lax_imports=True,
                needs_digests=needs_digests,
            )
        except MalformedSchema as error:
            raise _refused_text(error, request) from None
        metadata = request.metadata.in_stored_order() if request.metadata is not None else None
        attachments = Attachments(prepared.references, metadata, rule_set_in(request.rule_set))
        return SchemaDraft(prepared, attachments, normalize)

    async def look_up(
        self, state: State, key: SubjectKey, request: api.RegisterSchemaRequest, *, normalize: bool, deleted: bool
    ) -> Version:
        """Return the version of a subject that has the schema of a request.

        Raises `SubjectNotFound`, `ContentNotFound` and what `parse_draft` raises. In profiles that look for the subject
        first, `FailedLookup` replaces `MalformedSchema`.
        """
        lives = queries.ACTIVE_OR_SOFT_DELETED if deleted else queries.ACTIVE_ONLY
        if self.profile.subject_first:
            require_visible(state, key, lives)
        elif not (request.schema or "").strip():
            require_visible(state, key, lives)
            raise ContentNotFound
        try:
            draft = await self.parse_draft(state, key, request, normalize=normalize)
        except MalformedSchema as error:
            raise FailedLookup(str(error)) if self.profile.subject_first else error from None
        require_visible(state, key, lives)
        version = await self.find_equivalent(state, key, draft, deleted=deleted)
        if version is None:
            raise ContentNotFound
        return version

    async def find_equivalent(
        self, state: State, key: SubjectKey, draft: SchemaDraft, *, deleted: bool
    ) -> Version | None:
        """Return the newest version that is equivalent to the draft, or None.

        Metadata and rules that the draft leaves out are not compared. The draft may contain what a version refers to.
        """
        lives = queries.ACTIVE_OR_SOFT_DELETED if deleted else queries.ACTIVE_ONLY
        exact = queries.find_equal_version(
            state, key, draft.document.sha, draft.attachments, kind=draft.document.kind, states=lives
        )
        if exact is not None:
            return exact
        own = draft.attachments
        for row in await self._list_similar(state, key, draft, lives):
            theirs = row.schema.attachments
            alike = own.metadata is None or equals_except_version_hint(own.metadata, row)
            if alike and own.rule_set in (None, theirs.rule_set) and await self._is_same_schema(state, draft, row):
                return row
        return None

    async def find_equal(
        self, state: State, key: SubjectKey, draft: SchemaDraft, rows: list[Version] | None = None
    ) -> Version | None:
        """Return the newest active version (of rows, if given) that is equal to the draft, or None.

        The version hint is ignored. The draft may contain what a version refers to.
        """
        exact = queries.find_equal_version(state, key, draft.document.sha, draft.attachments, kind=draft.document.kind)
        if exact is not None and (rows is None or exact in rows):
            return exact
        for row in await self._list_similar(state, key, draft, queries.ACTIVE_ONLY):
            alike = row.schema.attachments.rule_set == draft.attachments.rule_set
            alike = alike and equals_except_version_hint(draft.attachments.metadata, row)
            if alike and (rows is None or row in rows) and await self._is_same_schema(state, draft, row):
                return row
        return None

    async def _list_similar(
        self, state: State, key: SubjectKey, draft: SchemaDraft, lives: frozenset[VersionState]
    ) -> list[Version]:
        """Return versions that may be the draft in another spelling, newest first.

        Their text or one of its digests equals that of the draft, or they have references and the draft has none.
        """
        sha = draft.document.sha
        ids = queries.schemas_with_text(state, sha, draft.document.format)
        uses = [use for schema in ids for use in list_versions_of_entry(schema) if use.subject.key == key]
        rows = [use for use in uses if use.state in lives and not use.subject.is_closed]
        others = queries.list_versions(state.find_subject(key), lives)
        if not others:
            return []
        keys = [digest_key(kind, digest) for kind, digest in draft.document.digests.items() if kind in KINDS]

        def may_be_same(row: Version) -> bool:
            if row.content.sha == sha or row.kind.format != draft.document.format:
                return False
            if _same_references(draft, row):
                packed = state.get_digests(row.content)
                return any(key in packed for key in keys)
            return bool(row.schema.attachments.references) and not draft.attachments.references

        if len(others) <= _FEW_VERSIONS:
            rows.extend(filter(may_be_same, others))
        else:
            rows += [row async for row in self.registry.time_slices.iterate(others) if may_be_same(row)]
        return sorted(rows, key=lambda row: row.version_number, reverse=True)

    async def _is_same_schema(self, state: State, draft: SchemaDraft, row: Version) -> bool:
        theirs = row.schema.attachments.references
        if _same_references(draft, row):
            return row.content.sha == draft.document.sha or await self._compares_equal(state, draft, row)
        if draft.attachments.references or not theirs or row.kind.format != draft.document.format:
            return False
        try:
            resolved = await self.render_version(state, row, "resolved")
        except MalformedSchema:  # With its references inside it is nested too deep, so no text equals it.
            return False
        return resolved is not None and await asyncio.to_thread(_has_same_meaning, draft.prepared, resolved)

    async def _compares_equal(self, state: State, draft: SchemaDraft, row: Version) -> bool:
        """Return whether a version of the draft's format is the same schema, regardless of the order in its text."""
        parser, content, references = self.registry.parser, row.content, row.schema.attachments.references
        normalized = draft.is_normalized
        mine = draft.prepared.comparisons.get(normalized)
        if mine is None:
            mine = await parser.digest_prepared(draft.prepared, normalized=normalized)
        theirs = None if references else parser.find_digest(content.format, SchemaSource(content.sha), normalized)
        if theirs is None:
            theirs = await parser.digest_registered(
                state, content.format, content.sha, references, normalized=normalized
            )
        return mine == theirs

    # --- checking ---------------------------------------------------------------------------------------------------

    async def check_compatibility(
        self, key: SubjectKey, request: api.RegisterSchemaRequest, ordinal: int | None, *, normalize: bool
    ) -> list[str]:
        """Return messages why the schema of a request cannot be registered; empty if it can.

        With ordinal, the schema is compared with this version only.
        """
        state = await self.registry.fresh_state()
        draft = await self.parse_draft(state, key, request, normalize=normalize, needs_digests=False)
        attachments = queries.inherit_attachments(state, key, draft.attachments)
        findings: list[Finding] = []
        against: int | None = None
        try:
            for number in self._list_checked_versions(state, key, ordinal):
                findings, against = await self.registry.find_incompatibilities(
                    key,
                    draft.document,
                    attachments,
                    version_number=number,
                    ruleset=self.profile.rulesets.get(draft.document.format, ""),
                )
                if findings:
                    break
        except SubjectNotFound:
            raise VersionNotFound(ordinal or "latest") from None
        findings = findings or await self.find_reserved_name_violations(state, key, draft)
        return self.explain_findings(self.registry.state, key, findings, against) if findings else []

    def _list_checked_versions(self, state: State, key: SubjectKey, ordinal: int | None) -> list[int | None]:
        """Return the numbers of the versions that a check compares one by one, until one refuses.

        None in the list means the comparison that a registration makes.
        """
        if ordinal is None or not self.profile.all_when_transitive:
            return [ordinal]
        queries.get_version(state, key, ordinal)
        policy = queries.policy_for(state, key)
        if ALL_VERSIONS not in (policy.backward, policy.forward):
            return [ordinal]
        rows = queries.list_versions(state.find_subject(key))
        return [row.version_number for row in rows] if self.profile.oldest_first else [None]

    def explain_findings(
        self, state: State, key: SubjectKey, findings: Sequence[Finding], against: int | None
    ) -> list[str]:
        """Return the messages about findings against a version, in the wording of the profile."""
        if self.profile.is_karapace:
            return karapace.explain_findings(findings)
        return format_messages(state, key, findings, against)

    def refuse_change(
        self, state: State, key: SubjectKey, findings: Sequence[Finding], against: int | None
    ) -> RefusedChange:
        """Return the error of a registration that has these findings."""
        messages = self.explain_findings(state, key, findings, against)
        return RefusedChange(qualify_subject(key), findings, messages, queries.policy_for(state, key).nearest_name)

    async def find_reserved_name_violations(self, state: State, key: SubjectKey, draft: SchemaDraft) -> list[Finding]:
        """Return the violations of the level's `validateFields` by a draft; none if the draft is registered already."""
        level = SettingsLevel(*key)
        if not queries.settings_for(state, level).validate_fields or queries.mode_for(state, level) is Mode.IMPORT:
            return []
        attachments = queries.inherit_attachments(state, key, draft.attachments)
        if (
            queries.find_equal_version(state, key, draft.document.sha, attachments, kind=draft.document.kind)
            is not None
        ):
            return []
        fields = await asyncio.to_thread(draft.prepared.format.fields, draft.prepared.parsed)
        return find_reserved_name_violations(fields, attachments, queries.latest_version(state.find_subject(key)))


# --- what subjects and ids mean -------------------------------------------------------------------------------------


def _resolve_alias(state: State, segment: str, context: str) -> SubjectRef:
    """Return the subject that a segment names, or the target of its setting `alias`."""
    subject_ref = parse_subject(segment, context)
    settings = state.settings_at(SettingsLevel(*subject_ref.key))
    if settings is None or not settings.alias:
        return subject_ref
    return SubjectRef(parse_subject_key(settings.alias, subject_ref.key.namespace), is_qualified=True)


def _same_references(draft: SchemaDraft, row: Version) -> bool:
    theirs = row.schema.attachments.references
    return draft.attachments.references == (_normalize_references(theirs) if draft.is_normalized else theirs)


def _normalize_references(references: tuple[Reference, ...]) -> tuple[Reference, ...]:
    return tuple(sorted(dict.fromkeys(references), key=msgspec.structs.astuple))


def _text_form(request: api.RegisterSchemaRequest, *, normalize: bool, importing: bool) -> TextForm | None:
    """Return the form in which the text of a request is stored; None is the text as sent.

    In IMPORT mode a text is stored as sent, unless it is a serialized descriptor.
    """
    if normalize:
        return TextForm.NORMALIZED
    return None if importing and not is_descriptor(request) else TextForm.PRINTED


def has_versions(state: State, key: SubjectKey, lives: frozenset[VersionState]) -> bool:
    """Return whether a subject has a version in one of these states. The search starts at the newest version."""
    subject = state.find_subject(key)
    return subject is not None and any(row.state in lives for row in reversed(subject.versions))


def require_visible(state: State, key: SubjectKey, lives: frozenset[VersionState]) -> list[Version]:
    """Return the versions in one of these states, ascending. Raises `SubjectNotFound` if there are none."""
    rows = queries.list_versions(state.find_subject(key), lives)
    if not rows:
        raise SubjectNotFound(qualify_subject(key))
    return rows


def find_schema_by_id(
    state: State, gid: int, subject_ref: SubjectRef | None, access: AccessControl
) -> tuple[SchemaEntry, Version | None]:
    """Return the schema with an id, and the version of the requested subject that has it.

    An id belongs to a context: that of the subject, else the default one. If that context does not know the id and the
    subject is unqualified, other contexts that have the subject are searched. Schemas that the caller may not read are
    skipped. Raises `ContentNotFound`.
    """
    key = subject_ref.key if subject_ref is not None else SubjectKey("", "")
    space = state.find_namespace(key.namespace)
    schema = None if space is None else space.schema_entries.get(gid)
    if schema is not None and access.can_read_entry(schema):
        return schema, _newest_version_with(state, schema, key) if access.can_read(key) else None
    if subject_ref is not None and key.name and not subject_ref.is_qualified:
        for other in _other_namespaces(state, key.namespace):
            elsewhere = state.namespaces[other].schema_entries.get(gid)
            version = (
                _newest_version_with(state, elsewhere, SubjectKey(other, key.name)) if elsewhere is not None else None
            )
            if elsewhere is not None and version is not None and access.can_read(version.subject.key):
                return elsewhere, version
    raise ContentNotFound(gid)


def _newest_version_with(state: State, schema: SchemaEntry, key: SubjectKey) -> Version | None:
    """Return the newest version of a subject with that schema, preferably an active one."""
    rows = [
        row
        for row in queries.list_versions(state.find_subject(key), queries.ACTIVE_OR_SOFT_DELETED)
        if row.schema is schema
    ]
    return max(rows, key=lambda row: (row.state is VersionState.ACTIVE, row.version_number), default=None)


def _other_namespaces(state: State, space: str) -> Iterator[str]:
    return (name for name in sorted(state.namespaces) if name != space)


def _has_same_meaning(prepared: PreparedSchema, text: str) -> bool:
    """Return whether a schema without references is the same as another text, except for style."""
    fmt = prepared.format
    theirs = fmt.parse(text.encode(), {}, strict=False)
    return fmt.canonical(theirs, TextForm.NORMALIZED) == fmt.canonical(prepared.parsed, TextForm.NORMALIZED)


def _refused_text(error: MalformedSchema, request: api.RegisterSchemaRequest) -> RefusedText:
    references = [f"{{name='{r.name}', subject='{r.subject}', version={r.version}}}" for r in request.references or ()]
    return RefusedText(error, request.schema or "", references, request.schema_type or "AVRO")


# --- bodies -----------------------------------------------------------------------------------------------------------


async def read_first_value(request: Request[Any, Any, Any], shape: type[T]) -> T:
    """Return the first JSON value of a body; what follows it is ignored, as in Confluent's registry. See `read_body`.

    Source: docs/protocols/confluent.md#conventions
    """
    return await read_body(request, shape, only_first=True)


async def read_schema_body(operations: Operations, request: Request[Any, Any, Any]) -> api.RegisterSchemaRequest:
    """Return the body of a request about a schema. Raises `NotJson`, `WrongShape`, `RefusedBody`."""
    if operations.profile.is_karapace:
        karapace.require_schema_body(await read_bytes(request))
        return await read_body(request, api.RegisterSchemaRequest)
    return await read_first_value(request, api.RegisterSchemaRequest)


async def read_stored_body(operations: Operations, request: Request[Any, Any, Any], shape: type[T]) -> T:
    """Return the body of a request that is going to be stored; see `read_first_value`.

    Raises `TooLarge` for a body longer than a schema may be.
    """
    body = await read_first_value(request, shape)
    if (size := len(await request.body())) > operations.registry.limits.schema_bytes:
        raise TooLarge(f"the request has {size} bytes, more than a schema may have")
    return body
