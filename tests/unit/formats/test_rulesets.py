"""The container for the rulesets of a format, and the functions for the rulesets of any format."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core.findings import Finding
from stele.core.ports import Format
from stele.errors import UnknownRuleset
from stele.formats import rulesets
from stele.formats.registry import get_format
from stele.formats.rulesets import Ruleset, Rulesets


def make_ruleset(name: str) -> Ruleset[str]:
    """Return a ruleset with one finding whose rule is the name of the ruleset."""
    return Ruleset(name, lambda reader, writer: [Finding(name, f"{reader}<{writer}")], f"Is {name}.")


def make_format(*names: str) -> Format[Any]:
    """Return a format that lists those rulesets. Its check returns the name that it is called with."""
    return cast(
        "Format[Any]",
        SimpleNamespace(name="f", rulesets=names, check=lambda reader, writer, name: [Finding(name, "")]),
    )


BOTH = Rulesets("f", make_ruleset("x@1"), make_ruleset("x@2"), make_ruleset("buf:Y@3"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("", "x@2"), ("x", "x@2"), ("x@1", "x@1"), ("x@2", "x@2"), ("buf:Y", "buf:Y@3"), ("buf:Y@3", "buf:Y@3")],
)
def test_names_find_versions(name: str, expected: str) -> None:
    """'' selects the newest version of the default, a bare name its newest, a full name itself; check uses the same."""
    assert BOTH.find_ruleset(name).name == expected
    assert BOTH.check("r", "w", name) == [Finding(expected, "r<w")]
    assert rulesets.newest_ruleset(make_format(*BOTH.names), name) == expected


@pytest.mark.parametrize("name", ["z", "x@3", "buf:Y@1", "x@", "X"])
def test_an_unknown_one_is_refused_with_what_there_is(name: str) -> None:
    """The error lists the full names, or the expected form of a name."""
    with pytest.raises(UnknownRuleset, match=r"x@1, x@2, buf:Y@3|NAME@VERSION"):
        BOTH.find_ruleset(name)


@pytest.mark.parametrize("names", [("x@1", "x@1"), ("x",), ("x@1", "y")])
def test_a_registry_is_made_of_different_full_names(names: tuple[str, ...]) -> None:
    """A repeated name, or a name without a version, raises an error."""
    with pytest.raises(ValueError, match="different names, each with a version"):
        Rulesets("f", *map(make_ruleset, names))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4)), min_size=1, max_size=8, unique=True),
    st.sampled_from(["", "a", "b", "zzz", "a@1", "a@9", "zzz@1"]),
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 4)),
)
def test_what_decides_does_not_depend_on_newer_versions(
    installed: list[tuple[str, int]], preferred: str, adopted: dict[str, int]
) -> None:
    """Installing newer versions of known names does not change the effective ruleset."""
    before = make_format(*(f"{name}@{version}" for name, version in installed))
    known = {name for name, _ in installed}
    added = [f"{name}@{version}" for name in sorted(known) for version in (5, 6)]
    after = make_format(*before.rulesets, *added)
    meant = rulesets.effective_name(before, preferred, adopted)
    assert rulesets.effective_name(after, preferred, adopted) == meant
    if meant in before.rulesets:
        assert (
            rulesets.require_effective(before, preferred, adopted)
            == rulesets.require_effective(after, preferred, adopted)
            == meant
        )
        assert rulesets.run_ruleset(before, None, None, meant) == [Finding(meant, "")]
    else:
        with pytest.raises(UnknownRuleset, match="not installed here"):
            rulesets.require_effective(before, preferred, adopted)


def test_bare_names_are_first_versions() -> None:
    """A plug-in that lists bare names has version 1 of each, and is called with its bare names."""
    bare = make_format("x", "y@2")
    assert rulesets.installed_rulesets(bare) == ("x@1", "y@2")
    assert rulesets.default_ruleset(bare) == "x"
    assert rulesets.run_ruleset(bare, None, None, "x@1") == [Finding("x", "")]
    assert rulesets.ruleset_summary(bare, "x@1") == ""


def test_a_late_name_is_refused_rather_than_obeyed() -> None:
    """Settings that named y before the format had it raise an error after y is installed, until y is adopted."""
    assert rulesets.require_effective(make_format("x@1"), "y", {}) == "x@1"
    with pytest.raises(UnknownRuleset, match=r"y@1.*stele ruleset adopt f y@2"):
        rulesets.require_effective(make_format("x@1", "y@2"), "y", {})
    assert rulesets.require_effective(make_format("x@1", "y@2"), "y", {"y": 2}) == "y@2"


def test_every_built_in_ruleset_says_what_it_looks_at() -> None:
    """Built-in rulesets have full names, and each has its own summary."""
    for name in ("avro", "json", "protobuf", "thrift", "xsd"):
        fmt = get_format(name)
        assert tuple(fmt.rulesets) == rulesets.installed_rulesets(fmt)
        sentences = [rulesets.ruleset_summary(fmt, full) for full in fmt.rulesets]
        assert all(sentence.endswith(".") for sentence in sentences)
        assert len(set(sentences)) == len(sentences)
    opaque = get_format("opaque")
    assert (rulesets.default_ruleset(opaque), rulesets.require_effective(opaque, "confluent", {})) == ("", "")
    with pytest.raises(UnknownRuleset, match="cannot be compared"):
        rulesets.newest_ruleset(opaque)
