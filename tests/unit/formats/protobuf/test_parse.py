"""Parsing: shapes of documents, references, built-in imports, and what is refused."""

from __future__ import annotations

import base64
import time

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from tests.support.time_limit import limit_time

from stele.core.ports import Parsed, TextForm
from stele.errors import InvalidRequest, MalformedSchema, UnresolvedReference
from stele.formats.protobuf import PROTOBUF, file_descriptor_set, indexes_of, message_by_indexes, message_class
from stele.formats.protobuf.compiler import builtin_sources
from stele.formats.protobuf.parse import MAX_BYTES

HEAD = b'syntax = "proto3";\n'
SIMPLE = HEAD + b"package a.b;\nmessage First { string name = 1; }\nmessage Second {}\n"


def test_type_name_is_the_first_message() -> None:
    """The type of a schema is the full name of its first top-level message, '' without one."""
    parsed = PROTOBUF.parse(SIMPLE, {})
    assert isinstance(parsed, Parsed)
    assert parsed.type_name == "a.b.First"
    assert PROTOBUF.parse(HEAD + b"enum E { X = 0; }", {}).type_name == ""
    assert PROTOBUF.parse(b"", {}).type_name == ""


@pytest.mark.parametrize(
    "text",
    [
        b"message A { required int32 x = 1; }",
        b'syntax = "proto2"; message A { optional group G = 1 { optional int32 x = 1; } }',
        HEAD + b"message A { optional int32 x = 1; }",
        b'edition = "2023"; message A { int32 x = 1 [features.field_presence = LEGACY_REQUIRED]; }',
        b'edition = "2024"; export message A { int32 x = 1; }',
        b"\xef\xbb\xbf" + HEAD + b"message A { int32 x = 1; }",
    ],
)
def test_every_syntax_is_read(text: bytes) -> None:
    """proto2, proto3, editions and a byte order mark are understood."""
    assert PROTOBUF.parse(text, {}).type_name == "A"


def test_equal_sources_are_parsed_once() -> None:
    """The cache gives the same object for the same text and references, another for other references."""
    text = HEAD + b'import "x.proto"; message A { X x = 1; }'
    first = PROTOBUF.parse(text, {"x.proto": HEAD + b"message X { int32 a = 1; }"})
    assert PROTOBUF.parse(text, {"x.proto": HEAD + b"message X { int32 a = 1; }"}) is first
    assert PROTOBUF.parse(text, {"x.proto": HEAD + b"message X { int64 a = 1; }"}) is not first


def test_a_serialized_descriptor_is_a_schema_too() -> None:
    """A FileDescriptorProto or FileDescriptorSet, plain or in base64, gives the schema its text gives."""
    parsed = PROTOBUF.parse(SIMPLE, {})
    text = PROTOBUF.canonical(parsed, TextForm.NORMALIZED)
    file = parsed.proto.SerializeToString()
    whole = file_descriptor_set(parsed).SerializeToString()
    for document in (file, whole, base64.b64encode(file), base64.b64encode(whole), base64.encodebytes(file)):
        assert PROTOBUF.canonical(PROTOBUF.parse(document, {}), TextForm.NORMALIZED) == text


def test_a_descriptor_set_brings_its_imports() -> None:
    """The root of a FileDescriptorSet is the file that no other imports, at any position; the others are references."""
    parsed = PROTOBUF.parse(
        HEAD + b'import "x.proto"; message A { X x = 1; }', {"x.proto": HEAD + b"message X {}"}, name="a.proto"
    )
    files = list(parsed.files)
    for order in (files, files[::-1]):
        again = PROTOBUF.parse(FileDescriptorSet(file=order).SerializeToString(), {})
        assert again.proto == parsed.proto


