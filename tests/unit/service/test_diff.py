"""The semantic diff: the changes, and which finding belongs to which change."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.unit.service.diff_cases import PAIRS, Pair, row

from stele.core.findings import Severity, WhenUndecided
from stele.errors import MalformedSchema, TooLarge, UnknownFormat, UnknownRuleset
from stele.formats.outline_builder import MAX_NODES
from stele.service.changes import ChangeKind
from stele.service.check import Candidate, NamedText
from stele.service.diff import DiffAnswer, DiffRequest, diff_schemas
from stele.service.limits import Limits


def diff_texts(format_name: str, old: str, new: str, ruleset: str | None = None) -> DiffAnswer:
    """Return the diff of two texts without references."""
    return diff_schemas(DiffRequest(format_name, Candidate(old), Candidate(new), ruleset))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.format}: {pair.name}")
def test_changes(pair: Pair) -> None:
    """Each kind of difference gives its own change, with the verdicts in both directions."""
    answer = diff_texts(pair.format, pair.old, pair.new, pair.ruleset)
    assert [row(change) for change in answer.changes] == pair.rows


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.format}: {pair.name}")
def test_the_way_back(pair: Pair) -> None:
    """The diff in the other direction has the same differences, mirrored."""
    back = diff_texts(pair.format, pair.new, pair.old, pair.ruleset)
    swapped = {"added": "removed", "removed": "added"}
    assert sorted((change.kind.value, change.what, change.after, change.before) for change in back.changes) == sorted(
        (swapped.get(each.kind, each.kind), each.what, each.before, each.after) for each in pair.rows
    )
    assert [back.forward, back.backward] == [
        all(each.backward for each in pair.rows),
        all(each.forward for each in pair.rows),
    ]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.format}: {pair.name}")
def test_nothing_changed(pair: Pair) -> None:
    """A schema does not differ from itself."""
    answer = diff_texts(pair.format, pair.new, pair.new, pair.ruleset)
    assert answer.changes == ()
    assert (answer.backward, answer.forward, answer.text, answer.complete) == (True, True, "", True)


# --- findings -------------------------------------------------------------------------------------------------------

RECORD = '{"type":"record","name":"R","fields":[%s]}'


def test_findings_stand_with_their_change() -> None:
    """A finding is listed once, at the change it is about, with the direction it was found in."""
    answer = diff_texts("avro", RECORD % '{"name":"a","type":"int"}', RECORD % '{"name":"b","type":"string"}')
    findings = [
        (change.path, reason.direction.value, reason.path) for change in answer.changes for reason in change.findings
    ]
    assert findings == [("R.a", "forward", "/fields/0"), ("R.b", "backward", "/fields/0")]
    assert (answer.backward, answer.forward, answer.ruleset) == (False, False, "avro@1")


def test_a_finding_about_two_changes() -> None:
    """Symbols removed together share one finding: it is listed once, and none of them counts as harmless."""
    enum = '{"type":"enum","name":"E","symbols":[%s]}'
    answer = diff_texts("avro", enum % '"A","B","C"', enum % '"A"')
    assert [(change.path, change.backward, len(change.findings)) for change in answer.changes] == [
        ("E.B", False, 1),
        ("E.C", False, 0),
    ]


def test_findings_of_no_change_stand_alone() -> None:
    """A finding without a changed declaration is a change of its own, named by the rule."""
    old = '{"allOf":[{"maximum":9}],"minimum":1,"type":"integer"}'
    new = '{"anyOf":[{"maximum":9}],"maximum":30,"minimum":2,"type":"integer"}'
    answer = diff_texts("json", old, new)
    breaking = [reason for change in answer.changes for reason in change.findings if reason.breaks]
    assert len(breaking) == len({(finding.rule, finding.path) for finding in breaking})
    assert answer.backward is all(change.backward for change in answer.changes)
    assert answer.forward is all(change.forward for change in answer.changes)


def test_undecided_can_be_allowed() -> None:
    """An undecided change is incompatible, unless the request allows undecided changes."""
    old, new = '{"type":"string","pattern":"^a.*b$"}', '{"type":"string","pattern":"^a.*(?=b)b$"}'
    request = DiffRequest("json", Candidate(old), Candidate(new), "containment")
    strict = diff_schemas(request)
    lenient = diff_schemas(replace(request, undecided=WhenUndecided.ALLOW))
    assert [change.path for change in strict.changes] == [change.path for change in lenient.changes]
    assert (strict.backward, lenient.backward) == (False, True)
    assert {reason.level for change in strict.changes for reason in change.findings} == {Severity.UNKNOWN}


# --- beyond outlines ------------------------------------------------------------------------------------------------


def test_only_documentation() -> None:
    """A change of documentation only is marked as an annotation, and no finding belongs to it."""
    plain, with_doc = RECORD % "", (RECORD % "").replace('"name"', '"doc":"x","name"')
    (change,) = diff_texts("avro", plain, with_doc).changes
    assert (change.annotation, change.what, change.after) == (True, "doc", "x")


def test_references() -> None:
    """Referenced texts are compared as a whole, and findings inside them belong to them."""
    old = (NamedText("E", '{"type":"enum","name":"E","symbols":["A","B"]}'),)
    new = (
        NamedText("E", '{"type":"enum","name":"E","symbols":["A"]}'),
        NamedText("F", '{"type":"fixed","name":"F","size":1}'),
    )
    uses = RECORD % '{"name":"e","type":"E"}'
    answer = diff_schemas(DiffRequest("avro", Candidate(uses, old), Candidate(uses, new)))
    assert [(change.kind.value, change.path) for change in answer.changes[:2]] == [
        ("changed", "reference(E)"),
        ("added", "reference(F)"),
    ]
    assert answer.backward is False
    assert sum(len(change.findings) for change in answer.changes) == 1


def test_texts_that_differ_in_nothing_that_shows() -> None:
    """Schemas whose normalised texts differ never count as unchanged, even if their outlines are equal."""
    old, new = '{"required":["a","b"]}', '{"required":["b","a"]}'
    (change,) = diff_texts("json", old, new).changes
    assert (change.kind, change.what, change.backward, change.forward) == (ChangeKind.CHANGED, "text", True, True)


def test_style_is_no_change() -> None:
    """White space and the order of members are no change."""
    answer = diff_texts("json", '{"type":"object","title":"x"}', '{ "title": "x",\n "type": "object" }')
    assert (answer.changes, answer.text) == ((), "")


def test_opaque() -> None:
    """Opaque schemas are compared as texts, without verdicts."""
    answer = diff_texts("opaque", "one", "two")
    assert [(change.path, change.what) for change in answer.changes] == [("/", "text")]
    assert (answer.backward, answer.forward, answer.ruleset) == (None, None, "")
    assert "-one\n+two\n" in answer.text
    assert diff_texts("opaque", "one", "one").changes == ()


def test_formats_without_outline_are_compared_by_fields(install: Callable[[str], None]) -> None:
    """A plug-in that only lists fields gets a diff of its fields, findings of its ruleset included."""
    install("FIELDS")
    answer = diff_texts("demo", "a b", "a c")
    assert [(change.kind.value, change.path, change.backward, change.forward) for change in answer.changes] == [
        ("removed", "b", False, True),
        ("added", "c", True, False),
    ]
    assert answer.ruleset == "words@1"


# --- limits ---------------------------------------------------------------------------------------------------------


def test_large_schemas_end_and_say_so() -> None:
    """Declarations beyond the size of an outline are not compared, and the answer is marked as incomplete."""
    symbols = [f"S{number}" for number in range(MAX_NODES + 10)]
    enum = '{"type":"enum","name":"E","symbols":%s}'
    answer = diff_texts("avro", enum % json.dumps(symbols), enum % json.dumps(symbols[1:]))
    assert answer.complete is False
    assert answer.changes[0].path == "E.S0"


def test_everything_changed() -> None:
    """Thousands of differences with a finding each are found in moderate time."""
    fields = ",".join(f'{{"name":"f{number}","type":"%s"}}' for number in range(4_000))
    old, new = (RECORD % fields.replace("%s", kind) for kind in ("int", "string"))
    answer = diff_texts("avro", old, new)
    assert len(answer.changes) == 4_000
    assert all(len(change.findings) == 2 and not change.backward and not change.forward for change in answer.changes)


def test_names_that_repeat() -> None:
    """Aliases that all name the same field cost no time and match nothing."""
    fields = [json.dumps({"name": f"f{number}", "type": "int", "default": 0}) for number in range(3_000)]
    aliased = [json.dumps({"name": f"g{n}", "type": "int", "default": 0, "aliases": ["f0"]}) for n in range(3_000)]
    answer = diff_texts("avro", RECORD % ",".join(fields), RECORD % ",".join(aliased))
    assert {change.kind for change in answer.changes} <= {ChangeKind.ADDED, ChangeKind.REMOVED, ChangeKind.CHANGED}


def test_limits() -> None:
    """Texts over the limits are refused before anything expensive happens."""
    request = DiffRequest("avro", Candidate('"int"'), Candidate('"string"'))
    with pytest.raises(TooLarge):
        diff_schemas(request, Limits(schema_bytes=3))


def test_errors() -> None:
    """An invalid text, an unknown ruleset and an unknown format are refused like in a check."""
    with pytest.raises(MalformedSchema):
        diff_texts("avro", '"int"', "{")
    with pytest.raises(UnknownRuleset):
        diff_texts("avro", '"int"', '"int"', "nonsense")
    with pytest.raises(UnknownFormat):
        diff_texts("nonsense", "", "")
