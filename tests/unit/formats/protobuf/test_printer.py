"""Printing of Protobuf: the text compiles to the same descriptor, and is readable."""

from __future__ import annotations

import base64
from importlib.util import find_spec
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from stele.core.ports import TextForm
from stele.errors import InvalidRequest
from stele.formats.protobuf import PROTOBUF, ProtobufFormat, ProtobufSchema, file_descriptor_set
from stele.formats.protobuf.canonical import descriptor_bytes, normalize_file, print_canonical
from stele.formats.protobuf.compiler import builtin_sources
from stele.formats.protobuf.model import default_json_name

HERE = Path(__file__).parent
P3 = 'syntax = "proto3";\n'


def google_sources() -> dict[str, bytes]:
    """All files of googleapis-common-protos and of the compiler, by import path."""
    spec = find_spec("google.rpc")
    assert spec is not None
    root = Path(next(iter(spec.submodule_search_locations or ()))).parents[1]
    sources = {path.relative_to(root).as_posix(): path.read_bytes() for path in (root / "google").rglob("*.proto")}
    return sources | dict(builtin_sources())


GOOGLE = google_sources()


def print_form(schema: ProtobufSchema, form: TextForm = TextForm.PRINTED) -> str:
    """The schema printed."""
    return PROTOBUF.canonical(schema, form).decode()


def stable_bytes(schema: ProtobufSchema) -> bytes:
    """Return the sorted file, with options read by its own extensions, so that all spellings of an option are equal."""
    data = FileDescriptorSet(file=[normalize_file(schema.proto)])
    try:
        kind = schema.get_message("google.protobuf.FileDescriptorSet")
    except InvalidRequest:  # no descriptor.proto, no custom options
        return data.SerializeToString(deterministic=True)
    return schema.class_of(kind).FromString(data.SerializeToString()).SerializePartialToString(deterministic=True)


def assert_lossless(source: bytes, references: dict[str, bytes], name: str = "") -> None:
    """All forms compile to the same descriptor but for order, are stable, and do not need the source text."""
    schema = PROTOBUF.parse(source, references, name=name)
    printed, normal = print_form(schema), print_form(schema, TextForm.NORMALIZED)
    canonical = PROTOBUF.parse(print_form(schema, TextForm.CANONICAL).encode(), references, name=name)
    assert print_form(canonical, TextForm.CANONICAL) == print_form(schema, TextForm.CANONICAL)
    again = PROTOBUF.parse(printed.encode(), references, name=name)
    assert stable_bytes(again) == stable_bytes(schema)
    assert print_form(again) == printed
    assert ProtobufFormat().identity_text(again) == ProtobufFormat().identity_text(schema)
    sorted_again = PROTOBUF.parse(normal.encode(), references, name=name)
    assert descriptor_bytes(sorted_again) == descriptor_bytes(schema)
    assert print_form(sorted_again, TextForm.NORMALIZED) == print_form(again, TextForm.NORMALIZED) == normal
    bare = PROTOBUF.parse(file_descriptor_set(schema).SerializeToString(), references, name=name)
    assert print_form(bare, TextForm.NORMALIZED) == normal
    expanded = PROTOBUF.parse(print_form(bare).encode(), references, name=name, strict=False)  # entries of maps
    assert stable_bytes(expanded) == stable_bytes(schema)
    assert print_form(expanded) == print_form(bare)
    assert (
        ProtobufFormat().identity_text(expanded)
        == ProtobufFormat().identity_text(bare)
        == ProtobufFormat().identity_text(schema)
    )
    assert PROTOBUF.fingerprints(bare) == PROTOBUF.fingerprints(again) == PROTOBUF.fingerprints(schema)


@pytest.mark.parametrize("name", sorted(GOOGLE))
def test_published_files_survive(name: str) -> None:
    """Every file Google publishes is printed without loss."""
    assert_lossless(GOOGLE[name], {path: source for path, source in GOOGLE.items() if path != name}, name)


@pytest.mark.parametrize("path", sorted((HERE / "data").glob("*.proto")), ids=lambda path: path.stem)
def test_difficult_files_survive(path: Path) -> None:
    """Groups, interleaved nested types, editions features, all kinds of option values and defaults are kept."""
    assert_lossless(path.read_bytes(), {})