def test_rendered_serialized_is_accepted_with_serialized_references() -> None:
    """What clients fetch with format=serialized can be registered again, references included."""
    lib = PROTOBUF.parse(HEAD + b"package l; message X { int32 a = 1; }", {}, name="x.proto")
    sources = {"x.proto": PROTOBUF.canonical(lib, TextForm.PRINTED)}
    main = PROTOBUF.parse(HEAD + b'import "x.proto"; message A { l.X x = 1; }', sources)
    serialized = {"x.proto": (PROTOBUF.render(lib, "serialized") or "").encode()}
    again = PROTOBUF.parse((PROTOBUF.render(main, "serialized") or "").encode(), serialized)
    assert again.proto == main.proto
    mixed = PROTOBUF.parse(PROTOBUF.canonical(main, TextForm.PRINTED), serialized)
    assert mixed.proto == main.proto


def test_references_may_use_each_other() -> None:
    """Transitive, public and nested-folder imports resolve by path."""
    parsed = PROTOBUF.parse(
        HEAD + b'import "lib/b.proto"; message A { x.C c = 1; x.B b = 2; }',
        {
            "lib/deep/c.proto": HEAD + b"package x; message C {}",
            "lib/b.proto": HEAD + b'package x; import public "lib/deep/c.proto"; message B { C c = 1; }',
            "never/used.proto": HEAD + b"message Unused {}",
        },
        name="main.proto",
    )
    assert [file.name for file in parsed.files] == ["lib/deep/c.proto", "lib/b.proto", "main.proto"]


def test_a_reference_name_needs_no_suffix() -> None:
    """Any import path is allowed as a reference name, as in other registries."""
    parsed = PROTOBUF.parse(HEAD + b'import "simple"; message A { S s = 1; }', {"simple": HEAD + b"message S {}"})
    assert parsed.get_message("S").full_name == "S"


@pytest.mark.parametrize("path", sorted(builtin_sources()))
def test_built_in_imports(path: str) -> None:
    """Every built-in file can be imported without a reference."""
    parsed = PROTOBUF.parse(HEAD + f'import "{path}"; message A {{}}'.encode(), {})
    assert path in {file.name for file in parsed.files}


def test_confluent_files_have_the_agreed_numbers() -> None:
    """Options written with confluent/meta.proto and decimals carry the field numbers other tools expect."""
    parsed = PROTOBUF.parse(
        HEAD
        + b'import "confluent/meta.proto"; import "confluent/type/decimal.proto"; message A {'
        + b' confluent.type.Decimal d = 1 [(confluent.field_meta) = { doc: "x", params: [{ key: "k", value: "v" '
        + b"}] }]; }",
        {},
    )
    options = parsed.proto.message_type[0].field[0].options.SerializeToString()
    assert options == b"\x82\x44\x0b\x0a\x01x\x12\x06\x0a\x01k\x12\x01v"
    decimal = parsed.get_message("confluent.type.Decimal")
    assert {field.name: field.number for field in decimal.fields} == {"value": 1, "precision": 2, "scale": 3}


def test_a_reference_may_replace_a_built_in_file() -> None:
    """A file given as a reference wins over the built-in one of that path."""
    own = HEAD + b"package google.type; message Date { string text = 1; }"
    parsed = PROTOBUF.parse(
        HEAD + b'import "google/type/date.proto"; message A { google.type.Date d = 1; }',
        {"google/type/date.proto": own},
    )
    assert [field.name for field in parsed.get_message("google.type.Date").fields] == ["text"]


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        (HEAD + b"message A {\n  Foo x = 1;\n}", 3, 3, '"Foo" is not defined'),
        (HEAD + b"message A { int32 x = 1; int32 y = 1; }", 2, 36, "already been used"),
        (HEAD + b"message A { int32 x = ; }", 2, 23, "Expected field number"),
        (HEAD + b"message A { \x01 }", 2, 13, "control characters"),
        (HEAD + b"message A {", 2, 12, "end of input"),
        (HEAD + b"/* for ever", 2, 12, "End-of-file inside block comment"),
        (HEAD + b'message A { string s = "', 2, 25, "Unexpected end of string"),
        (b'edition = "1999"; message A {}', 1, 11, "1999"),
        (b"{}", 1, 1, "Expected top-level statement"),
        (b"QUJDREVGRw==", 1, 1, "Expected top-level statement"),
        (b"\n\x05\x00\x01\x02", 2, 1, "control characters"),
    ],
)
def test_malformed_text_has_a_place(text: bytes, line: int, column: int, part: str) -> None:
    """Errors have the position and the reason."""
    with pytest.raises(MalformedSchema) as caught:
        PROTOBUF.parse(text, {})
    assert (caught.value.line, caught.value.column) == (line, column)
    assert part in caught.value.why
    assert not isinstance(caught.value, UnresolvedReference)


