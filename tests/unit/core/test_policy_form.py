"""Policies in words: they come back as they were, and words that say nothing clear are refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core.policy import ALL, ALLOW_ANY, DENY_ALL, LATEST, NOTHING, POLICIES, Extent, Kind, Policy, Reach
from stele.core.policy_form import PolicyForm, extent_of, stretch_of
from stele.errors import UnknownPolicy

extents = st.sampled_from([NOTHING, LATEST, ALL]) | st.integers(1, 2**31 - 1).map(lambda n: Extent(Reach.SINCE, n))
checkers = st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=3).map(tuple)


@given(extents, extents, checkers)
def test_directions_come_back(backward: Extent, forward: Extent, names: tuple[str, ...]) -> None:
    """The words of a policy mean it; one that compares nothing is the one that lets everything in."""
    nothing = backward == forward == NOTHING
    policy = Policy(Kind.ALLOW_ANY if nothing else Kind.DIRECTIONAL, backward, forward, names)
    form = msgspec.convert(msgspec.to_builtins(PolicyForm.of(policy)), PolicyForm)
    assert form.policy == policy
    assert PolicyForm("directional", stretch_of(backward), stretch_of(forward), names).policy == policy


@pytest.mark.parametrize("policy", [ALLOW_ANY, DENY_ALL, *POLICIES.values()])
def test_named_policies_come_back(policy: Policy) -> None:
    """So do the policies that have names."""
    assert PolicyForm.of(policy).policy == policy


@pytest.mark.parametrize(
    "stretch",
    ["", "since", "since:", "since:0", "since:-1", "since:٣", "since:2147483648", "since:1e3", "ALL", "newest"],
)
def test_words_that_are_no_stretch(stretch: str) -> None:
    """A direction is one of four words; a number is a version number."""
    with pytest.raises(UnknownPolicy, match="since:N"):
        extent_of(stretch)


@pytest.mark.parametrize(
    "form",
    [
        PolicyForm("deny_all", forward="all"),
        PolicyForm("allow_any", backward="since:2"),
        PolicyForm(checkers=("lint", "lint")),
        PolicyForm(checkers=("",)),
    ],
)
def test_contradictions(form: PolicyForm) -> None:
    """Directions need a kind that compares, and a validator is named once."""
    with pytest.raises(UnknownPolicy):
        _ = form.policy
