"""Protobuf, JSON and Thrift data as columns, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import parse_schema
from stele.errors import DataError, EncodeError, InvalidRequest
from stele.formats.protobuf import message_class
from stele.spark.decode.formats import COLUMN_FORMATS, decoder_for, encoder_for, type_for
from stele.spark.decode.formats.json import JsonColumns
from stele.spark.decode.formats.plans import spark_type
from stele.spark.engines.base import Decoded
from stele.spark.engines.error_codes import describe_errors
from stele.wire.confluent import frame

PROTO = """
syntax = "proto3";
package acme;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/field_mask.proto";
enum Kind { NONE = 0; BIG = 1; }
message Part { string sku = 1; optional int32 count = 2; map<string, Leaf> leaves = 3; }
message Leaf { sint64 x = 1; repeated Kind kinds = 2; }
message Order {
  int32 i = 1; uint32 u = 2; uint64 w = 3; float f = 4; double d = 5; bool b = 6; string s = 7; bytes y = 8; Kind k = 9;
  optional int64 maybe = 10; repeated int32 many = 11; repeated Part parts = 12; Part part = 13;
  map<int32, string> names = 14; map<string, Part> by_name = 15;
  oneof choice { string text = 16; Part other = 17; }
  google.protobuf.Timestamp at = 18; google.protobuf.Duration span = 19; google.protobuf.UInt64Value wrapped = 20;
  google.protobuf.Struct any = 21; google.protobuf.FieldMask mask = 22; repeated google.protobuf.StringValue words = 23;
}
message Cancel { string why = 1; message Inner { int32 n = 1; } Inner inner = 2; }
"""
PROTOBUF = ResolvedSchema(PROTO, "PROTOBUF", id=1)
LEAVES = [("q", {"x": -4, "kinds": ["BIG", "NONE"]})]
ORDER: dict[str, Any] = {
    "i": -1, "u": 4_000_000_000, "w": 2**64 - 1, "f": 1.5, "d": 2.5, "b": True, "s": "é", "y": b"\xff", "k": "BIG",
    "maybe": 0, "many": [1, 2], "parts": [{"sku": "a", "count": 3, "leaves": LEAVES}],
    "part": {"sku": "p", "count": None, "leaves": []}, "names": [(7, "seven")],
    "by_name": [("n", {"sku": "z", "count": 1, "leaves": []})], "text": "t", "other": None,
    "at": datetime(2026, 1, 31, 12, 0, 0, 5, UTC), "span": timedelta(seconds=-3, microseconds=-5),
    "wrapped": Decimal(5), "any": '{"a": 1.0}', "mask": "a,b", "words": ["x", ""],
}  # fmt: skip


def order(**changes: Any) -> Any:
    """Return a message with every field set."""
    kind: Any = message_class(parse_schema(PROTOBUF).parsed, "acme.Order")
    message = kind(
        i=-1, u=4_000_000_000, w=2**64 - 1, f=1.5, d=2.5, b=True, s="é", y=b"\xff", k=1, maybe=0, many=[1, 2]
    )
    message.parts.add(sku="a", count=3).leaves["q"].kinds.extend([1, 0])
    message.parts[0].leaves["q"].x = -4
    message.part.sku = "p"
    message.names[7] = "seven"
    message.by_name["n"].sku = "z"
    message.by_name["n"].count = 1
    message.text = "t"
    message.at.FromDatetime(ORDER["at"])
    message.span.FromTimedelta(ORDER["span"])
    message.wrapped.value = 5
    message.any["a"] = 1
    message.mask.paths.extend(["a", "b"])
    message.words.add(value="x")
    message.words.add()
    for name, value in changes.items():
        setattr(message, name, value)
    return message


def decode(
    reader: ResolvedSchema, frames: Sequence[bytes | None], *writers: ResolvedSchema, message: str = ""
) -> Decoded:
    """Decode frames; the reader is a writer, too."""
    known = {schema.id: schema for schema in (reader, *writers)}
    decoded = decoder_for(reader, known.get, message=message).decode(pa.array(frames, pa.binary()))
    decoded.values.validate(full=True)
    return decoded


# --- Protobuf -------------------------------------------------------------------------------------------------------


def test_protobuf_fields_of_every_kind_become_columns() -> None:
    """All scalar types, presence, maps, nesting, oneofs and well-known types are decoded, and a tombstone is null."""
    frames = [frame(1, order().SerializeToString(), [2]), None, frame(1, b"", [2])]
    decoded = decode(PROTOBUF, frames, message="acme.Order")
    full, tombstone, empty = decoded.values.to_pylist()
    assert full == ORDER
    assert tombstone is None
    assert describe_errors(decoded).null_count == 3
    assert {name for name, value in empty.items() if value is None} == {
        *("maybe", "part", "text", "other", "at", "span", "wrapped", "any", "mask"),
    }
    assert (empty["i"], empty["s"], empty["many"], empty["names"], empty["k"]) == (0, "", [], [], "NONE")


def test_protobuf_columns_are_those_of_the_format() -> None:
    """The column types are those of the format's own table shape, as far as Spark has them."""
    shape = parse_schema(PROTOBUF).format.arrow_schema(parse_schema(PROTOBUF).parsed)
    ours = type_for(PROTOBUF)
    assert [(field.name, field.type) for field in ours] == [(field.name, _deep(field.type)) for field in shape]