def test_an_unknown_import_is_an_unresolved_reference() -> None:
    """The missing import is named with its place, also when a reference needs it."""
    with pytest.raises(
        UnresolvedReference, match=r"line 2, column 1: the import 'no/where\.proto' is neither"
    ) as caught:
        PROTOBUF.parse(HEAD + b'import "no/where.proto"; message A {}', {})
    assert (caught.value.line, caught.value.column) == (2, 1)
    with pytest.raises(UnresolvedReference, match=r"'gone\.proto', needed by 'x\.proto',"):
        PROTOBUF.parse(
            HEAD + b'import "x.proto"; message A {}', {"x.proto": HEAD + b'import "gone.proto"; message X {}'}
        )


def test_an_error_in_a_reference_names_it() -> None:
    """A malformed reference is reported as such, not as an error of the document."""
    with pytest.raises(MalformedSchema, match=r"in the imported file 'x\.proto'"):
        PROTOBUF.parse(HEAD + b'import "x.proto"; message A {}', {"x.proto": b"nonsense"})


@pytest.mark.parametrize("path", ["../x.proto", "/etc/passwd", "a/../../x.proto", "./x.proto", "a//b", "\\x", ""])
def test_paths_never_leave_the_workplace(path: str) -> None:
    """Neither imports, nor references, nor the document's name reach files outside."""
    reference = {path: HEAD + b"message X {}"}
    with pytest.raises(MalformedSchema):
        PROTOBUF.parse(HEAD + b'import "' + path.replace("\\", "\\\\").encode() + b'"; message A {}', reference)
    assert PROTOBUF.parse(SIMPLE, reference, name=path).proto.name == "default.proto"


@pytest.mark.parametrize("name", ["--python_out=.", "@/etc/passwd", "-I/"])
def test_a_name_cannot_be_an_option_of_the_compiler(name: str) -> None:
    """A document's name that looks like a command-line option or an argument file is replaced, in descriptors too."""
    assert PROTOBUF.parse(SIMPLE, {}, name=name).proto.name == "default.proto"
    file = FileDescriptorProto(name=name, syntax="proto3")
    file.message_type.add(name="A")
    assert PROTOBUF.parse(file.SerializeToString(), {}).proto.name == "default.proto"


def test_names_that_need_one_path_twice_are_refused() -> None:
    """Names that make a reference both a file and a folder are rejected."""
    with pytest.raises(MalformedSchema, match="stored under its name"):
        PROTOBUF.parse(SIMPLE, {"x": HEAD, "x/y": HEAD})


