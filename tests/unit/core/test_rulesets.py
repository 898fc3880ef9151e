"""The version of a ruleset that decides: its name, adoption, folding, and its place in every question."""

from __future__ import annotations

import hashlib

import pytest
from tests.unit.core.box import Box, S, doc

from stele.core import commands as cmd
from stele.core import queries
from stele.core.compatibility_requests import CompatibilityRequest, SchemaSource, VerdictsRequired
from stele.core.decide import decide
from stele.core.events import EventMetadata, RulesetAdopted
from stele.core.findings import Finding, Verdict, WhenUndecided
from stele.core.findings import Severity as Weight
from stele.core.fold import apply_event
from stele.core.model import REGISTRY_LEVEL, Mode, SettingsLevel
from stele.core.rulesets import join_ruleset, split_ruleset
from stele.errors import InvalidName, ReadOnly, UnknownRuleset


def adopt(*versions: tuple[str, str, int], first: bool = False) -> cmd.AdoptRulesets:
    """Return the command."""
    return cmd.AdoptRulesets(versions, first)


@pytest.mark.parametrize(
    ("text", "parts"), [("", ("", None)), ("a", ("a", None)), ("buf:WIRE@12", ("buf:WIRE", 12)), ("a@b@1", ("a@b", 1))]
)
def test_names_split(text: str, parts: tuple[str, int | None]) -> None:
    """The text after the last @ is the version; joining reverses splitting."""
    assert split_ruleset(text) == parts
    if parts[1] is not None:
        assert join_ruleset(parts[0], parts[1]) == text


@pytest.mark.parametrize("text", ["a@", "a@0", "a@01", "a@-1", "a@x", "a@²", "@1", "a@1 ", "a@" + "9" * 5000])
def test_what_is_no_version_is_refused(text: str) -> None:
    """An @ without a plain number after it, or without a name before it, is refused."""
    with pytest.raises(UnknownRuleset, match="is not a ruleset"):
        split_ruleset(text)


def test_the_first_version_is_in_force_until_another_is_adopted() -> None:
    """An adoption is per format and name, can go back, and is not written twice."""
    box = Box()
    assert queries.ruleset_version(box.state, "avro", "x") == 1
    box.do(adopt(("avro", "x", 2), ("avro", "a", 3), ("json", "x", 1)))
    assert box.events == (RulesetAdopted("avro", "x", 2), RulesetAdopted("avro", "a", 3))
    assert queries.adopted_rulesets(box.state, "avro") == (("a", 3), ("x", 2))
    assert queries.adopted_rulesets(box.state, "json") == ()
    box.do(adopt(("avro", "x", 2)))
    assert box.events == ()
    box.do(adopt(("avro", "x", 1)))
    assert queries.ruleset_version(box.state, "avro", "x") == 1


def test_first_adoption_is_for_registries_without_a_past() -> None:
    """With `first`, nothing is adopted if anything was written before: that would change verdicts."""
    box = Box()
    box.register(S, "a")
    box.do(adopt(("avro", "x", 2), first=True))
    assert box.events == ()
    fresh = Box()
    fresh.do(adopt(("avro", "x", 2), first=True))
    assert fresh.state.rulesets == {("avro", "x"): 2}


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (("avro", "x", 0), UnknownRuleset),
        (("avro", "x", 2**31), UnknownRuleset),
        (("avro", "x@2", 2), UnknownRuleset),
        (("", "x", 2), InvalidName),
        (("avro", "", 2), InvalidName),
        (("avro", "x\n", 2), InvalidName),
    ],
)
def test_what_can_be_no_ruleset_is_refused(version: tuple[str, str, int], error: type[Exception]) -> None:
    """One bad entry refuses the whole command."""
    box = Box()
    with pytest.raises(error):
        box.do(adopt(("avro", "good", 2), version))
    assert box.state.rulesets == {}


def test_a_read_only_registry_adopts_nothing() -> None:
    """A read-only registry refuses an adoption, because it changes verdicts."""
    box = Box()
    box.do(cmd.SetMode(REGISTRY_LEVEL, Mode.READONLY))
    with pytest.raises(ReadOnly):
        box.do(adopt(("avro", "x", 2)))


def test_a_draft_takes_an_adoption_back() -> None:
    """An adoption in a draft that is rolled back leaves no trace."""
    box = Box()
    box.do(adopt(("avro", "x", 2)))
    box.state.begin_draft()
    apply_event(box.state, RulesetAdopted("avro", "x", 3), EventMetadata(bytes(16), 1), 9)
    apply_event(box.state, RulesetAdopted("json", "y", 3), EventMetadata(bytes(16), 1), 9)
    box.state.roll_back()
    assert box.state.rulesets == {("avro", "x"): 2}


def test_a_question_says_by_which_versions() -> None:
    """A verdict found before an adoption never answers a question asked after it."""
    box = Box()
    box.register(S, "a")
    command = cmd.RegisterSchema(S, doc("b"))
    stamp = EventMetadata(bytes(16), 1)

    def ask_for_verdicts() -> CompatibilityRequest:
        with pytest.raises(VerdictsRequired) as undecided:
            decide(box.state, command, stamp, known)
        return undecided.value.questions[0]

    known: dict[CompatibilityRequest, tuple[Finding, ...]] = {}
    before = ask_for_verdicts()
    known[before] = ()
    assert decide(box.state, command, stamp, known).events
    box.do(adopt(("avro", "x", 2), ("json", "x", 2)))
    after = ask_for_verdicts()
    assert (before.adopted, after.adopted) == ((), (("x", 2),))
    assert after.reader == SchemaSource(hashlib.sha256(b"b").digest())


def test_settings_may_hold_a_version() -> None:
    """A setting with a version is stored as it is; an invalid one is refused."""
    box = Box()
    box.do(cmd.ChangeSettings(SettingsLevel(*S), {"ruleset": "x@2"}))
    assert queries.settings_for(box.state, SettingsLevel(*S)).ruleset == "x@2"
    with pytest.raises(UnknownRuleset):
        box.do(cmd.ChangeSettings(SettingsLevel(*S), {"ruleset": "x@new"}))


def test_doubt_weighs_what_the_setting_says() -> None:
    """With REFUSE an undecided finding breaks; with ALLOW it is a warning; proved breaks do not change."""
    doubt, proof = Finding("D", "", level=Weight.UNKNOWN), Finding("P", "")
    assert WhenUndecided.REFUSE.weigh_findings([doubt, proof]) == (doubt, proof)
    weighed = WhenUndecided.ALLOW.weigh_findings([doubt, proof])
    assert [finding.level for finding in weighed] == [Weight.WARNING, Weight.ERROR]
    assert [Verdict.from_findings(findings) for findings in ([], weighed[:1], [doubt], [doubt, proof])] == [
        Verdict.COMPATIBLE,
        Verdict.COMPATIBLE,
        Verdict.UNDECIDED,
        Verdict.INCOMPATIBLE,
    ]
