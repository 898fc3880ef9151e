"""Compatibility: trying a schema, and the policy of a subject."""

from __future__ import annotations

from typing import Any

from litestar import Request, get, post, put

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.openschema import entities as api
from stele.apis.openschema import translate
from stele.apis.openschema.conventions import MEDIA_TYPE
from stele.apis.openschema.desk import live_version, now_after
from stele.apis.openschema.judging import require_consistent
from stele.apis.openschema.parameters import READ, AtDesk, SubjectName, VersionName
from stele.apis.openschema.translate import DIALECT
from stele.core import queries
from stele.core.commands import ChangeSettings
from stele.core.model import Attachments, SettingsLevel
from stele.core.policy import find_policy

_CONFIG = "/config/{subject:str}"


@post(
    "/compatibility/subjects/{subject:str}/versions/{version:str}",
    operation_class=openapi_body(api.CheckDocument, MEDIA_TYPE),
    **READ,
)
async def check(
    desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName, version: VersionName
) -> api.CheckOut:
    # POST /compatibility/subjects/{subject}/versions/{version}
    """Whether a schema agrees with a version, under the policy of the subject."""
    body = await read_body(request, api.CheckIn)
    number = translate.version_in(decode_segment(version))
    state, found = await desk.subject(decode_segment(subject))
    row = live_version(state, found, number)
    draft = desk.draft(translate.tried_in(bytes(body.schema)), row)
    prepared = await desk.prepared(state, draft, row)
    attachments = Attachments(prepared.references)
    findings, _ = await desk.registry.find_incompatibilities(
        found.key, prepared.document, attachments, version_number=row.version_number
    )
    return api.CheckOut(not findings)


@get(_CONFIG, **READ)
async def get_config(desk: AtDesk, subject: SubjectName) -> api.ConfigOut:
    # GET /config/{subject}
    """The compatibility of a subject."""
    state, found = await desk.subject(decode_segment(subject))
    return translate.config_out(queries.policy_for(state, found.key))


@put(_CONFIG, operation_class=openapi_body(api.ConfigIn, MEDIA_TYPE), **READ)
async def put_config(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> api.ConfigOut:
    # PUT /config/{subject}
    """Set the compatibility of a subject, if the versions there are agree with it."""
    body = await read_body(request, api.ConfigIn)
    policy = find_policy(body.compatibility)
    state, found = await desk.subject(decode_segment(subject))
    await require_consistent(desk.registry, state, found, policy, max_pairs=desk.options.max_pairs)
    at = now_after(translate.modified_at(state, found))
    await desk.execute(
        ChangeSettings(SettingsLevel(*found.key), {"policy": policy, "dialect_data": {DIALECT: {"modified": at}}})
    )
    return translate.config_out(policy)


ROUTES = [check, get_config, put_config]