def _deep(type_: Any) -> Any:
    """Return a type of the format in the form that Spark accepts."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _deep(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(pa.field("element", _deep(type_.value_type)))
    if pa.types.is_map(type_):
        return pa.map_(_deep(type_.key_type), _deep(type_.item_type))
    return spark_type(type_)


def test_protobuf_reads_by_the_readers_descriptor() -> None:
    """Fields that the reader lacks are skipped, and fields that the writer lacks have their default.

    Fields are matched by number, not by name.
    """
    old = ResolvedSchema(
        'syntax = "proto3"; package acme; message Order { int32 number = 1; int64 new = 99; }', "PROTOBUF", id=2
    )
    frames = [frame(1, order().SerializeToString(), [2]), frame(2, b"\x08\x05\x98\x06\x07", [0])]
    assert decode(old, frames, PROTOBUF).values.to_pylist() == [{"number": -1, "new": 0}, {"number": 5, "new": 7}]


def test_protobuf_records_of_another_message_are_told() -> None:
    """The indexes of the frame name the message. A record of a message that is not the reader's, or unknown, is bad."""
    frames = [
        frame(1, b"\x0a\x01x", [3]),
        frame(1, b"\x08\x03", [3, 0]),
        frame(1, b"", [9]),
        frame(1, b"\x0a\x01x", [2]),
    ]
    decoded = decode(PROTOBUF, frames, message="acme.Cancel")
    assert decoded.values.to_pylist() == [{"why": "x", "inner": None}, None, None, None]
    assert describe_errors(decoded).to_pylist() == [
        None,
        "the record is a acme.Cancel.Inner, not a acme.Cancel",
        "the schema has no message at the indexes [9]",
        "the record is a acme.Order, not a acme.Cancel",
    ]
    inner = decode(PROTOBUF, frames[1:2], message="acme.Cancel.Inner")
    assert inner.values.to_pylist() == [{"n": 3}]
    with pytest.raises(InvalidRequest):
        type_for(PROTOBUF, "acme.Nothing")


def test_a_message_inside_itself_is_text_where_it_comes_round() -> None:
    """Spark has no recursive types: where a message repeats inside itself, its column is JSON text."""
    tree = ResolvedSchema(
        'syntax = "proto3"; message Tree { string name = 1; repeated Tree below = 2; }', "PROTOBUF", id=1
    )
    kind: Any = message_class(parse_schema(tree).parsed)
    message = kind(name="a", below=[kind(name="b", below=[kind(name="c")])])
    decoded = decode(tree, [frame(1, message.SerializeToString(), [0])])
    assert decoded.values.to_pylist() == [{"name": "a", "below": ['{"name": "b", "below": [{"name": "c"}]}']}]
    again = encoder_for(tree, 1).encode(decoded.values)
    assert again.to_pylist() == [frame(1, message.SerializeToString(), [0])]


def test_times_out_of_range_are_reasons() -> None:
    """A Timestamp after the year 9999 is an error of its own row only."""
    bad = order()
    bad.at.seconds = 10**15
    good = frame(1, order().SerializeToString(), [2])
    decoded = decode(PROTOBUF, [good, frame(1, bad.SerializeToString(), [2]), good], message="acme.Order")
    assert [value is None for value in decoded.values.to_pylist()] == [False, True, False]
    assert describe_errors(decoded).to_pylist()[1] == "at: 1000000000000000 s and 5000 ns are out of range"


