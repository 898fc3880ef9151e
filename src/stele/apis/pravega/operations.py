"""Operations on groups, schemas and encodings of one namespace, for one caller."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from stele.apis.http.requests import decode_segment
from stele.apis.pravega import models as api
from stele.apis.pravega import translate
from stele.apis.pravega.options import PravegaOptions
from stele.core import queries
from stele.core.commands import Command, Equality, Outcome, RegisterSchema
from stele.core.decide.compatibility import list_candidates
from stele.core.decide.decision import check_name
from stele.core.digests import digest_key
from stele.core.model import NO_ATTACHMENTS, SchemaDocument, SchemaFormat, SettingsLevel, Subject, SubjectKey, Version
from stele.core.policy import BACKWARD, NO_VERSIONS, Policy, PolicyKind
from stele.core.ports import TextForm
from stele.core.state import State
from stele.errors import (
    FormatMismatch,
    InvalidRequest,
    SubjectNotFound,
    TooLarge,
    UnknownPolicy,
    VersionNotFound,
)
from stele.service.registry import Registry
from stele.service.schemas import PreparedSchema

T = TypeVar("T")

MAX_SCHEMA_BYTES = 8 * 1024 * 1024
_MAX_PROPERTIES = 100
_MAX_PROPERTY_LENGTH = 200
"""Longest key or value of properties, in bytes of UTF-8."""

_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""Bytes that occur in serialized descriptors, but in no source text."""

EQUALITY_DIGEST = "normalized"
"""Kind of the digest that makes two schemas equal: white space and the order of keys do not count."""


class AppState(msgspec.Struct, frozen=True):
    """What all requests of an application share."""

    registry: Registry
    options: PravegaOptions


