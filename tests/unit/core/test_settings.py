"""Settings and modes of registry, namespaces and subjects: merging, resolution, and write protection."""

from __future__ import annotations

import pytest
from tests.unit.core.box import Box, S, T, to

from stele.core import commands as cmd
from stele.core import queries
from stele.core.commands import ChangeSettings, ClearMode, ClearSettings, SetMode, SubjectDefaults
from stele.core.events import BindingRemoved, ModeChanged, VersionsPurged
from stele.core.metadata import DataRule, DataRuleSet
from stele.core.model import REGISTRY_LEVEL, Binding, Mode, Settings, SettingsLevel, SubjectKey
from stele.core.policy import ALLOW_ANY, BACKWARD, DENY_ALL, POLICIES
from stele.errors import InUse, InvalidRuleSet, ModeChangeRefused, PreconditionFailed, ReadOnly, SettingNotFound

SPACE = SettingsLevel("")
SUBJECT = SettingsLevel(*S)
FULL = POLICIES["FULL"]
FORWARD = POLICIES["FORWARD"]


# --- settings -------------------------------------------------------------------------------------------------------


def test_a_change_merges_and_none_clears() -> None:
    """Members that are not named keep their value; a member set to None is unset."""
    box = Box()
    box.do(ChangeSettings(SUBJECT, {"policy": FULL, "normalize": True}))
    outcome = box.do(ChangeSettings(SUBJECT, {"alias": "other", "policy": None}))
    assert outcome == cmd.SettingsOutcome(Settings(normalize=True, alias="other"))
    assert box.state.settings_at(SUBJECT) == Settings(normalize=True, alias="other")


def test_a_change_without_effect_writes_nothing() -> None:
    """Setting an existing value again returns it and writes nothing."""
    box = Box()
    box.do(ChangeSettings(REGISTRY_LEVEL, {"policy": FULL}))
    assert box.events
    box.do(ChangeSettings(REGISTRY_LEVEL, {"policy": FULL}))
    assert not box.events


def test_pruning_leaves_no_empty_level() -> None:
    """With prune, a level whose last setting is cleared is removed; one with settings left stays."""
    box = Box()
    box.do(ChangeSettings(SUBJECT, {"policy": FULL, "alias": "other"}))
    box.do(ChangeSettings(SUBJECT, {"policy": None}, prune=True))
    assert box.state.settings_at(SUBJECT) == Settings(alias="other")
    assert box.do(ChangeSettings(SUBJECT, {"alias": None}, prune=True)) == cmd.SettingsOutcome(None)
    assert box.state.settings_at(SUBJECT) is None
    box.do(ChangeSettings(SUBJECT, {"policy": None}, prune=True))
    assert not box.events
    box.do(ChangeSettings(SUBJECT, {"policy": None}))
    assert box.state.settings_at(SUBJECT) == Settings()


def test_each_setting_comes_from_the_nearest_level() -> None:
    """Each member comes from subject, then namespace, then registry; False is a value, not an absence."""
    box = Box()
    box.do(ChangeSettings(REGISTRY_LEVEL, {"policy": FULL, "normalize": True, "ruleset": "r"}))
    box.do(ChangeSettings(SPACE, {"policy": FORWARD, "normalize": False}))
    box.do(ChangeSettings(SUBJECT, {"policy": DENY_ALL}))
    merged = queries.settings_for(box.state, SUBJECT)
    assert (merged.policy, merged.normalize, merged.ruleset) == (DENY_ALL, False, "r")
    assert queries.settings_for(box.state, SettingsLevel("elsewhere", "s")).policy == FULL


def test_the_policy_in_force_falls_back_level_by_level() -> None:
    """The policy is the own one, else the default at creation, the namespace's, the registry's, or BACKWARD."""
    box = Box()
    box.register(S, "a", defaults=SubjectDefaults(policy=ALLOW_ANY))
    box.register(T, "a")
    assert [queries.policy_for(box.state, key) for key in (S, T)] == [ALLOW_ANY, BACKWARD]
    box.do(ChangeSettings(REGISTRY_LEVEL, {"policy": FULL}))
    assert [queries.policy_for(box.state, key) for key in (S, T)] == [ALLOW_ANY, FULL]
    box.do(ChangeSettings(SPACE, {"policy": FORWARD}))
    assert [queries.policy_for(box.state, key) for key in (S, T)] == [ALLOW_ANY, FORWARD]
    box.do(ChangeSettings(SUBJECT, {"policy": DENY_ALL}))
    assert queries.policy_for(box.state, S) == DENY_ALL
    box.do(ClearSettings(SUBJECT))
    assert queries.policy_for(box.state, S) == ALLOW_ANY