# --- JSON -----------------------------------------------------------------------------------------------------------

DOCUMENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "price": {"type": "number"},
        "name": {"type": ["string", "null"]},
        "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "any": {},
        "both": {"type": ["string", "integer"]},
    },
    "required": ["id"],
}
JSON = ResolvedSchema(json.dumps(DOCUMENT), "JSON", id=1)
DATUM = {
    "id": 7, "price": 1.5, "name": "x", "on": True, "tags": ["a", "b"], "place": {"city": "Oslo", "zip": 150},
    "counts": {"a": 1, "b": 2}, "any": {"deep": [1, None]}, "both": "word", "more": 1,
}  # fmt: skip
ROW = {
    "id": 7, "price": 1.5, "name": "x", "on": True, "tags": ["a", "b"], "place": {"city": "Oslo", "zip": 150},
    "counts": [("a", 1), ("b", 2)], "any": '{"deep":[1,null]}', "both": '"word"',
}  # fmt: skip


def frame_json(*data: Any, number: int = 1) -> list[bytes | None]:
    """Return framed JSON; bytes stay unchanged, None is a tombstone."""
    texts = [datum if isinstance(datum, bytes | None) else json.dumps(datum).encode() for datum in data]
    return [None if text is None else frame(number, text) for text in texts]


def test_json_values_of_every_kind_become_columns() -> None:
    """Objects, maps, lists, numbers, texts and untyped values are decoded.

    Null and missing members are null, and members that the schema does not name are left out.
    """
    decoded = decode(JSON, frame_json(DATUM, None, {"id": 1, "name": None, "price": 3}))
    assert describe_errors(decoded).null_count == 3
    full, tombstone, small = decoded.values.to_pylist()
    assert full == ROW
    assert tombstone is None
    assert small == {**dict.fromkeys(ROW), "id": 1, "price": 3.0}


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        (b'{"id": -1}', "#/id: -1 is less than the minimum of 0", None),
        (b"{}", '#: "id" is a required property', None),
        (b'{"id": 1', "not JSON: Expecting ',' delimiter", 8),
        (b"\xff", "not UTF-8", 0),
        (b'{"id": NaN}', "not readable as JSON: NaN is not JSON", None),
        (b'{"id": 1e999}', "not readable as JSON", None),
        (b"[" * 100_000, "not readable as JSON", None),
        (b'{"id": 18446744073709551616}', "id: ", None),
        (b'{"id": 1, "name": "\\ud800"}', "name: ", None),
        (b"", "not JSON", 0),
    ],
    ids=lambda value: str(value)[:20],
)
def test_json_that_is_not_of_its_schema_is_told(text: bytes, reason: str, place: int | None) -> None:
    """Errors of syntax, of the schema and of the columns are errors of their own row only."""
    decoded = decode(JSON, frame_json(DATUM, text, DATUM))
    good, bad, other = zip(decoded.values.to_pylist(), describe_errors(decoded).to_pylist(), strict=True)
    assert good == other == (ROW, None)
    assert bad[0] is None
    assert bad[1].startswith(reason) or reason == "not readable as JSON", bad[1]
    assert place is None or decoded.offsets.to_pylist()[1] == place


def test_json_is_checked_by_the_writer_and_shaped_by_the_reader() -> None:
    """A value that the writer's schema allows must also fit the reader's columns."""
    reader = ResolvedSchema(
        '{"type": "object", "properties": {"id": {"type": "string"}, "x": {"type": "number"}}}', "JSON", id=2
    )
    decoded = decode(reader, [*frame_json({"id": 5}), *frame_json({"id": "five", "x": 1}, number=2)], JSON)
    assert decoded.values.to_pylist() == [None, {"id": "five", "x": 1.0}]
    assert describe_errors(decoded).to_pylist() == ["id: a int where the column is string", None]


