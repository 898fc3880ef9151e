"""Types that contain themselves have columns for a number of levels; deeper records are bad and never truncated."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.spark.avro_cases import frame_record, schema
from tests.unit.spark.test_engines import NAMES, record

from stele.client import ResolvedSchema
from stele.errors import EncodeError, Invalid
from stele.spark.decode.formats import decoder_for, encoder_for, type_for
from stele.spark.engines import get_engine
from stele.spark.engines.base import Decoded, Engine
from stele.spark.engines.error_codes import MESSAGES, ErrorCode, describe_errors

DEEP, ENDLESS = MESSAGES[ErrorCode.TOO_DEEP], MESSAGES[ErrorCode.ENDLESS]
LIST = record(("v", "int"), ("next", ["null", "Node"], None), name="Node")
TREE = record(("v", "int"), ("kids", {"type": "array", "items": "Tree"}), name="Tree")


@pytest.fixture(params=NAMES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    return get_engine(request.param)


def decode(
    engine: Engine, reader: Any, frames: list[bytes | None], levels: int, writers: Mapping[int, Any] | None = None
) -> Decoded:
    """Decode frames; by default the only writer, 1, has the reader's schema."""
    known = {number: schema(document) for number, document in (writers or {1: reader}).items()}
    decoder = engine.decoder(schema(reader), known.get, recursion=levels)
    decoded = decoder.decode(pa.array(frames, pa.binary()))
    decoded.values.validate(full=True)
    return decoded


def chain(length: int) -> Any:
    """Return a linked list of `length` nodes."""
    return None if not length else {"v": length, "next": chain(length - 1)}


def node(length: int, levels: int) -> Any:
    """Return the decoded value of a list of `length` nodes with `levels` levels. The last node has no next column."""
    if not length:
        return None
    return {"v": length} if not levels else {"v": length, "next": node(length - 1, levels - 1)}


# --- Avro -----------------------------------------------------------------------------------------------------------


def test_a_list_has_columns_for_its_levels(engine: Engine) -> None:
    """Lists up to the number of levels are decoded; a longer one is a bad record, at the node that is too deep."""
    frames: list[bytes | None] = [frame_record(LIST, chain(length)) for length in (1, 2, 3, 4, 9)]
    decoded = decode(engine, LIST, frames, 2)
    assert decoded.values.to_pylist() == [node(1, 2), node(2, 2), node(3, 2), None, None]
    assert describe_errors(decoded).to_pylist() == [None, None, None, DEEP, DEEP]
    assert decoded.offsets.to_pylist() == [-1, -1, -1, 6, 6]
    assert decoded.codes.to_pylist() == [0, 0, 0, ErrorCode.TOO_DEEP, ErrorCode.TOO_DEEP]
    again = engine.encoder(schema(LIST), 1, recursion=2).encode(decoded.values)
    assert again.to_pylist() == [*frames[:3], None, None]


def test_a_tree_has_columns_for_its_levels(engine: Engine) -> None:
    """Arrays of the type itself are lists, and must be empty where the columns end; the same is true for maps."""
    leaf = {"v": 3, "kids": []}
    frames: list[bytes | None] = [
        frame_record(TREE, {"v": 1, "kids": [leaf, {"v": 2, "kids": kids}]}) for kids in ([], [leaf])
    ]
    decoded = decode(engine, TREE, frames, 1)
    assert decoded.values.to_pylist() == [{"v": 1, "kids": [{"v": 3}, {"v": 2}]}, None]
    assert describe_errors(decoded).to_pylist() == [None, DEEP]
    assert engine.encoder(schema(TREE), 1, recursion=1).encode(decoded.values)[0].as_py() == frames[0]
    both = decode(engine, TREE, frames, 2)
    assert describe_errors(both).null_count == 2
    assert engine.encoder(schema(TREE), 1, recursion=2).encode(both.values).to_pylist() == frames
    named = record(("v", "int"), ("by", {"type": "map", "values": "M"}), name="M")
    frames = [frame_record(named, {"v": 1, "by": {"a": {"v": 2, "by": by}}}) for by in ({}, {"b": {"v": 3, "by": {}}})]
    decoded = decode(engine, named, frames, 1)
    assert decoded.values.to_pylist() == [{"v": 1, "by": [("a", {"v": 2})]}, None]
    assert describe_errors(decoded).to_pylist() == [None, DEEP]


