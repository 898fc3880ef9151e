"""The conformance tests for formats detect every broken promise, by the right test."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from stele.core.findings import Finding
from stele.core.ports import Field, TextForm
from stele.errors import InvalidRequest, MalformedSchema
from stele.formats.avro import AvroFormat
from stele.formats.avro.codec import AvroCodec
from stele.testing.format_cases import compared_pairs, read_cases
from stele.testing.format_suite import FormatConformance, FormatMaterial, main, run_tests

RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":1}]}'
LINES: list[dict[str, Any]] = [
    {"id": "1", "compatible": True, "ruleset": "avro", "old": '"int"', "new": '"long"'},
    {"id": "2", "compatible": False, "ruleset": "avro", "old": '"long"', "new": '"int"', "direction": "backward"},
    {"id": "3", "schema": RECORD, "equal": [RECORD.replace(",", " , ")], "accepts": ["02"], "refuses": ["", "0202"]},
    {"id": "4", "schema": '{"type":"record"}', "valid": False},
    {"id": "5", "schema": '"int"', "canonical": '"int"', "fingerprints": {"rabin": "7275d51a3f395c8f"}},
    {
        "id": "6",
        "schema": '{"type":"array","items":"R"}',
        "references": {"R": RECORD},
    },
    {"id": "7", "compatible": True, "ruleset": "theirs", "old": '"int"', "new": '"int"', "contested": "by us"},
]


def material(schemas: AvroFormat, folder: Path, **options: Any) -> FormatMaterial:
    """Return the material of a format with the case lines above."""
    file = folder / "cases.jsonl"
    file.write_text("".join(json.dumps({"format": "avro", **line}) + "\n" for line in LINES))
    return FormatMaterial.read_files(schemas, [file], seconds=options.pop("seconds", 120), **options)


def make_suite(format_material: FormatMaterial) -> FormatConformance:
    """Return the conformance tests for some material."""
    suite: FormatConformance = type("Suite", (FormatConformance,), {"material": format_material})()
    return suite


class _Codec(AvroCodec):
    """A codec whose methods the tests replace."""


class Broken(AvroFormat):
    """An Avro format with replaced methods."""

    numbers: ClassVar = itertools.count()


def _parse(before: Callable[[bytes], None]) -> dict[str, Any]:
    def parse(self: Any, text: bytes, references: Any, **options: Any) -> Any:
        before(text)
        return AvroFormat.parse(self, text, references, **options)

    return {"parse": parse}


def _placeless(self: Any, text: bytes, references: Any, **options: Any) -> Any:
    try:
        return AvroFormat.parse(self, text, references, **options)
    except MalformedSchema as error:
        raise MalformedSchema(error.why) from None


def _codec(**methods: Any) -> dict[str, Any]:
    codec_class = type("Made", (_Codec,), methods)
    return {"codec": lambda _, writer, reader=None: codec_class(writer, reader)}


def _crash(text: bytes) -> None:
    text.decode()


def _hang(text: bytes) -> None:
    if len(text) > 10_000:
        time.sleep(2)


def _canonical(change: Callable[[bytes, TextForm], bytes]) -> dict[str, Any]:
    return {"canonical": lambda self, parsed, form: change(AvroFormat.canonical(self, parsed, form), form)}


def _check(*findings: Finding) -> dict[str, Any]:
    return {
        "check": lambda self, reader, writer, ruleset="": [*AvroFormat.check(self, reader, writer, ruleset), *findings]
    }


BREAKS: list[tuple[str, dict[str, Any], str]] = [
    ("a name with a blank", {"name": "my avro"}, "test_names"),
    ("a media type twice", {"media_types": ("a/b", "a/b")}, "test_names"),
    ("an error of another kind", _parse(_crash), "test_hostile_documents"),
    ("a hang", _parse(_hang), "test_hostile_documents"),
    ("no place", {"parse": _placeless}, "test_malformed_documents_are_refused_with_a_place"),
    (
        "another text every time",
        _canonical(lambda text, _: text + b" " * next(Broken.numbers)),
        "test_parsing_is_deterministic",
    ),
    (
        "no schema",
        _canonical(lambda text, form: b"{" if form is TextForm.PRINTED else text),
        "test_printing_is_a_fixed_point",
    ),
    ("a changing text", _canonical(lambda text, _: text + b" "), "test_canonical_forms_and_fingerprints_of_the_lines"),
    ("style", _canonical(lambda text, _: text * next(Broken.numbers)), "test_style_makes_no_difference"),
    ("a digest", {"fingerprints": lambda *_: {"md5": bytes(16)}}, "test_fingerprints_are_those_of_the_canonical_form"),
    ("every style", {"render": lambda *_: ""}, "test_unknown_styles_render_nothing"),
    ("a bare default", {"fields": lambda *_: [Field("a", "int", "nan?")]}, "test_fields_are_well_formed"),
    ("a wrong verdict", {"check": lambda *_: []}, "test_verdicts_of_the_lines"),
    ("any ruleset", {"check": lambda *_: []}, "test_the_first_ruleset_is_the_default"),
    ("no reason", _check(Finding("RULE", "/")), "test_findings_explain_themselves"),
    ("never content", _check(Finding("RULE", "/", why="w" * 20, fix="f" * 20)), "test_a_schema_reads_its_own_data"),
    ("a bad example", _codec(example=lambda _: object()), "test_examples_survive"),
    ("data that changes", _codec(decode=lambda *_: {"a": next(Broken.numbers)}), "test_examples_survive"),
    ("anything is valid", _codec(validate=lambda *_: []), "test_what_does_not_fit_is_refused"),
    ("any bytes", _codec(decode=lambda *_: None), "test_payloads_of_the_lines"),
    ("an error of data", _codec(decode=lambda *_: 1 / 0), "test_hostile_data"),
    ("no table", {"arrow_schema": lambda *_: 1 / 0}, "test_tables"),
    ("lint that breaks", {"lint_rules": {}, "lint": lambda *_: [Finding("RULE", "/")]}, "test_advice"),
    ("no outline", {"outline": lambda *_: [None]}, "test_outlines"),
    ("no model", {"to_model": lambda *_: (None, [])}, "test_models"),
]


@pytest.mark.parametrize(("methods", "test"), [row[1:] for row in BREAKS], ids=[row[0] for row in BREAKS])
def test_a_broken_promise_is_found(methods: dict[str, Any], test: str, tmp_path: Path) -> None:
    """The original format passes the test and the broken one fails it."""
    getattr(make_suite(material(AvroFormat(), tmp_path)), test)()
    Broken.numbers = itertools.count(1)
    broken = type("Sabotaged", (Broken,), methods)()
    broken_material = (
        FormatMaterial(broken, [], seconds=0.5) if "name" in methods else material(broken, tmp_path, seconds=0.5)
    )
    with pytest.raises((AssertionError, ArithmeticError, AttributeError, TypeError, ValueError, MalformedSchema)):
        getattr(make_suite(broken_material), test)()


def test_references_must_matter(tmp_path: Path) -> None:
    """A format that parses a schema without its references fails."""

    class Careless(AvroFormat):
        def parse(self, text: bytes, references: Any, **options: Any) -> Any:
            return super().parse(text, references or {"R": RECORD.encode()}, **options)

    with pytest.raises(AssertionError, match="without its references"):
        make_suite(material(Careless(), tmp_path)).test_references_are_needed_and_used()


def test_a_yes_that_is_not_kept(tmp_path: Path) -> None:
    """A verdict that the codec contradicts is reported; so is a line in `broken` that is not broken."""
    case = {"id": "x", "format": "avro", "compatible": True, "old": '"bytes"', "new": '"long"'}
    file = tmp_path / "promise.jsonl"
    file.write_text(json.dumps(case))
    lax = type("Lax", (AvroFormat,), {"check": lambda *_: []})()
    with pytest.raises(AssertionError, match="nothing was found"):
        make_suite(FormatMaterial.read_files(lax, [file])).test_a_yes_is_kept()
    with pytest.raises(AssertionError, match="known to be broken"):
        make_suite(material(AvroFormat(), tmp_path, broken={"1": "an old tale"})).test_a_yes_is_kept()


def test_lines_of_an_unknown_ruleset_are_not_passed_over(tmp_path: Path) -> None:
    """A line with an unknown ruleset fails, unless `judged_by` names a ruleset for it."""
    file = tmp_path / "theirs.jsonl"
    case = {"id": "t", "format": "avro", "ruleset": "theirs", "compatible": True, "old": '"int"', "new": '"int"'}
    file.write_text(json.dumps(case))
    with pytest.raises(AssertionError, match="'theirs'"):
        make_suite(FormatMaterial.read_files(AvroFormat(), [file])).test_verdicts_of_the_lines()
    for judge in ("avro", ""):
        make_suite(
            FormatMaterial.read_files(AvroFormat(), [file], judged_by={"theirs": judge})
        ).test_verdicts_of_the_lines()


def test_without_material_nothing_passes() -> None:
    """A format without case lines fails."""
    with pytest.raises(AssertionError):
        make_suite(FormatMaterial(AvroFormat(), [])).test_there_is_material()


def test_all_of_it_without_pytest(tmp_path: Path) -> None:
    """`run_tests` runs every test and describes it, and a correct format passes all of them."""
    outcomes = list(run_tests(material(AvroFormat(), tmp_path)))
    assert len(outcomes) >= 30
    assert [one for one in outcomes if one.failure] == []
    assert all(one.proves.endswith(".") for one in outcomes)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 0 when all tests passed, 1 with a wrong line, 2 when the tests could not start."""
    material(AvroFormat(), tmp_path)
    assert main(["avro", str(tmp_path)]) == 0
    (tmp_path / "wrong.jsonl").write_text('{"id": "bad-line", "format": "avro", "schema": "1", "valid": true}')
    assert main(["avro", str(tmp_path)]) == 1
    assert "bad-line" in capsys.readouterr().out
    (tmp_path / "wrong.jsonl").write_text("no json")
    assert main(["avro", str(tmp_path)]) == 2
    assert "wrong.jsonl, line 1" in capsys.readouterr().out
    assert main(["no-such-format"]) == 2