def test_json_numbers_keep_their_value() -> None:
    """Long integers are exact, and fractions with a whole value are integers; other fractions are not.

    A text column keeps numbers that no number type can hold.
    """
    decoded = decode(JSON, frame_json(b'{"id": 9007199254740993, "any": 123456789012345678901}', b'{"id": 2.0}'))
    exact, whole = decoded.values.to_pylist()
    assert (exact["id"], exact["any"], whole["id"]) == (9007199254740993, "123456789012345678901", 2)
    loose = ResolvedSchema('{"type": "object", "properties": {"id": {"type": "integer"}}}', "JSON", id=1)
    writer = ResolvedSchema('{"type": "object"}', "JSON", id=2)
    assert describe_errors(decode(loose, frame_json({"id": 2.5}, number=2), writer)).to_pylist() == [
        "id: 2.5 is not an integer"
    ]


def test_json_that_is_no_object_is_the_value_itself() -> None:
    """A schema for a list or a scalar makes a plain value; an object with the one property `value` makes a struct."""
    words = ResolvedSchema('{"type": "array", "items": {"type": "string"}}', "JSON", id=1)
    assert decode(words, frame_json(["a"])).values.to_pylist() == [["a"]]
    object_schema = ResolvedSchema('{"type": "object", "properties": {"value": {"type": "string"}}}', "JSON", id=1)
    assert decode(object_schema, frame_json({"value": "a"})).values.to_pylist() == [{"value": "a"}]
    anything = ResolvedSchema("{}", "JSON", id=1)
    assert decode(anything, frame_json({"a": [1]})).values.to_pylist() == ['{"a":[1]}']


# --- Thrift ---------------------------------------------------------------------------------------------------------

THRIFT = ResolvedSchema(
    """
    enum Kind { SMALL = 1, BIG = 2 }
    struct Part { 1: required string sku, 2: optional i32 count, 3: optional Part inner }
    struct Order {
      1: required i64 id, 2: bool on, 3: i8 a, 4: i16 b, 5: double d, 6: binary raw, 7: Kind kind,
      8: list<Part> parts, 9: set<string> tags, 10: map<string, i32> counts, 11: map<Part, i32> odd,
      12: optional string note = "none"
    }
    """,
    "THRIFT",
    id=1,
)
THRIFT_ROW = {
    "id": 2**40, "on": True, "a": -3, "b": 300, "d": 2.5, "raw": b"\xff", "kind": "BIG",
    "parts": [{"sku": "x", "count": 4, "inner": '{"sku":"y"}'}], "tags": ["t"], "counts": [("a", 1)],
    "odd": [({"sku": "k", "count": None, "inner": None}, 9)], "note": "none",
}  # fmt: skip


def test_thrift_structs_become_columns() -> None:
    """Every type is decoded; a map with structs as keys is a map, a struct inside itself is text."""
    own = parse_schema(THRIFT)
    datum = {
        **THRIFT_ROW, "parts": [{"sku": "x", "count": 4, "inner": {"sku": "y"}}], "counts": {"a": 1},
        "odd": [({"sku": "k"}, 9)],
    }  # fmt: skip
    payload = own.format.codec(own.parsed).encode(datum)
    decoded = decode(THRIFT, [frame(1, payload), None, frame(1, payload + b"x"), frame(1, b"")])
    assert decoded.values.to_pylist() == [THRIFT_ROW, None, None, None]
    assert describe_errors(decoded).to_pylist()[2] == "1 bytes are left over after the datum"
    assert decoded.offsets.to_pylist()[2] == len(payload)
    again = encoder_for(THRIFT, 1).encode(decoded.values.slice(0, 2))
    assert decode(THRIFT, again.to_pylist()).values.to_pylist() == [THRIFT_ROW, None]


# --- all of them ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [PROTOBUF, JSON, THRIFT], ids=["protobuf", "json", "thrift"])
def test_damaged_frames_are_reasons(schema: ResolvedSchema) -> None:
    """Records without a frame, with an unknown id, or with an id of another format are bad.

    A good record beside them is decoded.
    """
    other = ResolvedSchema('"string"', "AVRO", id=5)
    row = {"JSON": {"id": 1}, "PROTOBUF": {}, "THRIFT": THRIFT_ROW}[schema.schema_type]
    example = encoder_for(schema, 1).encode(pa.array([row], type_for(schema)))
    frames = [*example.to_pylist(), b"", b"\x01zzzzzz", frame(77, b""), frame(5, b""), b"\0\xff\xff\xff\xff"]
    decoded = decode(schema, frames, other)
    reasons = describe_errors(decoded).to_pylist()
    assert reasons[0] is None
    assert reasons[1] == reasons[2] == "no frame: the first byte must be 0, followed by a schema id of four bytes"
    assert reasons[3] == "unknown schema id 77"
    assert reasons[4] == f"schema id 5 cannot be read: its format is AVRO, {schema.schema_type} is needed"
    assert reasons[5] == "unknown schema id -1"
    assert decoded.schema_ids.to_pylist() == [1, None, None, 77, 5, -1]


