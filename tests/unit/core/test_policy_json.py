"""Policies as JSON: round trips, and refusal of invalid words."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core.policy import (
    ALL_VERSIONS,
    ALLOW_ANY,
    DENY_ALL,
    LATEST_VERSION,
    NO_VERSIONS,
    POLICIES,
    Policy,
    PolicyKind,
    RangeKind,
    VersionRange,
)
from stele.core.policy_json import PolicyJson, parse_range, print_range
from stele.errors import UnknownPolicy

extents = st.sampled_from([NO_VERSIONS, LATEST_VERSION, ALL_VERSIONS]) | st.integers(1, 2**31 - 1).map(
    lambda n: VersionRange(RangeKind.SINCE, n)
)
checkers = st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=3).map(tuple)


@given(extents, extents, checkers)
def test_directions_come_back(backward: VersionRange, forward: VersionRange, names: tuple[str, ...]) -> None:
    """The JSON form of a policy gives the policy back; without comparisons, the one that accepts everything."""
    nothing = backward == forward == NO_VERSIONS
    policy = Policy(PolicyKind.ALLOW_ANY if nothing else PolicyKind.DIRECTIONAL, backward, forward, names)
    form = msgspec.convert(msgspec.to_builtins(PolicyJson.from_policy(policy)), PolicyJson)
    assert form.to_policy == policy
    assert PolicyJson("directional", print_range(backward), print_range(forward), names).to_policy == policy


@pytest.mark.parametrize("policy", [ALLOW_ANY, DENY_ALL, *POLICIES.values()])
def test_named_policies_come_back(policy: Policy) -> None:
    """The JSON form of a named policy gives it back."""
    assert PolicyJson.from_policy(policy).to_policy == policy


@pytest.mark.parametrize(
    "stretch",
    ["", "since", "since:", "since:0", "since:-1", "since:٣", "since:2147483648", "since:1e3", "ALL", "newest"],
)
def test_words_that_are_no_stretch(stretch: str) -> None:
    """A direction that is not one of the four words, or has no version number, is refused."""
    with pytest.raises(UnknownPolicy, match="since:N"):
        parse_range(stretch)


@pytest.mark.parametrize(
    "form",
    [
        PolicyJson("deny_all", forward="all"),
        PolicyJson("allow_any", backward="since:2"),
        PolicyJson(validators=("lint", "lint")),
        PolicyJson(validators=("",)),
    ],
)
def test_contradictions(form: PolicyJson) -> None:
    """Directions with a kind that does not compare, and repeated validators, are refused."""
    with pytest.raises(UnknownPolicy):
        _ = form.to_policy
