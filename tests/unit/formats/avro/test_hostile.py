"""Hostile Avro schemas and data: each ends soon in a clear error or an answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.time_limit import limit_time

from stele.core.findings import Severity
from stele.core.ports import TextForm
from stele.errors import DecodeError, EncodeError, Invalid, MalformedSchema
from stele.formats import json_reader as texts
from stele.formats.avro import AVRO, AvroSchema

SECONDS = 20.0


@pytest.fixture(autouse=True)
def _limit_time() -> Iterator[None]:
    """Limit the time of every test."""
    with limit_time(SECONDS):
        yield


def parse_schema(value: Any) -> AvroSchema:
    """Parse a schema given as a JSON value."""
    return AVRO.parse(json.dumps(value).encode(), {})


@pytest.mark.parametrize("depth", [300, 1_000, 100_000])
@pytest.mark.parametrize(
    "layer",
    [('{"type":"array","items":', "}"), ("[", "]"), ('{"type":"int","x":', "}")],
)
def test_deep_nesting(depth: int, layer: tuple[str, str]) -> None:
    """Documents nested beyond the limits are rejected with that reason, however deep they are."""
    text = (layer[0] * depth + '"int"' + layer[1] * depth).encode()
    try:
        AVRO.parse(text, {})
    except MalformedSchema as error:
        assert any(word in str(error) for word in ("deep", "union"))  # noqa: PT017 - one layer is fine at 300
    else:
        assert depth == 300


@pytest.mark.parametrize("text", ["[" * 2_000, '{"a":' * 2_000, "[" * 2_000 + "]" * 1_999])
def test_deep_and_broken(text: str) -> None:
    """A document that is too deep is rejected for its depth, even if malformed; brackets in strings do not count."""
    with pytest.raises(MalformedSchema, match="nested deeper"):
        AVRO.parse(text.encode(), {})
    with pytest.raises(MalformedSchema, match="not valid JSON"):
        AVRO.parse(b"[" + json.dumps(text).encode(), {})


def test_nested_records_at_the_limit() -> None:
    """The deepest records that parse also print, compare, list, encode and decode."""
    node: Any = "int"
    for index in range(120):
        node = {"type": "record", "name": f"R{index}", "fields": [{"name": "f", "type": ["null", node]}]}
    with pytest.raises(MalformedSchema):
        parse_schema(node)
    node = "int"
    for index in range(60):
        node = {"type": "record", "name": f"R{index}", "fields": [{"name": "f", "type": ["null", node]}]}
    schema = parse_schema(node)
    for form in TextForm:
        assert AVRO.canonical(schema, form)
    assert AVRO.check(schema, parse_schema(node)) == []
    assert len(AVRO.fields(schema)) == 60
    codec = AVRO.codec(schema)
    assert codec.decode(codec.encode({"f": None})) == {"f": None}


def test_too_large() -> None:
    """A document beyond the size limit is rejected before it is parsed."""
    with pytest.raises(MalformedSchema, match="bytes"):
        AVRO.parse(b'"' + b"x" * texts.MAX_BYTES + b'"', {})


def test_wide_documents() -> None:
    """A union of thousands of records compares with another one within bounds."""
    many = [{"type": "record", "name": f"n{index}.R", "fields": []} for index in range(3_000)]
    findings = AVRO.check(parse_schema(many), parse_schema(list(reversed(many))))
    assert findings == []


def make_doubling_records(levels: int) -> list[Any]:
    """Return records, each of which contains the previous one twice."""
    out: list[Any] = [{"type": "record", "name": "R0", "fields": [{"name": "x", "type": "int"}]}]
    for index in range(1, levels):
        fields = [{"name": name, "type": f"R{index - 1}"} for name in "ab"]
        out.append({"type": "record", "name": f"R{index}", "fields": fields})
    return out


def test_exponential_schemas() -> None:
    """A short schema with 2**60 fields is listed in part, rejected as a table, and compared quickly."""
    schema = parse_schema(make_doubling_records(60))
    changed = make_doubling_records(60)
    changed[0]["fields"][0]["type"] = "string"
    assert len(AVRO.fields(schema)) == 10_000
    with pytest.raises(Invalid, match="more than"):
        AVRO.arrow_schema(schema)
    findings = AVRO.check(parse_schema(changed), schema)
    assert findings
    assert len(findings) <= 61
    assert AVRO.codec(schema).decode(b"\x00\x02") == {"x": 1}


def test_exponential_defaults() -> None:
    """A default that fails deep inside nested unions is rejected quickly."""
    node: Any = "int"
    for index in range(40):
        branches = [
            {"type": "record", "name": f"{side}{index}", "fields": [{"name": "f", "type": node}]} for side in "AB"
        ]
        node = (
            branches
            if index == 0
            else [branches[0], {**branches[1], "fields": [{"name": "f", "type": [f"A{index - 1}", f"B{index - 1}"]}]}]
        )
    value: Any = "wrong"
    for _ in range(40):
        value = {"f": value}
    with pytest.raises(MalformedSchema, match="fits no branch"):
        parse_schema({"type": "record", "name": "R", "fields": [{"name": "f", "type": node, "default": value}]})


def make_record_cycle(period: int, prefix: str) -> Any:
    """Return a record that leads back to itself after period steps. All steps have the same name."""
    node: Any = f"{prefix}0.R"
    for index in reversed(range(period)):
        node = {"type": "record", "name": f"{prefix}{index}.R", "fields": [{"name": "f", "type": node}]}
    return node


def test_cycles_of_coprime_periods() -> None:
    """Recursive types whose pairs nest beyond any stack end with a finding of level UNKNOWN."""
    findings = AVRO.check(parse_schema(make_record_cycle(61, "a")), parse_schema(make_record_cycle(59, "b")))
    assert [finding.level for finding in findings] == [Severity.UNKNOWN]
    assert AVRO.check(parse_schema(make_record_cycle(5, "a")), parse_schema(make_record_cycle(7, "b"))) == []


def test_references_that_nest_together() -> None:
    """Flat documents whose references nest thousands deep are refused where they are inlined."""
    references = {"R0": b'{"type":"record","name":"R0","fields":[]}'}
    for index in range(1, 2_000):
        body = {"type": "record", "name": f"R{index}", "fields": [{"name": "f", "type": f"R{index - 1}"}]}
        references[f"R{index}"] = json.dumps(body).encode()
    schema = AVRO.parse(b'{"type":"array","items":"R1999"}', references)
    assert AVRO.canonical(schema, TextForm.PRINTED) == b'{"type":"array","items":"R1999"}'
    with pytest.raises(MalformedSchema, match="deeper"):
        AVRO.fingerprints(schema)
    other = AVRO.parse(b'{"type":"array","items":"R1999"}', references)
    assert [finding.level for finding in AVRO.check(schema, other)] == [Severity.UNKNOWN]
    with pytest.raises(Invalid):
        AVRO.arrow_schema(schema)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)  # other tests may leave a higher one, with which there is room for it
    try:
        with pytest.raises(MalformedSchema, match="deep"):
            AVRO.codec(schema).decode(b"\x00")
    finally:
        sys.setrecursionlimit(before)


LIST = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}


def test_deep_data() -> None:
    """A megabyte of nested data raises an error. Readers written in C crash on it."""
    codec = AVRO.codec(parse_schema(LIST))
    with pytest.raises(DecodeError, match="deep"):
        codec.decode(b"\x02" * 1_000_000 + b"\x00")
    datum: Any = None
    for _ in range(100_000):
        datum = {"next": datum}
    with pytest.raises(EncodeError, match="deep"):
        codec.encode(datum)
    assert codec.validate(datum) == ["the datum is nested too deeply"]


def test_items_without_bytes() -> None:
    """Ten bytes that promise a billion nulls are an error; a few hundred nulls are not."""
    codec = AVRO.codec(parse_schema({"type": "array", "items": "null"}))
    assert codec.decode(codec.encode([None] * 300)) == [None] * 300
    with pytest.raises(DecodeError, match="without content"):
        codec.decode(b"\x80\x94\xeb\xdc\x03\x00")


def test_endless_record() -> None:
    """A record that always contains itself has no datum, and every operation reports that."""
    schema = parse_schema({"type": "record", "name": "X", "fields": [{"name": "x", "type": "X"}]})
    with pytest.raises(Invalid, match="infinitely"):
        AVRO.codec(schema).example()
    with pytest.raises(DecodeError):
        AVRO.codec(schema).decode(b"")
    with pytest.raises(Invalid, match="contains itself"):
        AVRO.arrow_schema(schema)
    assert AVRO.check(schema, schema) == []
    assert [field.path for field in AVRO.fields(schema)] == ["x"]


def test_enormous_precision() -> None:
    """A decimal with a precision of two billion digits costs nothing: its values stay bytes."""
    codec = AVRO.codec(
        parse_schema({"type": "bytes", "logicalType": "decimal", "precision": 2_000_000_000, "scale": 3})
    )
    assert codec.decode(b"\x02\x07") == b"\x07"


def make_wide_union(kind: str, width: int) -> list[dict[str, object]]:
    """A union of records, each with twenty fields of a kind."""
    fields = [{"name": f"f{number}", "type": kind} for number in range(20)]
    return [{"type": "record", "name": f"R{number}", "fields": fields} for number in range(width)]


def test_wide_unions_cost_their_width() -> None:
    """Two unions of a thousand records are compared by name, not each with each: the result is exact and quick."""
    with limit_time(20):
        assert AVRO.check(parse_schema(make_wide_union("long", 1000)), parse_schema(make_wide_union("int", 1000))) == []
        findings = AVRO.check(parse_schema(make_wide_union("string", 1000)), parse_schema(make_wide_union("int", 1000)))
        assert {(finding.rule, finding.level) for finding in findings} == {("MISSING_UNION_BRANCH", Severity.ERROR)}
        assert len(findings) == 1000


def test_undecided_is_refused() -> None:
    """If aliases make every pair relevant, a limit applies; beyond it the schemas are not compatible."""
    with limit_time(20):
        renamed = {"type": "record", "name": "X", "fields": [{"name": "g", "type": "int", "aliases": ["h"]}]}
        (finding,) = AVRO.check(
            parse_schema([renamed, *make_wide_union("string", 300)]), parse_schema(make_wide_union("int", 300))
        )
        assert finding.rule == "TOO_COMPLEX"
        assert finding.breaks


def test_a_message_is_short_however_long_the_name() -> None:
    """An error message is short even if the wrong name has thousands of characters."""
    with pytest.raises(MalformedSchema) as caught:
        parse_schema({"type": "record", "name": "R", "fields": [{"name": "f", "type": "x" * 50_000}]})
    assert "not defined" in str(caught.value)
    assert len(str(caught.value)) < 1_500


def test_examples_of_enormous_types() -> None:
    """A decimal of enormous precision has raw bytes as its example; a fixed of two gigabytes has none."""
    codec = AVRO.codec(parse_schema({"type": "bytes", "logicalType": "decimal", "precision": 97_190}))
    assert codec.validate(codec.example()) == []
    fixed = {"type": "fixed", "name": "F", "size": 2**31 - 1, "logicalType": "decimal", "precision": 5}
    with pytest.raises(Invalid, match="bytes"):
        AVRO.codec(parse_schema(fixed)).example()


@pytest.mark.parametrize("ruleset", AVRO.rulesets)
def test_unions_of_strangers(ruleset: str) -> None:
    """Unions of thousands of types without common names are compared only in part, and are not compatible."""
    for kind in ({"type": "enum", "symbols": ["A"]}, {"type": "fixed", "size": 1}):
        ours = parse_schema([{**kind, "name": f"E{index}"} for index in range(2_000)])
        theirs = parse_schema([{**kind, "name": f"F{index}"} for index in range(2_000)])
        findings = AVRO.check(ours, theirs, ruleset)
        assert findings
        assert all(finding.breaks for finding in findings)
