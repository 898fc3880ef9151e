"""Avro data: which data fit, which are rejected, how schemas are resolved."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from stele.errors import DecodeError, EncodeError
from stele.formats.avro import AVRO
from stele.formats.avro.codec import AvroCodec


def make_codec(writer: Any, reader: Any = None) -> AvroCodec:
    """A codec for schemas given as JSON values."""
    parse = [AVRO.parse(json.dumps(value).encode(), {}) for value in (writer, reader) if value is not None]
    return AVRO.codec(*parse)


def make_logical_type(kind: str, word: str, **more: Any) -> dict[str, Any]:
    """A type with a logical type."""
    return {"type": kind, "logicalType": word, **more}


UUID_ = UUID("123e4567-e89b-42d3-a456-426614174000")
MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schema", "datum", "data"),
    [
        ("null", None, ""),
        ("boolean", True, "01"),
        ("int", -2147483648, "ffffffff0f"),
        ("long", 9223372036854775807, "feffffffffffffffff01"),
        ("double", 1.5, "000000000000f83f"),
        ("string", "é", "04c3a9"),
        ("bytes", b"\x00", "0200"),
        (make_logical_type("int", "date"), date(1969, 12, 31), "01"),
        (make_logical_type("int", "time-millis"), time(0, 0, 1), "d00f"),
        (make_logical_type("long", "timestamp-millis"), MOMENT, "a682fcf4be63"),
        (make_logical_type("long", "local-timestamp-micros"), datetime(1970, 1, 1, 0, 0, 0, 1), "02"),  # noqa: DTZ001 - local
        (make_logical_type("string", "uuid"), UUID_, "48" + str(UUID_).encode().hex()),
        (make_logical_type("fixed", "uuid", name="U", size=16), UUID_, UUID_.hex),
        (make_logical_type("bytes", "decimal", precision=4, scale=2), Decimal("-1.28"), "0280"),
        (make_logical_type("bytes", "decimal", precision=4, scale=2), Decimal("1.28"), "040080"),
        (make_logical_type("fixed", "decimal", precision=4, scale=2, name="D", size=3), Decimal("-0.01"), "ffffff"),
        ({"type": "array", "items": "int"}, [1, 2], "04020400"),
        ({"type": "map", "values": "int"}, {"a": 1}, "0202610200"),
        (["null", "int", "string"], "x", "040278"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "02"),
    ],
)
def test_known_bytes(schema: Any, datum: Any, data: str) -> None:
    """Values are encoded to the bytes of the specification, and decoded to the same values."""
    codec = make_codec(schema)
    assert codec.validate(datum) == []
    assert codec.encode(datum).hex() == data
    assert codec.decode(codec.encode(datum)) == datum


@pytest.mark.parametrize(
    ("schema", "datum"),
    [
        ("int", 2**31),
        ("int", 1.5),
        ("int", True),
        ("long", 2**63),
        ("boolean", 1),
        ("null", 0),
        ("float", 1e39),
        ("float", "1"),
        ("double", 10**400),
        ("string", b"x"),
        ("string", "\ud800"),
        ("bytes", "x"),
        ({"type": "fixed", "name": "F", "size": 2}, b"abc"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
        ({"type": "array", "items": "int"}, "ab"),
        ({"type": "map", "values": "int"}, {1: 2}),
        (["null", "int"], "x"),
        (["int", "string"], 1.5),
        (make_logical_type("bytes", "decimal", precision=4, scale=2), Decimal("123.45")),
        (make_logical_type("bytes", "decimal", precision=4, scale=2), Decimal("1.001")),
        (make_logical_type("bytes", "decimal", precision=4, scale=2), Decimal("NaN")),
        (make_logical_type("string", "uuid"), "no uuid"),
        (make_logical_type("int", "date"), MOMENT),
        (make_logical_type("long", "timestamp-millis"), MOMENT.replace(tzinfo=None)),
        (make_logical_type("long", "local-timestamp-millis"), MOMENT),
    ],
)
def test_misfits_are_refused_twice(schema: Any, datum: Any) -> None:
    """Both encode and validate reject data that do not fit, with a sentence."""
    codec = make_codec(schema)
    assert len(codec.validate(datum)) == 1
    with pytest.raises(EncodeError):
        codec.encode(datum)


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "items", "type": {"type": "array", "items": {"type": "map", "values": "int"}}},
        {"name": "note", "type": "bytes", "default": "\u00ff"},
    ],
}


def test_paths() -> None:
    """Every problem has its path; encode names the first."""
    codec = make_codec(ORDER)
    datum = {"id": "x", "items": [{}, {"k": None}], "typo": 1}
    assert codec.validate(datum) == [
        "the record Order has no field 'typo'",
        "id: 'x' (str) is not a long",
        "items[1]{k}: None (NoneType) is not an int",
    ]
    del datum["typo"]
    with pytest.raises(EncodeError, match=r"^id: "):
        codec.encode(datum)
    assert codec.validate({"id": 1}) == ["the field 'items' of Order is missing and has no default"]
    assert codec.decode(codec.encode({"id": 1, "items": []}))["note"] == b"\xff"


@pytest.mark.parametrize(
    ("schema", "data", "words"),
    [
        ("int", "0200", "left over"),
        ("int", "", "end in the middle"),
        ("int", "feffffff1f", "32 bits"),
        ("long", "ffffffffffffffffffff01", "10 bytes"),
        ("long", "ffffffffffffffffff03", "64 bits"),
        ("boolean", "02", "neither 0 nor 1"),
        ("double", "0000", "end in the middle"),
        ("string", "0361", "negative"),
        ("string", "0861", "beyond the end"),
        ("string", "02ff", "not UTF-8"),
        (["null", "int"], "01", "no branch -1"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "01", "no symbol -1"),
        ({"type": "array", "items": "int"}, "80808080080200", "beyond the end"),
        ({"type": "fixed", "name": "F", "size": 2}, "00", "end in the middle"),
        (make_logical_type("bytes", "decimal", precision=2, scale=0), "040064", "more digits"),
        (make_logical_type("string", "uuid"), "0261", "UUID"),
        (make_logical_type("long", "timestamp-millis"), "feffffffffffffffff01", "out of range|too large"),
    ],
)
def test_damaged_data(schema: Any, data: str, words: str) -> None:
    """Damaged data raise an error that names the damage, and never decode to another value."""
    with pytest.raises(DecodeError, match=words):
        make_codec(schema).decode(bytes.fromhex(data))


def make_record(*named: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """A record R with fields given as (name, type)."""
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in named], **more}


def test_resolution() -> None:
    """Resolution promotes types, reorders and drops fields, follows aliases and makes new defaults."""
    writer = make_record(("a", "int"), ("gone", ["null", "string"]), ("old", "string"))
    reader = make_record(("new", "bytes"), ("a", ["null", "double"]), ("list", {"type": "array", "items": "int"}))
    reader["fields"][0]["aliases"] = ["old"]
    reader["fields"][2]["default"] = [7]
    codec = make_codec(writer, reader)
    data = codec.encode({"a": 3, "gone": "x", "old": "é"})
    first = codec.decode(data)
    assert first == {"new": "é".encode(), "a": 3.0, "list": [7]}
    assert list(first) == ["new", "a", "list"]
    first["list"].append(8)
    assert codec.decode(data)["list"] == [7]


def test_resolution_of_enums_and_unions() -> None:
    """Unknown symbols become the reader's default or raise; a branch that does not fit fails only when it is read."""
    writer = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    lenient = {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"}
    assert make_codec(writer, lenient).decode(b"\x02") == "A"
    del lenient["default"]
    with pytest.raises(DecodeError, match="'B'"):
        make_codec(writer, lenient).decode(b"\x02")
    codec = make_codec(["null", "string"], "string")
    assert codec.decode(b"\x02\x02x") == "x"
    with pytest.raises(DecodeError, match="null cannot be read as string"):
        codec.decode(b"\x00")


def test_units_are_kept_when_resolving() -> None:
    """Milliseconds read as microseconds stay the same moment: the writer's unit counts."""
    codec = make_codec(make_logical_type("long", "timestamp-millis"), make_logical_type("long", "timestamp-micros"))
    assert codec.decode(codec.encode(MOMENT)) == MOMENT


def test_branch_by_name() -> None:
    """Where data fit several branches, a pair of name and datum chooses."""
    first, second = make_record(("a", "int")), {**make_record(("a", "int")), "name": "S"}
    codec = make_codec([first, second])
    assert codec.encode({"a": 1}) == b"\x00\x02"
    assert codec.encode(("S", {"a": 1})) == b"\x02\x02"
    assert make_codec(["double", "int"]).encode(3) == b"\x02\x06"
    assert make_codec(["double", "int"]).encode(("double", 3))[:1] == b"\x00"
