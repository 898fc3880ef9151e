"""Replications that this server runs: create, pause, resume and delete them, and see their conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from stele.apis.http.access import Place, access
from stele.apis.http.dependencies import VOLATILE
from stele.core.access import Operation
from stele.core.model import SubjectKey
from stele.errors import AlreadyExists, InvalidName, InvalidRequest, TooLarge
from stele.protocol.replication import ConflictCode, SettingsScope
from stele.service.replication.documents import (
    OtherRegistry,
    RegistryKind,
    Replication,
    ReplicationDirection,
    ReplicationOverview,
    RunState,
    StoredConflict,
    create_replication,
    delete_replication,
    get_replication,
    list_replications,
    set_run_state,
)
from stele.ui.forms import Destination, FieldProblem, Form, FormPage
from stele.ui.links import qualify_name, split_lines
from stele.ui.pages import Page, PageRequest

_NO_URL: Final = (
    "This server has no public_url, which is the authority of its schemas. Set it first: no replication runs without."
)
_STATES: Final = {"pause": (RunState.PAUSED, "paused"), "resume": (RunState.RUNNING, "resumed")}
_ADVICE: Final[Mapping[str, str]] = {
    ConflictCode.AUTHORITY_DIFFERS: "Rename, or delete one of the two subjects.",
    ConflictCode.NUMBER_TAKEN: "Delete that version at the target.",
    ConflictCode.URI_TAKEN: "Find out which registries gave the same URI.",
    ConflictCode.ID_TAKEN: "Use a separate namespace.",
    ConflictCode.DELETED_AT_TARGET: "Delete it at the source as well, or for good at the target: then it is"
    " replicated again.",
    ConflictCode.IN_USE: "Delete the schema at the target that refers to it.",
    ConflictCode.REFERENCE_MISSING: "Also replicate the subject that it refers to.",
    ConflictCode.SETTINGS_DIFFER: "Make the settings of both the same.",
    ConflictCode.REFUSED: "Fix the cause that the message names.",
}
"""How to resolve a conflict, by its code."""


class ReplicationEntry(msgspec.Struct, frozen=True):
    """The values of the form for a new replication, without credentials."""

    name: str = ""
    direction: str = ReplicationDirection.PULL.value
    url: str = ""
    kind: str = RegistryKind.STELE.value
    user: str = ""
    authority: str = ""
    subjects: str = ":*:"
    rename: str = "${subject}"
    namespace: str = "${namespace}"
    poll_seconds: str = "1"
    settings: str = SettingsScope.SUBJECTS.value
    paused: bool = False


class ReplicationsPage(msgspec.Struct, frozen=True):
    """All replications, and a form for a new one.

    obstacle      why no replication runs; '' if nothing prevents it
    pull_refusal  why the caller cannot follow another registry; '' if the caller can
    push_refusal  why the caller cannot send changes to another registry; '' if the caller can
    kinds         kinds of other registries
    scopes        levels whose settings can be replicated
    entered       values of the form
    """

    replications: Sequence[ReplicationOverview]
    obstacle: str
    pull_refusal: str
    push_refusal: str
    kinds: Sequence[str]
    scopes: Sequence[str]
    entered: ReplicationEntry
    problems: Sequence[FieldProblem] = ()


class ConflictRow(msgspec.Struct, frozen=True):
    """Versions of a subject that cannot be replicated, all for one reason.

    name      qualified name of the subject at the target; '' is the whole registry
    versions  their numbers; 0 is the settings of the subject
    code      the reason, a `ConflictCode`
    why       details of the reason
    advice    how to resolve the conflict
    """

    name: str
    versions: Sequence[int]
    code: str
    why: str
    advice: str


class ReplicationPage(msgspec.Struct, frozen=True):
    """A replication; refusal says why the caller may not change it, obstacle why it does not run."""

    overview: ReplicationOverview
    conflicts: Sequence[ConflictRow]
    obstacle: str
    refusal: str


async def view_replications(page: PageRequest) -> ReplicationsPage:
    """Show all replications, how far each one is, and a form to begin another one."""
    return await _show_list(page, ReplicationEntry(), ())


async def submit_replication(page: PageRequest, form: Form) -> msgspec.Struct:
    """Create a replication, or show the form again with what is wrong with it."""
    entered = _read_entry(form)
    try:
        if not page.options.public_url:
            raise InvalidRequest(_NO_URL)
        overview = await create_replication(page.registry, _read_replication(entered, form))
    except (InvalidName, AlreadyExists) as error:
        return await _show_list(page, entered, [FieldProblem("name", str(error))])
    except (InvalidRequest, TooLarge) as error:
        return await _show_list(page, entered, [FieldProblem("", str(error))])
    return Destination(f"/replications/{overview.replication.name}?done=created")


async def view_replication(page: PageRequest) -> ReplicationPage:
    """Show how far a replication is, what it replicates, and its conflicts."""
    overview = await get_replication(page.registry, page.get_segment("replication"))
    refusal = page.find_refusal(Operation.MANAGE_EXPORTERS, is_change=True)
    return ReplicationPage(overview, _group_conflicts(overview.status.conflicts), _find_obstacle(page), refusal)


async def submit_state(page: PageRequest, form: Form) -> msgspec.Struct:
    """Pause, resume or delete a replication."""
    name, action = page.get_segment("replication"), form.get("action")
    if action == "delete":
        await delete_replication(page.registry, name)
        return Destination("/replications?done=ended")
    if action not in _STATES:
        raise InvalidRequest(f"action must be delete or one of {', '.join(_STATES)}")
    state, done = _STATES[action]
    await set_run_state(page.registry, name, state)
    return Destination(f"/replications/{name}?done={done}")


async def _show_list(
    page: PageRequest, entered: ReplicationEntry, problems: Sequence[FieldProblem]
) -> ReplicationsPage:
    pull, push = _find_refusal(page, Operation.IMPORT), _find_refusal(page, Operation.EXPORT)
    if pull and not push:
        entered = msgspec.structs.replace(entered, direction=ReplicationDirection.PUSH.value)
    return ReplicationsPage(
        await list_replications(page.registry),
        _find_obstacle(page),
        pull,
        push,
        kinds=list(RegistryKind),
        scopes=list(SettingsScope),
        entered=entered,
        problems=problems,
    )


def _find_refusal(page: PageRequest, right: Operation) -> str:
    """Return why the caller cannot create a replication that needs `right` besides the right to manage replications."""
    return (
        page.find_refusal(Operation.MANAGE_EXPORTERS, is_change=True)
        or page.find_refusal(right, is_change=True)
        or _find_obstacle(page)
    )


def _group_conflicts(conflicts: Sequence[StoredConflict]) -> list[ConflictRow]:
    """Return conflicts by subject and reason, in their order."""
    groups: dict[tuple[str, str, str, str], list[int]] = {}
    for row in conflicts:
        groups.setdefault((row.namespace, row.subject, row.code, row.why), []).append(row.version)
    return [
        ConflictRow(qualify_name(SubjectKey(namespace, subject)), versions, code, why, _ADVICE.get(code, ""))
        for (namespace, subject, code, why), versions in groups.items()
    ]


def _find_obstacle(page: PageRequest) -> str:
    return "" if page.options.public_url else _NO_URL


def _read_entry(form: Form) -> ReplicationEntry:
    plain = ReplicationEntry()
    names = [name for name in ReplicationEntry.__struct_fields__ if name != "paused"]
    texts = {name: form.get(name, getattr(plain, name)) for name in names}
    return ReplicationEntry(**texts, paused=form.get("paused") == "true")


def _read_replication(entered: ReplicationEntry, form: Form) -> Replication:
    """Return the replication that a form describes. Raises `InvalidRequest`."""
    registry = {
        "url": entered.url.strip(),
        "kind": entered.kind,
        "user": entered.user,
        "password": form.get("password"),
        "token": form.get("token"),
        "authority": entered.authority.strip(),
    }
    try:
        poll_seconds = float(entered.poll_seconds)
    except ValueError:
        raise InvalidRequest("poll_seconds must be between 0.1 and 86400") from None
    try:
        return Replication(
            entered.name.strip(),
            ReplicationDirection(entered.direction),
            msgspec.convert(registry, OtherRegistry),
            tuple(split_lines(entered.subjects)),
            entered.rename,
            entered.namespace,
            poll_seconds,
            RunState.PAUSED if entered.paused else RunState.RUNNING,
            SettingsScope(entered.settings),
        )
    except (ValueError, msgspec.ValidationError) as error:
        raise InvalidRequest(str(error)) from None


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    right = access(Operation.MANAGE_EXPORTERS, Place.REGISTRY)
    readable = right | {VOLATILE: True}  # the lag grows without a new record in the log
    every = Page("/ui/replications", view_replications, "replications.html.j2", readable, menu="/replications")
    one = Page(
        "/ui/replications/{replication:str}",
        view_replication,
        "replication.html.j2",
        readable,
        menu="/replications",
        twin="/ui/replications/{replication:str}/state.json",
    )
    return [FormPage(every, submit_replication, right), FormPage(one, submit_state, right)]
