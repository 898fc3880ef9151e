"""Parsing of Avro: which schemas are rejected, the position of the error, and what lenient parsing accepts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.core.ports import TextForm
from stele.errors import DecodeError, EncodeError, Invalid, MalformedSchema, UnresolvedReference
from stele.formats.avro import AVRO
from stele.formats.avro.model import AvroFixed, AvroPrimitive, AvroRecord, AvroUnion


def make_record(*fields: Any, **more: Any) -> bytes:
    """A record `n.R` with these fields."""
    return json.dumps({"type": "record", "name": "R", "namespace": "n", "fields": list(fields), **more}).encode()


def make_field(kind: Any, **more: Any) -> dict[str, Any]:
    """A field `f`."""
    return {"name": "f", "type": kind, **more}


REFUSED: list[tuple[bytes, str, str]] = [
    (b'{"type":{"type":"string"}}', "/type", "not a kind of type"),
    (b"3", "/", "3 is not a type"),
    (b"{}", "/type", "does not say its kind"),
    (b'{"type":"union"}', "/type", "'union' is not defined"),
    (b'"Missing"', "/", "'Missing' is not defined"),
    (b'["null",["int"]]', "/1", "directly contain"),
    (b'["int",{"type":"int","logicalType":"date"}]', "/1", "'int' twice"),
    (b'["null",{"type":"map"}]', "/1/values", "no 'values'"),
    (b'{"type":"fixed","name":"F","size":-1}', "/size", "no valid size"),
    (b'{"type":"fixed","name":"F","size":1.0}', "/size", "no valid size"),
    (b'{"type":"fixed","name":"F","size":true}', "/size", "no valid size"),
    (b'{"type":"fixed","name":"F","size":2147483648}', "/size", "no valid size"),
    (b'{"type":"enum","name":"E","symbols":["A","A"]}', "/symbols/1", "'A' twice"),
    (b'{"type":"enum","name":"E","symbols":["A-"]}', "/symbols/0", "not a valid symbol"),
    (b'{"type":"enum","name":"E","symbols":["A",3]}', "/symbols/1", "not a string"),
    (b'{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "/default", "none of the symbols"),
    (b'{"type":"record","name":"int","fields":[]}', "/name", "primitive type"),
    (b'{"type":"record","name":"a-b.c","fields":[]}', "/name", "not a valid name"),
    (b'{"type":"record","name":"c","namespace":"a..b","fields":[]}', "/name", "not a valid name"),
    (b'{"type":"record","name":"c","namespace":3,"fields":[]}', "/namespace", "not a string"),
    (b'{"type":"record","name":"","fields":[]}', "/name", "not a valid name"),
    (b'{"type":"record","name":"\xc3\xa9","fields":[]}', "/name", "not a valid name"),
    (b'{"type":"record","name":"R","aliases":["1x"],"fields":[]}', "/aliases/0", "not a valid name"),
    (b'{"type":"record","name":"R","aliases":"x","fields":[]}', "/aliases", "not an array"),
    (make_record(3), "/fields/0", "is not a field"),
    (make_record(make_field("int"), make_field("int")), "/fields/1/name", "'f' twice"),
    (make_record({"name": "a-b", "type": "int"}), "/fields/0/name", "not a valid name"),
    (make_record(make_field("int", order="upwards")), "/fields/0/order", "not a sort order"),
    (make_record(make_field("int", aliases=["1x"])), "/fields/0/aliases/0", "not a valid name"),
    (make_record(make_field("int", default=2**31)), "/fields/0/default", "range of int"),
    (make_record(make_field("int", default=1.0)), "/fields/0/default", "integer"),
    (make_record(make_field("int", default=True)), "/fields/0/default", "integer"),
    (make_record(make_field("long", default=2**63)), "/fields/0/default", "range of long"),
    (make_record(make_field("boolean", default=0)), "/fields/0/default", "true or false"),
    (make_record(make_field("null", default=0)), "/fields/0/default", "null"),
    (make_record(make_field("string", default=None)), "/fields/0/default", "string"),
    (make_record(make_field("double", default="1.5")), "/fields/0/default", "number"),
    (make_record(make_field("bytes", default="\u0100")), "/fields/0/default", "\\u00ff"),
    (make_record(make_field({"type": "fixed", "name": "F", "size": 2}, default="a")), "/fields/0/default", "2 bytes"),
    (
        make_record(make_field({"type": "enum", "name": "E", "symbols": ["A"]}, default="B")),
        "/fields/0/default",
        "not a symbol",
    ),
    (make_record(make_field({"type": "array", "items": "int"}, default=[1, "x"])), "/fields/0/default", "integer"),
    (make_record(make_field({"type": "array", "items": "int"}, default={})), "/fields/0/default", "array"),
    (make_record(make_field({"type": "map", "values": "int"}, default={"a": None})), "/fields/0/default", "integer"),
    (make_record(make_field(["int", "string"], default=True)), "/fields/0/default", "no branch"),
    (make_record(make_field("R", default={})), "/fields/0/default", "still being defined"),
    (
        make_record(make_field({"type": "record", "name": "S", "fields": [{"name": "a", "type": "int"}]}, default={})),
        "/fields/0/default",
        "'a' of n.S is missing",
    ),
    (
        make_record(make_field({"type": "array", "items": {"type": "map", "values": "No"}})),
        "/fields/0/type/items/values",
        "'No'",
    ),
    (make_record(make_field({"type": "record", "name": "R", "fields": []})), "/fields/0/type/name", "defined twice"),
    (b'{"type":"bytes","logicalType":"decimal","precision":2,"scale":5}', "/logicalType", "greater than precision"),
    (b'{"type":"bytes","logicalType":"decimal"}', "/logicalType", "needs a precision"),
    (b'{"type":"bytes","logicalType":"decimal","precision":4,"scale":-1}', "/logicalType", "scale"),
    (b'{"type":"int","logicalType":"decimal","precision":4}', "/logicalType", "bytes or fixed"),
    (b'{"type":"fixed","name":"F","size":1,"logicalType":"decimal","precision":3}', "/logicalType", "2 digits"),
]


@pytest.mark.parametrize(("text", "path", "words"), REFUSED, ids=lambda value: str(value)[:40])
def test_refused_with_path_and_reason(text: bytes, path: str, words: str) -> None:
    """Each fault is refused with a JSON Pointer to the place and words that name it."""
    with pytest.raises(MalformedSchema) as caught:
        AVRO.parse(text, {})
    assert caught.value.path == path
    assert words in caught.value.why


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (b'{"type":\n  "int",}', 2, 9),
        (b'{"type":"int"} // no', 1, 16),
        (b'\n\n{"type": NaN}', 3, 10),
        ('{"é": [}'.encode(), 1, 8),
        (b'\xef\xbb\xbf"int"', 1, 1),
        (b'"in\xfft"', 1, 4),
        (b'"\\ud800"', 1, 2),
        (b"1e999", 1, 1),
        (b'{"type":"int"', 1, 14),
    ],
)
def test_broken_json_has_line_and_column(text: bytes, line: int, column: int) -> None:
    """Text that is not JSON is rejected with line and column, as an editor counts them."""
    with pytest.raises(MalformedSchema) as caught:
        AVRO.parse(text, {})
    assert caught.value.line == line
    assert abs((caught.value.column or 0) - column) <= 1


@pytest.mark.parametrize(
    "word", ["error", "request", "record", "enum", "array", "map", "fixed", "union", "error_union"]
)
def test_types_named_like_kinds(word: str) -> None:
    """A type may have the name of a kind of type, as in Java: alone, referred to, and in a namespace."""
    for space in ({}, {"namespace": "n"}):
        reference = f"n.{word}" if space else word
        field = {"name": "next", "type": ["null", reference]}
        text = json.dumps({"type": "record", "name": word, **space, "fields": [field]})
        schema = AVRO.parse(text.encode(), {})
        assert schema.type_name == reference
        printed = AVRO.canonical(schema, TextForm.PRINTED)
        assert AVRO.canonical(AVRO.parse(printed, {}), TextForm.PRINTED) == printed
        codec = AVRO.codec(schema)
        assert codec.decode(codec.encode({"next": {"next": None}})) == {"next": {"next": None}}


@pytest.mark.parametrize("word", ["record", "error", "enum", "fixed", "array", "map"])
def test_kinds_come_before_names(word: str) -> None:
    """An object whose type is a kind defines a type, even where a type of that name exists."""
    with pytest.raises(MalformedSchema):
        AVRO.parse(make_record(make_field({"type": word}), name=word), {})


def test_empty_union() -> None:
    """An empty union is a schema, as in Java: it prints and compares, but has no values and no Arrow schema."""
    empty, number, wide = (AVRO.parse(text, {}) for text in (b"[]", b'"int"', b'["int"]'))
    for form in TextForm:
        assert AVRO.canonical(empty, form) == b"[]"
    assert AVRO.check(empty, empty) == AVRO.check(number, empty) == AVRO.check(wide, empty) == []
    assert [(finding.rule, finding.path) for finding in AVRO.check(empty, number)] == [("MISSING_UNION_BRANCH", "/")]
    assert [(finding.rule, finding.path) for finding in AVRO.check(empty, wide)] == [("MISSING_UNION_BRANCH", "/0")]
    assert AVRO.fields(empty) == []
    assert AVRO.outline(empty)[0].path == "/"
    AVRO.lint(empty)
    codec = AVRO.codec(empty)
    with pytest.raises(EncodeError, match="empty union"):
        codec.encode(None)
    with pytest.raises(Invalid, match="empty union"):
        codec.example()
    with pytest.raises(DecodeError, match="no branch 0"):
        codec.decode(b"\x00")
    record = AVRO.parse(make_record(make_field([])), {})
    with pytest.raises(Invalid, match="f: the type is an empty union"):
        AVRO.arrow_schema(record)
    _, losses = AVRO.to_model(record)
    assert [loss.what for loss in losses] == ["UNION"]
    with pytest.raises(MalformedSchema, match="no branch"):
        AVRO.parse(make_record(make_field([], default=None)), {})


@pytest.mark.parametrize("text", [b"", b" \n"])
def test_empty_text(text: bytes) -> None:
    """An empty text is not a schema, and the error message reports that."""
    with pytest.raises(MalformedSchema, match="empty"):
        AVRO.parse(text, {})


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"enum","name":"E","symbols":[]}',
        b'{"type":"record","name":"a-b","fields":[{"name":"x y","type":"int","default":"no","order":"up"}]}',
        b'{"type":"bytes","logicalType":"decimal","precision":2,"scale":5}',
        b'{"type":"enum","name":"E","symbols":["A-"],"default":7}',
        b'{"type":"record","name":"map","namespace":3,"aliases":["1"],"fields":[]}',
    ],
)
def test_lenient_reading(text: bytes) -> None:
    """Schemas of older registries are rejected by strict parsing only; lenient parsing accepts their printed text."""
    with pytest.raises(MalformedSchema):
        AVRO.parse(text, {})
    parsed = AVRO.parse(text, {}, strict=False)
    printed = AVRO.canonical(parsed, TextForm.PRINTED)
    assert AVRO.canonical(AVRO.parse(printed, {}, strict=False), TextForm.PRINTED) == printed


@pytest.mark.parametrize(
    "kind",
    [
        make_field(["int", "null"], default=None),
        make_field(["null", "int"], default=3),
        make_field("float", default="NaN"),
        make_field("double", default=12345678901234567890123),
        make_field({"type": "array", "items": ["int", "null"]}, default=[1, None]),
        make_field("int", order="ASCENDING"),
        make_field(["null", "R"], default=None),
    ],
)
def test_accepted_fields(kind: Any) -> None:
    """Defaults of any branch (Avro 1.12), NaN, sort orders in any case, and recursion are accepted."""
    assert isinstance(AVRO.parse(make_record(kind), {}).root, AvroRecord)


def test_names_and_namespaces() -> None:
    """Namespaces are inherited, replaced, emptied and overridden by dotted names, as the specification says."""
    text = make_record(
        {"name": "a", "type": {"type": "fixed", "name": "A", "size": 1}},
        {"name": "b", "type": {"type": "fixed", "name": "x.B", "namespace": "ignored", "size": 1}},
        {"name": "c", "type": {"type": "fixed", "name": "C", "namespace": "", "size": 1, "aliases": ["old", "y.C"]}},
        {"name": "d", "type": "A"},
        {"name": "e", "type": "x.B"},
        {"name": "f", "type": "C"},
    )
    schema = AVRO.parse(text, {})
    assert schema.type_name == "n.R"
    assert isinstance(schema.root, AvroRecord)
    kinds = [field.type for field in schema.root.fields]
    assert [kind.name for kind in kinds if isinstance(kind, AvroFixed)] == ["n.A", "x.B", "C", "n.A", "x.B", "C"]
    assert kinds[0] is kinds[3]
    assert isinstance(kinds[2], AvroFixed)
    assert kinds[2].aliases == ("old", "y.C")


def test_last_duplicate_member_wins() -> None:
    """Duplicate JSON members are read as Java reads them."""
    schema = AVRO.parse(b'{"type":"long","x":1,"type":"int","x":2}', {})
    assert isinstance(schema.root, AvroPrimitive)
    assert (schema.root.kind, schema.root.props) == ("int", {"x": 2})


def test_top_level_union_and_primitive() -> None:
    """The name of a primitive type and a union are schemas, without a type name."""
    assert AVRO.parse(b'"string"', {}).type_name == ""
    union = AVRO.parse(b'["null","long"]', {}).root
    assert isinstance(union, AvroUnion)
    assert [branch.kind for branch in union.branches] == ["null", "long"]


ADDRESS = b'{"type":"record","name":"Address","namespace":"n","fields":[{"name":"country","type":"n.Country"}]}'
COUNTRY = b'{"type":"enum","name":"Country","namespace":"n","symbols":["CH","DE"]}'


def test_references() -> None:
    """References define names in order; the printed text has the names, `resolved` and CANONICAL the definitions."""
    text = make_record({"name": "home", "type": "n.Address"}, {"name": "work", "type": "Address"})
    schema = AVRO.parse(text, {"n.Country": COUNTRY, "n.Address": ADDRESS})
    assert AVRO.canonical(schema, TextForm.PRINTED) == (
        b'{"type":"record","name":"R","namespace":"n","fields":'
        b'[{"name":"home","type":"Address"},{"name":"work","type":"Address"}]}'
    )
    assert b"symbols" not in AVRO.canonical(schema, TextForm.NORMALIZED)
    alone = AVRO.parse((AVRO.render(schema, "resolved") or "").encode(), {})
    assert AVRO.fingerprints(alone) == AVRO.fingerprints(schema)
    assert AVRO.render(schema, "serialized") is None


def test_reference_faults() -> None:
    """A missing reference, a missing dependency of a reference, a malformed one and a clash have different errors."""
    text = make_record({"name": "home", "type": "n.Address"})
    with pytest.raises(UnresolvedReference) as caught:
        AVRO.parse(text, {})
    assert caught.value.path == "/fields/0/type"
    with pytest.raises(UnresolvedReference, match=r"in the reference 'n\.Address'.*n\.Country"):
        AVRO.parse(text, {"n.Address": ADDRESS})
    with pytest.raises(MalformedSchema, match="in the reference 'x'"):
        AVRO.parse(text, {"x": b"{"})
    with pytest.raises(MalformedSchema, match="defined twice"):
        AVRO.parse(COUNTRY, {"n.Country": COUNTRY})