def test_values_written_are_the_values_read() -> None:
    """Columns that are encoded and decoded again are equal, for Protobuf and JSON; null rows stay null."""
    column = pa.array([ORDER, None], type_for(PROTOBUF, "acme.Order"))
    frames = encoder_for(PROTOBUF, 1, message="acme.Order").encode(column)
    assert frames[0].as_py()[:7] == b"\0\0\0\0\x01\x02\x04"
    assert decode(PROTOBUF, frames.to_pylist(), message="acme.Order").values.equals(column)
    column = pa.array([ROW, None], type_for(JSON))
    frames = encoder_for(JSON, 1).encode(column)
    assert json.loads(frames[0].as_py()[5:]) == {name: value for name, value in DATUM.items() if name != "more"}
    assert decode(JSON, frames.to_pylist()).values.equals(column)


def test_rows_and_columns_that_do_not_fit_are_named() -> None:
    """An encoding error names row and field. A column of a wrong type, or an extra column, is an error at once."""
    encoder = encoder_for(JSON, 1)
    with pytest.raises(EncodeError, match=r"row 1, .*#/id: -5 is less than the minimum"):
        encoder.encode(pa.array([{"id": 1}, {"id": -5}], pa.struct([("id", pa.int32())])))
    with pytest.raises(EncodeError, match="row 0, any: the text is not JSON"):
        encoder.encode(pa.array([{"id": 1, "any": "{"}]))
    with pytest.raises(EncodeError, match="other is not in the schema"):
        encoder.encode(pa.array([{"other": 1}]))
    with pytest.raises(EncodeError, match=r"tags is struct<x: int64>, the schema wants list"):
        encoder.encode(pa.array([{"tags": {"x": 1}}]))
    with pytest.raises(EncodeError, match=r"place.zip \(string\) does not fit int64"):
        encoder.encode(pa.array([{"place": {"zip": "x"}}]))


def test_columns_a_schema_was_made_of_can_be_written() -> None:
    """Columns of types that `schema_for` expresses differently (dates, decimals, local times, bytes) can be written."""
    from pyspark.sql import types as t

    from stele.spark.types import schema_for

    columns = {
        "day": (t.DateType(), pa.date32(), date(2026, 1, 31)),
        "price": (t.DecimalType(10, 2), pa.decimal128(10, 2), Decimal("-12.50")),
        "at": (t.TimestampType(), pa.timestamp("us", "UTC"), datetime(2026, 1, 31, 12, 0, 0, 5, UTC)),
        "clock": (t.TimestampNTZType(), pa.timestamp("us"), datetime(2026, 1, 31, 12, 0, 0, 5)),  # noqa: DTZ001 - a wall clock
        "raw": (t.BinaryType(), pa.binary(), b"\xff\0"),
        "count": (t.LongType(), pa.int64(), 5),
        "span": (t.DayTimeIntervalType(), pa.duration("us"), timedelta(seconds=3)),
    }
    struct = t.StructType([t.StructField(name, kind) for name, (kind, _, _) in columns.items()])
    rows = pa.StructArray.from_arrays(
        [pa.array([value], type_) for _, type_, value in columns.values()], names=list(columns)
    )
    proto = ResolvedSchema(schema_for(struct, "protobuf", name="acme.Row")[0], "PROTOBUF", id=1)
    row = decode(proto, encoder_for(proto, 1).encode(rows).to_pylist()).values.to_pylist()[0]
    assert row["day"] == {"year": 2026, "month": 1, "day": 31}
    assert (row["at"], row["raw"], row["count"]) == (columns["at"][2], b"\xff\0", 5)
    assert int.from_bytes(row["price"]["value"], "big", signed=True) == -1250
    assert row["clock"]["hours"] == 12
    text = ResolvedSchema(schema_for(struct, "json", name="Row")[0], "JSON", id=1)
    first_columns = pa.StructArray.from_arrays(rows.flatten()[:6], names=list(columns)[:6])
    row = decode(text, encoder_for(text, 1).encode(first_columns).to_pylist()).values.to_pylist()[0]
    assert row["day"] == "2026-01-31"
    assert (row["price"], row["raw"]) == ("-12.50", "/wA=")
    assert (row["at"], row["clock"]) == ("2026-01-31T12:00:00.000005Z", "2026-01-31T12:00:00.000005")


