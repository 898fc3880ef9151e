"""Actions on several subjects: delete them softly, set their policy, or save them as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from litestar import Request, Response, post

from stele.apis.http.access import Place, access
from stele.core import queries
from stele.core.access import Operation, subject_resource
from stele.core.commands import DeleteMode, DeleteSubject
from stele.core.model import SettingsLevel, SubjectKey
from stele.core.policy import POLICIES
from stele.core.policy_json import PolicyJson
from stele.errors import InUse, InvalidRequest, SteleError, TooLarge
from stele.service.policies import PolicyChange, change_policy, parse_level_name
from stele.ui.forms import CHANGES_NOTHING, FieldProblem, Form, FormPage, read_form
from stele.ui.links import qualify_name, subject_path
from stele.ui.pages import Page, PageRequest
from stele.ui.work.deletion import list_bindings
from stele.ui.work.dumps import write_dump
from stele.ui.work.policy import INHERIT
from stele.ui.work.register import VIA

MOST_SUBJECTS: Final = 200
"""Maximum number of subjects in one request."""
_ACTIONS: Final = ("show", "delete", "policy")


class ChosenSubject(msgspec.Struct, frozen=True):
    """A chosen subject.

    qualified  its name, with the namespace
    path       path of its page, below `/ui`
    versions   number of active versions
    policy     policy in force, or the nearest stricter one that has a common name
    done       what was done to it: `deleted` or `policy`; '' for nothing
    problem    why the action failed; '' if it succeeded or there was none
    """

    namespace: str
    name: str
    qualified: str
    path: str
    versions: int
    policy: str
    done: str = ""
    problem: str = ""


class BulkPage(msgspec.Struct, frozen=True):
    """The chosen subjects, and the actions on all of them.

    action    the action: `show`, `delete` or `policy`
    hidden    number of chosen subjects that the caller may not read; the action skips them
    policies  policies to choose from
    refusal   why these pages change nothing; '' if they can
    """

    subjects: Sequence[ChosenSubject]
    action: str
    policies: Sequence[str]
    refusal: str
    hidden: int = 0
    problems: Sequence[FieldProblem] = ()


async def view_bulk(page: PageRequest) -> BulkPage:
    """Show the actions on several subjects, which are chosen in the list."""
    return BulkPage((), "show", (INHERIT, *POLICIES), page.find_refusal(Operation.DELETE) * page.options.read_only)


async def submit_bulk(page: PageRequest, form: Form) -> BulkPage:
    """Show the subjects that were chosen, delete them softly, or set their policy; each succeeds or fails alone."""
    action = form.get("action", "show")
    if action not in _ACTIONS:
        raise InvalidRequest(f"action must be one of {', '.join(_ACTIONS)}")
    chosen = _read_keys(form)
    keys = [key for key in chosen if page.registry.access.can_read(key)]
    empty = msgspec.structs.replace(await view_bulk(page), action=action, hidden=len(chosen) - len(keys))
    if not chosen:
        return msgspec.structs.replace(empty, problems=[FieldProblem("", "Choose at least one subject in the list.")])
    problems: dict[SubjectKey, str] = {}
    if action == "delete":
        problems = await _delete_subjects(page, keys)
    elif action == "policy":
        policy = form.get("policy")
        if policy not in empty.policies:
            problem = FieldProblem("policy", f"The policy is one of {', '.join(empty.policies)}.")
            return msgspec.structs.replace(empty, subjects=await _describe_subjects(page, keys), problems=[problem])
        problems = await _set_policies(page, keys, policy)
    done = "" if action == "show" else {"delete": "deleted", "policy": "policy"}[action]
    subjects = [
        msgspec.structs.replace(row, done="" if problem else done, problem=problem)
        for row in await _describe_subjects(page, keys)
        for problem in [problems.get(SubjectKey(row.namespace, row.name), "")]
    ]
    return msgspec.structs.replace(empty, subjects=subjects)


def _read_keys(form: Form) -> list[SubjectKey]:
    """Return the subjects of a form, each once. Raises `InvalidName`, `InvalidRequest`, `TooLarge`."""
    keys = []
    for name in form.get_all("subject"):
        level = parse_level_name(name)
        if level.namespace is None or level.subject is None:
            raise InvalidRequest(f"'{name[:100]}' names no subject")
        keys.append(SubjectKey(level.namespace, level.subject))
    if len(keys) > MOST_SUBJECTS:
        raise TooLarge(f"{len(keys)} subjects were chosen; at most {MOST_SUBJECTS} can be changed at once")
    return list(dict.fromkeys(keys))


async def _describe_subjects(page: PageRequest, keys: Sequence[SubjectKey]) -> list[ChosenSubject]:
    """Return the rows of subjects that the caller may read."""
    state = await page.registry.fresh_state()
    rows = []
    for key in keys:
        versions = len(queries.list_versions(state.find_subject(key)))
        policy = queries.policy_for(state, key).nearest_name
        rows.append(ChosenSubject(key.namespace, key.name, qualify_name(key), subject_path(key), versions, policy))
    return rows


async def _delete_subjects(page: PageRequest, keys: Sequence[SubjectKey]) -> dict[SubjectKey, str]:
    """Delete subjects softly, each after those that refer to it. Return why some were not deleted."""
    problems: dict[SubjectKey, str] = {}
    waiting = list(keys)
    while waiting:
        in_use: dict[SubjectKey, str] = {}
        for key in waiting:
            if refusal := page.find_refusal(Operation.DELETE, subject_resource(key)):
                problems[key] = refusal
                continue
            state = await page.registry.fresh_state()
            bindings = queries.bindings_of(state, [key])
            if list_bindings(state, key, queries.list_versions(state.find_subject(key))):
                problems[key] = "A topic, table or stream is bound to it: end that first."
                continue
            try:
                await page.registry.execute(DeleteSubject(key, DeleteMode.SOFT, bindings), via=VIA)
            except InUse as error:
                in_use[key] = f"Other schemas refer to version {error.version}."
            except SteleError as error:
                problems[key] = str(error)
        if len(in_use) == len(waiting):
            return problems | in_use
        waiting = list(in_use)
    return problems


async def _set_policies(page: PageRequest, keys: Sequence[SubjectKey], chosen: str) -> dict[SubjectKey, str]:
    """Set the policy of subjects. Return why that of some was not set."""
    problems: dict[SubjectKey, str] = {}
    policy = None if chosen == INHERIT else PolicyJson.from_policy(POLICIES[chosen])
    for key in keys:
        level = SettingsLevel(*key)
        if refusal := page.find_refusal(Operation.CHANGE_POLICY, subject_resource(key)):
            problems[key] = refusal
            continue
        own = (await page.registry.fresh_state()).settings_at(level)
        try:
            await change_policy(page.registry, level, PolicyChange(policy, own.ruleset if own else None), via=VIA)
        except SteleError as error:
            problems[key] = str(error)
    return problems


@post("/ui/bulk/download", opt=access(Operation.EXPORT, Place.REGISTRY) | {CHANGES_NOTHING: True}, status_code=200)
async def download_subjects(request: Request[Any, Any, Any]) -> Response[bytes]:
    # POST /ui/bulk/download
    """Send the versions of chosen subjects as a dump of a topic."""
    registry = PageRequest(request).registry
    keys = set(_read_keys(await read_form(request)))
    await registry.fresh_state()
    body = await registry.run_stateless(write_dump, registry, lambda each: each.subject.key in keys)
    headers = {"content-disposition": 'attachment; filename="schemas.dump"'}
    return Response(body, media_type="application/jsonl", headers=headers)


ROUTES: Final = (download_subjects,)
"""The endpoint that sends chosen subjects as a file."""


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    right = access(Operation.LIST, Place.LIST)
    return [FormPage(Page("/ui/bulk", view_bulk, "bulk.html.j2", right, menu="/subjects"), submit_bulk, right)]
