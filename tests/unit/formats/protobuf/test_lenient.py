"""Schemas that Confluent's registry accepts and protoc rejects: parsed with strict=False, printed as sent, usable."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from tests.support.time_limit import limit_time

from stele.core.ports import TextForm
from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.protobuf import (
    PROTOBUF,
    ProtobufFormat,
    ProtobufSchema,
    arrow_schema,
    indexes_of,
    message_by_indexes,
)
from stele.formats.protobuf.source_tree import Quoted, SourceError, Word, parse_source

P3 = 'syntax = "proto3";\n'


def parse_leniently(text: str, **references: str) -> ProtobufSchema:
    """Parse a proto3 text; references are by path with _ for dots."""
    files = {name.replace("_", "."): (P3 + body).encode() for name, body in references.items()}
    return PROTOBUF.parse((P3 + text).encode(), files, strict=False)


def print_text(schema: ProtobufSchema) -> str:
    """The text that is stored."""
    return PROTOBUF.canonical(schema, TextForm.PRINTED).decode()


def test_missing_imports_stay_in_the_text() -> None:
    """An import that is not there is ignored, a built-in type needs none, and data are written and read."""
    text = 'import "absent.proto"; message M { google.protobuf.Timestamp at = 1; string s = 2; }'
    with pytest.raises(UnresolvedReference):
        PROTOBUF.parse((P3 + text).encode(), {})
    schema = parse_leniently(text)
    assert schema.unresolved == ()
    assert list(schema.proto.dependency) == ["google/protobuf/timestamp.proto"]
    assert 'import "absent.proto";' in print_text(schema)
    assert "timestamp.proto" not in print_text(schema)
    codec = PROTOBUF.codec(schema)
    datum = {"at": "2026-01-31T12:00:00Z", "s": "x"}
    assert codec.decode(codec.encode(datum)) == datum
    assert PROTOBUF.check(schema, schema) == []


def test_types_come_from_every_reference() -> None:
    """Types are found in every reference, also under another name, and in one that itself lacks an import."""
    schema = parse_leniently(
        'import "old/path.proto"; package a; message M { c.C c = 1; }',
        c_proto="package c; message C { d.D d = 1; }",
        d_proto="package d; message D { int32 n = 1; }",
    )
    assert [file.name for file in schema.files] == ["d.proto", "c.proto", "default.proto"]
    codec = PROTOBUF.codec(schema)
    assert codec.decode(codec.encode({"c": {"d": {"n": 5}}})) == {"c": {"d": {"n": 5}}}


def test_undeclared_types_read_as_bytes() -> None:
    """A type that is declared nowhere is named in the text; its fields are bytes, its methods are left out."""
    schema = parse_leniently(
        "message M { oneof o { Gone g = 1 [deprecated = true, (x.y) = 1]; int32 n = 2; } map<string, a.Gone> m = 3; }"
        "service S { rpc Get (M) returns (Gone); rpc Put (M) returns (M); } extend Gone { string e = 100; }"
    )
    assert set(schema.unresolved) == {"Gone", "a.Gone"}
    assert [str(field.type) for field in arrow_schema(schema)] == ["binary", "int32", "map<string, binary>"]
    assert [method.name for method in schema.proto.service[0].method] == ["Put"]
    printed = print_text(schema)
    assert "Gone g = 1 [\n      deprecated = true,\n      (x.y) = 1\n    ];" in printed
    again = PROTOBUF.parse(printed.encode(), {}, strict=False)
    assert print_text(again) == printed
    assert PROTOBUF.fingerprints(again) == PROTOBUF.fingerprints(schema)
    other = parse_leniently("message M { Other o = 1; }"), parse_leniently("message M { Gone o = 1; }")
    assert other[0].proto == other[1].proto
    assert PROTOBUF.fingerprints(other[0])["descriptor"] != PROTOBUF.fingerprints(other[1])["descriptor"]
    assert PROTOBUF.canonical(other[0], TextForm.NORMALIZED) != PROTOBUF.canonical(other[1], TextForm.NORMALIZED)


def test_undeclared_options_stay_in_the_text() -> None:
    """Undeclared options, declared ones without an import, and wrong values are compiled as far as possible."""
    schema = parse_leniently(
        'option (a).b = { x: [1, 2] y { z: "q" } }; option nonsense = 1;'
        'message M { int32 n = 1 [json_name = "j", (gone) = {}, deprecated = true, (o.set) = true]; }',
        o_proto='package o; import "google/protobuf/descriptor.proto";'
        " extend google.protobuf.FieldOptions { optional bool set = 50000; }",
    )
    field = schema.proto.message_type[0].field[0]
    assert (field.json_name, field.options.deprecated) == ("j", True)
    assert "o.proto" in schema.proto.dependency
    assert 'option (a).b = {\n  x: [\n    1,\n    2\n  ],\n  y: {\n    z: "q"\n  }\n};\n' in print_text(schema)
    wrong = parse_leniently(
        'import "o.proto"; message M { int32 n = 1 [(o.set) = "text"]; }',
        o_proto='package o; import "google/protobuf/descriptor.proto";'
        " extend google.protobuf.FieldOptions { optional bool set = 50000; }",
    )
    assert '[(o.set) = "text"]' in print_text(wrong)


@pytest.mark.parametrize(
    ("text", "rejected", "kept"),
    [
        ("message M { int32 a = 1; int32 b = 1; }", ["M.b"], ["a"]),
        ("message M { oneof o { int32 a = 1; int32 b = 1; } string c = 1; }", ["M.b", "M.c"], ["a"]),
        ("message M { int32 a = 1; string a = 2; }", ["M.a"], ["a"]),
        ("message M { reserved 2 to 4, 9; int32 a = 1; int32 b = 3; }", ["M.b"], ["a"]),
        ('message M { reserved "b"; int32 a = 1; int32 b = 3; }', ["M.b"], ["a"]),
        ("message M { int32 a = 1; int32 b = 0; int32 c = 19500; int32 d = 536870912; }", ["M.b", "M.c", "M.d"], ["a"]),
        ("message M { int32 a = 1; } enum E { A = 0; B = 0; }", ["B"], ["a"]),
        ("message M { E a = 1; enum E { A = 0; A = 1; } }", ["M.A"], ["a"]),
        ("message M { map<string, int32> a = 1; map<string, int32> b = 1; }", ["M.b"], ["a"]),
    ],
)
def test_fields_and_values_that_clash_stay_in_the_text(text: str, rejected: list[str], kept: list[str]) -> None:
    """If a name or number is already used, the later field or value stays in the text only; data use the first."""
    with pytest.raises(MalformedSchema):
        PROTOBUF.parse((P3 + text).encode(), {})
    schema = parse_leniently(text)
    assert schema.is_partial
    assert sorted(schema.rejected) == rejected == sorted(ProtobufFormat().list_unresolved(schema))
    assert [field.name for field in schema.proto.message_type[0].field] == kept
    printed = print_text(schema)
    assert all(name.rpartition(".")[2] in printed for name in rejected)
    assert print_text(PROTOBUF.parse(printed.encode(), {}, strict=False)) == printed
    first = parse_leniently(text.replace(f" {rejected[0].rpartition('.')[2]} =", " other ="))
    assert PROTOBUF.fingerprints(first) != PROTOBUF.fingerprints(schema)


PARSED_ONLY = {
    "group": ("message M { repeated group G = 1 { int32 a = 1; } int32 b = 2; }", ["b"]),
    "default": ("message M { int32 a = 1 [default = 5]; }", ["a"]),
    "extensions": ("message M { extensions 100 to 200; int32 a = 1; }", ["a"]),
    "extend": ("message M { int32 a = 1; } extend M { int32 x = 100; }", ["a"]),
    "enum without zero": ("message M { int32 a = 1; } enum E { A = 1; }", ["a"]),
    "empty enum": ("message M { int32 a = 1; } enum E { }", ["a"]),
    "unneeded alias": ("message M { int32 a = 1; } enum E { option allow_alias = true;\n A = 0; B = 1; }", None),
    "message set": ("message M { option message_set_wire_format = true; int32 a = 1; }", ["a"]),
    "JSON names": ("message M { int32 foo_bar = 1; int32 fooBar = 2; }", ["foo_bar"]),
    "chosen JSON names": ('message M { int32 a = 1 [json_name="x"]; int32 b = 2 [json_name="x"]; }', ["a", "b"]),
    "key": ("message M { map<float, int32> a = 1; int32 b = 2; }", ["b"]),
    "map in a oneof": ("message M { oneof o { map<string, int32> a = 1; int32 b = 2; } }", ["b"]),
    "empty oneof": ("message M { oneof o { } int32 a = 1; }", ["a"]),
    "oneof twice": ("message M { oneof o { int32 a = 1; } oneof o { int32 b = 2; } }", None),
    "packed": ("message M { repeated string a = 1 [packed = true]; }", ["a"]),
    "lazy": ("message M { int32 a = 1 [lazy = true]; }", ["a"]),
    "kind of JavaScript": ("message M { int32 a = 1 [jstype = JS_STRING]; }", ["a"]),
    "value of an option": ('option java_multiple_files = "yes"; message M { int32 a = 1; }', ["a"]),
    "option twice": ('option java_package = "a"; option java_package = "b"; message M { int32 a = 1; }', ["a"]),
    "reserved overlap": ("message M { reserved 1 to 5, 3; int32 a = 7; }", ["a"]),
    "reserved kinds": ('message M { reserved "a", 3; int32 b = 7; }', ["b"]),
    "rpc of an enum": ("message M { int32 a = 1; } enum E { X = 0; } service S { rpc c(E) returns (E); }", ["a"]),
    "rpc twice": ("message M { int32 a = 1; } service S { rpc c(M) returns (M); rpc c(M) returns (M); }", ["a"]),
    "package twice": ("package a; package b; message M { int32 a = 1; }", ["a"]),
    "import twice": (
        'import "google/protobuf/any.proto"; import "google/protobuf/any.proto"; message M { int32 a = 1; }',
        ["a"],
    ),
    "value twice": ("message M { int32 a = 1; } enum E { X = 0; } enum F { X = 0; }", ["a"]),
    "type and field": ("message M { message b { } int32 b = 1; }", None),
    "deep": ("message M { int32 a = 1; } " + "message A { " * 40 + "}" * 40, ["a"]),
}
"""Texts that the parser of Confluent's registry reads and protoc rejects, and the fields that message M keeps."""