def test_formats_without_columns_are_refused() -> None:
    """The error for a format without columns names the formats that have columns."""
    with pytest.raises(DataError, match="data of the format OPAQUE have no columns here; there are AVRO, JSON"):
        type_for(ResolvedSchema("x", "OPAQUE"))
    with pytest.raises(DataError, match="the text is not a valid JSON schema"):
        type_for(ResolvedSchema("{", "JSON"))


@pytest.mark.parametrize("name", sorted(COLUMN_FORMATS))
def test_mutated_records_end_in_a_value_or_a_reason(name: str) -> None:
    """A batch of any bytes is decoded, and each null value has a reason."""
    schema = {"JSON": JSON, "PROTOBUF": PROTOBUF, "THRIFT": THRIFT}[name]
    message = "acme.Order" if name == "PROTOBUF" else ""
    rows = {"JSON": ROW, "PROTOBUF": ORDER, "THRIFT": THRIFT_ROW}[name]
    seed = encoder_for(schema, 1, message=message).encode(pa.array([rows], type_for(schema, message)))[0].as_py()
    random = Random(name)
    frames: list[bytes | None] = []
    for _ in range(400):
        data = bytearray(seed)
        for _ in range(random.randint(1, 3)):
            at = random.randrange(5, len(data))
            match random.randrange(4):
                case 0:
                    data[at] ^= 1 << random.randrange(8)
                case 1:
                    del data[at:]
                case 2:
                    data[at:at] = random.randbytes(random.randint(1, 4))
                case _:
                    data[at:at] = data[random.randrange(5, len(data)) :]
            if len(data) < 7:
                break
        frames.append(bytes(data))
    decoded = decode(schema, frames, message=message)
    for value, why in zip(decoded.values.is_valid().to_pylist(), describe_errors(decoded).to_pylist(), strict=True):
        assert value == (why is None)


def test_batches_are_read_in_pieces() -> None:
    """A long batch is decoded completely and in order, with its bad records in their rows; an empty batch is empty."""
    frames = [*frame_json(*({"id": number} for number in range(5000)))]
    frames[3333] = b"bad"
    decoded = decode(JSON, frames)
    ids = [value and value["id"] for value in decoded.values.to_pylist()]
    assert ids == [*range(3333), None, *range(3334, 5000)]
    assert describe_errors(decoded).null_count == 4999
    assert len(decode(JSON, []).values) == 0


@pytest.mark.parametrize(
    ("text", "careful"),
    [
        ('{"a":123456789012345678}', True),
        ("[1,-123456789012345678901]", True),
        ('{"a": \n 123456789012345678}', True),
        ("9223372036854775808", True),
        ("-9223372036854775809", True),
        ("1e400", True),
        ('{"a":-12.5E+308}', True),
        ('{"a":0.123456789012345678}', False),
        ('{"a":"3FE123"}', False),
        ('{"a":"123456789012345678"}', False),
        ('{"a":1.5e-400}', False),
        ("12345678901234567", False),
    ],
)
def test_numbers_that_need_care_are_found(text: str, careful: bool) -> None:
    """Only numbers that need it are read by the exact reader.

    These are whole numbers near the limits of 64 bits and large exponents, at any place. Long fractions and texts,
    which are frequent in data, are not among them. Ids can have bytes that look like digits.
    """
    for number in (1, 0x30313233, 0x2E2E2E2E, 0x0A0A0A0A):
        frame = b"\0" + number.to_bytes(4, "big") + text.encode()
        matches = pc.match_substring_regex(pa.array([frame], pa.binary()), JsonColumns.careful)
        assert matches.to_pylist() == [careful], number
