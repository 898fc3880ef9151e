"""Fields and Arrow schemas of Protobuf schemas."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from tests.support.time_limit import limit_time

from stele.core.ports import Field, TextForm
from stele.errors import Invalid, InvalidRequest
from stele.formats.protobuf import PROTOBUF, ProtobufSchema, arrow_schema

P3 = 'syntax = "proto3";\n'


def parse_schema(text: str, **references: str) -> ProtobufSchema:
    """A parsed schema; keyword x stands for the reference x.proto."""
    return PROTOBUF.parse(text.encode(), {f"{name}.proto": source.encode() for name, source in references.items()})


def test_fields_are_listed_depth_first() -> None:
    """Paths enter messages, lists and maps; comments become docs; well-known types and recursion are not entered."""
    parsed = parse_schema(
        P3
        + """package p;
        import "x.proto";
        import "google/protobuf/timestamp.proto";
        message A {
          // The name.
          //   Indented.
          string name = 1;
          repeated B items = 2;  // trailing
          /* a
           * block */
          map<string, x.X> by_key = 3;
          google.protobuf.Timestamp at = 4;
          message B { B again = 1; E kind = 2; /** doc */ oneof o { int32 x = 3; } }
          enum E { ZERO = 0; }
        }
        message Used { int32 n = 1; }
        message Other { Used used = 1; }
        """,
        x=P3 + "package x; message X { /* not seen */ bytes raw = 1; }",
    )
    assert PROTOBUF.fields(parsed) == [
        Field("name", "string", doc="The name.\nIndented.", optional=True),
        Field("items", "repeated p.A.B", doc="trailing", optional=True),
        Field("items[].again", "p.A.B", optional=True),
        Field("items[].kind", "p.A.E", optional=True),
        Field("items[].x", "int32", optional=True),
        Field("by_key", "map<string, x.X>", doc="a\nblock", optional=True),
        Field("by_key{}.raw", "bytes", optional=True),
        Field("at", "google.protobuf.Timestamp", optional=True),
        Field("Used.n", "int32", optional=True),
        Field("Other.used", "p.Used", optional=True),
        Field("Other.used.n", "int32", optional=True),
    ]


def test_defaults_are_json() -> None:
    """Explicit defaults are listed as JSON text, implicit ones are not."""
    parsed = parse_schema(
        'message A { optional int32 i = 1 [default = -5]; optional string s = 2 [default = "a\\"b"]; optional E e = 3'
        " [default = Y]; optional bool b = 4 [default = true]; required bytes x = 5 [default = '\\001'];"
        " optional double d = 6 [default = 1.5]; optional int32 none = 7; enum E { X = 0; Y = 1; } }"
    )
    assert {field.path: field.default for field in PROTOBUF.fields(parsed)} == {
        "i": "-5", "s": '"a\\"b"', "e": '"Y"', "b": "true", "x": '"\\u0001"', "d": "1.5", "none": None,
    }  # fmt: skip
    assert PROTOBUF.fields(parsed)[4].type == "required bytes"


def test_arrow_types() -> None:
    """Every kind of field has its documented column type and nullability."""
    parsed = parse_schema(
        P3
        + 'import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto"; import '
        + '"google/protobuf/any.proto";'
        + 'import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto"; enum E { Z = 0; } '
        + "message A {"
        + "int32 a = 1; sint64 b = 2; sfixed32 c = 3; uint32 d = 4; fixed64 e = 5; float f = 6; double g = 7; "
        + "bool h = 8;"
        + "string i = 9; bytes j = 10; E k = 11; B l = 12; repeated B m = 13; map<string, int32> n = 14; "
        + "optional int32 o = 15;"
        + "oneof p { int32 q = 16; string r = 17; } google.protobuf.Timestamp s = 18; google.protobuf.Duration t = 19;"
        + "google.protobuf.BytesValue u = 20; google.protobuf.Value v = 21; google.protobuf.Any w = 22; "
        + "repeated E x = 23;"
        + "repeated google.protobuf.Int32Value y = 24; } message B { int32 z = 1; }"
    )
    struct = pa.struct([pa.field("z", pa.int32(), nullable=False)])
    anything = pa.struct(
        [pa.field("type_url", pa.string(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
    )

    def many(kind: pa.DataType) -> pa.DataType:
        return pa.list_(pa.field("element", kind, nullable=False))

    expected = [
        ("a", pa.int32(), False), ("b", pa.int64(), False), ("c", pa.int32(), False), ("d", pa.uint32(), False),
        ("e", pa.uint64(), False), ("f", pa.float32(), False), ("g", pa.float64(), False), ("h", pa.bool_(), False),
        ("i", pa.string(), False), ("j", pa.binary(), False), ("k", pa.string(), False), ("l", struct, True),
        ("m", many(struct), False), ("n", pa.map_(pa.string(), pa.int32()), False), ("o", pa.int32(), True),
        ("q", pa.int32(), True), ("r", pa.string(), True), ("s", pa.timestamp("us", tz="UTC"), True),
        ("t", pa.duration("us"), True), ("u", pa.binary(), True), ("v", pa.string(), True), ("w", anything, True),
        ("x", many(pa.string()), False), ("y", many(pa.int32()), False),
    ]  # fmt: skip
    assert PROTOBUF.arrow_schema(parsed) == pa.schema([pa.field(n, kind, nullable=null) for n, kind, null in expected])
    assert arrow_schema(parsed, "B") == pa.schema(struct)


def test_required_fields_are_not_null() -> None:
    """proto2 `optional` is nullable, `required` is not."""
    shape = PROTOBUF.arrow_schema(
        parse_schema("message A { required int32 a = 1; optional int32 b = 2; required B c = 3; } message B {}")
    )
    assert [field.nullable for field in shape] == [False, True, False]


def test_recursive_messages_have_no_table() -> None:
    """A message that contains itself is rejected with the cycle; JSON-like well-known types are not recursive."""
    with pytest.raises(Invalid, match=r"message p\.A contains itself \(p\.A > p\.B > p\.A\)"):
        PROTOBUF.arrow_schema(parse_schema(P3 + "package p; message A { B b = 1; } message B { repeated A a = 1; }"))
    with pytest.raises(Invalid, match="contains itself"):
        PROTOBUF.arrow_schema(parse_schema(P3 + "message A { map<string, A> a = 1; }"))
    with pytest.raises(InvalidRequest):
        PROTOBUF.arrow_schema(parse_schema(P3))


def test_messages_that_multiply_are_bounded() -> None:
    """All views of a short schema with 2^60 columns return quickly."""
    text = (
        P3
        + "".join(f"message M{i} {{ M{i + 1} a = 1; M{i + 1} b = 2; }}" for i in range(60))
        + "message M60 { int32 x = 1; }"
    )
    parsed = parse_schema(text)
    with limit_time(30, time.monotonic):
        assert len(PROTOBUF.fields(parsed)) == 10_000
        with pytest.raises(Invalid, match="more than 10000 columns"):
            PROTOBUF.arrow_schema(parsed)
        assert PROTOBUF.codec(parsed).validate(PROTOBUF.codec(parsed).example()) == []


def test_pyarrow_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pyarrow the error names the package to install."""
    import sys

    from stele.errors import NotInstalled

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NotInstalled, match=r"stele-registry\[spark\]"):
        PROTOBUF.arrow_schema(parse_schema(P3 + "message A {}"))


def wide_text(kind: str) -> str:
    """Return a text of some hundred kilobytes on one line, on which quadratic scans are slow."""
    fields = "".join(f"M{i}\ta{i} = {i + 1};" for i in range(3000))
    nested = "".join(f"message M{i} {{ {kind} x = 1; map<string, {kind}> y = 2; }}" for i in range(3000))
    oneofs = "".join(f"oneof o{i} {{ {kind} b{i} = {20_000 + i}; }}" for i in range(2000))
    return P3 + f"message A {{ {fields} {nested} {oneofs} }}"


def test_wide_schemas_take_linear_time() -> None:
    """Thousands of fields, nested messages and oneofs in one message are handled within seconds by every operation."""
    new, old = parse_schema(wide_text("int32")), parse_schema(wide_text("int64"))
    with limit_time(30, time.monotonic):
        assert PROTOBUF.check(new, old) == []
        assert len(PROTOBUF.fields(new)) == 10_000
        assert PROTOBUF.fingerprints(new) != PROTOBUF.fingerprints(old)
        assert b"M2999 a2999 = 3000;" in PROTOBUF.canonical(new, TextForm.PRINTED)
