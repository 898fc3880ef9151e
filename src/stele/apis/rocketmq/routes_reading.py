"""Records of the schema a subject is bound to: its own, by version, by id, by text, and all of them."""

from __future__ import annotations

from typing import Any

from litestar import Request, get, post

from stele.apis.http.bodies import read_bytes
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.rocketmq import entities as api
from stele.apis.rocketmq import translate
from stele.apis.rocketmq.desk import Desk
from stele.apis.rocketmq.parameters import READ, AtDesk, RecordId, SubjectName, VersionNumber, everywhere
from stele.core import queries
from stele.core.model import Version
from stele.core.state import State

_SUBJECT = "/subject/{subject:str}"


@get(everywhere(f"{_SUBJECT}/schema"), **READ)
async def get_schema(desk: AtDesk, subject: SubjectName) -> api.GetSchema:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema
    """The record a subject is bound to."""
    return _told(desk, subject, await desk.bound(decode_segment(subject)))


@get(everywhere(f"{_SUBJECT}/schema/versions/{{version:str}}"), **READ)
async def get_version(desk: AtDesk, subject: SubjectName, version: VersionNumber) -> api.GetSchema:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/versions/{version}
    """A version of the schema a subject is bound to."""
    number = translate.version_in(version)
    return _told(desk, subject, await desk.by_version(decode_segment(subject), number))


@get(everywhere(f"{_SUBJECT}/recordId/{{record_id:str}}/schema"), **READ)
async def get_record(desk: AtDesk, subject: SubjectName, record_id: RecordId) -> api.GetSchema:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/recordId/{record}/schema
    """What a record id stands for, also when its version was deleted: data may have been written with it."""
    number = translate.record_id_in(record_id)
    return _told(desk, subject, await desk.by_record_id(decode_segment(subject), number))


@get(everywhere(f"{_SUBJECT}/schema/versions"), **READ)
async def list_records(desk: AtDesk, subject: SubjectName) -> list[api.SchemaRecord]:
    # GET /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/versions
    """All records of the schema a subject is bound to, oldest first, each with its subjects."""
    state, version = await desk.bound(decode_segment(subject))
    bound = desk.bindings_of(state, version.subject)
    rows = queries.list_versions(version.subject)
    return [translate.schema_record(state, row, bound.get(row.version_number, [])) for row in rows]


@post(everywhere(f"{_SUBJECT}/schema/schema"), operation_class=openapi_body(str), **READ)
async def find_schema(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> api.GetSchema:
    # POST /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/schema/schema
    """The version of a subject's schema that is the schema in the body, which is bare text."""
    return _told(desk, subject, await desk.by_text(decode_segment(subject), await read_bytes(request)))


def _told(desk: Desk, subject: str, found: tuple[State, Version]) -> api.GetSchema:
    state, version = found
    return translate.get_schema(state, desk.place, decode_segment(subject), version)


ROUTES = [get_schema, get_version, get_record, list_records, find_schema]