@pytest.mark.parametrize(
    "line",
    ["[]", '{"id": "1"}', '{"id": "1", "format": "x"}', '{"id": "1", "format": "x", "compatible": true, "new": ""}'],
)
def test_lines_that_state_nothing_are_refused(line: str, tmp_path: Path) -> None:
    """The error for a line that is no case names its place."""
    file = tmp_path / "cases.jsonl"
    file.write_text(f"\n{line}\n")
    with pytest.raises(InvalidRequest, match=r"cases\.jsonl, line 2"):
        list(read_cases([file]))


@pytest.mark.parametrize(
    ("direction", "transitive", "expected"),
    [
        ("backward", False, [("c", "b")]),
        ("forward", False, [("b", "c")]),
        ("full", False, [("c", "b"), ("b", "c")]),
        ("backward", True, [("c", "a"), ("c", "b")]),
    ],
)
def test_pairs(direction: str, transitive: bool, expected: list[tuple[str, str]], tmp_path: Path) -> None:
    """Direction and history decide which schemas are compared, and which of them is the reader."""
    file = tmp_path / "cases.jsonl"
    case = {"id": "1", "format": "x", "compatible": True, "old": "b", "new": "c", "history": ["a", "b"]}
    file.write_text(json.dumps({**case, "direction": direction, "transitive": transitive}))
    (parsed_case,) = read_cases([file])
    assert [(reader.decode(), writer.decode()) for reader, writer in compared_pairs(parsed_case)] == expected
