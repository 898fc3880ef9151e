"""Where requests are served: one namespace, one caller, and the steps that several endpoints share."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from stele.apis.http.paths import decode_segment
from stele.apis.pravega import access, translate
from stele.apis.pravega import entities as api
from stele.apis.pravega.access import Permission
from stele.apis.pravega.options import PravegaOptions
from stele.apis.pravega.translate import Language
from stele.core import queries
from stele.core.commands import Command, Equality, Outcome
from stele.core.decide.decision import check_name
from stele.core.digests import digest_key
from stele.core.model import NO_ATTACHMENTS, SchemaDocument, SettingsLevel, Subject, SubjectKey, Version
from stele.core.policy import Policy
from stele.core.ports import TextForm
from stele.core.state import State
from stele.errors import Forbidden, FormatMismatch, InvalidRequest, SubjectNotFound, TooLarge, UnknownPolicy
from stele.service.registry import Registry
from stele.service.schemas import PreparedSchema

MAX_SCHEMA_BYTES = 8 * 1024 * 1024
_MAX_PROPERTIES = 100
_MAX_LENGTH = 200
"""Of a key or a value of properties, in characters and in bytes."""

_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""What a serialized descriptor has and no source text."""

EQUAL_BY = "normalized"
"""Kind of the digest that says whether two schemas are the same: white space and the order of keys do not count."""


class Office(msgspec.Struct, frozen=True):
    """What all requests share."""

    registry: Registry
    options: PravegaOptions


