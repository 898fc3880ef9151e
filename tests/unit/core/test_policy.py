"""The normal form of policies: names, the nearest stricter one, and which versions are compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core.model import Version
from stele.core.policy import (
    ALL_VERSIONS,
    ALLOW_ANY,
    DENY_ALL,
    LATEST_VERSION,
    NO_VERSIONS,
    POLICIES,
    Policy,
    RangeKind,
    VersionRange,
    find_policy,
)
from stele.errors import UnknownPolicy

extents = st.one_of(
    st.sampled_from([NO_VERSIONS, LATEST_VERSION, ALL_VERSIONS]),
    st.integers(1, 6).map(lambda n: VersionRange(RangeKind.SINCE, n)),
)


def rows(*ordinals: int) -> list[Version]:
    """Return stand-ins for versions: only the version number matters here."""
    return [cast("Version", SimpleNamespace(version_number=ordinal)) for ordinal in ordinals]


def list_compared(policy: Policy, *ordinals: int) -> list[tuple[int, bool, bool]]:
    """Return (version number, backward, forward) for the versions that a policy compares with."""
    return [
        (row.version_number, backward, forward) for row, backward, forward in policy.list_comparisons(rows(*ordinals))
    ]


@pytest.mark.parametrize("name", POLICIES)
def test_common_names_are_read_and_told(name: str) -> None:
    """A common name in any case gives its policy, whose exact and nearest name is that name."""
    policy = find_policy(f" {name.lower()} ")
    assert policy.exact_name == policy.nearest_name == name


def test_an_unknown_name_is_refused() -> None:
    """A misspelt name raises an error that lists the known names."""
    with pytest.raises(UnknownPolicy, match="FULL_TRANSITIVE"):
        find_policy("BACKWARDS")


@pytest.mark.parametrize(
    ("policy", "nearest"),
    [
        (DENY_ALL, "FULL_TRANSITIVE"),
        (Policy(backward=VersionRange(RangeKind.SINCE, 3)), "BACKWARD_TRANSITIVE"),
        (Policy(forward=VersionRange(RangeKind.SINCE, 3)), "FORWARD_TRANSITIVE"),
        (Policy(backward=LATEST_VERSION, forward=ALL_VERSIONS), "FULL_TRANSITIVE"),
        (Policy(backward=VersionRange(RangeKind.SINCE, 3), forward=LATEST_VERSION), "FULL_TRANSITIVE"),
        (Policy(backward=LATEST_VERSION, validators=("names",)), "BACKWARD"),
        (Policy(), "NONE"),
    ],
)
def test_the_nearest_name_is_never_laxer(policy: Policy, nearest: str) -> None:
    """A policy without a common name gets the name of the nearest stricter one; validators are ignored."""
    assert policy.exact_name is None
    assert policy.nearest_name == nearest


@given(extents, extents, st.lists(st.integers(1, 9), unique=True))
def test_the_nearest_named_policy_compares_with_no_less(
    back: VersionRange, fore: VersionRange, ordinals: list[int]
) -> None:
    """The policy of the nearest name compares with every version that the policy compares with."""
    policy = Policy(backward=back, forward=fore)
    newest_first = sorted(ordinals, reverse=True)
    strict = {row[0]: row[1:] for row in list_compared(POLICIES[policy.nearest_name], *newest_first)}
    for ordinal, backward, forward in list_compared(policy, *newest_first):
        assert strict[ordinal][0] >= backward
        assert strict[ordinal][1] >= forward


@given(extents, extents)
def test_covering_is_looking_at_no_less(wide: VersionRange, narrow: VersionRange) -> None:
    """A range that `covers` another one `includes` every version that the other includes."""
    if wide.covers(narrow):
        for position, ordinal in enumerate(range(8, 0, -1)):
            assert wide.includes(position, ordinal) >= narrow.includes(position, ordinal)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (ALLOW_ANY, []),
        (POLICIES["BACKWARD"], [(7, True, False)]),
        (POLICIES["FORWARD"], [(7, False, True)]),
        (POLICIES["FULL_TRANSITIVE"], [(7, True, True), (5, True, True), (2, True, True)]),
        (Policy(backward=VersionRange(RangeKind.SINCE, 5)), [(7, True, False), (5, True, False)]),
        (Policy(backward=VersionRange(RangeKind.SINCE, 8)), []),
        (
            Policy(backward=LATEST_VERSION, forward=VersionRange(RangeKind.SINCE, 3)),
            [(7, True, True), (5, False, True)],
        ),
    ],
)
def test_a_policy_compares_newest_first_with_what_it_reaches(policy: Policy, expected: list[object]) -> None:
    """Each direction has its own versions, the newest first."""
    assert list_compared(policy, 7, 5, 2) == expected


def test_the_latest_is_found_without_looking_further() -> None:
    """A policy for the latest version only reads at most one more version of a long history."""
    history = iter(rows(*range(10_000, 0, -1)))
    assert len(list(POLICIES["FULL"].list_comparisons(history))) == 1
    assert next(history).version_number == 9998