@pytest.mark.parametrize(("text", "fields"), PARSED_ONLY.values(), ids=PARSED_ONLY)
def test_what_only_the_parser_reads_stays_in_the_text(text: str, fields: list[str] | None) -> None:
    """Such a text is kept whole, has unresolved parts, and contains what the compiler accepts."""
    with pytest.raises(MalformedSchema):
        PROTOBUF.parse((P3 + text).encode(), {})
    schema = parse_leniently(text)
    assert schema.is_partial
    assert ProtobufFormat().list_unresolved(schema)
    if fields is not None:
        assert [field.name for field in schema.proto.message_type[0].field] == fields
    printed = print_text(schema)
    assert print_text(PROTOBUF.parse(printed.encode(), {}, strict=False)) == printed
    for form in TextForm:
        assert PROTOBUF.canonical(schema, form)
    assert PROTOBUF.fingerprints(schema)


def test_what_the_compiler_refuses_everywhere_is_kept_too() -> None:
    """If leaving out some statements does not help, only the package remains for data."""
    text = "package p; " + "".join(f"enum E{number} {{ A{number} = 1; }} " for number in range(50))
    schema = parse_leniently(text)
    assert (schema.proto.package, list(schema.proto.enum_type)) == ("p", [])
    assert "A49 = 1;" in print_text(schema)


