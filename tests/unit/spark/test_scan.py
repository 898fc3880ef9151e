"""The compiled scan of Protobuf messages against Protobuf's own parser."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import parse_schema
from stele.formats.protobuf import message_class
from stele.spark.decode.formats.base import RowDecoder
from stele.spark.decode.formats.protobuf import ProtobufColumns
from stele.spark.engines.base import Decoded
from stele.spark.engines.error_codes import describe_errors
from stele.wire.confluent import frame

TEXT = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
enum Kind { NONE = 0; BIG = 1; FAR = -5; }
message Part {
  string sku = 1; optional int32 count = 2; map<string, Leaf> leaves = 3; repeated Leaf list = 4; Leaf one = 5;
}
message Leaf { sint64 x = 1; repeated Kind kinds = 2; repeated string words = 3; }
message Nothing { }
message All {
  int32 a = 1; int64 b = 2; uint32 c = 3; uint64 d = 4; sint32 e = 5; sint64 f = 6; fixed32 g = 7; fixed64 h = 8;
  sfixed32 i = 9; sfixed64 j = 10; float k = 11; double l = 12; bool m = 13; string n = 14; bytes o = 15; Kind p = 16;
  optional int32 oa = 20; optional string ob = 21; optional Kind oc = 22; optional bool od = 23; optional bytes oe = 24;
  repeated sint32 ra = 30; repeated double rb = 31; repeated bool rc = 32; repeated string rd = 33;
  repeated Kind re = 34; repeated Part rf = 35; repeated int64 unpacked = 36 [packed = false];
  repeated uint64 rg = 37; repeated Nothing rh = 38;
  Part sub = 40; Nothing nothing = 41;
  map<string, int32> ma = 50; map<int32, Part> mb = 51; map<bool, string> mc = 52; map<string, Kind> md = 53;
  oneof choice { string xa = 60; int64 xb = 61; Part xc = 62; }
  google.protobuf.Timestamp ta = 70; google.protobuf.Duration tb = 71; google.protobuf.Int32Value tc = 72;
  google.protobuf.StringValue td = 73; google.protobuf.UInt64Value te = 74;
  repeated google.protobuf.Timestamp tf = 75; repeated google.protobuf.BytesValue tg = 76;
}
"""
SCHEMA = ResolvedSchema(TEXT, "PROTOBUF", id=1)
INDEX = [3]


def decoder(*, scanning: bool) -> RowDecoder:
    """Return a decoder of the schema's own records, with the scan or without."""
    return RowDecoder(ProtobufColumns(), parse_schema(SCHEMA), {1: SCHEMA}.get, "All", scanning=scanning)


SCANNING, PARSING = decoder(scanning=True), decoder(scanning=False)


def leaf(random: Random, target: Any) -> None:
    """Fill a leaf message."""
    target.x = random.randint(-(1 << 63), (1 << 63) - 1)
    target.kinds.extend(random.choice([0, 1, -5, 77]) for _ in range(random.randrange(3)))
    target.words.extend(random.choice(["", "é", "word"]) for _ in range(random.randrange(3)))


def part(random: Random, target: Any) -> None:
    """Fill a part message."""
    target.SetInParent()
    target.sku = random.choice(["", "a", "ünï"])
    if random.random() < 0.5:
        target.count = random.choice([0, -1, 5])
    for key in random.sample(["", "k", "z"], random.randrange(3)):
        leaf(random, target.leaves[key])
    for _ in range(random.randrange(3)):
        leaf(random, target.list.add())
    if random.random() < 0.5:
        leaf(random, target.one)


