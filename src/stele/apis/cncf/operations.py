"""Operations on groups, schemas and versions, for one caller under one base URI."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from litestar.di import NamedDependency
from msgspec.structs import replace

from stele.apis.cncf import models as api
from stele.apis.cncf import translate
from stele.apis.cncf.options import CncfOptions
from stele.apis.cncf.translate import (
    GroupUpdate,
    check_content_type,
    check_new_id,
    decode_id,
    format_of_content_type,
    origin_uri,
    parse_format_name,
)
from stele.apis.http.requests import decode_segment
from stele.core import queries
from stele.core.access import REGISTRY_RESOURCE, Operation, namespace_resource, subject_resource
from stele.core.commands import (
    ChangeSettings,
    Command,
    CreateNamespace,
    DeleteMode,
    DeleteNamespace,
    DeleteSubject,
    EndIncarnations,
    Equality,
    Outcome,
    RegisterSchema,
    SubjectDefaults,
    SubjectsPresent,
    SubjectUpdate,
    Transaction,
)
from stele.core.model import (
    DEFAULT_NAMESPACE,
    NO_ATTACHMENTS,
    OPAQUE_FORMAT,
    Namespace,
    Numbering,
    SchemaFormat,
    SettingsLevel,
    Subject,
    SubjectKey,
    Version,
)
from stele.core.policy import ALLOW_ANY
from stele.core.state import State
from stele.errors import (
    AlreadyExists,
    Conflict,
    ContentNotFound,
    FormatMismatch,
    InvalidRequest,
    NamespaceNotFound,
    PreconditionFailed,
    SubjectNotFound,
)
from stele.protocol import cncf_uris as uris
from stele.protocol.cncf import DIALECT, authority_of, group_id_of, namespace_of, own_data
from stele.service.deletion import delete_version_or_incarnation
from stele.service.registry import Registry
from stele.service.retry import Overtaken, retry_when_overtaken
from stele.service.validators import require_known
from stele.service.visibility import is_namespace_shown

T = TypeVar("T")


def parse_place(group: str, schema: str) -> tuple[str, str]:
    """Return the ids of the group and the schema that two path segments name. Raises `InvalidName`."""
    return decode_id(group), decode_id(schema)


_UID = re.compile(r"[0-9a-fA-F]{32}\Z")


class AppState(msgspec.Struct, frozen=True):
    """What all requests of an application share."""

    registry: Registry
    options: CncfOptions


class DocumentAttributes(msgspec.Struct, frozen=True):
    """Attributes a request sends beside a document; None leaves an attribute as it is.

    Attributes:
        description: Description of the schema.
        version_description: Description of the version.
        format: Format of the schema.
        authority: URI of the authority that controls the schema.
        id: Id of the version, a URI reference.
    """

    description: str | None = None
    version_description: str | None = None
    format: str | None = None
    authority: str | None = None
    id: str | None = None


NO_ATTRIBUTES = DocumentAttributes()


class PostedDocument(msgspec.Struct, frozen=True):
    """Document in the body of a request, and its content type ('' where the request has none)."""

    body: bytes
    content_type: str


class Operations:
    """Serves one request of one caller."""

    def __init__(self, app_state: AppState, base: str) -> None:
        """Serve a caller.

        Args:
            app_state: What all requests share.
            base: Base URI of the API as the caller wrote it, without a slash at its end.
        """
        self.registry = app_state.registry
        self.root = app_state.options.base_url
        self.base = base

    async def execute(self, command: Command) -> Outcome:
        """Carry out a command in the caller's name."""
        return await self.registry.execute(command, via=DIALECT)

    # --- groups -----------------------------------------------------------------------------------------------------

    async def list_group_ids(self) -> list[str]:
        """Return the sorted ids of the groups that the caller may see.

        A caller with the right to list the registry gets all ids, including those of groups that the caller may not
        read.
        """
        state = await self.registry.fresh_state()
        namespaces = [row for row in queries.visible_namespaces(state) if is_namespace_shown(row)]
        access = self.registry.access
        sees_all = access.allows(Operation.LIST, REGISTRY_RESOURCE)
        names = [row.name for row in namespaces] if sees_all else access.select_namespaces(namespaces)
        return sorted(map(group_id_of, names))

    async def get_group(self, group: str) -> tuple[State, Namespace]:
        """Return the present state and a group in it. Raises `NamespaceNotFound`."""
        state = await self.registry.fresh_state()
        namespace = state.find_namespace(namespace_of(group))
        if namespace is None or not is_namespace_shown(namespace):
            raise NamespaceNotFound(f"The group '{group}' does not exist.")
        return state, namespace

    async def get_listed_group(self, group: str) -> tuple[State, Namespace]:
        """Return the present state and a group whose id the caller may see. Raises `NamespaceNotFound`, `Forbidden`."""
        access = self.registry.access
        if not access.allows(Operation.LIST, REGISTRY_RESOURCE):
            namespace = (await self.registry.fresh_state()).find_namespace(namespace_of(group))
            if namespace is None or not access.can_list_namespace(namespace):
                access.require(Operation.LIST, namespace_resource(namespace_of(group)))
        return await self.get_group(group)

    async def describe_group(self, segment: str) -> api.SchemaGroup:
        """Return the body of a group; only its id to a caller who may not read it.

        Raises `NamespaceNotFound`, `Forbidden`, `InvalidName`.
        """
        group = decode_id(segment)
        state, namespace = await self.get_listed_group(group)
        if not self.registry.access.allows(Operation.READ, namespace_resource(namespace.name)):
            return api.SchemaGroup(group)
        return translate.group_body(state, namespace, self.registry.parser.list_format_names())

    async def put_group(self, group: str, update: GroupUpdate, *, only_create: bool, expected_etag: str = "") -> bool:
        """Create a group or change the existing one.

        Args:
            group: Id of the group.
            update: Attributes the group gets.
            only_create: Refuse a group that exists.
            expected_etag: Refuse a group with another entity tag; '' takes any.

        Returns:
            Whether the group was created.

        Raises:
            AlreadyExists: The group exists, and only_create is set.
            PreconditionFailed: The group has another entity tag, or does not exist.
            Conflict: The format of the group would change while it holds schemas.
            InvalidName: No group can have that id.
            UnknownPolicy: The policy names a validator that is not installed.
        """
        if update.policy is not None:
            require_known(update.policy.validators)
        name = namespace_of(group)

        async def put(state: State) -> bool:
            namespace = state.find_namespace(name)
            if namespace is not None and not is_namespace_shown(namespace):
                namespace = None
            if expected_etag and (namespace is None or translate.etag_of(namespace) != expected_etag):
                raise PreconditionFailed(f"the group '{group}' has another entity tag")
            if namespace is None:
                await self._create_group(state, group, update)
                return True
            if only_create:
                raise AlreadyExists(f"the group '{group}' exists already")
            await self._change_group(state, namespace, update)
            return False

        return await retry_when_overtaken(self.registry, put, conflicts=())

    async def _create_group(self, state: State, group: str, update: GroupUpdate) -> None:
        check_new_id(group)
        name, policy = namespace_of(group), update.policy
        if policy is None and name != DEFAULT_NAMESPACE:
            policy = translate.new_group_policy(state, name)
        commands: list[Any] = [_build_group_command(name, None, update)]
        if policy is not None:
            commands.append(ChangeSettings(SettingsLevel(name), {"policy": policy}))
        try:
            await self.execute(Transaction(tuple(commands)))
        except AlreadyExists:
            raise Overtaken from None

    async def _change_group(self, state: State, namespace: Namespace, update: GroupUpdate) -> None:
        own_format = translate.format_of_group(namespace)
        if own_format != update.schema_format and queries.list_subjects(state, [namespace]):
            raise Conflict(f"the format of '{group_id_of(namespace.name)}' cannot change while it holds schemas")
        command = _build_group_command(namespace.name, namespace, update)
        before = (
            namespace.format,
            namespace.description,
            namespace.labels or None,
            namespace.dialect_data or None,
        )
        after = (command.format, command.description, command.labels, command.dialect_data)
        commands: list[Any] = [command] if before != after or not namespace.explicit else []
        settings = state.settings_at(SettingsLevel(namespace.name))
        if update.policy is not None and (settings is None or settings.policy != update.policy):
            commands.append(ChangeSettings(SettingsLevel(namespace.name), {"policy": update.policy}))
        if commands:
            await self.execute(Transaction(tuple(commands)))

    async def delete_group(self, group: str) -> None:
        """Delete a group with its schemas. Raises `NamespaceNotFound`, `InUse`, `Conflict` for the default group."""
        _, namespace = await self.get_group(group)
        if namespace.name == DEFAULT_NAMESPACE:
            raise Conflict(f"the group '{group}' cannot be deleted; its schemas can")
        await self.execute(DeleteNamespace(namespace.name, SubjectsPresent.END_INCARNATIONS))

    async def delete_schemas(self, group: str) -> None:
        """Delete all schemas of a group, or none. Raises `NamespaceNotFound`, `InUse`."""
        _, namespace = await self.get_group(group)
        await self.execute(EndIncarnations(namespace.name))

    # --- schemas and versions ---------------------------------------------------------------------------------------

    async def list_schema_ids(self, group: str) -> list[str]:
        """Return the sorted ids of the schemas of a group that the caller may read.

        Raises `NamespaceNotFound`, `Forbidden`.
        """
        _, namespace = await self.get_listed_group(group)
        can_read = self.registry.access.make_filter(Operation.READ)
        names = sorted(
            [
                subject.key.name
                async for subject in self.registry.time_slices.iterate(namespace.subjects.values())
                if queries.latest_version(subject) is not None and can_read(subject.key)
            ]
        )
        if not names:
            self.registry.access.require(Operation.READ, namespace_resource(namespace.name))
        return names

    async def list_version_numbers(self, group: str, schema: str) -> list[int]:
        """Return the version numbers of a schema, ascending. Raises `NamespaceNotFound`, `SubjectNotFound`."""
        state, namespace = await self.get_group(group)
        rows = queries.list_versions(state.find_subject(SubjectKey(namespace.name, schema)))
        if not rows:
            raise SubjectNotFound(schema)
        return [row.version_number for row in rows]

    async def get_version(self, group: str, schema: str, version_number: int | None = None) -> tuple[State, Version]:
        """Return a version of a schema and the state it is in; None is the latest version.

        Raises `NamespaceNotFound`, `SubjectNotFound`, `VersionNotFound`.
        """
        key = SubjectKey(namespace_of(group), schema)
        if version_number is not None:
            return await self._read_version(lambda state: queries.get_version(state, key, version_number))
        state, _ = await self.get_group(group)
        newest = queries.latest_version(state.find_subject(key))
        if newest is None:
            raise SubjectNotFound(schema)
        return state, newest

    async def get_version_by_uid(self, text: str) -> tuple[State, Version]:
        """Return the version with a `Schema-Id`, and the state it is in.

        Versions of deleted schemas are included, because stored data may contain their ids.

        Raises:
            ContentNotFound: No version has the id.
            Forbidden: The caller may not read the schema.
        """
        if not _UID.match(text):
            raise ContentNotFound(text)

        def find_version(state: State) -> Version:
            version = queries.find_version_by_uid(state, int(text, 16))
            if version is None:
                raise ContentNotFound(text)
            return version

        return await self._read_version(find_version)

    async def get_version_by_uri(self, uri: str) -> tuple[State, Version]:
        """Return the version with a URI, or the version whose path in this API is the end of the URI.

        Raises as `get_version_by_uid`.
        """
        if len(uri) > uris.MAX_URI_LENGTH:
            raise ContentNotFound(f"{uri[:100]}…")
        return await self._read_version(lambda state: self._find_by_uri(state, uri))

    async def _read_version(self, query: Callable[[State], Version]) -> tuple[State, Version]:
        version = await self.registry.read_or_catch_up(query)
        self.registry.access.require(Operation.READ, subject_resource(version.subject.key))
        return self.registry.state, version

    def _find_by_uri(self, state: State, uri: str) -> Version:
        for possible_id in uris.possible_ids(uri):
            version = queries.find_version_by_origin(state, possible_id)
            if version is not None and uri in self._uris_of(version):
                return version
        path = uris.parse_version_path(uri)
        if path is not None:
            key = SubjectKey(namespace_of(path.group), path.schema)
            self.registry.access.require(Operation.READ, subject_resource(key))  # Required whether or not it exists.
            rows = queries.list_versions(state.find_subject(key))
            row = next((row for row in rows if row.version_number == path.version_number), None)
            if row is not None and self._is_home(row, path.base):
                return row
        raise ContentNotFound(uri)

    def _uris_of(self, version: Version) -> set[str]:
        """Return the URIs of a version that was registered with an id.

        The id is resolved against the authority of the schema; without an authority, against the base URIs of this API.
        """
        authority = authority_of(version.subject)
        bases = {authority} if authority else {self.base, uris.authority_of_uri(f"{self.base}/")}
        return {uris.join_uri(base, origin_uri(version)) for base in bases}

    def _is_home(self, version: Version, base: str) -> bool:
        """Return whether a URI whose path names a version belongs to this registry or to the schema's authority.

        `base` is the part of the URI before the path of the version.
        """
        authority = authority_of(version.subject)
        here = uris.authority_of_uri(f"{self.base}/").rstrip("/")
        local = base in {"", "/"} or f"{base}/".startswith(f"{here}/") or base == self.base
        return local or (not origin_uri(version) and uris.join_uri(authority, "") in {base, f"{base}/", f"{base}:"})

    def build_link(self, *segments: str) -> str:
        """Return the URL of a path of this API, from path segments as requests spell them."""
        return "/".join((self.base, *(quote(decode_segment(segment), safe="$") for segment in segments)))

    def uri_of(self, version: Version) -> str:
        """Return the URI of a version."""
        reference = origin_uri(version) or self.path_of(version)
        return uris.join_uri(authority_of(version.subject) or self.base, reference)

    def path_of(self, version: Version) -> str:
        """Return the path of a version below the base URI."""
        key = version.subject.key
        return uris.default_id(group_id_of(key.namespace), key.name, version.version_number)

    # --- registering ------------------------------------------------------------------------------------------------

    async def register_document(
        self,
        group: str,
        schema: str,
        document: PostedDocument,
        make_answer: Callable[[State, Version], T],
        attributes: DocumentAttributes = NO_ATTRIBUTES,
        *,
        equality: Equality = Equality.TEXT_AND_TYPE,
    ) -> T:
        """Register a document as the next version of a schema, or find the version that is equal to it.

        Returns:
            What `make_answer` returns for the version (see `Registry.register`).

        Raises:
            NamespaceNotFound: The group does not exist.
            InvalidName: No schema can have that id.
            FormatMismatch: The group or the schema has another format.
            MalformedSchema: The document is not a schema of its format.
            Incompatible: The policy refuses the document.
            TooLarge: The document exceeds a limit.
            AlreadyExists: Another version has the id.
        """
        state, namespace = await self.get_group(group)
        key = SubjectKey(namespace.name, schema)
        subject = state.find_subject(key)
        if subject is None:
            check_new_id(schema)
        schema_format = self._resolve_format(namespace, subject, document.content_type, attributes.format)
        prepared = await self.registry.parser.prepare_inheriting_references(
            state, schema_format.format, document.body, queries.latest_version(subject)
        )
        _, answer = await self.registry.register(
            RegisterSchema(
                key,
                replace(prepared.document, custom_format=schema_format.custom_format),
                prepared.references,
                equality=equality,
                defaults=SubjectDefaults(
                    Numbering.NEVER_RESTART,
                    policy=ALLOW_ANY if translate.group_policy(state, namespace) is None else None,
                    format=schema_format.format,
                    custom_format=schema_format.custom_format,
                ),
                description=translate.check_description(attributes.version_description or ""),
                media_type=check_content_type(document.content_type),
                origin_uri=uris.check_version_id(attributes.id) if attributes.id else None,
                subject_update=_build_subject_update(subject, attributes),
            ),
            make_answer,
            via=DIALECT,
        )
        return answer

    async def find_document(self, group: str, schema: str, document: PostedDocument) -> tuple[State, Version]:
        """Return the version of a schema whose text equals a document byte for byte, and the state it is in.

        Raises `NamespaceNotFound`, `SubjectNotFound`, `ContentNotFound`.
        """
        await self.list_version_numbers(group, schema)
        state, namespace = await self.get_group(group)
        key = SubjectKey(namespace.name, schema)
        schema_format = self._resolve_format(namespace, state.find_subject(key), document.content_type, None)
        prepared = await self.registry.parser.prepare_schema(state, OPAQUE_FORMAT, document.body)
        version = queries.find_equal_version(state, key, prepared.document.sha, NO_ATTACHMENTS, equality=Equality.TEXT)
        if version is None or version.kind.format != schema_format.format:
            raise ContentNotFound
        return state, version

    def _resolve_format(
        self, namespace: Namespace, subject: Subject | None, content_type: str, format_name: str | None
    ) -> SchemaFormat:
        """Return the format of a document: the group's, the schema's, or the one the request names.

        Raises `FormatMismatch` where two of them differ, `InvalidRequest` where none of them is known.
        """
        installed = self.registry.parser.list_format_names()
        requested = (
            format_of_content_type(content_type, installed)
            if format_name is None
            else parse_format_name(format_name, installed)
        )
        required = translate.format_of_group(namespace) or _format_of_schema(subject)
        if required is not None and requested is not None and requested != required:
            raise FormatMismatch(f"this takes {_display_name(required)} documents, not {_display_name(requested)}")
        schema_format = required or requested
        if schema_format is None:
            raise InvalidRequest("the format of the schema is missing: give it in the request or in the group")
        return schema_format

    # --- deleting ---------------------------------------------------------------------------------------------------

    async def delete_schema(self, group: str, schema: str) -> None:
        """Delete a schema with all its versions. A later schema of the same id starts from version 1.

        Raises `NamespaceNotFound`, `SubjectNotFound`, `InUse`.
        """
        await self.list_version_numbers(group, schema)
        await self.execute(DeleteSubject(SubjectKey(namespace_of(group), schema), DeleteMode.END_INCARNATION))

    async def delete_version(self, group: str, schema: str, version_number: int) -> None:
        """Delete a version, and its schema when it is the last one. Raises `VersionNotFound`, `InUse`."""
        key = SubjectKey(namespace_of(group), schema)
        await delete_version_or_incarnation(
            self.registry, self.execute, lambda state: queries.get_version(state, key, version_number)
        )