def test_entries_of_maps_are_maps() -> None:
    """A map that is written as entry messages, as Confluent prints descriptors, is read as a map without loss."""
    source = P3 + "package p; message M { map<string, N> all = 1; message N { int32 n = 1; } N one = 2; }"
    plain = PROTOBUF.parse(source.encode(), {})
    serialized = PROTOBUF.render(plain, "serialized")
    assert serialized is not None
    text = print_text(PROTOBUF.parse(serialized.encode(), {}))
    assert "repeated .p.M.AllEntry all = 1 [" in text
    assert "option map_entry = true;" in text
    with pytest.raises(MalformedSchema):
        PROTOBUF.parse(text.encode(), {})
    spelled = PROTOBUF.parse(text.encode(), {}, strict=False)
    assert not spelled.is_partial
    assert print_text(spelled) == text
    assert PROTOBUF.fingerprints(spelled) == PROTOBUF.fingerprints(plain)
    assert PROTOBUF.canonical(spelled, TextForm.NORMALIZED) == PROTOBUF.canonical(plain, TextForm.NORMALIZED)
    assert (indexes_of(plain, "p.M.N"), indexes_of(spelled, "p.M.N")) == ([0, 0], [0, 1])
    assert message_by_indexes(plain, [0, 1]) == message_by_indexes(spelled, [0, 1]) == "p.M.N"


