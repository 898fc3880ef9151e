"""Profiles: their names, rulesets and releases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

from stele.apis.confluent.profiles import PROFILES, ProfileName
from stele.formats.registry import get_format
from stele.formats.rulesets import newest_ruleset
from stele.server.settings import ServerSettings


def test_every_profile_can_be_set() -> None:
    """The server's setting accepts the names of all profiles."""
    assert get_args(ProfileName) == tuple(PROFILES) == get_args(get_type_hints(ServerSettings)["confluent_profile"])


def test_rulesets_of_profiles_exist() -> None:
    """The rulesets of profiles are installed."""
    named = [(name, ruleset) for profile in PROFILES.values() for name, ruleset in profile.rulesets.items()]
    assert [newest_ruleset(get_format(name), ruleset) for name, ruleset in named] == [ruleset for _, ruleset in named]


def test_a_profile_means_one_patch_release() -> None:
    """The page about the dialect lists the patch release of every Confluent profile, in order."""
    page = Path(__file__).parents[4] / "docs" / "protocols" / "confluent.md"
    sentence = re.search(
        r"A profile of Stele means one patch release: ([\d., and\n]+)\. ", page.read_text(encoding="utf-8")
    )
    assert sentence is not None
    releases = {name: profile.release for name, profile in PROFILES.items() if name[0].isdigit()}
    assert re.findall(r"\d+\.\d+\.\d+", sentence[1]) == list(releases.values())
    assert all(release.startswith(f"{name}.") for name, release in releases.items())
