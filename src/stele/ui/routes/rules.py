"""The rules for new versions of a subject, and the level that sets each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from stele.core import queries
from stele.core.model import REGISTRY_LEVEL, Binding, Settings, SettingsLevel, SubjectKey
from stele.core.state import State
from stele.service.policies import PolicyAnswer, get_policy
from stele.ui.pages import Page, PageRequest
from stele.ui.subject import SubjectHead, find_subject, make_tab

_SWITCHES: Final = {
    "ruleset": "Ruleset that decides what is compatible",
    "normalize": "Register the normalised text instead of the author's",
    "alias": "Subject that requests for this one act on",
    "group": "Metadata property whose equal values are compared alone",
    "validate_fields": "Check names of fields of reserved words",
    "validate_new_schemas": "Refuse texts that older registries would take",
    "validate_rules": "Check rules of data when they are registered",
}
"""Settings that are shown, and what they do."""


class SettingOrigin(msgspec.Struct, frozen=True):
    """A setting in force.

    source  level that sets it: `subject`, `namespace` or `registry`
    """

    name: str
    meaning: str
    value: str
    source: str


class BoundResource(msgspec.Struct, frozen=True):
    """A topic, table or stream that is bound to the subject; version None means the latest one."""

    cluster: str
    type: str
    name: str
    role: str
    version: int | None


class DataRuleRow(msgspec.Struct, frozen=True):
    """A rule that clients run on data of the version that is shown."""

    name: str
    kind: str
    mode: str
    type: str
    doc: str


class RulesPage(msgspec.Struct, frozen=True):
    """The rules of a subject.

    sentence  the policy in words
    """

    head: SubjectHead
    policy: PolicyAnswer
    sentence: str
    mode: str
    mode_source: str
    settings: Sequence[SettingOrigin]
    data_rules: Sequence[DataRuleRow]
    bindings: Sequence[BoundResource]


async def view_rules(page: PageRequest) -> RulesPage:
    """Show the policy, mode and settings of a subject, and which level each comes from."""
    subject_view = await find_subject(page)
    level = SettingsLevel(*subject_view.key)
    policy = await get_policy(page.registry, level)
    mode, mode_source = _find_mode(subject_view.state, level)
    rule_set = subject_view.version.schema.attachments.rule_set if subject_view.version is not None else None
    phases = (rule_set.migration_rules, rule_set.domain_rules, rule_set.encoding_rules) if rule_set is not None else ()
    rules = [rule for phase in phases for rule in phase or ()]
    return RulesPage(
        head=subject_view.head,
        policy=policy,
        sentence=describe_policy(policy),
        mode=mode,
        mode_source=mode_source,
        settings=_list_settings(subject_view.state, level),
        data_rules=[
            DataRuleRow(rule.name or "", rule.kind, rule.mode, rule.type or "", rule.doc or "") for rule in rules
        ],
        bindings=_list_bindings(subject_view.state, subject_view.key),
    )


def describe_policy(answer: PolicyAnswer) -> str:
    """Return a policy as a sentence."""
    policy = answer.policy
    if policy.kind == "allow_any":
        text = "Every valid schema is taken."
    elif policy.kind == "deny_all":
        text = "No further version is taken."
    else:
        parts = []
        if policy.backward != "none":
            parts.append(f"the new version must read data of {_describe_range(policy.backward)}")
        if policy.forward != "none":
            parts.append(f"{_describe_range(policy.forward)} must read data of the new version")
        joined = ", and ".join(parts) or "nothing is compared"
        text = f"{joined[0].upper()}{joined[1:]}."
    validators = f" Validators: {', '.join(policy.validators)}." if policy.validators else ""
    return text + validators


def _describe_range(text: str) -> str:
    if text.startswith("since:"):
        return f"all versions since {text.removeprefix('since:')}"
    return {"latest": "the latest version", "all": "all versions"}.get(text, text)


def _find_mode(state: State, level: SettingsLevel) -> tuple[str, str]:
    """Return the mode in force and the level it comes from."""
    mode = queries.mode_for(state, level)
    for name, place in _list_levels(level):
        if state.mode_at(place) is mode:
            return mode.value, name
    return mode.value, "default"


def _list_levels(level: SettingsLevel) -> list[tuple[str, SettingsLevel]]:
    return [("subject", level), ("namespace", SettingsLevel(level.namespace)), ("registry", REGISTRY_LEVEL)]


def _list_settings(state: State, level: SettingsLevel) -> list[SettingOrigin]:
    """Return the settings in force that are set at some level, each with the nearest such level."""
    levels = [(name, state.settings_at(place) or Settings()) for name, place in _list_levels(level)]
    origins = []
    for setting, meaning in _SWITCHES.items():
        for source, own in levels:
            value = getattr(own, setting)
            if value is not None:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                origins.append(SettingOrigin(setting, meaning, text, source))
                break
    return origins


def _list_bindings(state: State, key: SubjectKey) -> list[BoundResource]:
    bindings: list[Binding] = sorted(queries.bindings_of(state, [key]), key=lambda binding: binding.key)
    return [
        BoundResource(each.cluster, each.resource_type, each.resource, each.role, each.version_number)
        for each in bindings
    ]


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [make_tab("rules", view_rules)]