class Operations:
    """Serves one request of one caller in one namespace."""

    def __init__(self, app_state: AppState, namespace: str) -> None:
        self.registry = app_state.registry
        self.namespace = namespace

    def parse_group(self, segment: str) -> SubjectKey:
        """Return the subject of a group."""
        return SubjectKey(self.namespace, decode_segment(segment))

    # --- finding ----------------------------------------------------------------------------------------------------

    async def execute(self, command: Command) -> Outcome:
        """Carry out a command in the caller's name."""
        return await self.registry.execute(command, via=translate.DIALECT)

    async def register(self, command: RegisterSchema, make_answer: Callable[[State, Version], T]) -> T:
        """Register a schema in the caller's name; see `Registry.register`."""
        _, answer = await self.registry.register(command, make_answer, via=translate.DIALECT)
        return answer

    async def get_group(self, key: SubjectKey) -> tuple[State, Subject]:
        """Return the present state and a group in it. Raises `SubjectNotFound`."""
        state = await self.registry.fresh_state()
        return state, _find_group(state, key)

    async def get_version_by_id(self, key: SubjectKey, number: int) -> tuple[State, Version]:
        """Return the version with an id, also a deleted one, and the state it is in.

        Raises `SubjectNotFound`, `VersionNotFound`.
        """

        def find_version(state: State) -> tuple[State, Version]:
            _find_group(state, key)
            try:
                return state, queries.get_version(state, key, number + 1, queries.ACTIVE_OR_SOFT_DELETED)
            except VersionNotFound:
                raise VersionNotFound(number) from None  # ids count from 0 here

        return await self.registry.read_or_catch_up(find_version)

    async def get_version_by_number(
        self, key: SubjectKey, format_name: str, type_name: str, number: int
    ) -> tuple[State, Version]:
        """Return the version with a number within its type and format, also a deleted one.

        Raises as `get_version_by_id`.
        """

        def find_version(state: State) -> tuple[State, Version]:
            rows = queries.list_versions(_find_group(state, key), queries.ACTIVE_OR_SOFT_DELETED)
            return state, translate.require_first(
                (row for row in rows if translate.is_at(row, format_name, type_name, number)), number
            )

        return await self.registry.read_or_catch_up(find_version)

    # --- schemas in -------------------------------------------------------------------------------------------------

    def read_format(self, serialization_format: api.SerializationFormat) -> SchemaFormat:
        """Return the format a request names; a custom one may be a format that is installed here."""
        return translate.resolve_custom_format(
            translate.parse_format(serialization_format), self.registry.parser.list_format_names()
        )

    async def parse_document(
        self, state: State, info: api.SchemaInfo, subject: Subject | None = None, name: str | None = None
    ) -> SchemaDocument:
        """Parse the schema in a request and resolve its full type name.

        Args:
            state: Where references are looked up.
            info: The schema in the request.
            subject: Group it is for; it must have the format of the group.
            name: Name of the group where subject is None.

        Raises:
            FormatMismatch: The group has another format, which the error names.
            MalformedSchema: The text is not a schema of its format, or does not describe the type.
            UnknownFormat: The request names no format.
            InvalidRequest: The format is Any.
            TooLarge: A limit is exceeded.
        """
        schema_format = self.read_format(info.serialization_format)
        if schema_format == translate.ANY_FORMAT:
            raise InvalidRequest("Any is a serialization format of groups, not of schemas")
        if subject is not None:
            _require_format(subject, schema_format)
        if len(info.schema_data) > MAX_SCHEMA_BYTES:
            raise TooLarge(f"the schema has {len(info.schema_data)} bytes; the limit is {MAX_SCHEMA_BYTES}")
        check_properties(info.properties)
        for word in (info.type, schema_format.custom_format):
            check_name(word)
        name = subject.key.name if subject is not None else name
        prepared = await self.registry.parser.prepare_schema(state, schema_format.format, info.schema_data)
        described_types = await asyncio.to_thread(_described_types, prepared)
        first = prepared.document.type
        type_name = translate.resolve_type_name(info.type, described_types, first, name)
        return replace(prepared.document, type=type_name, custom_format=schema_format.custom_format)

    async def require_comparable(self, schema_format: SchemaFormat, policy: Policy) -> None:
        """Raise `UnknownPolicy` if a policy compares schemas of a format that cannot be compared."""
        if (
            schema_format.format
            and translate.is_directional(policy)
            and not await self.registry.parser.can_compare(schema_format.format)
        ):
            name = translate.full_format_name(schema_format)
            raise UnknownPolicy(f"{name} schemas cannot be compared: choose AllowAny or DenyAll")

    def find_same_schema(self, state: State, key: SubjectKey, document: SchemaDocument) -> Version | None:
        """Return the active version of a group that is the same schema, else None."""
        digest = digest_key(EQUALITY_DIGEST, document.digests[EQUALITY_DIGEST])
        return queries.find_equal_version(
            state, key, document.sha, NO_ATTACHMENTS, equality=Equality.DIGEST, digest=digest, kind=document.kind
        )

    def find_same_in_groups(self, state: State, document: SchemaDocument) -> list[Version]:
        """Return the active versions that are the same schema, one per group of the namespace, by name."""
        digest = digest_key(EQUALITY_DIGEST, document.digests[EQUALITY_DIGEST])
        rows = queries.live_versions_by_digest(state, digest, document.kind)
        if document.type:  # A schema without a name of its own has its group's name as type.
            unnamed = queries.live_versions_by_digest(state, digest, document.kind._replace(type=""))
            rows += [row for row in unnamed if translate.type_name_of(row) == document.type]
        here = (row for row in rows if row.subject.key.namespace == self.namespace)
        newest_first = sorted(here, key=lambda row: (row.subject.key.name, -row.version_number))
        return list({row.subject.key.name: row for row in newest_first}.values())

    async def can_read(self, subject: Subject, document: SchemaDocument, policy: Policy) -> bool:
        """Return whether a reader with this schema can read the data of a group.

        It must read the data of the versions that the backward part of the policy covers. If the policy has a forward
        part, it must also read the data of the latest schema. Any schema reads a group without schemas, unless the
        policy has a forward part or denies all. A schema of a format that cannot be compared reads only the same text.
        """
        if policy.kind is PolicyKind.ALLOW_ANY:
            return True
        policies = []
        latest = next(list_candidates(self.registry.state, subject.key, document.kind, NO_ATTACHMENTS), None)
        if policy.kind is PolicyKind.DIRECTIONAL and policy.backward != NO_VERSIONS:
            policies.append(Policy(backward=policy.backward))
        if policy.kind is PolicyKind.DENY_ALL or policy.forward != NO_VERSIONS:
            if latest is None:
                return False
            policies.append(BACKWARD)
        if not await self.registry.parser.can_compare(document.format):
            return latest is None or latest.content.sha == document.sha
        for required in policies:
            findings, _ = await self.registry.find_incompatibilities(
                subject.key, document, NO_ATTACHMENTS, policy=required
            )
            if findings:
                return False
        return True

    # --- schemas out ------------------------------------------------------------------------------------------------

    async def build_schema_info(self, state: State, version: Version) -> api.SchemaInfo:
        """Return the schema of a version as it was sent.

        A text from another dialect that clients of this one cannot read is rendered: references are resolved, and
        Protobuf sources are compiled to a descriptor set.
        """
        labels = version.attributes.labels if version.attributes is not None else None
        return api.SchemaInfo(
            translate.type_name_of(version),
            translate.format_body(version.kind),
            await self._schema_data(state, version),
            dict(labels or {}),
        )

    async def _schema_data(self, state: State, version: Version) -> bytes:
        text = state.get_text(version.content)
        protobuf = version.kind.format == "protobuf"
        references = version.schema.attachments.references
        if _BINARY.search(text) if protobuf else not references:
            return text
        self.registry.access.require_references(state, references)
        rendered = await self._render_version(state, version, "descriptor_set" if protobuf else "resolved")
        if rendered is None:
            return text
        return base64.b64decode(rendered) if protobuf else rendered.encode()

    async def _render_version(self, state: State, version: Version, style: str) -> str | None:
        references = version.schema.attachments.references
        fmt, parsed = await self.registry.parser.parse_registered(
            state, version.kind.format, version.content.sha, references
        )
        return await asyncio.to_thread(fmt.render, parsed, style)

    async def build_versions_list(self, state: State, versions: Iterable[Version]) -> api.SchemaVersionsList:
        """Return versions with their schemas."""
        return api.SchemaVersionsList(
            [
                api.SchemaWithVersion(await self.build_schema_info(state, row), translate.build_version_info(row))
                async for row in self.registry.time_slices.iterate(versions)
            ]
        )

    async def build_history_record(self, state: State, version: Version) -> api.GroupHistoryRecord:
        """Return a version as an entry in the history of its group."""
        info = await self.build_schema_info(state, version)
        policy = version.policy or queries.policy_for(state, version.subject.key)
        match version.kind.format:
            case "avro" | "json":
                schema_text = info.schema_data.decode("utf-8", "replace")
            case "protobuf":
                schema_text = await self._render_version(state, version, "json") or ""
            case _:
                schema_text = ""
        return api.GroupHistoryRecord(
            info,
            translate.build_version_info(version),
            translate.compatibility_body(policy, version.subject),
            version.at,
            schema_text,
        )

    def build_group_properties(self, state: State, subject: Subject) -> api.GroupProperties:
        """Return the properties of a group."""
        own = state.settings_at(SettingsLevel(*subject.key))
        saved = translate.stored_compatibility(own.dialect_data) if own is not None and own.policy is not None else None
        policy = queries.policy_for(state, subject.key)
        return api.GroupProperties(
            translate.format_body(_format_of_group(subject)),
            translate.compatibility_body(
                policy, subject, saved or translate.stored_compatibility(subject.dialect_data)
            ),
            translate.has_multiple_types(subject),
            dict(subject.labels or {}),
        )