def test_settings_may_precede_their_subject() -> None:
    """A level can be configured before anything is registered there, without creating the subject."""
    box = Box()
    level = SettingsLevel("ctx", "later")
    box.do(ChangeSettings(level, {"policy": DENY_ALL}))
    assert queries.policy_for(box.state, SubjectKey("ctx", "later")) == DENY_ALL
    assert [space.name for space in queries.visible_namespaces(box.state)] == [""]


def test_a_condition_looks_at_the_policy_in_force() -> None:
    """`expected` is compared with the policy in force, from whichever level; a stale one changes nothing."""
    box = Box()
    box.register(S, "a", defaults=SubjectDefaults(policy=FORWARD))
    with pytest.raises(PreconditionFailed):
        box.do(ChangeSettings(SUBJECT, {"policy": FULL}, expected=BACKWARD))
    box.do(ChangeSettings(SUBJECT, {"policy": FULL}, expected=FORWARD))
    box.do(ChangeSettings(SUBJECT, {"policy": DENY_ALL}, expected=FULL))
    box.do(ChangeSettings(REGISTRY_LEVEL, {"policy": FULL}, expected=BACKWARD))
    box.do(ChangeSettings(SPACE, {"policy": FORWARD}, expected=FULL))


def test_clearing_tells_what_was() -> None:
    """Clearing returns the old settings; without settings it is an error for a subject, not for a namespace."""
    box = Box()
    box.do(ChangeSettings(SUBJECT, {"policy": FULL}))
    assert box.do(ClearSettings(SUBJECT)) == cmd.SettingsOutcome(Settings(policy=FULL))
    with pytest.raises(SettingNotFound):
        box.do(ClearSettings(SUBJECT))
    assert box.do(ClearSettings(REGISTRY_LEVEL)) == cmd.SettingsOutcome(None)
    assert box.do(ClearSettings(SPACE)) == cmd.SettingsOutcome(None)


def test_rule_sets_of_settings_are_validated() -> None:
    """Settings with rules that a registration could not have are refused."""
    broken = DataRuleSet(domain_rules=(DataRule(name="", type="T"),))
    for name in ("default_rule_set", "override_rule_set"):
        with pytest.raises(InvalidRuleSet):
            Box().do(ChangeSettings(REGISTRY_LEVEL, {name: broken}))


def test_settings_are_read_only_where_the_mode_says_so() -> None:
    """READONLY blocks settings of its level and below, and leaves others alone."""
    box = Box()
    box.do(ChangeSettings(SUBJECT, {"policy": FULL}))
    box.do(SetMode(SPACE, Mode.READONLY))
    for command in (
        ChangeSettings(SUBJECT, {"policy": FORWARD}),
        ChangeSettings(SPACE, {"policy": FORWARD}),
        ClearSettings(SUBJECT),
    ):
        with pytest.raises(ReadOnly):
            box.do(command)
    box.do(ChangeSettings(REGISTRY_LEVEL, {"policy": FORWARD}))
    box.do(ChangeSettings(SettingsLevel("ctx"), {"policy": FORWARD}))


# --- modes ----------------------------------------------------------------------------------------------------------


def test_the_mode_in_force_is_the_nearest() -> None:
    """A lower level lifts READONLY; READONLY_OVERRIDE of the default namespace applies everywhere."""
    box = Box()
    assert queries.mode_for(box.state, SUBJECT) is Mode.READWRITE
    box.do(SetMode(REGISTRY_LEVEL, Mode.READONLY))
    box.do(SetMode(SUBJECT, Mode.READWRITE))
    box.register(S, "a")
    with pytest.raises(ReadOnly):
        box.register(T, "a")
    box.do(SetMode(REGISTRY_LEVEL, Mode.READONLY_OVERRIDE))
    assert queries.mode_for(box.state, SUBJECT) is Mode.READWRITE
    box.do(SetMode(SPACE, Mode.READONLY_OVERRIDE))
    for level in (SUBJECT, SPACE, REGISTRY_LEVEL, SettingsLevel("other", "s")):
        assert queries.mode_for(box.state, level) is Mode.READONLY_OVERRIDE
    with pytest.raises(ReadOnly):
        box.register(S, "b")


