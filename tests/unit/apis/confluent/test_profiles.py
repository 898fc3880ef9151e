"""Profiles: every one of them can be set, and says what it is."""

from __future__ import annotations

from typing import get_args, get_type_hints

from stele.apis.confluent.profiles import PROFILES, ProfileName
from stele.formats.registry import get_format
from stele.formats.rulesets import newest_ruleset
from stele.server.settings import ServerSettings


def test_every_profile_can_be_set() -> None:
    """The setting of the server takes the names there are."""
    assert get_args(ProfileName) == tuple(PROFILES) == get_args(get_type_hints(ServerSettings)["confluent_profile"])


def test_rulesets_of_profiles_exist() -> None:
    """A profile judges by a version of rules that is installed."""
    named = [(name, ruleset) for profile in PROFILES.values() for name, ruleset in profile.rulesets.items()]
    assert [newest_ruleset(get_format(name), ruleset) for name, ruleset in named] == [ruleset for _, ruleset in named]