def test_types_inside_each_other(engine: Engine) -> None:
    """Of two records that contain each other, levels are counted for each.

    Where the inner record has no column, the field of the outer one has none either.
    """
    inner = record(("a", "A"), name="B")
    outer = record(("v", "int"), ("b", ["null", inner], None), name="A")
    data = [{"v": 1, "b": None}, {"v": 1, "b": {"a": {"v": 2, "b": None}}}]
    deep = {"v": 1, "b": {"a": {"v": 2, "b": {"a": {"v": 3, "b": None}}}}}
    frames: list[bytes | None] = [frame_record(outer, datum) for datum in (*data, deep)]
    decoded = decode(engine, outer, frames, 1)
    assert decoded.values.to_pylist() == [{"v": 1, "b": None}, {"v": 1, "b": {"a": {"v": 2}}}, None]
    assert describe_errors(decoded).to_pylist() == [None, None, DEEP]
    assert engine.encoder(schema(outer), 1, recursion=1).encode(decoded.values.slice(0, 2)).to_pylist() == frames[:2]


def test_a_union_loses_the_branch_that_goes_deeper(engine: Engine) -> None:
    """Where the columns end, a union keeps its other branches.

    A branch with similar fields does not accept the record that is nested too deep.
    """
    alike = record(("x", "int", 0), name="Leaf")
    expr = record(("x", "int"), ("of", ["null", "string", alike, "E"], None), name="E")
    leaf = ("Leaf", {"x": 7})
    good = [{"x": 1, "of": ("E", {"x": 2, "of": of})} for of in (None, "text", leaf)]
    bad = {"x": 1, "of": ("E", {"x": 2, "of": ("E", {"x": 3, "of": None})})}
    frames: list[bytes | None] = [frame_record(expr, datum) for datum in (*good, bad)]
    decoded = decode(engine, expr, frames, 1)
    ends = [row and row["of"]["member2"]["of"] for row in decoded.values.to_pylist()]
    assert ends == [None, {"member0": "text", "member1": None}, {"member0": None, "member1": {"x": 7}}, None]
    assert describe_errors(decoded).to_pylist() == [None, None, None, DEEP]
    again = engine.encoder(schema(expr), 1, recursion=1).encode(decoded.values)
    assert again.to_pylist() == [*frames[:3], None]


def test_writers_that_grow_into_the_type(engine: Engine) -> None:
    """A writer without the field gets its default at each level; another record in its place is resolved."""
    flat = record(("v", "int"), name="Node")
    two = record(("v", "int"), ("next", ["null", record(("v", "int"), name="Old")], None), name="Node")
    frames: list[bytes | None] = [frame_record(flat, {"v": 1}), frame_record(two, {"v": 1, "next": {"v": 2}}, 2)]
    reader = LIST | {"fields": [LIST["fields"][0], LIST["fields"][1] | {"aliases": ["following"]}]}
    renamed = record(("v", "int"), ("following", ["null", "Node"], None), name="Node")
    long = {"v": 1, "following": {"v": 2, "following": {"v": 3, "following": None}}}
    frames += [frame_record(renamed, long, 3)]
    decoded = decode(engine, reader, frames, 1, {1: flat, 2: two, 3: renamed})
    assert decoded.values.to_pylist() == [{"v": 1, "next": None}, {"v": 1, "next": {"v": 2}}, None]
    assert describe_errors(decoded).to_pylist() == [None, None, DEEP]


def test_what_nobody_asked_for_is_read_past(engine: Engine) -> None:
    """A writer's type that contains itself is skipped if the reader does not have it.

    A routine skips it, and keeps its arrays separate from those of the enclosing calls, for at most a hundred levels.
    """
    tree = record(
        ("v", "int"),
        ("kids", {"type": "array", "items": "Tree"}),
        ("by", {"type": "map", "values": ["null", "Tree"]}),
        name="Tree",
    )
    writer = record(("a", "int"), ("tree", tree), ("b", "string"), ("again", ["null", "Tree"]))
    reader = record(("a", "int"), ("b", "string"))

    def bush(depth: int) -> Any:
        if not depth:
            return {"v": 0, "kids": [], "by": {}}
        return {"v": depth, "kids": [bush(depth - 1)] * 2, "by": {"x": None, "y": bush(depth - 1)}}

    def pole(depth: int) -> Any:
        node = {"v": 1, "kids": [], "by": {}}
        for _ in range(depth):
            node = {"v": 1, "kids": [], "by": {"x": node}}
        return node

    data = [
        {"a": 1, "tree": bush(4), "b": "é", "again": bush(2)},
        {"a": 2, "tree": pole(99), "b": "é", "again": None},
        {"a": 3, "tree": pole(100), "b": "é", "again": None},
    ]
    decoded = decode(engine, reader, [frame_record(writer, datum) for datum in data], 0, {1: writer})
    assert decoded.values.to_pylist() == [{"a": 1, "b": "é"}, {"a": 2, "b": "é"}, None]
    assert describe_errors(decoded).to_pylist() == [None, None, ENDLESS]


