"""A released version of a ruleset never changes its verdicts: those on the published pairs are stored in files."""

from __future__ import annotations

import pytest
from tests.conformance.formats.golden import FOLDER, FORMATS, Verdicts, compute_verdicts, explain_change, read_verdicts

from stele.formats import rulesets
from stele.formats.registry import get_format, list_formats

_WRITTEN = Verdicts(("a@1", "b@1"), {("p", "a@1"): "+ | +", ("p", "b@1"): "- X | +"})


@pytest.mark.parametrize("name", FORMATS)
def test_no_verdict_changed(name: str) -> None:
    """Every version of every ruleset has the stored verdict and rules for every pair, in both directions."""
    before, now = read_verdicts(name), compute_verdicts(name)
    assert not explain_change(name, before, now), explain_change(name, before, now)
    assert before == now, f"{name} has pairs or rulesets not written down: run tests/conformance/formats/golden.py"


def test_every_format_that_compares_is_written_down() -> None:
    """Every built-in format that compares has a file, and no file is nearly empty."""
    comparing = {name for name in list_formats() if rulesets.default_ruleset(get_format(name))}
    assert set(FORMATS) <= comparing
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(FORMATS)
    assert {name: len(read_verdicts(name).said) > 70 for name in FORMATS} == dict.fromkeys(FORMATS, True)


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (_WRITTEN._replace(said=_WRITTEN.said | {("p", "b@1"): "+ | +"}), "beside the old ones as b@2"),
        (_WRITTEN._replace(said=_WRITTEN.said | {("p", "b@1"): "- Y | +"}), "- X | +  ->  - Y | +"),
        (_WRITTEN._replace(rulesets=("a@1",)), "lost b@1"),
        (_WRITTEN._replace(rulesets=("b@1", "a@1")), "default ruleset of f is a"),
        (_WRITTEN._replace(rulesets=("a@1", "b@1", "c@1")), "c@1 joins f later"),
    ],
)
def test_a_change_is_reported_with_the_way_out(now: Verdicts, says: str) -> None:
    """Changed verdicts, lost versions, another default and late names are reported with what to do."""
    assert says in explain_change("f", _WRITTEN, now)


@pytest.mark.parametrize(
    "now",
    [
        _WRITTEN,
        Verdicts((*_WRITTEN.rulesets, "b@2", "c@2"), {**_WRITTEN.said, ("p", "b@2"): "+ | +", ("q", "a@1"): "+ | +"}),
    ],
)
def test_additions_are_welcome(now: Verdicts) -> None:
    """New pairs, new versions, and new names from version 2 on are accepted."""
    assert explain_change("f", _WRITTEN, now) == ""
