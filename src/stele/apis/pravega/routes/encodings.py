"""Codecs of a group, and encodings: pairs of a version and a codec, whose ids data begin with."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get, post, put

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.pravega import access, translate
from stele.apis.pravega import models as api
from stele.apis.pravega.access import ResourcePermission
from stele.apis.pravega.params import (
    READ,
    STATUS_200,
    STATUS_201,
    EncodingId,
    Group,
    InjectedOperations,
    empty_response,
    namespaced_paths,
    parse_number,
)
from stele.core import queries
from stele.core.commands import AddCodec, AssignEncoding, EncodingOutcome
from stele.errors import AlreadyExists, CodecNotFound, EncodingNotFound, TooLarge, VersionNotFound

_GROUP = "/groups/{group:str}"
_MAX_CODEC_BYTES = 900 * 1024


@get(namespaced_paths(f"{_GROUP}/codecTypes"), **READ)
async def get_codec_types(operations: InjectedOperations, group: Group) -> api.CodecTypes:
    # GET /v1/groups/{groupName}/codecTypes
    """Return the codecs of a group."""
    _, subject = await operations.get_group(operations.authorize_read(group))
    return api.CodecTypes([api.CodecType(name, dict(found)) for name, found in (subject.codecs or {}).items()])


@post(namespaced_paths(f"{_GROUP}/codecTypes"), operation_class=openapi_body(api.CodecType), **STATUS_201)
async def add_codec_type(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> Response[bytes]:
    # POST /v1/groups/{groupName}/codecTypes
    """Add a codec; nothing changes if the group has it. The empty name is no codec and always there."""
    body = await read_body(request, api.CodecType)
    key = operations.authorize_group(group, access.codecs_resource, ResourcePermission.READ_UPDATE)
    if sum(len(text.encode()) for pair in (body.properties or {}).items() for text in pair) >= _MAX_CODEC_BYTES:
        raise TooLarge(f"the properties of a codec have less than {_MAX_CODEC_BYTES} bytes")
    await operations.get_group(key)
    if body.name:
        try:
            await operations.execute(AddCodec(key, body.name, body.properties or {}))
        except AlreadyExists:
            return empty_response(201)
    return empty_response(201)


@put(namespaced_paths(f"{_GROUP}/encodings"), operation_class=openapi_body(api.GetEncodingIdRequest), **STATUS_200)
async def get_encoding_id(
    operations: InjectedOperations, request: Request[Any, Any, Any], group: Group
) -> api.EncodingId:
    # PUT /v1/groups/{groupName}/encodings
    """Return the id of a version with a codec; it never changes."""
    body = await read_body(request, api.GetEncodingIdRequest)
    key = operations.authorize_read(group)
    _, subject = await operations.get_group(key)
    if body.codec_type and body.codec_type not in (subject.codecs or {}):
        raise CodecNotFound(f"the codec '{body.codec_type}' is not registered with the group '{key.name}'")
    _, version = await operations.get_version_by_id(key, body.version_info.id)
    if not translate.is_named_by(version, body.version_info):
        raise VersionNotFound(body.version_info.version)
    outcome = await operations.execute(AssignEncoding(key, version.version_number, body.codec_type))
    assert isinstance(outcome, EncodingOutcome)
    return api.EncodingId(outcome.encoding - 1)


@get(namespaced_paths(f"{_GROUP}/encodings/{{encoding_id:str}}"), **READ)
async def get_encoding_info(operations: InjectedOperations, group: Group, encoding_id: EncodingId) -> api.EncodingInfo:
    # GET /v1/groups/{groupName}/encodings/{encodingId}
    """Return version and codec of an encoding id. The ids of a deleted group are gone with it."""
    key, number = operations.authorize_read(group), parse_number(encoding_id)
    state, subject = await operations.get_group(key)
    if number >= len(subject.encodings or ()):
        raise EncodingNotFound(f"encoding {number} was never given by '{key.name}'")
    version, codec = queries.get_encoding(state, key, number + 1)
    return api.EncodingInfo(
        await operations.build_schema_info(state, version),
        translate.build_version_info(version),
        api.CodecType(codec, dict((subject.codecs or {}).get(codec, {}))),
    )


ROUTES = [get_codec_types, add_codec_type, get_encoding_id, get_encoding_info]
