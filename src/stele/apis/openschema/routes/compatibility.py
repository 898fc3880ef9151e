"""Compatibility: checking a schema, and the policy of a subject."""

from __future__ import annotations

from typing import Any

from litestar import Request, get, post, put

from stele.apis.http.bodies import read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.openschema import models as api
from stele.apis.openschema import translate
from stele.apis.openschema.consistency import require_consistent
from stele.apis.openschema.models import MEDIA_TYPE
from stele.apis.openschema.operations import get_live_version, now_after
from stele.apis.openschema.params import READ, InjectedOperations, SubjectName, VersionName
from stele.apis.openschema.translate import DIALECT
from stele.core import queries
from stele.core.commands import ChangeSettings
from stele.core.model import Attachments, SettingsLevel
from stele.core.policy import find_policy

_CONFIG = "/config/{subject:str}"


@post(
    "/compatibility/subjects/{subject:str}/versions/{version:str}",
    operation_class=openapi_body(api.CheckInputDoc, MEDIA_TYPE),
    **READ,
)
async def check_compatibility(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName, version: VersionName
) -> api.CompatibilityAnswer:
    # POST /compatibility/subjects/{subject}/versions/{version}
    """Return whether a schema agrees with a version under the policy of the subject."""
    body = await read_body(request, api.CheckInput)
    number = translate.parse_version(decode_segment(version))
    state, found = await operations.get_subject(decode_segment(subject))
    row = get_live_version(state, found, number)
    submitted = operations.parse_schema(translate.parse_checked_schema(bytes(body.schema)), row)
    prepared = await operations.prepare_schema(state, submitted, row)
    attachments = Attachments(prepared.references)
    findings, _ = await operations.registry.find_incompatibilities(
        found.key, prepared.document, attachments, version_number=row.version_number
    )
    return api.CompatibilityAnswer(not findings)


@get(_CONFIG, **READ)
async def get_config(operations: InjectedOperations, subject: SubjectName) -> api.ConfigBody:
    # GET /config/{subject}
    """Return the compatibility of a subject."""
    state, found = await operations.get_subject(decode_segment(subject))
    return translate.config_body(queries.policy_for(state, found.key))


@put(_CONFIG, operation_class=openapi_body(api.ConfigInput, MEDIA_TYPE), **READ)
async def put_config(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> api.ConfigBody:
    # PUT /config/{subject}
    """Set the compatibility of a subject, if its versions agree with it."""
    body = await read_body(request, api.ConfigInput)
    policy = find_policy(body.compatibility)
    state, found = await operations.get_subject(decode_segment(subject))
    await require_consistent(operations.registry, state, found, policy, max_pairs=operations.options.max_pairs)
    at = now_after(translate.modified_at(state, found))
    await operations.execute(
        ChangeSettings(SettingsLevel(*found.key), {"policy": policy, "dialect_data": {DIALECT: {"modified": at}}})
    )
    return translate.config_body(policy)


ROUTES = [check_compatibility, get_config, put_config]