def message(random: Random) -> Any:
    """Return a message with some of its fields set."""
    root: Any = message_class(parse_schema(SCHEMA).parsed, "All")()
    ranges = {"a": 31, "b": 63, "e": 31, "f": 63, "i": 31, "j": 63}
    for name, bits in ranges.items():
        setattr(root, name, random.choice([0, 1, -1, random.randint(-(1 << bits), (1 << bits) - 1)]))
    for name, bits in {"c": 32, "d": 64, "g": 32, "h": 64}.items():
        setattr(root, name, random.choice([0, (1 << bits) - 1, random.getrandbits(bits)]))
    root.k, root.l, root.m = random.choice([0.0, -0.0, 1.5, float("inf")]), random.gauss(0, 1e9), random.random() < 0.5
    root.n, root.o, root.p = random.choice(["", "text", "日本"]), random.randbytes(3), random.choice([0, 1, -5, 9])
    for name, value in {"oa": 0, "ob": "", "oc": 1, "od": False, "oe": b"\xff"}.items():
        if random.random() < 0.5:
            setattr(root, name, value)
    root.ra.extend(random.randint(-(1 << 31), (1 << 31) - 1) for _ in range(random.randrange(4)))
    root.rb.extend(random.random() for _ in range(random.randrange(3)))
    root.rc.extend(random.random() < 0.5 for _ in range(random.randrange(3)))
    root.rd.extend(["x", ""][: random.randrange(3)])
    root.re.extend([0, 1, 9][: random.randrange(4)])
    root.unpacked.extend([1, -1][: random.randrange(3)])
    root.rg.extend([(1 << 64) - 1][: random.randrange(2)])
    for _ in range(random.randrange(3)):
        part(random, root.rf.add())
        root.rh.add()
    fill_nested(random, root)
    return root


def fill_nested(random: Random, root: Any) -> None:
    """Fill the fields that are messages, maps, members of a oneof."""
    if random.random() < 0.5:
        part(random, root.sub)
    if random.random() < 0.5:
        root.nothing.SetInParent()
    for key in ("a", "b")[: random.randrange(3)]:
        root.ma[key] = random.randint(-9, 9)
        root.md[key] = random.choice([0, 1, 9])
    for number in range(random.randrange(3)):
        part(random, root.mb[number])
    root.mc[True] = "t"
    match random.randrange(4):
        case 0:
            root.xa = ""
        case 1:
            root.xb = 5
        case 2:
            part(random, root.xc)
    if random.random() < 0.7:
        root.ta.seconds, root.ta.nanos = random.randint(-(10**10), 10**11), random.randrange(10**9)
        root.tb.seconds, root.tb.nanos = -5, -7000
        root.tc.value, root.td.value, root.te.value = 0, "", (1 << 64) - 1
    root.tf.add(seconds=random.randrange(9))
    root.tg.add(value=b"v")
    root.tg.add()


def plain(value: Any) -> Any:
    """Return a decoded value with maps sorted by key, because the parser keeps no order."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        items = [plain(inner) for inner in value]
        pairs = bool(items) and all(isinstance(inner, tuple) for inner in items)
        return sorted(items, key=repr) if pairs else items
    if isinstance(value, tuple):
        return tuple(plain(inner) for inner in value)
    return repr(value) if isinstance(value, float) else value


def same(frames: list[bytes | None]) -> Decoded:
    """Return the scan's result after checking that it equals the parser's."""
    column = pa.array(frames, pa.binary())
    one, other = SCANNING.decode(column), PARSING.decode(column)
    one.values.validate(full=True)
    assert one.values.type == other.values.type
    assert describe_errors(one).to_pylist() == describe_errors(other).to_pylist()
    assert one.codes.equals(other.codes)
    assert one.offsets.equals(other.offsets)
    assert one.schema_ids.to_pylist() == other.schema_ids.to_pylist()
    for mine, its in zip(one.values.to_pylist(), other.values.to_pylist(), strict=True):
        assert plain(mine) == plain(its)
    return one


@pytest.mark.parametrize("seed", range(5))
def test_messages_are_read_as_the_parser_reads_them(seed: int) -> None:
    """Random messages with every kind of field, nulls, other ids and other messages give the parser's result."""
    random = Random(seed)
    frames: list[bytes | None] = [frame(1, message(random).SerializeToString(), INDEX) for _ in range(40)]
    frames[3:3] = [
        None,
        b"",
        frame(9, b"", INDEX),
        frame(1, b"\x0a\x01x", [0]),
        frame(1, b"", [2, 0]),
        frame(1, b"", [3]),
    ]
    decoded = same(frames)
    assert decoded.values.null_count == 5
    scanner = ProtobufColumns().make_scanner(
        parse_schema(SCHEMA),
        "All",
        ProtobufColumns().plan(parse_schema(SCHEMA), "All", 0),
        lambda number, place: (number, place) == (1, (3,)),
    )
    assert scanner is not None
    scanned = scanner.scan(pa.array(frames, pa.binary()))
    assert scanned is not None
    assert scanned.left == [4, 5, 6, 7], "nothing good is left to the parser"
    sliced = SCANNING.decode(pa.array(frames, pa.binary()).slice(10, 20))
    assert sliced.values.equals(decoded.values.slice(10, 20))


