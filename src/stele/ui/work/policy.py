"""Settings of a subject, a namespace or the registry: policy, ruleset and mode, with a preview of the effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from stele.apis.http.access import Place, access
from stele.core import queries
from stele.core.access import Operation, level_resource
from stele.core.commands import SetMode
from stele.core.model import Mode, SettingsLevel, SubjectKey
from stele.core.policy import POLICIES, Policy
from stele.core.policy_json import PolicyJson
from stele.errors import InvalidRequest, ModeChangeRefused, PreconditionFailed, UnknownPolicy, UnknownRuleset
from stele.service.policies import PolicyAnswer, PolicyChange, change_policy, get_policy
from stele.service.policy_preview import PreviewedVersion, preview_policy
from stele.ui.forms import Destination, FieldProblem, Form, FormPage
from stele.ui.links import add_query, qualify_name, subject_path
from stele.ui.pages import Page, PageRequest
from stele.ui.routes.rules import describe_policy
from stele.ui.work.register import VIA

INHERIT: Final = "inherit"
CUSTOM: Final = "custom"
_SENTENCES: Final = {
    "BACKWARD": "A new version reads data of the latest one: update readers first.",
    "BACKWARD_TRANSITIVE": "A new version reads data of all versions: readers can go through old data.",
    "FORWARD": "The latest version reads data of a new one: update writers first.",
    "FORWARD_TRANSITIVE": "All versions read data of a new one.",
    "FULL": "Both ways with the latest version: update in any order.",
    "FULL_TRANSITIVE": "Both ways with all versions: the strictest.",
    "NONE": "Every valid schema is taken. Readers may fail.",
}
_MODES: Final = {
    Mode.READWRITE: "Versions can be registered and deleted.",
    Mode.READONLY: "Nothing can be changed here.",
    Mode.READONLY_OVERRIDE: "Nothing can be changed here, and no level below can lift that.",
    Mode.IMPORT: "Registrations give their own ids and numbers, and are not checked.",
}
_ACTIONS: Final = ("preview", "save", "mode")


class PolicyChoice(msgspec.Struct, frozen=True):
    """A policy or mode to choose; sentence says what it means."""

    value: str
    label: str
    sentence: str


class PolicyPage(msgspec.Struct, frozen=True):
    """The policy and mode of a level, and forms to change them.

    level      qualified name; '' is the registry
    title      the level in words
    answer     the policy in force, and the level that it comes from
    inherited  the policy that would be in force if this level had none
    chosen     value of the form: a common name, `inherit` or `custom`
    backward, forward, validators   values of a policy without a common name
    ruleset    value of the form; '' is the ruleset of the level above
    own_mode   mode that is set at this level; '' for none
    mode       mode in force
    preview    verdicts of the policy on the newest versions; None: no preview was requested
    previewed  the policy of the preview, in words
    refusal    why the caller may not change anything here; '' if the caller may
    """

    level: str
    title: str
    path: str
    answer: PolicyAnswer
    sentence: str
    inherited: str
    choices: Sequence[PolicyChoice]
    chosen: str
    backward: str
    forward: str
    validators: str
    ruleset: str
    mode: str
    own_mode: str
    modes: Sequence[PolicyChoice]
    refusal: str
    preview: Sequence[PreviewedVersion] | None = None
    previewed: str = ""
    problems: Sequence[FieldProblem] = ()


async def view_policy(page: PageRequest) -> PolicyPage:
    """Show the policy and mode of a level, the levels that they come from, and forms to change them."""
    level = page.level
    answer = await get_policy(page.registry, level)
    own = answer.own.policy
    name = own.to_policy.exact_name if own is not None else None
    return await _show(
        page, answer, INHERIT if own is None else name or CUSTOM, own or answer.policy, answer.own.ruleset or ""
    )


async def submit_policy(page: PageRequest, form: Form) -> msgspec.Struct:
    """Preview the verdicts of a policy, set it, or set the mode."""
    level = page.level
    action = form.get("action", "preview")
    if action not in _ACTIONS:
        raise InvalidRequest(f"action must be one of {', '.join(_ACTIONS)}")
    if action == "mode":
        return await _change_mode(page, level, form)
    answer = await get_policy(page.registry, level)
    chosen = form.get("policy", INHERIT)
    written = PolicyJson(
        backward=_join_range(form, "backward"),
        forward=_join_range(form, "forward"),
        validators=tuple(form.get("validators").split()),
    )
    ruleset = form.get("ruleset").strip()
    content = await _show(page, answer, chosen, written, ruleset)
    try:
        wanted = _read_policy(chosen, written)
    except UnknownPolicy as error:
        return msgspec.structs.replace(content, problems=[FieldProblem("policy", str(error))])
    if action == "save":
        change = PolicyChange(
            None if wanted is None else PolicyJson.from_policy(wanted), ruleset or None, answer.policy
        )
        try:
            await change_policy(page.registry, level, change, via=VIA)
        except UnknownRuleset as error:
            return msgspec.structs.replace(content, problems=[FieldProblem("ruleset", str(error))])
        except UnknownPolicy as error:
            return msgspec.structs.replace(content, problems=[FieldProblem("policy", str(error))])
        except PreconditionFailed:
            problem = FieldProblem(
                "", "Somebody else changed the policy meanwhile. Nothing was changed: look at it again."
            )
            return msgspec.structs.replace(content, problems=[problem])
        return Destination(add_query(content.path, {"done": "policy"}))
    if level.namespace is None or level.subject is None:
        return content
    key = SubjectKey(level.namespace, level.subject)
    policy = wanted or POLICIES.get(content.inherited) or answer.policy.to_policy
    rows = await preview_policy(page.registry, key, policy, ruleset or None)
    words = describe_policy(msgspec.structs.replace(answer, policy=PolicyJson.from_policy(policy)))
    return msgspec.structs.replace(content, preview=rows, previewed=words)


async def _change_mode(page: PageRequest, level: SettingsLevel, form: Form) -> msgspec.Struct:
    chosen = form.get("mode", INHERIT)
    known = {mode.value: mode for mode in _MODES}
    if chosen != INHERIT and chosen not in known:
        raise InvalidRequest(f"mode must be {INHERIT} or one of {', '.join(known)}")
    content = await view_policy(page)
    try:
        await page.registry.execute(SetMode(level, known.get(chosen)), via=VIA)
    except ModeChangeRefused as error:
        return msgspec.structs.replace(content, problems=[FieldProblem("mode", str(error))])
    return Destination(add_query(content.path, {"done": "mode"}))


def _join_range(form: Form, name: str) -> str:
    kind = form.get(name, "none")
    return f"since:{form.get(f'{name}_since').strip()}" if kind == "since" else kind


def _read_policy(chosen: str, written: PolicyJson) -> Policy | None:
    """Return the policy that a form chooses; None: that of the level above. Raises `UnknownPolicy`."""
    if chosen == INHERIT:
        return None
    if chosen == CUSTOM:
        return written.to_policy
    if chosen not in POLICIES:
        raise UnknownPolicy(f"{chosen!r} is not a compatibility policy; known: {', '.join(POLICIES)}")
    return POLICIES[chosen]


async def _show(page: PageRequest, answer: PolicyAnswer, chosen: str, written: PolicyJson, ruleset: str) -> PolicyPage:
    level = page.level
    state = page.registry.state
    own_mode = state.mode_at(level)
    inherited = await _find_inherited(page, level)
    return PolicyPage(
        level="" if level.namespace is None else qualify_name(SubjectKey(level.namespace, level.subject or "")),
        title=_name_level(level),
        path=_make_path(level),
        answer=answer,
        sentence=describe_policy(answer),
        inherited=inherited,
        choices=[PolicyChoice(name, name, sentence) for name, sentence in _SENTENCES.items()],
        chosen=chosen,
        backward=written.backward,
        forward=written.forward,
        validators=" ".join(written.validators),
        ruleset=ruleset,
        mode=queries.mode_for(state, level).value,
        own_mode=own_mode.value if own_mode is not None else "",
        modes=[PolicyChoice(mode.value, mode.value, sentence) for mode, sentence in _MODES.items()],
        refusal=page.find_refusal(Operation.CHANGE_POLICY, level_resource(level)),
    )


async def _find_inherited(page: PageRequest, level: SettingsLevel) -> str:
    """Return the nearest common name of the policy that would be in force if a level had none of its own."""
    if level.namespace is None:
        return "BACKWARD"
    if level.subject is None:
        return (await get_policy(page.registry, SettingsLevel())).nearest
    subject = page.registry.state.find_subject(SubjectKey(level.namespace, level.subject))
    if subject is not None and subject.default_policy is not None:
        return subject.default_policy.nearest_name
    return (await get_policy(page.registry, SettingsLevel(level.namespace))).nearest


def _name_level(level: SettingsLevel) -> str:
    if level.namespace is None:
        return "the whole registry"
    if level.subject is None:
        return f"the namespace {level.namespace}" if level.namespace else "the default namespace"
    return level.subject


def _make_path(level: SettingsLevel) -> str:
    if level.namespace is None:
        return "/policy"
    if level.subject is None:
        return f"/levels/{quote(f':.{level.namespace}:', safe='')}/policy"
    return subject_path(SubjectKey(level.namespace, level.subject), "policy")


def list_form_pages() -> list[FormPage]:
    """Return the pages of this module."""
    readable, writable = access(Operation.READ), access(Operation.CHANGE_POLICY)
    paths = ("/ui/subjects/{name:str}/policy", "/ui/levels/{name:str}/policy")
    pages = [
        FormPage(Page(path, view_policy, "policy.html.j2", readable, menu="/policies"), submit_policy, writable)
        for path in paths
    ]
    registry = Page(
        "/ui/policy", view_policy, "policy.html.j2", access(Operation.READ, Place.REGISTRY), menu="/policies"
    )
    return [*pages, FormPage(registry, submit_policy, access(Operation.CHANGE_POLICY, Place.REGISTRY))]