def check_properties(properties: Mapping[str, str] | None) -> None:
    """Raise `TooLarge` if a group or a schema has too many or too long properties."""
    if len(properties or {}) > _MAX_PROPERTIES:
        raise TooLarge(f"there are {len(properties or {})} properties; the limit is {_MAX_PROPERTIES}")
    for pair in (properties or {}).items():
        if any(len(text.encode()) > _MAX_PROPERTY_LENGTH for text in pair):
            raise TooLarge(f"a key or a value of the properties is longer than {_MAX_PROPERTY_LENGTH} bytes")


def _find_group(state: State, key: SubjectKey) -> Subject:
    subject = state.find_subject(key)
    if subject is None:
        raise SubjectNotFound(key.name)
    return subject


def _format_of_group(subject: Subject) -> SchemaFormat:
    """Return the format of a group."""
    return SchemaFormat(subject.format, subject.custom_format)


def _require_format(subject: Subject, schema_format: SchemaFormat) -> None:
    own = _format_of_group(subject)
    if own.format and own != schema_format:
        raise FormatMismatch(translate.full_format_name(own))


def _described_types(prepared: PreparedSchema) -> list[str] | None:
    """Return the full names of the types a schema describes; None if its format leaves names to the author."""
    fmt, parsed = prepared.format, prepared.parsed
    match fmt.name:
        case "avro":
            return translate.avro_types(fmt.canonical(parsed, TextForm.CANONICAL))
        case "protobuf":
            return translate.protobuf_types(fmt.render(parsed, "json") or "{}")
        case _:
            return None