def test_endless_nesting_is_a_bad_record(engine: Engine) -> None:
    """A record with a hundred thousand nested records is bad, whether the field is read or skipped."""
    body = b"\2\2" * 100_000 + b"\2\0"
    assert describe_errors(decode(engine, LIST, [b"\0\0\0\0\1" + body], 3)).to_pylist() == [DEEP]
    outer = record(("x", ["null", LIST], None), ("y", "int", 0))
    reader = record(("y", "int", 0))
    assert describe_errors(decode(engine, reader, [b"\0\0\0\0\1\2" + body], 0, {1: outer})).to_pylist() == [ENDLESS]
    twice = record(("l", ["null", "T"]), ("r", ["null", "T"]), name="T")
    outer = record(("x", twice), ("y", "int", 0))
    assert describe_errors(decode(engine, reader, [b"\0\0\0\0\1" + b"\2" * 100_000], 0, {1: outer})).to_pylist() == [
        ENDLESS
    ]


def test_decimals_wider_than_columns_are_text(engine: Engine) -> None:
    """Decimals of 39 to 76 digits are text with all digits of the scale.

    They are written from text and from decimals, and their range is checked.
    """
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 3}
    fixed = {"type": "fixed", "name": "F", "size": 17, "logicalType": "decimal", "precision": 40, "scale": 3}
    texts = ["0.000", "-0.001", "1.500", "-" + "9" * 37 + ".999", "1" + "0" * 36 + ".000", None]
    for kind in (wide, fixed):
        document = record(("d", ["null", kind]))
        frames = [frame_record(document, {"d": text and Decimal(text)}) for text in texts]
        decoded = decode(engine, document, [*frames], 0)
        assert [row["d"] for row in decoded.values.to_pylist()] == texts
        assert engine.encoder(schema(document), 1).encode(decoded.values).to_pylist() == frames
    document = record(("d", wide))
    loose = pa.array([{"d": text} for text in ("1e2", "+.5", "-1.50000", "0e-99", "7.")])
    again = engine.encoder(schema(document), 1).encode(loose)
    values = decode(engine, document, again.to_pylist(), 0).values.to_pylist()
    assert [row["d"] for row in values] == ["100.000", "0.500", "-1.500", "0.000", "7.000"]
    numbers = pa.array([{"d": Decimal("1.25")}])
    assert engine.encoder(schema(document), 1).encode(numbers).to_pylist() == [
        frame_record(document, {"d": Decimal("1.25")})
    ]
    for text in ("1.2345", "1e37", "9" * 38, "NaN", "1_000", "\u0661", "", "1e-9999", "1" * 2000, "1e99999"):
        with pytest.raises(EncodeError, match="row 0, d: "):
            engine.encoder(schema(document), 1).encode(pa.array([{"d": text}]))
    over = struct.pack(">bI", 0, 1) + b"\x22" + (10**40).to_bytes(17, "big", signed=True)
    padded = struct.pack(">bI", 0, 1) + b"\x50" + b"\xff" * 40
    huge = struct.pack(">bI", 0, 1) + b"\x50" + b"\x7f" * 40
    decoded = decode(engine, document, [over, padded, huge, struct.pack(">bI", 0, 1) + b"\0"], 0)
    assert decoded.values.to_pylist() == [None, {"d": "-0.001"}, None, None]
    assert describe_errors(decoded).to_pylist() == [
        MESSAGES[ErrorCode.DECIMAL_RANGE],
        None,
        MESSAGES[ErrorCode.DECIMAL_RANGE],
        MESSAGES[ErrorCode.EMPTY_DECIMAL],
    ]


def test_defaults_that_go_deeper(engine: Engine) -> None:
    """The default of a field without a column counts like data: an empty one is accepted, any other one is too deep."""
    default = {"v": 1, "kids": [{"v": 2, "kids": []}]}
    writer = record(("first", TREE), name="R")
    reader = record(("first", TREE), ("second", "Tree", default), name="R")
    frames: list[bytes | None] = [frame_record(writer, {"first": {"v": 5, "kids": []}})]
    decoded = decode(engine, reader, frames, 1, {1: writer})
    assert decoded.values.to_pylist() == [{"first": {"v": 5, "kids": []}, "second": {"v": 1, "kids": [{"v": 2}]}}]
    default["kids"][0]["kids"] = [{"v": 3, "kids": []}]
    refused = describe_errors(decode(engine, reader, frames, 1, {1: writer}))[0].as_py()
    assert refused == "schema id 1 cannot be read: the default of 'kids' goes deeper than the levels of columns"


