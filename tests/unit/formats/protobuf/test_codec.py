"""Protobuf data: Python values to bytes and back, and data that do not fit."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pytest

from stele.errors import DecodeError, EncodeError, InvalidRequest
from stele.formats.protobuf import PROTOBUF, ProtobufCodec, ProtobufSchema, message_class

P3 = 'syntax = "proto3";\n'
ALL = (
    P3
    + 'package p; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";'
    + 'import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto"; import '
    + '"google/protobuf/any.proto";'
    + 'import "google/protobuf/field_mask.proto"; enum E { ZERO = 0; ONE = 1; } message All {'
    + "int32 i = 1; uint64 u = 2; sint64 s = 3; fixed32 f32 = 4; double d = 5; float f = 6; bool b = 7; string str = 8;"
    + "bytes raw = 9; E e = 10; Sub sub = 11; repeated int32 many = 12; repeated Sub subs = 13; "
    + "map<string, Sub> by_name = 14;"
    + "map<bool, bytes> by_flag = 15; oneof o { int32 x = 16; string y = 17; } optional int32 opt = 18;"
    + "google.protobuf.Timestamp ts = 19; google.protobuf.Duration du = 20; google.protobuf.Struct st = 21;"
    + "google.protobuf.Value v = 22; google.protobuf.Int64Value w = 23; google.protobuf.Any any = 24; "
    + "string long_name = 25;"
    + "google.protobuf.FieldMask mask = 26; message Sub { int32 n = 1; Sub sub = 2; } } message Other { int32 q = 1; }"
)


def schema(text: str = ALL) -> ProtobufSchema:
    """A parsed schema."""
    return PROTOBUF.parse(text.encode(), {})


def round_trip(datum: Any) -> Any:
    """The datum after a round trip."""
    codec = PROTOBUF.codec(schema())
    return codec.decode(codec.encode(datum))


def test_absent_fields_read_as_their_defaults() -> None:
    """Empty data decode to the defaults of fields without presence, and to no other fields."""
    assert round_trip({}) == {
        "i": 0, "u": 0, "s": 0, "f32": 0, "d": 0.0, "f": 0.0, "b": False, "str": "", "raw": b"", "e": "ZERO",
        "many": [], "subs": [], "by_name": {}, "by_flag": {}, "long_name": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("i", -(1 << 31), -(1 << 31)),
        ("u", (1 << 64) - 1, (1 << 64) - 1),
        ("u", "18446744073709551615", (1 << 64) - 1),
        ("s", 5.0, 5),
        ("d", 1, 1.0),
        ("d", "-Infinity", -math.inf),
        ("f", 0.5, 0.5),
        ("raw", b"\x00\xff", b"\x00\xff"),
        ("raw", bytearray(b"ab"), b"ab"),
        ("raw", "AP8=", b"\x00\xff"),
        ("e", "ONE", "ONE"),
        ("e", 1, "ONE"),
        ("e", 77, 77),
        ("sub", {"n": 3}, {"n": 3}),
        ("many", (1, 2), [1, 2]),
        ("subs", [{"n": 1}, {}], [{"n": 1}, {"n": 0}]),
        ("by_name", {"k": {"n": 1}}, {"k": {"n": 1}}),
        ("by_flag", {True: b"x", "false": b"y"}, {True: b"x", False: b"y"}),
        ("y", "", ""),
        ("opt", 0, 0),
        ("ts", "2026-01-31T00:00:00.000000001Z", "2026-01-31T00:00:00.000000001Z"),
        ("ts", dt.datetime(2026, 1, 31, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), "2026-01-31T00:00:00Z"),
        ("du", dt.timedelta(milliseconds=1500), "1.500s"),
        ("st", {"a": [1, None, {"b": True}]}, {"a": [1.0, None, {"b": True}]}),
        ("v", None, None),
        ("v", ["x"], ["x"]),
        ("w", 0, 0),
        ("w", 1 << 60, 1 << 60),
        ("any", {"type_url": "t/x", "value": b"\x01"}, {"type_url": "t/x", "value": b"\x01"}),
        ("mask", "a,bC", "a,bC"),
    ],
)
def test_values_survive(name: str, value: Any, read: Any) -> None:
    """Each kind of value is taken in its documented shapes and read back in one of them."""
    assert round_trip({name: value})[name] == read


def test_none_means_unset() -> None:
    """None leaves a field unset, except for google.protobuf.Value, whose null it is."""
    codec = PROTOBUF.codec(schema())
    assert codec.encode({"i": None, "sub": None, "many": None, "st": None, "x": None}) == b""
    assert codec.encode({"v": None}) != b""


def test_json_names_are_taken() -> None:
    """A field may be given by its JSON name."""
    assert round_trip({"longName": "a", "byName": {}})["long_name"] == "a"


@pytest.mark.parametrize(
    ("datum", "problem"),
    [
        ({"i": 1 << 31}, "i: 2147483648 is not a valid int32"),
        ({"i": True}, "i: True is not a valid int32"),
        ({"i": 1.5}, "i: 1.5 is not a valid int32"),
        ({"i": "x"}, "i: 'x' is not a valid int32"),
        ({"u": -1}, "u: -1 is not a valid uint64"),
        ({"f": 1e39}, "f: 1e+39 is not a valid float"),
        ({"d": 10**400}, "d: 1000000000000000000000000000000000000... is not a valid double"),
        ({"b": 1}, "b: 1 is not a valid bool"),
        ({"str": b"x"}, "str: b'x' is not a valid string"),
        ({"str": "\ud800"}, "str: '\\ud800' is not a valid string"),
        ({"raw": "not base64!"}, "raw: 'not base64!' is not a valid bytes"),
        ({"e": "TWO"}, "e: 'TWO' is not a valid p.E"),
        ({"sub": 5}, "sub: 5 is not a message p.All.Sub"),
        ({"sub": {"sub": {"n": "x"}}}, "sub.sub.n: 'x' is not a valid int32"),
        ({"many": 5}, "many: 5 is not a list"),
        ({"many": "12"}, "many: '12' is not a list"),
        ({"many": [1, None]}, "many[1]: NoneType is not a valid int32"),
        ({"subs": [{}, {"n": "x"}]}, "subs[1].n: 'x' is not a valid int32"),
        ({"by_name": []}, "by_name: list is not a map"),
        ({"by_name": {"k": {"n": "x"}}}, "by_name{k}.n: 'x' is not a valid int32"),
        ({"by_flag": {"maybe": b""}}, "by_flag{maybe}: 'maybe' is not a valid bool"),
        ({"x": 1, "y": "a"}, "y: oneof o already has x set"),
        ({"nope": 1}, "nope: message p.All has no such field"),
        ({5: 1}, "5: message p.All has no such field"),
        ({"w": 1 << 63}, "w: 9223372036854775808 is not a valid int64"),
        ([], "datum: list is not a message p.All"),
        (None, "datum: NoneType is not a message p.All"),
    ],
)
def test_what_does_not_fit_is_explained(datum: Any, problem: str) -> None:
    """Validate returns one sentence with the path, and encode raises it."""
    codec = PROTOBUF.codec(schema())
    assert codec.validate(datum) == [problem]
    with pytest.raises(EncodeError) as caught:
        codec.encode(datum)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    "datum", [{"ts": "yesterday"}, {"ts": 5}, {"st": {"a": object()}}, {"st": []}, {"du": "1"}, {"mask": 5}]
)
def test_well_known_types_check_their_values(datum: Any) -> None:
    """A value that is no JSON form of a well-known type is one problem at its path."""
    (problem,) = PROTOBUF.codec(schema()).validate(datum)
    assert problem.startswith(f"{next(iter(datum))}: ")


def test_all_problems_are_listed() -> None:
    """Validate does not stop at the first problem."""
    assert len(PROTOBUF.codec(schema()).validate({"i": "x", "u": -1, "many": [1, "b", 2, "c"]})) == 4


def test_endless_data_are_refused() -> None:
    """A dict that contains itself is a problem, not a crash."""
    loop: dict[str, Any] = {"n": 1}
    loop["sub"] = loop
    (problem,) = PROTOBUF.codec(schema()).validate({"sub": loop})
    assert "nests deeper than 100 messages" in problem


def test_messages_are_taken_too() -> None:
    """A generated message of the right type is encoded, whichever class it has; another type is rejected."""
    codec = PROTOBUF.codec(schema())
    kind = message_class(schema())
    assert codec.decode(codec.encode(kind(i=5)))["i"] == 5
    assert codec.validate(message_class(schema(), "p.Other")(q=1)) == ["datum: a message p.Other is not a p.All"]
    elsewhere = message_class(schema(ALL.replace("ZERO", "NIL")))
    assert codec.decode(codec.encode(elsewhere(i=6)))["i"] == 6


@pytest.mark.parametrize("data", [b"\xff", b"\x0a", b"\x4a\x05ab", b"\x42\x01\xff", b"\x07", b"\x5a\x80" * 200])
def test_corrupt_data_are_refused(data: bytes) -> None:
    """Cut-off, over-long and mistyped bytes are a DecodeError."""
    with pytest.raises(DecodeError):
        PROTOBUF.codec(schema()).decode(data)


def test_deep_data_are_refused() -> None:
    """Data nested deeper than parsers allow are a DecodeError, never a stack overflow."""
    data = b""
    for _ in range(5000):
        size, head = len(data), bytearray()
        while size > 127:
            head.append(size & 127 | 128)
            size >>= 7
        data = b"\x12" + bytes([*head, size]) + data
    codec = ProtobufCodec(schema(), full_name="p.All.Sub")
    with pytest.raises(DecodeError):
        codec.decode(data)


def test_the_message_can_be_chosen() -> None:
    """Any message of the schema can be encoded; an unknown name is refused."""
    codec = ProtobufCodec(schema(), full_name="p.Other")
    assert codec.decode(codec.encode({"q": 4})) == {"q": 4}
    with pytest.raises(InvalidRequest):
        ProtobufCodec(schema(), full_name="p.Nope")


def test_a_reader_resolves_by_number() -> None:
    """Data of one version are read with another: renamed, added, removed and unknown fields."""
    old = schema(P3 + "message A { int32 a = 1; string gone = 2; E e = 4; } enum E { X = 0; Y = 1; }")
    new = schema(
        P3 + "message Z {} message A { int64 renamed = 1; repeated string added = 3; E e = 4; } enum E { X = 0; }"
    )
    codec = PROTOBUF.codec(old, new)
    data = codec.encode({"a": 5, "gone": "x", "e": "Y"})
    assert codec.decode(data) == {"renamed": 5, "added": [], "e": 1}
    assert ProtobufCodec(old, new).decode_message(data).SerializeToString(deterministic=True) != b""
    moved = schema(P3 + "package p; message B { int32 b = 1; }")
    assert PROTOBUF.codec(old, moved).decode(data) == {"b": 5}


def test_unknown_fields_are_kept_in_messages() -> None:
    """A message read with an older schema still carries what it does not know."""
    new = schema(P3 + "message A { int32 a = 1; int32 b = 2; }")
    old = schema(P3 + "message A { int32 a = 1; }")
    data = PROTOBUF.codec(new).encode({"a": 1, "b": 2})
    assert ProtobufCodec(new, old).decode_message(data).SerializeToString() == data


def test_required_fields_and_groups_of_proto2() -> None:
    """Missing required fields are rejected in both directions; groups and extensions are normal fields."""
    two = schema(
        "package p; message A { required int32 r = 1; optional group G = 2 { required int32 q = 1; } "
        "extensions 5 to 9; }"
        "extend A { optional B ext = 5; repeated int32 nums = 6; } message B { optional int32 v = 1 [default = 8]; }"
        "enum C { ONE = 1; } message D { optional C c = 1; }"
    )
    codec = PROTOBUF.codec(two)
    assert codec.validate({}) == ["r: required field is not set"]
    assert codec.validate({"r": 1, "g": {}}) == ["g.q: required field is not set"]
    with pytest.raises(DecodeError, match="required fields are missing: r"):
        codec.decode(b"")
    datum = {"r": 1, "g": {"q": 2}, "[p.ext]": {"v": 3}, "[p.nums]": [1, 2]}
    assert codec.decode(codec.encode(datum)) == datum
    assert codec.validate({"r": 1, "[p.nope]": 1}) == ["[p.nope]: message p.A has no such field"]
    assert ProtobufCodec(two, full_name="p.D").validate({"c": 2}) == ["c: 2 is not a valid p.C"]


def test_examples_fit() -> None:
    """The example of every message, recursive and required ones included, encodes and has all fields it can."""
    codec = PROTOBUF.codec(schema())
    example = codec.example()
    assert codec.validate(example) == []
    assert set(example) == {f.name for f in schema().get_message().fields} - {"y"}
    required = schema("message A { required B b = 1; optional A a = 2; } message B { required C c = 1; } message C {}")
    assert PROTOBUF.codec(required).validate(PROTOBUF.codec(required).example()) == []


def test_encoding_is_stable() -> None:
    """Equal data give equal bytes whatever the order of their keys."""
    codec = PROTOBUF.codec(schema())
    one = codec.encode({"by_name": {str(n): {"n": n} for n in range(50)}, "i": 1})
    two = codec.encode({"i": 1, "by_name": {str(n): {"n": n} for n in reversed(range(50))}})
    assert one == two


def test_fields_may_share_a_json_name() -> None:
    """A schema with a mere compiler warning, for equal JSON names, stays usable."""
    source = b'syntax = "proto2"; message M { optional int32 a_b = 1; optional int32 aB = 2; message N {} }'
    parsed = PROTOBUF.parse(source, {})
    assert [field.json_name for field in parsed.proto.message_type[0].field] == ["aB", "aB"]
    assert not parsed.proto.message_type[0].options.deprecated_legacy_json_field_conflicts
    assert PROTOBUF.codec(parsed).decode(PROTOBUF.codec(parsed).encode({"a_b": 1, "aB": 2})) == {"a_b": 1, "aB": 2}
    assert PROTOBUF.check(parsed, parsed, "buf:FILE") == []