def test_the_layout() -> None:
    """The printed text keeps order and spelling, and has the blank lines and brackets people expect."""
    source = b"""
    syntax = 'proto3'  ;  package a.b; // comment
    option java_package = 'x'; import "google/protobuf/timestamp.proto";
    option java_multiple_files = true;
    enum Kind { UNKNOWN = 0; /* note */ KNOWN = 1 [deprecated = true]; }
    message Order { reserved 9, 20 to 29; reserved "old";
      option deprecated = true;
      a.b.Kind kind = 2; .a.b.Kind other=3; string id = 1 [ json_name="ID" , deprecated=true ] ;
      oneof what { int32 x = 4; Line y = 5; }
      map < string , Line > lines = 6;
      message Line { google . protobuf.Timestamp at = 1; repeated double values = 2; optional bool sure = 3; }
      message Empty { }
    }
    service Orders { rpc Get(Order) returns (stream Order) {} rpc Put (stream Order) returns (Order) {
      option idempotency_level = IDEMPOTENT; } }
    """
    assert print_form(PROTOBUF.parse(source, {})) == (HERE / "data" / "layout.txt").read_text()


def test_a_printed_text_stays_as_it_is() -> None:
    """Printing is idempotent on text that is laid out already."""
    wanted = (HERE / "data" / "layout.txt").read_text()
    assert print_form(PROTOBUF.parse(wanted.encode(), {})) == wanted


def test_normalizing_forgets_style_only() -> None:
    """Order of fields, imports and options, and spelling, do not change the normalized text or digests."""
    one = P3 + (
        'package p; import "google/protobuf/any.proto"; import "google/protobuf/empty.proto";'
        "option java_package = 'x'; option go_package = 'y';"
        "message A { int32 a = 1; B b = 2; oneof o { int32 c = 3; int32 d = 5; } optional int32 e = 4; message B {} }"
        "enum E { X = 0; Y = 1; } enum D { U = 0; }"
    )
    two = P3 + (
        'package p; option go_package = "y"; import "google/protobuf/empty.proto"; option java_package = "x";'
        'import "google/protobuf/any.proto";'
        "message A { message B {} optional int32 e = 4; oneof o { int32 d = 5; int32 c = 3; } .p.A.B b = 2; "
        "int32 a = 1; }"
        "enum E { X = 0; Y = 1; } enum D { U = 0; }"
    )
    left, right = (PROTOBUF.parse(source.encode(), {}) for source in (one, two))
    assert print_form(left) != print_form(right)
    assert print_form(left, TextForm.NORMALIZED) == print_form(right, TextForm.NORMALIZED)
    assert print_form(left, TextForm.CANONICAL) == print_form(right, TextForm.CANONICAL)
    assert PROTOBUF.fingerprints(left) == PROTOBUF.fingerprints(right)
    moved = PROTOBUF.parse(
        one.replace(" enum D { U = 0; }", "").replace("enum E", "enum D { U = 0; } enum E").encode(), {}
    )
    assert PROTOBUF.fingerprints(moved) == PROTOBUF.fingerprints(left)
    for changed in (one.replace("a = 1", "a = 7"), one.replace("int32 a", "int64 a"), one.replace("'x'", "'z'")):
        other = PROTOBUF.parse(changed.encode(), {})
        assert PROTOBUF.fingerprints(other)["sha256"] != PROTOBUF.fingerprints(left)["sha256"]


def test_a_schema_is_normalized_once() -> None:
    """All digests share one canonical text: making it is most of what a giant schema costs."""
    schema = PROTOBUF.parse((P3 + "message A { int32 a = 1; }").encode(), {})
    assert print_canonical(schema) is print_canonical(schema)


def test_normalizing_keeps_the_order_of_messages() -> None:
    """Normalization keeps the order of messages, because frames refer to messages by position."""
    one, two = (
        PROTOBUF.parse((P3 + body).encode(), {}) for body in ("message A {} message B {}", "message B {} message A {}")
    )
    assert print_form(one, TextForm.NORMALIZED) != print_form(two, TextForm.NORMALIZED)