@pytest.mark.parametrize(
    "text",
    [
        HEAD + b"message A {" * 5000 + b"}" * 5000,
        HEAD + b"message A {" * 50_000,
        b'import "google/protobuf/descriptor.proto"; extend google.protobuf.MessageOptions { optional A a = 50001; }'
        b"message A { optional A a = 1; option (a) = " + b"{a:" * 5000 + b"}" * 5000 + b"; }",
        HEAD + b"message A { int32 a = 1 [" + b"(" * 100_000 + b"]; }",
        HEAD + b"// " + b"x" * MAX_BYTES,
        HEAD + b"/*" * 500_000,
        HEAD + b"message A { " + b"int32 a = 1; " * 5000 + b"}",
        b"\x00" * 1000,
        b"\n" + b"\x0a\xff" * 100_000,
        b"A" * 1_000_000,
        b"\xff\xfe" * 1000,
    ],
)
def test_hostile_input_is_refused_in_time(text: bytes) -> None:
    """Depth, size, garbage and inputs that crash the compiler end in MalformedSchema within seconds."""
    with limit_time(30, time.monotonic), pytest.raises(MalformedSchema) as caught:
        PROTOBUF.parse(text, {})
    assert len(str(caught.value)) < 1000


def test_a_circle_of_imports_is_refused() -> None:
    """Files that import each other are an error, not a hang."""
    with pytest.raises(MalformedSchema, match="recursively imports itself"):
        PROTOBUF.parse(
            HEAD + b'import "b.proto"; message A {}',
            {"b.proto": HEAD + b'import "a.proto"; message B {}', "a.proto": SIMPLE},
            name="a.proto",
        )


def test_message_indexes_name_messages() -> None:
    """Message indexes and full names are converted to each other at every depth."""
    parsed = PROTOBUF.parse(
        HEAD + b"package p; message A { map<string, B> m = 1; message B { message C {} } } message D { message E {} }",
        {},
    )
    compiled = {"p.A.B": [0, 1], "p.A.B.C": [0, 1, 0]}  # a compiler puts the entries of the map before B
    assert {name: message_by_indexes(parsed, path) for name, path in compiled.items()} == {
        name: name for name in compiled
    }
    paths = {"p.A": [0], "p.A.B": [0, 0], "p.A.B.C": [0, 0, 0], "p.D": [1], "p.D.E": [1, 0]}
    for name, path in paths.items():
        assert message_by_indexes(parsed, path) == name
        assert indexes_of(parsed, name) == path
        assert indexes_of(parsed, "." + name) == path
    assert message_by_indexes(parsed, []) == "p.A"
    for wrong in ([2], [0, 2], [0, 1, 0, 0], [-1]):
        with pytest.raises(InvalidRequest, match="no message at the indexes"):
            message_by_indexes(parsed, wrong)
    with pytest.raises(InvalidRequest, match="no message named"):
        indexes_of(parsed, "p.Nope")


def test_indexes_belong_to_the_file_itself() -> None:
    """A message of an import has no position in the schema."""
    parsed = PROTOBUF.parse(HEAD + b'import "google/protobuf/any.proto"; message A {}', {})
    with pytest.raises(InvalidRequest, match="declared in the import"):
        indexes_of(parsed, "google.protobuf.Any")


def test_message_classes_are_stable_and_apart() -> None:
    """One schema gives one class per message; another schema with the same names does not interfere."""
    one = PROTOBUF.parse(HEAD + b"package q; message A { B b = 1; message B { int32 x = 1; } }", {})
    two = PROTOBUF.parse(HEAD + b"package q; message A { B b = 1; message B { string x = 1; } }", {})
    assert message_class(one) is message_class(one, "q.A")
    assert message_class(one, "q.A.B")(x=5).SerializeToString() == b"\x08\x05"
    assert message_class(two, "q.A.B")(x="5").SerializeToString() == b"\x0a\x015"
    with pytest.raises(InvalidRequest):
        message_class(one, "q.C")
    with pytest.raises(InvalidRequest, match="declares no message"):
        message_class(PROTOBUF.parse(HEAD, {}))


def test_a_descriptor_set_copy_is_the_callers() -> None:
    """Changing what file_descriptor_set returns does not change the schema."""
    parsed = PROTOBUF.parse(SIMPLE, {})
    file_descriptor_set(parsed).file[0].ClearField("message_type")
    assert parsed.proto.message_type
    assert parsed.type_name == "a.b.First"