def test_both_engines_with_types_for_spark() -> None:
    """With types chosen for Spark the engines agree about levels and wide decimals too."""
    money = {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}
    document = record(("d", money), ("next", ["null", "Node"], None), name="Node")
    data = {"d": Decimal("1.00"), "next": {"d": Decimal("2.00"), "next": None}}
    frames = pa.array([frame_record(document, data)], pa.binary())
    one, other = (
        get_engine(name).decoder(schema(document), {1: schema(document)}.get, for_spark=True, recursion=1)
        for name in NAMES
    )
    assert one.decode(frames).values.equals(other.decode(frames).values)
    assert str(one.type) == "struct<d: string, next: struct<d: string>>"


@pytest.mark.parametrize(
    ("document", "levels", "message"),
    [
        (LIST, 0, "recursion=1 or more"),
        (LIST, -1, "recursion is a number of levels"),
        (LIST, 33, "recursion is a number of levels"),
        (LIST, True, "recursion is a number of levels"),
        (record(("r", "R")), 3, "has no value that ends"),
        (record(*((f"f{i}", ["null", "R"]) for i in range(3))), 20, "choose fewer levels"),
        (LIST, 32, ""),
    ],
)
def test_levels_that_cannot_be(engine: Engine, document: Any, levels: int, message: str) -> None:
    """Recursive types without levels, invalid levels, types without a finite value and too many columns are refused."""
    if not message:
        assert engine.decoder(schema(document), lambda number: None, recursion=levels)
        return
    with pytest.raises(Invalid, match=message):
        engine.decoder(schema(document), lambda number: None, recursion=levels)


# --- the other languages --------------------------------------------------------------------------------------------

PROTOBUF = 'syntax = "proto3"; message N { int32 v = 1; N next = 2; repeated N kids = 3; map<string, N> by = 4; }'
THRIFT = "struct N { 1: i32 v, 2: optional N next, 3: required list<N> kids, 4: map<string, N> by }"
JSON = json.dumps(
    {
        "title": "N",
        "type": "object",
        "properties": {
            "v": {"type": "integer"},
            "next": {"$ref": "#"},
            "kids": {"type": "array", "items": {"$ref": "#"}},
            "by": {"type": "object", "additionalProperties": {"$ref": "#"}},
        },
        "required": ["v", "kids"],
    }
)
COLUMN_FORMATS = [("PROTOBUF", PROTOBUF), ("THRIFT", THRIFT), ("JSON", JSON)]


@pytest.mark.parametrize(("name", "text"), COLUMN_FORMATS)
def test_other_languages_have_levels_too(name: str, text: str) -> None:
    """Values within the levels survive a round trip; deeper ones, in a field, list or map, are bad records."""
    known = ResolvedSchema(text, name, id=1)
    deep = encoder_for(known, 1, recursion=3)
    leaf = {"v": 9, "kids": []}
    shallow = [
        {"v": 1, "kids": []},
        {"v": 1, "next": {"v": 2, "kids": []}, "kids": [leaf, leaf], "by": {"a": leaf}},
    ]
    deeper = [
        {"v": 1, "kids": [], "next": leaf | {"next": leaf}},
        {"v": 1, "kids": [leaf | {"kids": [leaf]}]},
        {"v": 1, "kids": [], "by": {"a": leaf | {"by": {"b": leaf}}}},
    ]
    rows = pa.array([*shallow, *deeper], type_for(known, "", 3)) if name != "JSON" else None
    frames = (
        deep.encode(rows)
        if rows is not None
        else pa.array([b"\0\0\0\0\1" + json.dumps(row).encode() for row in (*shallow, *deeper)], pa.binary())
    )
    decoded = decoder_for(known, {1: known}.get, recursion=1).decode(frames)
    decoded.values.validate(full=True)
    assert describe_errors(decoded).to_pylist() == [None, None, DEEP, DEEP, DEEP]
    assert [row and row["v"] for row in decoded.values.to_pylist()] == [1, 1, None, None, None]
    second = decoded.values[1].as_py()
    assert (second["next"], second["kids"], dict(second["by"])) == ({"v": 2}, [{"v": 9}] * 2, {"a": {"v": 9}})
    again = encoder_for(known, 1, recursion=1).encode(decoded.values.slice(0, 2))
    back = decoder_for(known, {1: known}.get, recursion=1).decode(again)
    assert back.values.equals(decoded.values.slice(0, 2))


@pytest.mark.parametrize(("name", "text"), COLUMN_FORMATS)
def test_without_levels_they_keep_text(name: str, text: str) -> None:
    """With 0 levels, the type inside itself is JSON text."""
    assert pa.types.is_string(type_for(ResolvedSchema(text, name)).field("next").type)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PROTOBUF", 'syntax = "proto2"; message N { required N next = 1; }'),
        ("THRIFT", "struct N { 1: required N next }"),
    ],
)
def test_other_types_without_an_end(name: str, text: str) -> None:
    """A type that requires itself has no columns, for any number of levels."""
    with pytest.raises(Invalid, match="has no value that ends"):
        type_for(ResolvedSchema(text, name), "", 2)