def test_normalizing_keeps_the_first_enum_value() -> None:
    """The first value is the default of a closed enum; the rest is sorted, aliases keep their order."""
    schema = PROTOBUF.parse(b"enum E { option allow_alias = true; B = 2; Z = 9; A = 1; A2 = 1; B2 = 2; }", {})
    assert [value.name for value in normalize_file(schema.proto).enum_type[0].value] == ["B", "B2", "A", "A2", "Z"]


def test_imports_count_in_the_descriptor_digest_only() -> None:
    """The same text over another import has the same text digest and another descriptor digest."""
    source = (P3 + 'import "x.proto"; message A { X x = 1; }').encode()
    one, two = (
        PROTOBUF.fingerprints(PROTOBUF.parse(source, {"x.proto": (P3 + f"message X {{ {kind} v = 1; }}").encode()}))
        for kind in ("int32", "int64")
    )
    assert one["sha256"] == two["sha256"]
    assert one["md5"] == two["md5"]
    assert one["descriptor"] != two["descriptor"]
    assert [len(one[kind]) for kind in ("md5", "sha256", "descriptor")] == [16, 32, 32]


def test_the_own_name_is_no_part_of_the_digests() -> None:
    """The file name of a schema does not change its digests."""
    one, two = (PROTOBUF.parse((P3 + "message A {}").encode(), {}, name=name) for name in ("", "b/c.proto"))
    assert PROTOBUF.fingerprints(one) == PROTOBUF.fingerprints(two)


def test_rendered_styles() -> None:
    """serialized, descriptor_set, json hold the descriptor; ignore_extensions drops some; others are unknown."""
    source = P3 + (
        'package p; import "google/protobuf/descriptor.proto"; extend google.protobuf.FieldOptions { string '
        "tag = 50000; }"
        "message A { int32 x = 1 [(tag) = 'pii', deprecated = true]; }"
    )
    schema = PROTOBUF.parse(source.encode(), {}, name="a.proto")
    serialized = PROTOBUF.render(schema, "serialized")
    assert serialized is not None
    assert FileDescriptorProto.FromString(base64.b64decode(serialized)) == schema.proto
    whole = PROTOBUF.render(schema, "descriptor_set")
    assert whole is not None
    assert [file.name for file in FileDescriptorSet.FromString(base64.b64decode(whole)).file] == [
        "google/protobuf/descriptor.proto",
        "a.proto",
    ]
    assert '"message_type":' in (PROTOBUF.render(schema, "json") or "")
    assert PROTOBUF.render(schema, "ignore_extensions") == P3 + (
        'package p;\n\nimport "google/protobuf/descriptor.proto";\n\n'
        "message A {\n  int32 x = 1 [deprecated = true];\n}\n"
    )
    assert PROTOBUF.render(schema, "resolved") is None


def test_tabs_and_wide_characters_do_not_shift_names() -> None:
    """Type names are found in the source at the right position after tabs and wide characters."""
    source = P3.encode() + "package p; message Föö {}".replace("ö", "o").encode()
    source += "\n/* ü */\tmessage A {\t/* é\t */\tp.Foo\tx\t=\t1;\tmap<string,\tFoo>\ty = 2; }\n".encode()
    printed = print_form(PROTOBUF.parse(source, {}))
    assert "  p.Foo x = 1;\n  map<string, Foo> y = 2;\n" in printed


@pytest.mark.parametrize(
    ("name", "json_name"),
    [("foo_bar", "fooBar"), ("foo__bar_1", "fooBar1"), ("_foo", "Foo"), ("fooBar", "fooBar"), ("A_b", "AB")],
)
def test_usual_json_names(name: str, json_name: str) -> None:
    """The JSON name a compiler gives is recognised, so that only other ones are printed."""
    assert default_json_name(name) == json_name
    schema = PROTOBUF.parse((P3 + f"message A {{ int32 {name} = 1; }}").encode(), {})
    assert schema.proto.message_type[0].field[0].json_name == json_name
    assert "json_name" not in print_form(schema)
