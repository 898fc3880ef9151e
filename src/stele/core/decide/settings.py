"""Decides commands on settings and modes of the three levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from stele.core import queries
from stele.core.commands import ChangeSettings, ClearMode, ClearSettings, ModeOutcome, SetMode, SettingsOutcome
from stele.core.decide.decision import Decision, check_name, merge_dialect_data, require_writable
from stele.core.decide.lifecycle import purge_events
from stele.core.events import Event, EventMetadata, ModeChanged, SettingsChanged
from stele.core.metadata import DataRuleSet
from stele.core.model import DEFAULT_NAMESPACE, Mode, Namespace, Settings, SettingsLevel, Subject, SubjectKey
from stele.core.policy import BACKWARD, Policy
from stele.core.queries import ACTIVE_OR_SOFT_DELETED
from stele.core.rulesets import split_ruleset
from stele.core.state import OWN, State
from stele.errors import InUse, ModeChangeRefused, PreconditionFailed, SettingNotFound


def change_settings(state: State, command: ChangeSettings, stamp: EventMetadata) -> Decision:
    """Merge the changes into the level's settings. Raises `UnknownRuleset` for an invalid name of a ruleset."""
    level = _check_level(command.level)
    require_writable(state, level)
    before = state.settings_at(level) or Settings()
    if command.expected is not None and _policy_at(state, level) != command.expected:
        raise PreconditionFailed("the policy has changed since it was read")
    after = replace(before, **_merge_changes(before, command.changes))
    for rule_set in (after.default_rule_set, after.override_rule_set):
        if isinstance(rule_set, DataRuleSet):
            rule_set.validate()
    split_ruleset(after.ruleset or "")
    there = state.settings_at(level) is not None
    if command.prune and after == Settings():
        return Decision((SettingsChanged(level, None),) if there else (), SettingsOutcome(None))
    if after == before and there:
        return Decision((), SettingsOutcome(after))
    return Decision((SettingsChanged(level, after),), SettingsOutcome(after))


def _policy_at(state: State, level: SettingsLevel) -> Policy:
    if level.namespace is not None and level.subject is not None:
        return queries.policy_for(state, SubjectKey(level.namespace, level.subject))
    return queries.settings_for(state, level).policy or BACKWARD


def clear_settings(state: State, command: ClearSettings, stamp: EventMetadata) -> Decision:
    """Remove the level's settings. The outcome has the old ones. Raises `SettingNotFound` for a subject without any."""
    level = _check_level(command.level)
    before = state.settings_at(level)
    if before is None and level.subject is not None:
        raise SettingNotFound(level.subject, "compatibility")
    require_writable(state, level)
    events = () if before is None else (SettingsChanged(level, None),)
    return Decision(events, SettingsOutcome(before))


def set_mode(state: State, command: SetMode, stamp: EventMetadata) -> Decision:
    """Set or remove the level's mode.

    Entering IMPORT without force needs a level without active versions, and purges its soft-deleted ones.
    """
    level = _check_level(command.level)
    if command.mode is Mode.FORWARD and level.namespace is not None:
        raise ModeChangeRefused("FORWARD is a mode of the whole registry")
    events: list[Event] = []
    if command.mode is Mode.IMPORT and queries.mode_for(state, level) is not Mode.IMPORT and not command.force:
        events.extend(_purge_everything(state, level))
    if state.mode_at(level) is not command.mode:
        events.append(ModeChanged(level, command.mode))
    return Decision(tuple(events), ModeOutcome(command.mode))


def clear_mode(state: State, command: ClearMode, stamp: EventMetadata) -> Decision:
    """Remove the level's mode; with recursive, also those of the subjects below. The outcome has the old mode."""
    level = _check_level(command.level)
    before = state.mode_at(level)
    if before is None and level.subject is not None and not command.recursive:
        raise SettingNotFound(level.subject, "mode")
    events = [ModeChanged(level, None)] if before is not None else []
    if command.recursive and level.subject is None:
        for namespace in _namespaces_below(state, level):
            events.extend(
                ModeChanged(SettingsLevel(namespace.name, name), None) for name in namespace.modes if name != OWN
            )
            if level.namespace is None and OWN in namespace.modes:
                events.append(ModeChanged(SettingsLevel(namespace.name), None))
    return Decision(tuple(events), ModeOutcome(before))


def _merge_changes(before: Settings, changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the changes, with `dialect_data` merged member by member: None removes a member."""
    if not changes.get("dialect_data"):
        return changes
    return {**changes, "dialect_data": merge_dialect_data(before.dialect_data, changes["dialect_data"])}


def _check_level(level: SettingsLevel) -> SettingsLevel:
    for name in level:
        if name is not None:
            check_name(name)
    return level


def _namespaces_below(state: State, level: SettingsLevel) -> list[Namespace]:
    if level.namespace is None:
        return list(state.namespaces.values())
    namespace = state.find_namespace(level.namespace)
    return [] if namespace is None else [namespace]


def _subjects_below(state: State, level: SettingsLevel) -> list[Subject]:
    if level.subject is None:
        return [subject for namespace in _namespaces_below(state, level) for subject in namespace.subjects.values()]
    subject = state.find_subject(SubjectKey(level.namespace or DEFAULT_NAMESPACE, level.subject))
    return [] if subject is None else [subject]


def _purge_everything(state: State, level: SettingsLevel) -> Iterator[Event]:
    """Yield the events that purge everything below the level.

    All versions must be soft-deleted, and not referred to from elsewhere.
    """
    subjects = [subject for subject in _subjects_below(state, level) if subject.versions]
    if any(queries.latest_version(subject) is not None for subject in subjects):
        raise ModeChangeRefused("Cannot import since found existing subjects")
    going = {subject.key for subject in subjects}
    for subject in subjects:
        for row in subject.versions:
            if any(
                other.subject.key not in going
                for other in queries.list_referrers(state, subject.key, row.version_number, ACTIVE_OR_SOFT_DELETED)
            ):
                raise InUse(subject.key.name, row.version_number)
        yield from purge_events(state, subject, tuple(row.version_number for row in subject.versions))
