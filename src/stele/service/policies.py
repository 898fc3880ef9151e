"""The policy of a subject, a namespace or the whole registry: which one is in force, why, and how to set it exactly.

Every API has its own terms for policies. This module uses neutral ones (`core.policy_json`).
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from stele.core import queries
from stele.core.commands import ChangeSettings
from stele.core.decide.decision import check_name
from stele.core.model import REGISTRY_LEVEL, Settings, SettingsLevel, SubjectKey
from stele.core.policy import BACKWARD, Policy
from stele.core.policy_json import PolicyJson
from stele.core.ports import Format
from stele.core.state import State
from stele.errors import InvalidName, UnknownRuleset
from stele.formats import rulesets
from stele.service.registry import Registry
from stele.service.ruleset_adoption import adopted_versions
from stele.service.rulesets import installed_formats
from stele.service.validators import require_known

_QUALIFIED = ":."
_UNREADABLE = "\ufffd"
"""Replacement for bytes that are not UTF-8. Names with it are rejected, because different names would become one."""

PolicySource = Literal["subject", "creation", "namespace", "registry", "default"]
RulesetName = Annotated[str, Meta(min_length=1, description="NAME, or NAME@VERSION to fix the version")]


class OwnPolicy(msgspec.Struct, frozen=True):
    """The policy and ruleset that are set at a level itself; null: the level above decides."""

    policy: PolicyJson | None = None
    ruleset: RulesetName | None = None


class PolicyAnswer(msgspec.Struct, frozen=True):
    """The policy in force at a level.

    namespace, subject  the level; both null: the registry, subject null: a namespace ('' is the default one)
    policy          the policy in force
    name            its common name, null when no common name means exactly this
    nearest         its common name, or that of the nearest stricter policy
    source          where it comes from: a level, at `creation` the API that created the subject, or `default`
    ruleset         the ruleset preferred there, null: each format's own
    rulesets        rulesets by which schemas are compared there: full name by format
    own             policy and ruleset that are set at this level
    """

    namespace: str | None
    subject: str | None
    policy: PolicyJson
    name: str | None
    nearest: str
    source: PolicySource
    ruleset: str | None
    rulesets: dict[str, str]
    own: OwnPolicy


class PolicyChange(msgspec.Struct, frozen=True):
    """The policy and ruleset to set at a level; null or absent: the level inherits from the level above.

    expected is a condition: the policy that must be in force at that level now.
    """

    policy: PolicyJson | None = None
    ruleset: RulesetName | None = None
    expected: PolicyJson | None = None


def parse_level_name(name: str) -> SettingsLevel:
    """Return the level of a name.

    Names are `subject`, `:.namespace:subject`, `:.namespace:` for a namespace, and '' for the registry.

    Raises `InvalidName`.
    """
    if not name:
        return REGISTRY_LEVEL
    namespace, subject = "", name
    if name.startswith(_QUALIFIED):
        namespace, colon, subject = name.removeprefix(_QUALIFIED).partition(":")
        if not colon:
            raise InvalidName(name, "does not name a level: write subject, :.namespace:subject or :.namespace:")
    for part in (namespace, subject):
        if _UNREADABLE in check_name(part):
            raise InvalidName(name, "is not valid Unicode text")
    return SettingsLevel(namespace, subject or None)


async def get_policy(registry: Registry, level: SettingsLevel) -> PolicyAnswer:
    """Return the policy in force at a level.

    For a subject that does not exist yet, return the policy that a new subject gets if its API sets none.
    """
    state = await registry.fresh_state()
    settings = queries.settings_for(state, level)
    source, policy = _effective_policy(state, level)
    own = state.settings_at(level) or Settings()
    return PolicyAnswer(
        namespace=level.namespace,
        subject=level.subject,
        policy=PolicyJson.from_policy(policy),
        name=policy.exact_name,
        nearest=policy.nearest_name,
        source=source,
        ruleset=settings.ruleset,
        rulesets=await asyncio.to_thread(_deciding_rulesets, settings.ruleset or "", await adopted_versions(registry)),
        own=OwnPolicy(PolicyJson.from_policy(own.policy) if own.policy is not None else None, own.ruleset),
    )


async def change_policy(
    registry: Registry, level: SettingsLevel, wanted: PolicyChange, *, via: str = ""
) -> PolicyAnswer:
    """Replace the policy and ruleset that are set at a level; its other settings stay.

    Raises `UnknownPolicy`, `UnknownRuleset` for a ruleset or validator that is not installed, `PreconditionFailed` when
    another policy is in force than expected, `ReadOnly`.
    """
    policy = wanted.policy.to_policy if wanted.policy is not None else None
    expected = wanted.expected.to_policy if wanted.expected is not None else None
    await asyncio.to_thread(_require_installed, policy, wanted.ruleset)
    changes: dict[str, Any] = {"policy": policy, "ruleset": wanted.ruleset}
    await registry.execute(ChangeSettings(level, changes, expected, prune=True), via=via)
    return await get_policy(registry, level)


def _effective_policy(state: State, level: SettingsLevel) -> tuple[PolicySource, Policy]:
    """Return the policy of a level, and where it comes from; see `queries.policy_for`."""
    own = state.settings_at(level)
    if own is not None and own.policy is not None:
        return (
            "registry" if level.namespace is None else "namespace" if level.subject is None else "subject"
        ), own.policy
    if level.namespace is None:
        return "default", BACKWARD
    if level.subject is None:
        return _effective_policy(state, REGISTRY_LEVEL)
    subject = state.find_subject(SubjectKey(level.namespace, level.subject))
    if subject is not None and subject.default_policy is not None:
        return "creation", subject.default_policy
    return _effective_policy(state, SettingsLevel(level.namespace))


def _deciding_rulesets(preferred: str, versions: dict[tuple[str, str], int]) -> dict[str, str]:
    """Return the full name of the ruleset that decides, by format, for the formats that compare."""
    full_names = {}
    for fmt in installed_formats():
        own = {name: version for (format_name, name), version in versions.items() if format_name == fmt.name}
        full_names[fmt.name] = rulesets.effective_name(fmt, preferred, own)
    return {name: full for name, full in full_names.items() if full}


def _require_installed(policy: Policy | None, ruleset: str | None) -> None:
    if policy is not None:
        require_known(policy.validators)
    if ruleset is not None and not any(_has_ruleset(fmt, ruleset) for fmt in installed_formats()):
        raise UnknownRuleset(f"no format installed here has a ruleset {ruleset!r}")


def _has_ruleset(fmt: Format[Any], ruleset: str) -> bool:
    try:
        return bool(rulesets.newest_ruleset(fmt, ruleset))
    except UnknownRuleset:
        return False
