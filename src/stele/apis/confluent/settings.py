"""Settings and modes: the API's words into the core's and back. Pure.

This API has seven levels of compatibility. A policy that is none of them (since a version, further in one direction
than in the other, with validators, or letting nothing in) is shown as the nearest stricter level, and exactly in
`steleCompatibility`, which is there only then. A client that sets a level and does not know that member replaces the
whole policy by it: nothing it could not see stays behind unseen.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from stele.apis.confluent import entities as api
from stele.apis.confluent.translate import rule_set_in, rule_set_out
from stele.apis.http.bodies import WrongShape
from stele.core import queries
from stele.core.model import Mode, Settings, SettingsLevel, SubjectKey
from stele.core.policy import BACKWARD, Policy, find_policy
from stele.core.policy_json import PolicyJson
from stele.core.rulesets import split_ruleset
from stele.core.state import State
from stele.errors import UnknownMode

_DIALECT = "confluent"
_DEKS = "aliasForDeks"

_RULESETS = {"STRICT": "confluent", "LENIENT": "confluent-lenient", "LOGICAL": "confluent-logical"}
"""compatibilityPolicy as a preferred ruleset; a format without it uses its own."""
_POLICIES = {ruleset: policy for policy, ruleset in _RULESETS.items()}

_PLAIN = {
    "alias": "alias",
    "normalize": "normalize",
    "validate_fields": "validate_fields",
    "validate_new_schemas": "validate_new_schemas",
    "validate_rules": "validate_rules",
    "compatibility_group": "group",
    "default_metadata": "default_metadata",
    "override_metadata": "override_metadata",
}
"""Members both sides have, by the API's and the core's name."""


def changes_in(request: api.ConfigUpdateRequest) -> dict[str, Any]:
    """What a request changes. Raises `UnknownPolicy`, `WrongShape`."""
    changes: dict[str, Any] = {}
    for ours, theirs in _PLAIN.items():
        value = getattr(request, ours)
        if value is not UNSET:
            changes[theirs] = None if value == "" else value
    for name in ("default_metadata", "override_metadata"):
        if changes.get(name) is not None:
            changes[name] = changes[name].ordered()
    for name in ("default_rule_set", "override_rule_set"):
        if (rules := getattr(request, name)) is not UNSET:
            changes[name] = rule_set_in(rules)
    if request.compatibility is not UNSET:
        level = request.compatibility
        changes["policy"] = None if level is None else find_policy(level)
    if request.stele_compatibility is not UNSET:
        changes["policy"] = _exact_policy(request.stele_compatibility, changes)
    if request.compatibility_policy is not UNSET:
        changes["ruleset"] = _ruleset_in(request.compatibility_policy)
    if request.alias_for_deks is not UNSET:
        changes["dialect_data"] = {_DIALECT: {_DEKS: request.alias_for_deks or None}}
    return changes


def _exact_policy(form: PolicyJson | None, changes: dict[str, Any]) -> Policy | None:
    """The policy of the extension; a level beside it must be how that policy is shown."""
    policy = None if form is None else form.to_policy
    if "policy" in changes:
        level = changes["policy"]
        shown = None if policy is None else policy.nearest_name
        if shown != (None if level is None else level.nearest_name):
            raise WrongShape(f"compatibility must be {shown}, as which steleCompatibility is shown, or be left out")
    return policy


def _ruleset_in(policy: str | None) -> str | None:
    if policy is None:
        return None
    try:
        return _RULESETS[policy.upper()]
    except KeyError:
        raise WrongShape(f"compatibilityPolicy is one of {', '.join(_RULESETS)}, not {policy!r}") from None


def alias_for_deks(state: State, key: SubjectKey) -> str:
    """The subject whose data keys a subject uses, '' for its own."""
    settings = state.settings_at(SettingsLevel(*key))
    ext = (settings.dialect_data or {}).get(_DIALECT, {}) if settings is not None else {}
    return ext.get(_DEKS) or ""


def effective_policy(state: State, level: SettingsLevel) -> Policy:
    """The policy in force at a level."""
    if level.namespace is not None and level.subject is not None:
        return queries.policy_for(state, SubjectKey(level.namespace, level.subject))
    return queries.settings_for(state, level).policy or BACKWARD


def config_out(settings: Settings, policy: Policy | None) -> api.Config:
    """Settings as the API shows them; policy is the one to show, which may come from a level above."""
    ext = (settings.dialect_data or {}).get(_DIALECT, {})
    return api.Config(
        alias=settings.alias,
        alias_for_deks=ext.get(_DEKS),
        normalize=settings.normalize,
        validate_fields=settings.validate_fields,
        validate_new_schemas=settings.validate_new_schemas,
        validate_rules=settings.validate_rules,
        compatibility_level=policy.nearest_name if policy is not None else None,
        compatibility_policy=_POLICIES.get(split_ruleset(settings.ruleset or "")[0]),
        compatibility_group=settings.group,
        default_metadata=settings.default_metadata,
        override_metadata=settings.override_metadata,
        default_rule_set=rule_set_out(settings.default_rule_set),
        override_rule_set=rule_set_out(settings.override_rule_set),
        stele_compatibility=PolicyJson.from_policy(policy)
        if policy is not None and policy.exact_name is None
        else None,
    )


def update_out(settings: Settings) -> api.ConfigUpdateRequest:
    """Settings as PUT echoes them: the same members, with the level under its other name."""
    shown = config_out(settings, settings.policy)
    members = {name: getattr(shown, name) for name in shown.__struct_fields__ if name != "compatibility_level"}
    present = {name: value for name, value in members.items() if value is not None}
    if shown.compatibility_level is not None:
        present["compatibility"] = shown.compatibility_level
    return api.ConfigUpdateRequest(**present)


def mode_in(request: api.ModeUpdateRequest) -> Mode | None:
    """The mode a request asks for, None to remove it. Raises `UnknownMode`."""
    if request.mode is None:
        return None
    try:
        return Mode("" if request.mode is UNSET else str(request.mode).upper())
    except ValueError:
        raise UnknownMode(f"{request.mode!r} is no mode") from None