@pytest.mark.parametrize("seed", range(4))
def test_damaged_messages_are_told_as_the_parser_tells_them(seed: int) -> None:
    """Messages with changed, lost, doubled and added bytes give the parser's values and reasons, record by record."""
    random = Random(seed + 100)
    seeds = [message(random).SerializeToString() for _ in range(8)]
    frames: list[bytes | None] = []
    for _ in range(250):
        data = bytearray(random.choice(seeds))
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(data)) if data else 0
            match random.randrange(5):
                case 0 if data:
                    data[at] ^= 1 << random.randrange(8)
                case 1:
                    del data[at:]
                case 2:
                    data[at:at] = random.randbytes(random.randint(1, 3))
                case 3:
                    data += random.choice(seeds)
                case _:
                    del data[at : at + 1]
        frames.append(frame(1, bytes(data), INDEX))
    same(frames)


@pytest.mark.parametrize(
    "payload",
    [
        b"\xe2\x03\x01a\xe8\x03\x05",  # two members of the oneof
        b"\xc2\x02\x03\x0a\x01a\xc2\x02\x02\x10\x05",  # one message in two parts
        b"\x92\x03\x05\x0a\x01k\x10\x01\x92\x03\x05\x0a\x01k\x10\x02",  # a key twice
        b"\x9a\x03\x00",  # an entry with neither key nor value
        b"\x9a\x03\x04\x12\x02\x0a\x00",  # an entry of a message without key
        b"\xa2\x03\x05\x08\x01\x1a\x01t",  # an entry with an unknown field
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",  # more than 64 bits
        b"\x08\x80\x80\x80\x80\x10",  # more than the 32 bits of its type
        b"\x72\x02\xc3\x28",  # no UTF-8
        b"\xf3\x3f\xf4\x3f",  # an unknown group
        b"\x0b\x0c",  # a group where a number is known
        b"\x00\x00",  # no field number
        b"\x0d\x01\x00\x00\x00",  # another wire type than the schema's
        b"\xa2\x02\x02\x01",  # a length beyond the end
        b"\xb2\x04\x0b\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",  # a year that does not exist
        b"\xc2\x02" + b"\xff" * 9 + b"\x01",  # a length of 64 bits
    ],
)
def test_whatever_is_odd_is_left_to_the_parser(payload: bytes) -> None:
    """Data that writers normally do not write, valid or not, give the parser's result. Other records stay the same."""
    good = frame(1, message(Random(1)).SerializeToString(), INDEX)
    same([good, frame(1, payload, INDEX), good])


def test_no_scan_where_only_the_parser_reads_right() -> None:
    """Required fields, closed enums, huge field numbers and messages inside themselves are left to the parser."""
    for text in (
        'syntax = "proto2"; message M { required int32 a = 1; }',
        'syntax = "proto2"; enum E { A = 0; } message M { optional E e = 1; }',
        'syntax = "proto3"; message M { int32 a = 5000; }',
        'syntax = "proto3"; message M { repeated M m = 1; }',
        'syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }',
    ):
        schema = ResolvedSchema(text, "PROTOBUF", id=1)
        assert (
            ProtobufColumns().make_scanner(
                parse_schema(schema), "M", ProtobufColumns().plan(parse_schema(schema), "M", 0), lambda *_: True
            )
            is None
        )


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of small messages that would need too much memory is left to the parser."""
    frames: list[bytes | None] = [frame(1, b"\x9a\x02\x00" * 100, INDEX)] * 50
    same(frames)
    monkeypatch.setattr("stele.spark.decode.formats.protobuf_scan.MAX_BYTES", 1000)
    assert SCANNING.decode(pa.array(frames)).values.equals(PARSING.decode(pa.array(frames)).values)