class Desk:
    """Serves one request for one caller in one namespace."""

    def __init__(self, office: Office, actor: str, namespace: str) -> None:
        self.registry = office.registry
        self._authorize = office.options.authorize
        self._actor = actor
        self.namespace = namespace

    # --- who may ----------------------------------------------------------------------------------------------------

    def may(self, resource: str, permission: Permission = Permission.READ) -> bool:
        """Whether the caller has a permission."""
        return self._authorize(self._actor, resource, permission)

    def require(self, resource: str, permission: Permission = Permission.READ) -> None:
        """Raise `Forbidden` when the caller has not that permission."""
        if not self.may(resource, permission):
            raise Forbidden(f"{self._actor or 'anonymous'} has no {permission.name} permission on {resource}")

    def readable(self, segment: str) -> SubjectKey:
        """The subject of a group the caller may read. Raises `Forbidden`."""
        return self.allowed(segment, access.group_resource, Permission.READ)

    def allowed(self, segment: str, resource: access.Resource, permission: Permission) -> SubjectKey:
        """The subject of a group with whose resource the caller may do that. Raises `Forbidden`."""
        key = SubjectKey(self.namespace, decode_segment(segment))
        self.require(resource(*key), permission)
        return key

    # --- finding ----------------------------------------------------------------------------------------------------

    async def execute(self, command: Command) -> Outcome:
        """Carry out a command in the caller's name."""
        return await self.registry.execute(command, actor=self._actor, via=translate.DIALECT)

    async def group(self, key: SubjectKey) -> tuple[State, Subject]:
        """The present state, and a group in it. Raises `SubjectNotFound`."""
        state = await self.registry.fresh_state()
        return state, _present(state, key)

    async def by_id(self, key: SubjectKey, number: int) -> tuple[State, Version]:
        """A version by its id, a deleted one too. Raises `SubjectNotFound`, `VersionNotFound`."""

        def look(state: State) -> tuple[State, Version]:
            _present(state, key)
            return state, queries.get_version(state, key, number + 1, queries.ACTIVE_OR_SOFT_DELETED)

        return await self.registry.read_or_catch_up(look)

    async def by_version(self, key: SubjectKey, format_name: str, type_name: str, number: int) -> tuple[State, Version]:
        """A version by its number within its type and format, a deleted one too. Raises as `by_id`."""

        def look(state: State) -> tuple[State, Version]:
            rows = queries.list_versions(_present(state, key), queries.ACTIVE_OR_SOFT_DELETED)
            return state, translate.only(
                (row for row in rows if translate.is_at(row, format_name, type_name, number)), number
            )

        return await self.registry.read_or_catch_up(look)

    # --- schemas in -------------------------------------------------------------------------------------------------

    def language(self, given: api.SerializationFormat) -> Language:
        """The language of a serialization format; a custom one may be that of a format installed here."""
        return translate.takes_its_name(translate.language_in(given), self.registry.parser.list_format_names())

    async def draft(
        self, state: State, info: api.SchemaInfo, subject: Subject | None = None, name: str | None = None
    ) -> SchemaDocument:
        """The schema of a request, parsed, with its full type name.

        subject is the group it is for, whose format it must have; name the one it is looked for in. Raises
        `FormatMismatch` with the format of the group, `MalformedSchema`, `UnknownFormat`, `InvalidRequest`, `TooLarge`.
        """
        language = self.language(info.serialization_format)
        if language == translate.ANY_LANGUAGE:
            raise InvalidRequest("Any is the serialization format of groups, no schema has it")
        if subject is not None:
            _require_format(subject, language)
        if len(info.schema_data) > MAX_SCHEMA_BYTES:
            raise TooLarge(f"the schema has {len(info.schema_data)} bytes, {MAX_SCHEMA_BYTES} is the most")
        check_properties(info.properties)
        for word in (info.type, language.custom_format):
            check_name(word)
        name = subject.key.name if subject is not None else name
        prepared = await self.registry.parser.prepare_schema(state, language.format, info.schema_data)
        described = await asyncio.to_thread(_described, prepared)
        first = prepared.document.type
        type_name = translate.type_in(info.type, described, first, name)
        return replace(prepared.document, type=type_name, custom_format=language.custom_format)

    async def require_comparable(self, language: Language, policy: Policy) -> None:
        """Raise `UnknownPolicy` when a policy compares schemas of a format nobody can compare."""
        if (
            language.format
            and translate.directional(policy)
            and not await self.registry.parser.can_compare(language.format)
        ):
            name = translate.full_name(language)
            raise UnknownPolicy(f"{name} schemas cannot be compared: choose AllowAny or DenyAll")

    def same(self, state: State, key: SubjectKey, document: SchemaDocument) -> Version | None:
        """The live version of a group that is the same schema."""
        digest = digest_key(EQUAL_BY, document.digests[EQUAL_BY])
        return queries.find_equal_version(
            state, key, document.sha, NO_ATTACHMENTS, equality=Equality.DIGEST, digest=digest, kind=document.kind
        )

    def same_everywhere(self, state: State, document: SchemaDocument) -> list[Version]:
        """The live versions of all groups of the namespace that are the same schema, one of each, by name."""
        digest = digest_key(EQUAL_BY, document.digests[EQUAL_BY])
        rows = queries.live_versions_by_digest(state, digest, document.kind)
        if document.type:  # What has no name of its own is of the type its group is called.
            unnamed = queries.live_versions_by_digest(state, digest, document.kind._replace(type=""))
            rows += [row for row in unnamed if translate.type_out(row) == document.type]
        here = (row for row in rows if row.subject.key.namespace == self.namespace)
        newest_first = sorted(here, key=lambda row: (row.subject.key.name, -row.version_number))
        return list({row.subject.key.name: row for row in newest_first}.values())

    # --- schemas out ------------------------------------------------------------------------------------------------

    async def schema_out(self, state: State, version: Version) -> api.SchemaInfo:
        """A version as it was sent.

        What another dialect brought and no client of this one could read is rendered: references are resolved, Protobuf
        sources compiled to a descriptor set.
        """
        labels = version.attributes.labels if version.attributes is not None else None
        return api.SchemaInfo(
            translate.type_out(version),
            translate.format_out(version.kind),
            await self._data(state, version),
            dict(labels or {}),
        )

    async def _data(self, state: State, version: Version) -> bytes:
        text = state.get_text(version.content)
        protobuf = version.kind.format == "protobuf"
        if _BINARY.search(text) if protobuf else not version.schema.attachments.references:
            return text
        rendered = await self._rendered(state, version, "descriptor_set" if protobuf else "resolved")
        if rendered is None:
            return text
        return base64.b64decode(rendered) if protobuf else rendered.encode()

    async def _rendered(self, state: State, version: Version, style: str) -> str | None:
        references = version.schema.attachments.references
        fmt, parsed = await self.registry.parser.parse_registered(
            state, version.kind.format, version.content.sha, references
        )
        return await asyncio.to_thread(fmt.render, parsed, style)

    async def with_versions(self, state: State, versions: Iterable[Version]) -> api.SchemaVersionsList:
        """Versions with their schemas."""
        return api.SchemaVersionsList(
            [api.SchemaWithVersion(await self.schema_out(state, row), translate.version_out(row)) for row in versions]
        )

    async def history_record(self, state: State, version: Version) -> api.GroupHistoryRecord:
        """A version as the history of its group has it."""
        info = await self.schema_out(state, version)
        policy = version.policy or queries.policy_for(state, version.subject.key)
        match version.kind.format:
            case "avro" | "json":
                shown = info.schema_data.decode("utf-8", "replace")
            case "protobuf":
                shown = await self._rendered(state, version, "json") or ""
            case _:
                shown = ""
        return api.GroupHistoryRecord(
            info,
            translate.version_out(version),
            translate.compatibility_out(policy, version.subject),
            version.at,
            shown,
        )

    def properties_out(self, state: State, subject: Subject) -> api.GroupProperties:
        """What describes a group."""
        own = state.settings_at(SettingsLevel(*subject.key))
        saved = translate.saved_in(own.dialect_data) if own is not None and own.policy is not None else None
        policy = queries.policy_for(state, subject.key)
        return api.GroupProperties(
            translate.format_out(_language_of(subject)),
            translate.compatibility_out(policy, subject, saved or translate.saved_in(subject.dialect_data)),
            translate.multiple_types(subject),
            dict(subject.labels or {}),
        )


def check_properties(properties: Mapping[str, str] | None) -> None:
    """Raise `TooLarge` for more or longer properties than a group or a schema may have."""
    if len(properties or {}) > _MAX_PROPERTIES:
        raise TooLarge(f"there are {len(properties or {})} properties, {_MAX_PROPERTIES} is the most")
    for pair in (properties or {}).items():
        if any(len(text.encode()) > _MAX_LENGTH for text in pair):
            raise TooLarge(f"a key or a value of the properties is longer than {_MAX_LENGTH} bytes")


def _present(state: State, key: SubjectKey) -> Subject:
    subject = state.find_subject(key)
    if subject is None:
        raise SubjectNotFound(key.name)
    return subject


def _language_of(subject: Subject) -> Language:
    """The format of a group."""
    return Language(subject.format, subject.custom_format)


def _require_format(subject: Subject, language: Language) -> None:
    own = _language_of(subject)
    if own.format and own != language:
        raise FormatMismatch(translate.full_name(own))


def _described(prepared: PreparedSchema) -> list[str] | None:
    """Full names of the types a schema describes; None for formats that leave the name to the author."""
    fmt, parsed = prepared.format, prepared.parsed
    match fmt.name:
        case "avro":
            return translate.avro_types(fmt.canonical(parsed, TextForm.CANONICAL))
        case "protobuf":
            return translate.protobuf_types(fmt.render(parsed, "json") or "{}")
        case _:
            return None