def test_descriptors_may_lack_imports() -> None:
    """A descriptor with missing imports is accepted like its text."""
    file = FileDescriptorProto.FromString(
        PROTOBUF.parse((P3 + "message M { int32 n = 1; }").encode(), {}).proto.SerializeToString()
    )
    file.dependency.append("absent.proto")
    sent = base64.b64encode(file.SerializeToString())
    with pytest.raises(UnresolvedReference):
        PROTOBUF.parse(sent, {})
    schema = PROTOBUF.parse(sent, {}, strict=False)
    assert print_text(schema) == (
        'syntax = "proto3";\n\nimport "absent.proto";\n\nmessage M {\n  int32 n = 1 [json_name = "n"];\n}\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        "message M {} message M {}",
        "message M {} enum M { A = 0; }",
        "service S {} service S {}",
        "message M { int32 a = 1 }",
        "message M { required int32 a = 1; }",
        "message M { repeated map<string, int32> a = 1; }",
        "message M { oneof o { repeated int32 a = 1; } }",
        "message M { oneof o { optional int32 a = 1; } }",
        "message Ä { int32 a = 1; }",
        "message M {",
        "]",
    ],
)
def test_other_mistakes_are_mistakes(text: str) -> None:
    """Other mistakes raise the same error as in strict parsing."""
    with pytest.raises(MalformedSchema) as strict:
        PROTOBUF.parse((P3 + text).encode(), {})
    with pytest.raises(MalformedSchema) as lenient:
        PROTOBUF.parse((P3 + text).encode(), {}, strict=False)
    assert str(lenient.value) == str(strict.value)


def test_trees_read_every_kind_of_literal() -> None:
    """Strings are joined and unescaped, integers may be hexadecimal or octal, numbers keep their spelling."""
    tree = parse_source(
        "option a = 'x\\x41\\n' \"y\"; option b = -0x1F; option c = 1.5e+3; option d = -inf; option e = '\\377';"
        "enum E { A = 0x10; B = -010; } // end"
    )
    values = [option.value for option in tree.options]
    assert values == [Quoted("xA\ny"), Word("-0x1F"), Word("1.5e+3"), Word("-inf"), Quoted("\udcff")]
    assert [value.number for item in tree.types for value in getattr(item, "values")] == [16, -8]  # noqa: B009
    for text in ("message", "message M { int32 = 1; }", "option a = ;", "'open", "message M " + "{ message M " * 200):
        with pytest.raises(SourceError):
            parse_source(text)


@pytest.mark.parametrize(
    "text",
    [
        "/*" * 100_000,
        f"option (a) = {{{' x: 1' * 200_000} }};",
        f"package {'.'.join(['p'] * 2000)}; message M {{ {''.join(f'T{i} f{i} = {i};' for i in range(1, 500))} }}",
        "message M {" * 5000,
    ],
    ids=["open comments", "repeated fields", "long package", "deep messages"],
)
def test_hostile_texts_are_refused_soon(text: str) -> None:
    """A text that protoc rejects takes little longer to reject in lenient parsing."""
    with limit_time(5), pytest.raises(MalformedSchema):
        PROTOBUF.parse((P3 + text).encode(), {}, strict=False)