def test_a_mode_can_always_be_changed_back() -> None:
    """READONLY does not protect modes, because it could not be left otherwise."""
    box = Box()
    for mode in (Mode.READONLY, Mode.READONLY_OVERRIDE, Mode.FORWARD, None):
        assert box.do(SetMode(REGISTRY_LEVEL, mode)) == cmd.ModeOutcome(mode)
    assert queries.mode_for(box.state, SUBJECT) is Mode.READWRITE


def test_forward_is_for_the_whole_registry() -> None:
    """FORWARD is refused for a part of a registry, because a replica accepts no writes of its own anywhere."""
    box = Box()
    for level in (SPACE, SUBJECT):
        with pytest.raises(ModeChangeRefused):
            box.do(SetMode(level, Mode.FORWARD))
    box.do(SetMode(REGISTRY_LEVEL, Mode.FORWARD))
    with pytest.raises(ReadOnly):
        box.register(S, "a")


def test_import_needs_an_empty_place_or_force() -> None:
    """Active versions in scope refuse IMPORT unless it is forced; those elsewhere have no effect."""
    box = Box()
    box.register(S, "a")
    for level in (SUBJECT, SPACE, REGISTRY_LEVEL):
        with pytest.raises(ModeChangeRefused):
            box.do(SetMode(level, Mode.IMPORT))
    box.do(SetMode(SettingsLevel(*T), Mode.IMPORT))
    box.do(SetMode(SettingsLevel("ctx"), Mode.IMPORT))
    box.do(SetMode(SUBJECT, Mode.IMPORT, force=True))
    assert box.ordinals(S) == [1]


def test_import_clears_what_is_retired() -> None:
    """Entering IMPORT purges soft-deleted versions in scope, and removes the bindings to them."""
    box = Box()
    box.register(S, "a")
    box.do(cmd.AddBinding(Binding("c", "topic", "t", "value", S)))
    box.retire(S)
    box.do(SetMode(SUBJECT, Mode.IMPORT))
    assert [type(event) for event in box.events] == [VersionsPurged, BindingRemoved, ModeChanged]
    assert box.state.find_subject(S) is None
    assert queries.mode_for(box.state, SUBJECT) is Mode.IMPORT


def test_import_clears_nothing_that_is_referred_to() -> None:
    """A soft-deleted version to which another scope refers is not purged, and the mode does not change."""
    box = Box()
    box.register(S, "a")
    box.register(T, "t", to(S))
    box.retire(T)
    box.retire(S)
    with pytest.raises(InUse):
        box.do(SetMode(SUBJECT, Mode.IMPORT))
    box.do(SetMode(SPACE, Mode.IMPORT))
    assert (box.ordinals(S), box.ordinals(T)) == ([], [])


def test_clearing_modes_reaches_down_when_asked() -> None:
    """Recursive clearing removes the modes of everything below; plain clearing those of the level only."""
    box = Box()
    for level in (REGISTRY_LEVEL, SPACE, SUBJECT, SettingsLevel("ctx", "x")):
        box.do(SetMode(level, Mode.READONLY))
    assert box.do(ClearMode(REGISTRY_LEVEL)) == cmd.ModeOutcome(Mode.READONLY)
    assert box.state.mode_at(SUBJECT) is Mode.READONLY
    box.do(ClearMode(SPACE, recursive=True))
    assert (box.state.mode_at(SPACE), box.state.mode_at(SUBJECT)) == (None, None)
    assert box.state.mode_at(SettingsLevel("ctx", "x")) is Mode.READONLY
    box.do(ClearMode(REGISTRY_LEVEL, recursive=True))
    assert box.state.mode_at(SettingsLevel("ctx", "x")) is None
    with pytest.raises(SettingNotFound):
        box.do(ClearMode(SUBJECT))


def test_setting_the_mode_it_has_writes_nothing() -> None:
    """Setting the present mode writes no event and returns the mode."""
    box = Box()
    box.do(SetMode(SPACE, Mode.READONLY))
    assert box.do(SetMode(SPACE, Mode.READONLY)) == cmd.ModeOutcome(Mode.READONLY)
    assert box.events == ()