InjectedOperations = NamedDependency[Operations]


def _build_group_command(name: str, before: Namespace | None, update: GroupUpdate) -> CreateNamespace:
    """Return the command that creates or changes a group and keeps the data of other dialects."""
    schema_format = update.schema_format
    is_same_format = before is not None and translate.format_of_group(before) == schema_format
    format_before = own_data(before.dialect_data).get("format", "") if before is not None else ""
    format_as_written = update.format_as_written or (format_before if is_same_format else "")
    own = translate.format_data(schema_format, format_as_written) if schema_format is not None else {}
    others = {
        dialect: members for dialect, members in ((before and before.dialect_data) or {}).items() if dialect != DIALECT
    }
    description = update.description
    if description is None:
        description = before.description if before else ""
    return CreateNamespace(
        name,
        replace=before is not None,
        format=schema_format.format if schema_format is not None else "",
        description=description,
        labels=update.properties or None,
        dialect_data={**others, DIALECT: own} if own else others or None,
    )


def _display_name(schema_format: SchemaFormat) -> str:
    return schema_format.custom_format or schema_format.format


def _format_of_schema(subject: Subject | None) -> SchemaFormat | None:
    newest = queries.latest_version(subject)
    if newest is not None:
        return newest.kind.schema_format
    if subject is None or not subject.format:
        return None
    return SchemaFormat(subject.format, subject.custom_format)


def _build_subject_update(subject: Subject | None, attributes: DocumentAttributes) -> SubjectUpdate:
    """Return the attributes of a schema as a change of its subject.

    If a new schema's version has an absolute id, another registry assigned that id, and the authority is taken from it.
    An authority in the request takes precedence.
    """
    own: dict[str, Any] = {}
    if attributes.authority is not None:
        own["authority"] = uris.check_authority(attributes.authority) if attributes.authority else None
    elif attributes.id and uris.is_absolute(attributes.id) and queries.latest_version(subject) is None:
        own["authority"] = uris.authority_of_uri(attributes.id)
    if attributes.format is not None:
        own["format"] = attributes.format.strip()
    description = None if attributes.description is None else translate.check_description(attributes.description)
    return SubjectUpdate(description, {DIALECT: own} if own else {})
