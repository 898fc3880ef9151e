"""Subjects: listing, describing, creating, changing, deleting."""

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

_SUBJECT = "/subjects/{subject:str}"


@get("/subjects", **READ)
async def list_subjects(operations: InjectedOperations) -> api.SubjectNames:
    # GET /subjects
    """Names of all subjects, or of those of a tenant's namespace."""
    state = await operations.registry.current()
    return api.SubjectNames(
        translate.visible_names(row for place in operations.list_namespaces(state) for row in place.subjects.values())
    )


@get(_SUBJECT, **READ)
async def get_subject(operations: InjectedOperations, subject: SubjectName) -> api.SubjectBody:
    # GET /subjects/{subject}
    """What describes a subject."""
    return translate.subject_body(*await operations.get_subject(decode_segment(subject)))


@post(_SUBJECT, operation_class=openapi_body(api.SubjectInput, MEDIA_TYPE), **READ)
async def put_subject(
    operations: InjectedOperations, request: Request[Any, Any, Any], subject: SubjectName
) -> api.SubjectBody:
    # POST /subjects/{subject}/
    """Create a subject, or change what describes it."""
    given = await read_body(request, api.SubjectInput)
    namespace = namespace_of(given.tenant, given.namespace)
    if given.subject != decode_segment(subject) or operations.namespace not in {None, namespace}:
        raise WrongShape("subject, tenant and namespace differ from those of the address")
    if not given.status.strip():
        raise WrongShape("status is missing")
    if not given.subject.strip():
        raise InvalidName(given.subject, "is no name")
    operations.check_sizes(given.app, given.description, given.coordinate, given.status)
    key = SubjectKey(namespace, given.subject)
    while True:
        state = await operations.registry.current()
        known = state.find_subject(key)
        try:
            await (_create(operations, key, given) if known is None else _change(operations, state, known, given))
        except (AlreadyExists, SubjectNotFound):  # somebody was faster: the other one of the two is meant
            continue
        state = operations.registry.state
        made = state.find_subject(key)
        if made is not None:
            return translate.subject_body(state, made)


async def _create(operations: Operations, key: SubjectKey, given: api.SubjectInput) -> None:
    policy = translate.parse_policy(given.compatibility)
    ready = operations.registry.state.settings_at(SettingsLevel(*key))
    if policy is None and ready is not None:  # another dialect had one ready for a subject of this name
        policy = ready.policy
    defaults = SubjectDefaults(Numbering.NEVER_REUSE, policy=policy or BACKWARD)
    kept = translate.subject_data(None, given, now_after(0))
    await operations.execute(CreateSubject(key, defaults, given.description or "", dialect_data=kept))


async def _change(operations: Operations, state: State, subject: Subject, given: api.SubjectInput) -> None:
    policy = translate.parse_policy(given.compatibility)
    if policy is not None and policy != queries.policy_for(state, subject.key):
        await require_consistent(operations.registry, state, subject, policy, max_pairs=operations.options.max_pairs)
        await operations.execute(ChangeSettings(SettingsLevel(*subject.key), {"policy": policy}))
    kept = translate.subject_data(subject.dialect_data, given, now_after(translate.modified_at(state, subject)))
    description = subject.description if given.description is None else given.description
    await operations.execute(ChangeSubject(subject.key, description, subject.labels, kept, subject.default_version))


@delete(_SUBJECT, **READ)
async def delete_subject(operations: InjectedOperations, subject: SubjectName) -> api.VersionNumbers:
    # DELETE /subjects/{subject}
    """Delete a subject with its compatibility and all versions, and say which those were."""
    _, found = await operations.get_subject(decode_segment(subject))
    live = [row.version_number for row in queries.list_versions(found)]
    await operations.execute(DeleteSubject(found.key, DeleteMode.END_INCARNATION))
    return api.VersionNumbers(live)


ROUTES = [list_subjects, get_subject, put_subject, delete_subject]
