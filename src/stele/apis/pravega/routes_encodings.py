"""Codecs of a group, and the encodings data begin with: a version with a codec."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, get, post, put

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.pravega import access, translate
from stele.apis.pravega import entities as api
from stele.apis.pravega.access import Permission
from stele.apis.pravega.parameters import ASK, CREATE, READ, AtDesk, EncodingId, Group, everywhere, nothing, number_of
from stele.core import queries
from stele.core.commands import AddCodec, AssignEncoding, EncodingOutcome
from stele.errors import AlreadyExists, CodecNotFound, EncodingNotFound, TooLarge, VersionNotFound

_GROUP = "/groups/{group:str}"
_MAX_CODEC_BYTES = 900 * 1024


@get(everywhere(f"{_GROUP}/codecTypes"), **READ)
async def get_codec_types(desk: AtDesk, group: Group) -> api.CodecTypes:
    # GET /v1/groups/{groupName}/codecTypes
    """The codecs of a group."""
    _, subject = await desk.group(desk.readable(group))
    return api.CodecTypes([api.CodecType(name, dict(found)) for name, found in (subject.codecs or {}).items()])


@post(everywhere(f"{_GROUP}/codecTypes"), operation_class=openapi_body(api.CodecType), **CREATE)
async def add_codec_type(desk: AtDesk, request: Request[Any, Any, Any], group: Group) -> Response[bytes]:
    # POST /v1/groups/{groupName}/codecTypes
    """Add a codec; of one that is there already nothing changes. The empty name is no codec, and always there."""
    body = await read_body(request, api.CodecType)
    key = desk.allowed(group, access.codecs_resource, Permission.READ_UPDATE)
    if sum(len(text.encode()) for pair in (body.properties or {}).items() for text in pair) >= _MAX_CODEC_BYTES:
        raise TooLarge(f"the properties of a codec have less than {_MAX_CODEC_BYTES} bytes")
    await desk.group(key)
    if body.name:
        try:
            await desk.execute(AddCodec(key, body.name, body.properties or {}))
        except AlreadyExists:
            return nothing(201)
    return nothing(201)


@put(everywhere(f"{_GROUP}/encodings"), operation_class=openapi_body(api.GetEncodingIdRequest), **ASK)
async def get_encoding_id(desk: AtDesk, request: Request[Any, Any, Any], group: Group) -> api.EncodingId:
    # PUT /v1/groups/{groupName}/encodings
    """The id of a version with a codec: given once, the same for ever."""
    body = await read_body(request, api.GetEncodingIdRequest)
    key = desk.readable(group)
    _, subject = await desk.group(key)
    if body.codec_type and body.codec_type not in (subject.codecs or {}):
        raise CodecNotFound(f"the codec '{body.codec_type}' is not registered with the group '{key.name}'")
    _, version = await desk.by_id(key, body.version_info.id)
    if not translate.is_meant(version, body.version_info):
        raise VersionNotFound(body.version_info.version)
    outcome = await desk.execute(AssignEncoding(key, version.version_number, body.codec_type))
    assert isinstance(outcome, EncodingOutcome)
    return api.EncodingId(outcome.encoding - 1)


@get(everywhere(f"{_GROUP}/encodings/{{encoding_id:str}}"), **READ)
async def get_encoding_info(desk: AtDesk, group: Group, encoding_id: EncodingId) -> api.EncodingInfo:
    # GET /v1/groups/{groupName}/encodings/{encodingId}
    """What an encoding id stands for; the ids of a deleted group went with it."""
    key, number = desk.readable(group), number_of(encoding_id)
    state, subject = await desk.group(key)
    if number >= len(subject.encodings or ()):
        raise EncodingNotFound(f"encoding {number} was never given by '{key.name}'")
    version, codec = queries.get_encoding(state, key, number + 1)
    return api.EncodingInfo(
        await desk.schema_out(state, version),
        translate.version_out(version),
        api.CodecType(codec, dict((subject.codecs or {}).get(codec, {}))),
    )


ROUTES = [get_codec_types, add_codec_type, get_encoding_id, get_encoding_info]
