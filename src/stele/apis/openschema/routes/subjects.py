"""Subjects."""

from __future__ import annotations

from typing import Any

from litestar import Request, delete, get, post

from stele.apis.http.bodies import WrongShape, read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.openschema import models as api
from stele.apis.openschema import translate
from stele.apis.openschema.consistency import require_consistent
from stele.apis.openschema.models import MEDIA_TYPE
from stele.apis.openschema.operations import Operations, now_after
from stele.apis.openschema.params import READ, InjectedOperations, SubjectName
from stele.apis.openschema.tenancy import namespace_of
from stele.core import queries
from stele.core.commands import (
    ChangeSettings,
    ChangeSubject,
    CreateSubject,
    DeleteMode,
    DeleteSubject,
    SubjectDefaults,
)
from stele.core.model import Numbering, SettingsLevel, Subject, SubjectKey
from stele.core.policy import BACKWARD
from stele.core.state import State
from stele.errors import AlreadyExists, InvalidName, SubjectNotFound
from stele.service.retry import Overtaken, retry_when_overtaken

_SUBJECT = "/subjects/{subject:str}"


@get("/subjects", **READ)
async def list_subjects(operations: InjectedOperations) -> api.SubjectNames:
    # GET /subjects
    """Return the names of all subjects, or of those of a tenant's namespace."""
    state = await operations.registry.fresh_state()
    return api.SubjectNames(
        translate.visible_names(
            row for namespace in operations.list_namespaces(state) for row in namespace.subjects.values()
        )
    )


@get(_SUBJECT, **READ)
async def get_subject(operations: InjectedOperations, subject: SubjectName) -> api.SubjectBody:
    # GET /subjects/{subject}
    """Return a subject."""
    return translate.subject_body(*await operations.get_subject(decode_segment(subject)))


@post(_SUBJECT, operation_class=openapi_body(api.SubjectInput, MEDIA_TYPE), **READ)
async def put_subject(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> api.SubjectBody:
    # POST /subjects/{subject}/
    """Create a subject, or change its attributes."""
    body = await read_body(request, api.SubjectInput)
    namespace = namespace_of(body.tenant, body.namespace)
    if body.subject != decode_segment(subject) or operations.namespace not in {None, namespace}:
        raise WrongShape("subject, tenant and namespace differ from those of the address")
    if not body.status.strip():
        raise WrongShape("status is missing")
    if not body.subject.strip():
        raise InvalidName(body.subject, "is no name")
    operations.check_sizes(body.app, body.description, body.coordinate, body.status)
    key = SubjectKey(namespace, body.subject)

    async def put(state: State) -> api.SubjectBody:
        subject = state.find_subject(key)
        await (
            _create_subject(operations, key, body)
            if subject is None
            else _change_subject(operations, state, subject, body)
        )
        state = operations.registry.state
        changed = state.find_subject(key)
        if changed is None:
            raise Overtaken
        return translate.subject_body(state, changed)

    # Either error means that somebody was faster: then the other one of the two commands is right.
    return await retry_when_overtaken(operations.registry, put, conflicts=(AlreadyExists, SubjectNotFound))


async def _create_subject(operations: Operations, key: SubjectKey, body: api.SubjectInput) -> None:
    policy = translate.parse_policy(body.compatibility)
    settings = operations.registry.state.settings_at(SettingsLevel(*key))
    if policy is None and settings is not None:  # Another dialect prepared one for a subject of this name.
        policy = settings.policy
    defaults = SubjectDefaults(Numbering.NEVER_REUSE, policy=policy or BACKWARD)
    dialect_data = translate.subject_data(None, body, now_after(0))
    await operations.execute(CreateSubject(key, defaults, body.description or "", dialect_data=dialect_data))


async def _change_subject(operations: Operations, state: State, subject: Subject, body: api.SubjectInput) -> None:
    policy = translate.parse_policy(body.compatibility)
    if policy is not None and policy != queries.policy_for(state, subject.key):
        await require_consistent(operations.registry, state, subject, policy, max_pairs=operations.options.max_pairs)
        await operations.execute(ChangeSettings(SettingsLevel(*subject.key), {"policy": policy}))
    dialect_data = translate.subject_data(subject.dialect_data, body, now_after(translate.modified_at(state, subject)))
    description = subject.description if body.description is None else body.description
    await operations.execute(
        ChangeSubject(subject.key, description, subject.labels, dialect_data, subject.default_version)
    )


@delete(_SUBJECT, **READ)
async def delete_subject(operations: InjectedOperations, subject: SubjectName) -> api.VersionNumbers:
    # DELETE /subjects/{subject}
    """Delete a subject with its compatibility and all versions, and return their numbers."""
    _, found = await operations.get_subject(decode_segment(subject))
    live = [row.version_number for row in queries.list_versions(found)]
    await operations.execute(DeleteSubject(found.key, DeleteMode.END_INCARNATION))
    return api.VersionNumbers(live)


ROUTES = [list_subjects, get_subject, put_subject, delete_subject]
