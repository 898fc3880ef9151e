"""Subjects: listing, describing, creating, changing, deleting."""

from __future__ import annotations

from typing import Any

from litestar import Request, delete, get, post

from stele.apis.http.bodies import WrongShape, read_body
from stele.apis.http.openapi import openapi_body
from stele.apis.http.paths import decode_segment
from stele.apis.openschema import entities as api
from stele.apis.openschema import translate
from stele.apis.openschema.conventions import MEDIA_TYPE
from stele.apis.openschema.desk import Desk, now_after
from stele.apis.openschema.judging import require_consistent
from stele.apis.openschema.parameters import READ, AtDesk, SubjectName
from stele.apis.openschema.places import space_of
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
async def list_subjects(desk: AtDesk) -> api.Names:
    # GET /subjects
    """Names of all subjects, or of those of a tenant's namespace."""
    state = await desk.registry.fresh_state()
    return api.Names(translate.names_of(row for place in desk.spaces(state) for row in place.subjects.values()))


@get(_SUBJECT, **READ)
async def get_subject(desk: AtDesk, subject: SubjectName) -> api.SubjectOut:
    # GET /subjects/{subject}
    """What describes a subject."""
    return translate.subject_out(*await desk.subject(decode_segment(subject)))


@post(_SUBJECT, operation_class=openapi_body(api.SubjectIn, MEDIA_TYPE), **READ)
async def put_subject(desk: AtDesk, request: Request[Any, Any, Any], subject: SubjectName) -> api.SubjectOut:
    # POST /subjects/{subject}/
    """Create a subject, or change what describes it."""
    given = await read_body(request, api.SubjectIn)
    space = space_of(given.tenant, given.namespace)
    if given.subject != decode_segment(subject) or desk.space not in {None, space}:
        raise WrongShape("subject, tenant and namespace differ from those of the address")
    if not given.status.strip():
        raise WrongShape("status is missing")
    if not given.subject.strip():
        raise InvalidName(given.subject, "is no name")
    desk.require_small(given.app, given.description, given.coordinate, given.status)
    key = SubjectKey(space, given.subject)
    while True:
        state = await desk.registry.fresh_state()
        known = state.find_subject(key)
        try:
            await (_create(desk, key, given) if known is None else _change(desk, state, known, given))
        except (AlreadyExists, SubjectNotFound):  # somebody was faster: the other one of the two is meant
            continue
        state = desk.registry.state
        made = state.find_subject(key)
        if made is not None:
            return translate.subject_out(state, made)


async def _create(desk: Desk, key: SubjectKey, given: api.SubjectIn) -> None:
    policy = translate.policy_in(given.compatibility)
    ready = desk.registry.state.settings_at(SettingsLevel(*key))
    if policy is None and ready is not None:  # another dialect had one ready for a subject of this name
        policy = ready.policy
    defaults = SubjectDefaults(Numbering.NEVER_REUSE, policy=policy or BACKWARD)
    kept = translate.kept_subject(None, given, now_after(0))
    await desk.execute(CreateSubject(key, defaults, given.description or "", dialect_data=kept))


async def _change(desk: Desk, state: State, subject: Subject, given: api.SubjectIn) -> None:
    policy = translate.policy_in(given.compatibility)
    if policy is not None and policy != queries.policy_for(state, subject.key):
        await require_consistent(desk.registry, state, subject, policy, max_pairs=desk.options.max_pairs)
        await desk.execute(ChangeSettings(SettingsLevel(*subject.key), {"policy": policy}))
    kept = translate.kept_subject(subject.dialect_data, given, now_after(translate.modified_at(state, subject)))
    described = subject.description if given.description is None else given.description
    await desk.execute(ChangeSubject(subject.key, described, subject.labels, kept, subject.default_version))


@delete(_SUBJECT, **READ)
async def delete_subject(desk: AtDesk, subject: SubjectName) -> api.Versions:
    # DELETE /subjects/{subject}
    """Delete a subject with its compatibility and all versions, and say which those were."""
    _, found = await desk.subject(decode_segment(subject))
    live = [row.version_number for row in queries.list_versions(found)]
    await desk.execute(DeleteSubject(found.key, DeleteMode.END_INCARNATION))
    return api.Versions(live)


ROUTES = [list_subjects, get_subject, put_subject, delete_subject]
