"""Endpoints of the dialect.

They serve groups with their policy and history, schemas of a group, the groups a schema was added to, codecs, and
encodings. An encoding is a pair of a version and a codec. Its id is at the start of encoded data.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Any

from litestar import Request, Response, delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from stele.apis.http.access import NO_RIGHT_NEEDED, Place, access
from stele.apis.http.application import openapi_body
from stele.apis.http.empty_response import EmptyResponse
from stele.apis.http.requests import decode_segment, read_body
from stele.apis.pravega import models as api
from stele.apis.pravega import translate
from stele.apis.pravega.errors import ERROR_RESPONSES
from stele.apis.pravega.operations import EQUALITY_DIGEST, Operations, check_properties
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.commands import (
    AddCodec,
    AssignEncoding,
    ChangeSettings,
    CreateSubject,
    DeleteMode,
    DeleteSubject,
    DeleteVersion,
    EncodingOutcome,
    Equality,
    RegisterSchema,
    SubjectDefaults,
)
from stele.core.model import MAX_INT32, NO_ATTACHMENTS, Numbering, SchemaFormat, SettingsLevel, SubjectKey, Version
from stele.errors import (
    AlreadyExists,
    AlreadySoftDeleted,
    CodecNotFound,
    ContentNotFound,
    EncodingNotFound,
    InvalidName,
    InvalidRequest,
    NotFound,
    SubjectNotFound,
    TooLarge,
    VersionNotFound,
)

_NUMBER = re.compile(r"-?[0-9]{1,10}\Z")
_INTEGER = {"type": "integer", "format": "int32"}
_MAX_PAGE = 1000
"""Most groups on one page."""

InjectedOperations = NamedDependency[Operations]

Group = Annotated[str, PathParameter(description="name of a group")]
SchemaId = Annotated[str, PathParameter(schema_extra=_INTEGER, description="id of a schema in its group, from 0")]
EncodingId = Annotated[str, PathParameter(schema_extra=_INTEGER, description="id of an encoding in its group, from 0")]
FormatName = Annotated[str, PathParameter(description="full type name of a serialization format")]
TypeName = Annotated[str, PathParameter(description="type of a schema")]
VersionNumber = Annotated[
    str, PathParameter(schema_extra=_INTEGER, description="version within the type and format, from 0")
]
OfType = Annotated[str | None, QueryParameter(name="type", description="only schemas of this type")]
Token = Annotated[str, QueryParameter(name="continuationToken", description="continuation token of the previous page")]
Limit = Annotated[str, QueryParameter(schema_extra=_INTEGER, description="most groups to return")]

Options = dict[str, Any]
READ: Options = {"responses": ERROR_RESPONSES}
"""Options of endpoints that read."""
STATUS_200: Options = {**READ, "status_code": 200}
"""Options of endpoints that read by POST or change what exists."""
STATUS_201: Options = {**READ, "status_code": 201}
"""Options of endpoints that create."""
DELETE: Options = {**READ, "status_code": 204}
"""Options of endpoints that delete."""


def namespaced_paths(path: str) -> list[str]:
    """Return a path below `/v1` in two forms: namespace as a query parameter, and as a part of the path."""
    return [f"/v1{path}", f"/v1/namespace/{{ns:str}}{path}"]


def parse_number(segment: str) -> int:
    """Return the number in a path segment. Raises `NotFound` for anything else."""
    if not _NUMBER.match(segment) or not 0 <= int(segment) < MAX_INT32:
        raise NotFound(f"'{decode_segment(segment)}' is not a version or encoding number")
    return int(segment)


def parse_limit(text: str) -> int:
    """Return the length of a page of groups. Raises `InvalidRequest`."""
    if not _NUMBER.match(text) or int(text) < 1:
        raise InvalidRequest(f"limit must be a number from 1, not {text!r}")
    return min(int(text), _MAX_PAGE)


def encode_token(name: str) -> str:
    """Return the continuation token of a page whose last group has that name."""
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def decode_token(token: str) -> str:
    """Return the name in a continuation token. Raises `InvalidRequest`."""
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidRequest("the continuation token is not from this registry") from None


_GROUP = "/groups/{group:str}"


@get("/ping", status_code=200, media_type="text/plain", opt=NO_RIGHT_NEEDED)
async def ping() -> Response[bytes]:
    # GET /ping
    """Return an empty response, to show that the server responds."""
    return Response(b"", status_code=200, media_type="text/plain")


@get(namespaced_paths("/groups"), **READ, opt=access(Operation.LIST, Place.LIST))
async def list_groups(
    operations: InjectedOperations, token: Token = "", limit: Limit = "100"
) -> api.ListGroupsResponse:
    # GET /v1/groups
    """Return a page of the groups that the caller may see; the page after the last group is empty."""
    size = parse_limit(limit)
    state = await operations.registry.fresh_state()
    namespace = state.find_namespace(operations.namespace)
    after = decode_token(token) if token else None
    slices = operations.registry.time_slices
    is_shown = operations.registry.access.make_filter()
    there = namespace.subjects if namespace else {}
    names = sorted([name async for name in slices.iterate(there) if after is None or name > after])
    groups: dict[str, api.GroupProperties] = {}
    async for name in slices.iterate(names):
        if len(groups) == size:
            break
        subject = state.find_subject(SubjectKey(operations.namespace, name))
        if subject is not None and is_shown(subject.key):
            groups[name] = operations.build_group_properties(state, subject)
    return api.ListGroupsResponse(groups, encode_token(next(reversed(groups))) if groups else token)


@post(
    namespaced_paths("/groups"),
    operation_class=openapi_body(api.CreateGroupRequest),
    **STATUS_201,
    opt=access(Operation.REGISTER, Place.INSIDE),
)
async def create_group(operations: InjectedOperations, request: Request[Any, Any, Any]) -> EmptyResponse:
    # POST /v1/groups
    """Create a group."""
    body = await read_body(request, api.CreateGroupRequest)
    if not body.group_name:
        raise InvalidName(body.group_name)
    key = SubjectKey(operations.namespace, body.group_name)
    operations.registry.access.require(Operation.REGISTER, subject_resource(key))
    group_properties = body.group_properties
    check_properties(group_properties.properties)
    schema_format = operations.read_format(group_properties.serialization_format)
    policy = translate.parse_compatibility(group_properties.compatibility)
    await operations.require_comparable(schema_format, policy)
    defaults = SubjectDefaults(
        Numbering.NEVER_REUSE,
        translate.comparison_scope(group_properties.allow_multiple_types),
        policy,
        schema_format.format,
        custom_format=schema_format.custom_format,
    )
    stored = translate.compatibility_data(group_properties.compatibility)
    await operations.execute(
        CreateSubject(
            key,
            defaults,
            labels=group_properties.properties or None,
            dialect_data={translate.DIALECT: {"compatibility": stored}} if stored is not None else None,
        )
    )
    return EmptyResponse(201)


@get(namespaced_paths(_GROUP), **READ, opt=access(Operation.READ))
async def get_group_properties(operations: InjectedOperations, group: Group) -> api.GroupProperties:
    # GET /v1/groups/{groupName}
    """Return the properties of a group."""
    state, subject = await operations.get_group(operations.parse_group(group))
    return operations.build_group_properties(state, subject)


@delete(namespaced_paths(_GROUP), **DELETE, opt=access(Operation.DELETE))
async def delete_group(operations: InjectedOperations, group: Group) -> None:
    # DELETE /v1/groups/{groupName}
    """Delete a group with all its schemas. A later group of the same name starts without them."""
    key = operations.parse_group(group)
    try:
        await operations.execute(DeleteSubject(key, DeleteMode.END_INCARNATION))
    except SubjectNotFound:
        return


@get(namespaced_paths(f"{_GROUP}/history"), **READ, opt=access(Operation.READ))
async def get_group_history(operations: InjectedOperations, group: Group) -> api.GroupHistory:
    # GET /v1/groups/{groupName}/history
    """Return all schemas of a group that are not deleted, with the policies they were added under."""
    state, subject = await operations.get_group(operations.parse_group(group))
    return api.GroupHistory(
        [
            await operations.build_history_record(state, row)
            async for row in operations.registry.time_slices.iterate(queries.list_versions(subject))
        ]
    )


@put(
    namespaced_paths(f"{_GROUP}/compatibility"),
    operation_class=openapi_body(api.UpdateCompatibilityRequest),
    **STATUS_200,
    opt=access(Operation.CHANGE_POLICY),
)
async def update_compatibility(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> EmptyResponse:
    # PUT /v1/groups/{groupName}/compatibility
    """Set the policy of a group, if its policy is the expected one."""
    body = await read_body(request, api.UpdateCompatibilityRequest)
    key = operations.parse_group(group)
    state, subject = await operations.get_group(key)
    policy = translate.parse_compatibility(body.compatibility)
    await operations.require_comparable(SchemaFormat(subject.format), policy)
    previous = body.previous_compatibility
    own = {translate.DIALECT: {"compatibility": translate.compatibility_data(body.compatibility)}}
    await operations.execute(
        ChangeSettings(
            SettingsLevel(*key),
            {"policy": policy, "dialect_data": own},
            expected=translate.expected_policy(previous, queries.policy_for(state, key)) if previous else None,
        )
    )
    return EmptyResponse(200)


_SCHEMAS = "/groups/{group:str}/schemas"
_BY_ID = f"{_SCHEMAS}/schema/{{schema_id:str}}"
_BY_VERSION = f"{_SCHEMAS}/format/{{format_name:str}}/type/{{type_name:str}}/versions/{{version:str}}"
_SCHEMA_BODY = openapi_body(api.SchemaInfo)
_EXISTING = SubjectDefaults(create=False)


@get(namespaced_paths(_SCHEMAS), **READ, opt=access(Operation.READ))
async def get_schemas(operations: InjectedOperations, group: Group, of_type: OfType = None) -> api.SchemaVersionsList:
    # GET /v1/groups/{groupName}/schemas
    """Return the latest schema of every type."""
    state, subject = await operations.get_group(operations.parse_group(group))
    latest = {translate.type_name_of(row): row for row in queries.list_versions(subject)}
    rows = [row for name, row in latest.items() if of_type in (None, name)]
    return await operations.build_versions_list(state, sorted(rows, key=lambda row: row.version_number))


@post(namespaced_paths(_SCHEMAS), operation_class=_SCHEMA_BODY, **STATUS_201, opt=access(Operation.REGISTER))
async def add_schema(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> api.VersionInfo:
    # POST /v1/groups/{groupName}/schemas
    """Add a schema, or return its version if the group has it."""
    body = await read_body(request, api.SchemaInfo)
    key = operations.parse_group(group)
    state, subject = await operations.get_group(key)
    document = await operations.parse_document(state, body, subject)
    if operations.find_same_schema(state, key, document) is None:
        schema_format = SchemaFormat(document.format, document.custom_format)
        await operations.require_comparable(schema_format, queries.policy_for(state, key))
    return await operations.register(
        RegisterSchema(
            key,
            document,
            equality=Equality.DIGEST,
            equality_digest=EQUALITY_DIGEST,
            defaults=_EXISTING,
            labels=body.properties or None,
        ),
        lambda _, version: translate.build_version_info(version),
    )


@get(namespaced_paths(f"{_SCHEMAS}/versions"), **READ, opt=access(Operation.READ))
async def get_schema_versions(
    operations: InjectedOperations, group: Group, of_type: OfType = None
) -> api.SchemaVersionsList:
    # GET /v1/groups/{groupName}/schemas/versions
    """Return all schemas that are not deleted."""
    state, subject = await operations.get_group(operations.parse_group(group))
    rows = [row for row in queries.list_versions(subject) if of_type in (None, translate.type_name_of(row))]
    return await operations.build_versions_list(state, rows)


@post(
    namespaced_paths(f"{_SCHEMAS}/versions/find"),
    operation_class=_SCHEMA_BODY,
    **STATUS_200,
    opt=access(Operation.READ),
)
async def get_schema_version(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> api.VersionInfo:
    # POST /v1/groups/{groupName}/schemas/versions/find
    """Return the version that a schema has in a group."""
    body = await read_body(request, api.SchemaInfo)
    key = operations.parse_group(group)
    state, _ = await operations.get_group(key)
    version = operations.find_same_schema(state, key, await operations.parse_document(state, body, name=key.name))
    if version is None:
        raise ContentNotFound
    return translate.build_version_info(version)


@post(
    namespaced_paths(f"{_SCHEMAS}/versions/validate"),
    operation_class=openapi_body(api.ValidateRequest),
    **STATUS_200,
    opt=access(Operation.READ),
)
async def validate_schema(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> api.Valid:
    # POST /v1/groups/{groupName}/schemas/versions/validate
    """Return whether a schema could be added under the policy of the group or another one."""
    body = await read_body(request, api.ValidateRequest)
    key = operations.parse_group(group)
    state, subject = await operations.get_group(key)
    document = await operations.parse_document(state, body.schema_info, subject)
    if body.compatibility is None:
        if operations.find_same_schema(state, key, document) is not None:
            return api.Valid(True)
        policy = queries.policy_for(state, key)
    else:
        policy = translate.parse_compatibility(body.compatibility)
    await operations.require_comparable(SchemaFormat(document.format, document.custom_format), policy)
    findings, _ = await operations.registry.find_incompatibilities(key, document, NO_ATTACHMENTS, policy=policy)
    return api.Valid(not findings)


@post(
    namespaced_paths(f"{_SCHEMAS}/versions/canRead"),
    operation_class=_SCHEMA_BODY,
    **STATUS_200,
    opt=access(Operation.READ),
)
async def can_read_using(operations: InjectedOperations, request: Request[Any, Any, Any], group: Group) -> api.CanRead:
    # POST /v1/groups/{groupName}/schemas/versions/canRead
    """Return whether a schema can read the data of a group, as far as its policy requires."""
    body = await read_body(request, api.SchemaInfo)
    key = operations.parse_group(group)
    state, subject = await operations.get_group(key)
    document = await operations.parse_document(state, body, subject)
    return api.CanRead(await operations.can_read(subject, document, queries.policy_for(state, key)))


@get(namespaced_paths(_BY_ID), **READ, opt=access(Operation.READ))
async def get_schema_for_id(operations: InjectedOperations, group: Group, schema_id: SchemaId) -> api.SchemaInfo:
    # GET /v1/groups/{groupName}/schemas/schema/{schemaId}
    """Return the schema with an id, also a deleted one."""
    return await operations.build_schema_info(
        *await operations.get_version_by_id(operations.parse_group(group), parse_number(schema_id))
    )


@delete(namespaced_paths(_BY_ID), **DELETE, opt=access(Operation.DELETE))
async def delete_schema_for_id(operations: InjectedOperations, group: Group, schema_id: SchemaId) -> None:
    # DELETE /v1/groups/{groupName}/schemas/schema/{schemaId}
    """Delete a schema. It can still be read by its id, because stored data may contain the id."""
    key = operations.parse_group(group)
    await _delete_version(operations, key, (await operations.get_version_by_id(key, parse_number(schema_id)))[1])


@get(namespaced_paths(_BY_VERSION), **READ, opt=access(Operation.READ))
async def get_schema_from_version(
    operations: InjectedOperations, group: Group, format_name: FormatName, type_name: TypeName, version: VersionNumber
) -> api.SchemaInfo:
    # GET /v1/groups/{groupName}/schemas/format/{serializationFormat}/type/{type}/versions/{version}
    """Return the schema with a version, also a deleted one."""
    place = decode_segment(format_name), decode_segment(type_name), parse_number(version)
    return await operations.build_schema_info(
        *await operations.get_version_by_number(operations.parse_group(group), *place)
    )


@delete(namespaced_paths(_BY_VERSION), **DELETE, opt=access(Operation.DELETE))
async def delete_schema_version(
    operations: InjectedOperations, group: Group, format_name: FormatName, type_name: TypeName, version: VersionNumber
) -> None:
    # DELETE /v1/groups/{groupName}/schemas/format/{serializationFormat}/type/{type}/versions/{version}
    """Delete a schema by its version, like `delete_schema_for_id`."""
    key = operations.parse_group(group)
    place = decode_segment(format_name), decode_segment(type_name), parse_number(version)
    await _delete_version(operations, key, (await operations.get_version_by_number(key, *place))[1])


async def _delete_version(operations: Operations, key: SubjectKey, version: Version) -> None:
    try:
        await operations.execute(DeleteVersion(key, version.version_number, DeleteMode.SOFT))
    except AlreadySoftDeleted:
        return


@post(
    namespaced_paths("/schemas/addedTo"),
    operation_class=_SCHEMA_BODY,
    **STATUS_200,
    opt=access(Operation.READ, Place.LIST),
)
async def get_schema_references(operations: InjectedOperations, request: Request[Any, Any, Any]) -> api.AddedTo:
    # POST /v1/schemas/addedTo
    """Return every group of the namespace that has a schema."""
    body = await read_body(request, api.SchemaInfo)
    state = await operations.registry.fresh_state()
    document = await operations.parse_document(state, body)
    can_read = operations.registry.access.make_filter(Operation.READ)
    return api.AddedTo(
        {
            row.subject.key.name: translate.build_version_info(row)
            for row in operations.find_same_in_groups(state, document)
            if can_read(row.subject.key)
        }
    )


_MAX_CODEC_BYTES = 900 * 1024


@get(namespaced_paths(f"{_GROUP}/codecTypes"), **READ, opt=access(Operation.READ))
async def get_codec_types(operations: InjectedOperations, group: Group) -> api.CodecTypes:
    # GET /v1/groups/{groupName}/codecTypes
    """Return the codecs of a group."""
    _, subject = await operations.get_group(operations.parse_group(group))
    return api.CodecTypes(
        [api.CodecType(name, dict(properties)) for name, properties in (subject.codecs or {}).items()]
    )


@post(
    namespaced_paths(f"{_GROUP}/codecTypes"),
    operation_class=openapi_body(api.CodecType),
    **STATUS_201,
    opt=access(Operation.REGISTER),
)
async def add_codec_type(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> EmptyResponse:
    # POST /v1/groups/{groupName}/codecTypes
    """Add a codec, unless the group has it. The empty name means no codec and always exists."""
    body = await read_body(request, api.CodecType)
    key = operations.parse_group(group)
    if sum(len(text.encode()) for pair in (body.properties or {}).items() for text in pair) >= _MAX_CODEC_BYTES:
        raise TooLarge(f"the properties of a codec must have less than {_MAX_CODEC_BYTES} bytes")
    await operations.get_group(key)
    if body.name:
        try:
            await operations.execute(AddCodec(key, body.name, body.properties or {}))
        except AlreadyExists:
            return EmptyResponse(201)
    return EmptyResponse(201)


@put(
    namespaced_paths(f"{_GROUP}/encodings"),
    operation_class=openapi_body(api.GetEncodingIdRequest),
    **STATUS_200,
    opt=access(Operation.REGISTER),
)
async def get_encoding_id(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> api.EncodingId:
    # PUT /v1/groups/{groupName}/encodings
    """Return the id of a version with a codec; it never changes."""
    body = await read_body(request, api.GetEncodingIdRequest)
    key = operations.parse_group(group)
    _, subject = await operations.get_group(key)
    if body.codec_type and body.codec_type not in (subject.codecs or {}):
        raise CodecNotFound(f"the codec '{body.codec_type}' is not registered with the group '{key.name}'")
    _, version = await operations.get_version_by_id(key, body.version_info.id)
    if not translate.is_named_by(version, body.version_info):
        raise VersionNotFound(body.version_info.version)
    outcome = await operations.execute(AssignEncoding(key, version.version_number, body.codec_type))
    assert isinstance(outcome, EncodingOutcome)
    return api.EncodingId(outcome.encoding - 1)


@get(namespaced_paths(f"{_GROUP}/encodings/{{encoding_id:str}}"), **READ, opt=access(Operation.READ))
async def get_encoding_info(operations: InjectedOperations, group: Group, encoding_id: EncodingId) -> api.EncodingInfo:
    # GET /v1/groups/{groupName}/encodings/{encodingId}
    """Return version and codec of an encoding id. The ids of a deleted group are not found."""
    key, number = operations.parse_group(group), parse_number(encoding_id)
    state, subject = await operations.get_group(key)
    if number >= len(subject.encodings or ()):
        raise EncodingNotFound(f"'{key.name}' has never had an encoding {number}")
    version, codec = queries.get_encoding(state, key, number + 1)
    return api.EncodingInfo(
        await operations.build_schema_info(state, version),
        translate.build_version_info(version),
        api.CodecType(codec, dict((subject.codecs or {}).get(codec, {}))),
    )


ROUTES = [
    ping,
    list_groups,
    create_group,
    get_group_properties,
    delete_group,
    get_group_history,
    update_compatibility,
    get_schemas,
    add_schema,
    get_schema_versions,
    get_schema_version,
    validate_schema,
    can_read_using,
    get_schema_for_id,
    delete_schema_for_id,
    get_schema_from_version,
    delete_schema_version,
    get_schema_references,
    get_codec_types,
    add_codec_type,
    get_encoding_id,
    get_encoding_info,
]
