"""The rulesets `buf:…`, rule by rule, and what counts as a module."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.time_limit import limit_time
from tests.unit.formats.protobuf.buf_oracle import broken_rules, rules_by_category

from stele.core.findings import Finding
from stele.errors import UnknownRuleset
from stele.formats.protobuf import PROTOBUF, ProtobufSchema, check_modules
from stele.formats.protobuf.buf import declarations, fields
from stele.formats.protobuf.buf.rules import CATEGORIES, CATEGORIES_OF
from stele.formats.protobuf.model import Ranges, format_ranges

P2 = 'syntax = "proto2";\n'
P3 = 'syntax = "proto3";\n'
E23 = 'edition = "2023";\nimport "google/protobuf/cpp_features.proto";\nimport "google/protobuf/java_features.proto";\n'
FAMILIES = [
    declarations.MODULE_RULES,
    declarations.FILE_RULES,
    declarations.MESSAGE_RULES,
    fields.RULES,
    declarations.ENUM_RULES,
    declarations.SERVICE_RULES,
]


def parse(text: str, name: str = "", **references: str) -> ProtobufSchema:
    """A schema; keyword x stands for the reference x.proto."""
    return PROTOBUF.parse(
        text.encode(), {f"{key}.proto": value.encode() for key, value in references.items()}, name=name
    )


def check(new: ProtobufSchema, old: ProtobufSchema, category: str) -> list[Finding]:
    """Return what new breaks compared with old."""
    return PROTOBUF.check(new, old, f"buf:{category}")


def broken_rules_of(new: ProtobufSchema, old: ProtobufSchema, *categories: str) -> set[str]:
    """The rules of some categories (all, when none is named) that new breaks."""
    return {finding.rule for category in categories or CATEGORIES for finding in check(new, old, category)}


def message(*members: str) -> str:
    """A message A."""
    return f"message A {{ {' '.join(members)} }}"


def test_the_rules_are_those_of_buf() -> None:
    """Every rule of the program is implemented once, and belongs to the categories the program lists."""
    ids = [rule for family in FAMILIES for rule in family]
    assert sorted(ids) == sorted(CATEGORIES_OF)
    assert rules_by_category() == {
        name: {rule for rule, categories in CATEGORIES_OF.items() if name in categories} for name in CATEGORIES
    }


def test_rulesets_come_after_the_default() -> None:
    """The rulesets are listed behind `confluent`, which stays the default; other names are refused."""
    names = ["confluent@1", *(f"buf:{category}@1" for category in CATEGORIES)]
    assert list(PROTOBUF.rulesets)[: len(names)] == names
    with pytest.raises(UnknownRuleset):
        PROTOBUF.check(parse(P3), parse(P3), "buf:STRICT")


CASES = [
    # rule, head, old, new, path
    ("MESSAGE_NO_DELETE", P3, "message A {} message B {}", "message A {}", "B"),
    ("MESSAGE_NO_DELETE", P3, message("map<string, int32> m = 1;"), message("reserved 1; reserved 'm';"), "A.MEntry"),
    ("ENUM_NO_DELETE", P3, "enum E { Z = 0; } message A { enum F { Y = 0; } }",
     "enum E { Z = 0; } message A {}", "A.F"),
    ("SERVICE_NO_DELETE", P3, "service S {}", "", "S"),
    ("EXTENSION_NO_DELETE", P2, "message A { extensions 9; extend A { optional int32 x = 9; } }",
     "message A { extensions 9; }", "A.x"),
    ("FILE_SAME_PACKAGE", P3, "package a;", "package b;", "default.proto"),
    ("FILE_SAME_SYNTAX", "", P2, P3, "default.proto"),
    ("FILE_SAME_GO_PACKAGE", P3, "option go_package = 'x/a';", "option go_package = 'x/b';", "default.proto"),
    ("FILE_SAME_OPTIMIZE_FOR", P3, "", "option optimize_for = CODE_SIZE;", "default.proto"),
    ("FILE_SAME_CC_ENABLE_ARENAS", P3, "", "option cc_enable_arenas = false;", "default.proto"),
    ("FILE_SAME_JAVA_MULTIPLE_FILES", P3, "option java_multiple_files = true;", "", "default.proto"),
    ("FIELD_NO_DELETE", P3, message("int32 x = 1;"), message("reserved 1; reserved 'x';"), "A.x"),
    ("FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED", P3, message("int32 x = 1;"), message("reserved 'x';"), "A.x"),
    ("FIELD_NO_DELETE_UNLESS_NAME_RESERVED", P3, message("int32 x = 1;"), message("reserved 1;"), "A.x"),
    ("FIELD_SAME_TYPE", P3, message("int32 x = 1;"), message("int64 x = 1;"), "A.x"),
    ("FIELD_SAME_TYPE", E23, message("A x = 1;"), message("A x = 1 [features.message_encoding = DELIMITED];"), "A.x"),
    ("FIELD_WIRE_COMPATIBLE_TYPE", P3, message("bytes x = 1;"), message("string x = 1;"), "A.x"),
    ("FIELD_WIRE_COMPATIBLE_TYPE", P3, message("map<string, int32> x = 1;"), message("map<string, bool> x = 1;"), None),
    ("FIELD_WIRE_COMPATIBLE_TYPE", P3, message("map<string, int32> x = 1;"), message("map<string, float> x = 1;"),
     "A.XEntry.value"),
    ("FIELD_WIRE_JSON_COMPATIBLE_TYPE", P3, message("int32 x = 1;"), message("int64 x = 1;"), "A.x"),
    ("FIELD_SAME_CARDINALITY", P3, message("int32 x = 1;"), message("optional int32 x = 1;"), "A.x"),
    ("FIELD_WIRE_COMPATIBLE_CARDINALITY", P3, message("int32 x = 1;"), message("repeated int32 x = 1;"), "A.x"),
    ("FIELD_WIRE_COMPATIBLE_CARDINALITY", E23, message("int32 x = 1;"),
     message("int32 x = 1 [features.field_presence = LEGACY_REQUIRED];"), "A.x"),
    ("FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY", P3, message("map<string, int32> x = 1;"),
     message("message XEntry { string key = 1; int32 value = 2; } repeated XEntry x = 1;"), "A.x"),
    ("FIELD_SAME_NAME", P3, message("int32 x = 1;"), message("int32 y = 1;"), "A.y"),
    ("FIELD_SAME_NAME", P2, message("extensions 9;") + "extend A { optional int32 x = 9; }",
     message("extensions 9; extend A { optional int32 x = 9; }"), "A.x"),
    ("FIELD_SAME_JSON_NAME", P3, message("int32 x = 1;"), message("int32 x = 1 [json_name = 'y'];"), "A.x"),
    ("FIELD_SAME_DEFAULT", P2, message("optional int32 x = 1;"), message("optional int32 x = 1 [default = 5];"), "A.x"),
    ("FIELD_SAME_DEFAULT", P2, "enum E { P = 1; Q = 2; } message A { optional E x = 1; }",
     "enum E { Q = 2; P = 1; } message A { optional E x = 1; }", "A.x"),
    ("FIELD_SAME_ONEOF", P3, message("oneof o { int32 x = 1; }"), message("oneof q { int32 x = 1; }"), "A.x"),
    ("ONEOF_NO_DELETE", P3, message("oneof o { int32 x = 1; }"), message("int32 x = 1;"), "A.o"),
    ("FIELD_SAME_JSTYPE", P3, message("int64 x = 1;"), message("int64 x = 1 [jstype = JS_STRING];"), "A.x"),
    ("FIELD_SAME_CPP_STRING_TYPE", P3, message("string x = 1;"), message("string x = 1 [ctype = CORD];"), "A.x"),
    ("FIELD_SAME_CPP_STRING_TYPE", E23, message("string x = 1;"),
     message("string x = 1 [features.(pb.cpp).string_type = CORD];"), "A.x"),
    ("FIELD_SAME_JAVA_UTF8_VALIDATION", P2, message("optional string x = 1;"),
     "option java_string_check_utf8 = true;" + message("optional string x = 1;"), "A.x"),
    ("FIELD_SAME_JAVA_UTF8_VALIDATION", E23, "option features.utf8_validation = NONE;" + message("string x = 1;"),
     "option features.utf8_validation = NONE; option features.(pb.java).utf8_validation = VERIFY;"
     + message("string x = 1;"), "A.x"),
    ("FIELD_SAME_UTF8_VALIDATION", E23, message("string x = 1;"),
     message("string x = 1 [features.utf8_validation = NONE];"), "A.x"),
    ("MESSAGE_SAME_REQUIRED_FIELDS", P2, message(), message("required int32 x = 1;"), "A.x"),
    ("MESSAGE_SAME_REQUIRED_FIELDS", P2, message("required int32 x = 1;"), message("optional int32 x = 1;"), "A.x"),
    ("MESSAGE_SAME_JSON_FORMAT", E23, message(), "option features.json_format = LEGACY_BEST_EFFORT;" + message(), "A"),
    ("MESSAGE_NO_REMOVE_STANDARD_DESCRIPTOR_ACCESSOR", P3, message(),
     message("option no_standard_descriptor_accessor = true;"), "A"),
    ("RESERVED_MESSAGE_NO_DELETE", P3, message("reserved 4 to 9;"), message("reserved 4 to 6, 8 to 9;"), "A"),
    ("RESERVED_MESSAGE_NO_DELETE", P3, message("reserved 'x';"), message(), "A"),
    ("EXTENSION_MESSAGE_NO_DELETE", P2, message("extensions 9 to max;"), message("extensions 9 to 99;"), "A"),
    ("ENUM_VALUE_NO_DELETE", P3, "enum E { Z = 0; X = 1; }", "enum E { Z = 0; reserved 1; reserved 'X'; }", "E.X"),
    ("ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED", P3, "enum E { Z = 0; X = 1; }",
     "enum E { Z = 0; reserved 'X'; }", "E.X"),
    ("ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED", P3, "enum E { option allow_alias = true; Z = 0; X = 1; Y = 1; }",
     "enum E { Z = 0; reserved 1; reserved 'X'; }", "E.X"),
    ("ENUM_VALUE_SAME_NAME", P3, "enum E { Z = 0; X = 1; }", "enum E { Z = 0; Y = 1; }", "E.Y"),
    ("ENUM_SAME_TYPE", E23, "enum E { Z = 0; }", "enum E { option features.enum_type = CLOSED; Z = 0; }", "E"),
    ("ENUM_SAME_JSON_FORMAT", E23, "enum E { Z = 0; }",
     "enum E { option features.json_format = LEGACY_BEST_EFFORT; Z = 0; }", "E"),
    ("RESERVED_ENUM_NO_DELETE", P3, "enum E { Z = 0; reserved -5 to -1; }", "enum E { Z = 0; reserved -5, -1; }", "E"),
    ("RPC_NO_DELETE", P3, "message A {} service S { rpc R (A) returns (A); }", "message A {} service S {}", "S.R"),
    ("RPC_SAME_REQUEST_TYPE", P3, "message A {} message B {} service S { rpc R (A) returns (A); }",
     "message A {} message B {} service S { rpc R (B) returns (A); }", "S.R"),
    ("RPC_SAME_RESPONSE_TYPE", P3, "message A {} message B {} service S { rpc R (A) returns (A); }",
     "message A {} message B {} service S { rpc R (A) returns (B); }", "S.R"),
    ("RPC_SAME_CLIENT_STREAMING", P3, "message A {} service S { rpc R (A) returns (A); }",
     "message A {} service S { rpc R (stream A) returns (A); }", "S.R"),
    ("RPC_SAME_SERVER_STREAMING", P3, "message A {} service S { rpc R (A) returns (A); }",
     "message A {} service S { rpc R (A) returns (stream A); }", "S.R"),
    ("RPC_SAME_IDEMPOTENCY_LEVEL", P3, "message A {} service S { rpc R (A) returns (A); }",
     "message A {} service S { rpc R (A) returns (A) { option idempotency_level = IDEMPOTENT; } }", "S.R"),
    ("PACKAGE_NO_DELETE", P3, "package a;", "package b;", "a"),
    ("PACKAGE_MESSAGE_NO_DELETE", P3, "package a; message A {} message B {}", "package a; message A {}", "a.B"),
    ("PACKAGE_SERVICE_NO_DELETE", P3, "package a; service S {}", "package a;", "a.S"),
    ("PACKAGE_ENUM_NO_DELETE", P3, "enum E { Z = 0; } enum F { Y = 0; }", "enum E { Z = 0; }", "F"),
    ("PACKAGE_ENUM_NO_DELETE", P3, "enum F { Y = 0; }", "", None),
    ("PACKAGE_EXTENSION_NO_DELETE", P2,
     message("extensions 8, 9;") + "extend A { optional int32 x = 8; optional int32 y = 9; }",
     message("extensions 8, 9;") + "extend A { optional int32 x = 8; }", "y"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "head", "old", "new", "path"), CASES)
def test_rules(rule: str, head: str, old: str, new: str, path: str | None) -> None:
    """Each rule reports its change at the changed element (path None: no finding), with a reason and a fix."""
    (category, *_) = CATEGORIES_OF[rule]
    findings = [finding for finding in check(parse(head + new), parse(head + old), category) if finding.rule == rule]
    assert [finding.path for finding in findings] == ([] if path is None else [path])
    assert all((finding.reader or finding.writer) and finding.why and finding.fix for finding in findings)


def test_the_cases_agree_with_buf(tmp_path: Path) -> None:
    """The `buf` program reports the same rules for all cases, in one call with a package for each."""
    texts = {
        number: (f"{head}{new}\npackage p{number};", f"{head}{old}\npackage p{number};")
        for number, (_, head, old, new, _) in enumerate(CASES)
        if "package" not in old
    }
    expected = broken_rules(
        {n: ({f"p{n}/a.proto": new}, {f"p{n}/a.proto": old}) for n, (new, old) in texts.items()}, tmp_path
    )
    for number, (new, old) in texts.items():
        assert broken_rules_of(parse(new), parse(old)) == expected[number], CASES[number]
        assert (CASES[number][0] in expected[number]) == (CASES[number][4] is not None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("package a;", "package b;"),
        ("", "package a;"),
        ("message A {} message B {}", "message A {}"),
        ("package a; message A {} enum E { Z = 0; } service S {}", "package a;"),
        ("package a; message A {} enum E { Z = 0; } service S {}", "package a; message B {} enum F { Z = 0; }"),
    ],
)
def test_packages_agree_with_buf(old: str, new: str, tmp_path: Path) -> None:
    """The `buf` program reports the same rules when packages change, are removed, or lose all elements of a kind."""
    expected = broken_rules({1: ({"p1/a.proto": P3 + new}, {"p1/a.proto": P3 + old})}, tmp_path)
    assert broken_rules_of(parse(P3 + new), parse(P3 + old)) == expected[1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("string x = 1;", "bytes x = 1;"),
        ("int32 x = 1;", "uint64 x = 1;"),
        ("sint32 x = 1;", "sint64 x = 1;"),
        ("fixed32 x = 1;", "sfixed32 x = 1;"),
        ("int32 x = 1;", "optional int32 y = 1;"),
        ("int32 x = 1;", "reserved 1;"),
        ("enum E { Z = 0; } E x = 1;", "enum E { Z = 0; Y = 1; } E x = 1;"),
    ],
)
def test_wire_allows(old: str, new: str) -> None:
    """What leaves binary data readable passes WIRE, though generated code changes."""
    assert broken_rules_of(parse(P3 + message(new)), parse(P3 + message(old)), "WIRE") == set()
    assert broken_rules_of(parse(P3 + message(new)), parse(P3 + message(old)), "FILE") != set() or "enum" in old


def test_an_enum_may_move_if_it_keeps_its_values() -> None:
    """WIRE takes an enum of another scope with the same local name for the same one as long as no value is missing."""
    nested = "enum E { Z = 0; X = 1; Y = 2; }"
    old = parse(f"{P3} message A {{ enum E {{ Z = 0; X = 1; }} E x = 1; }}")
    assert broken_rules_of(parse(f"{P3} {nested} message A {{ E x = 1; }}"), old, "WIRE") == set()
    assert broken_rules_of(parse(f"{P3} enum E {{ Z = 0; }} message A {{ E x = 1; }}"), old, "WIRE") == {
        "FIELD_WIRE_COMPATIBLE_TYPE"
    }


def test_directions() -> None:
    """A new field is compatible for a new reader of old data, and a deleted one for an old reader of new data."""
    old, new = parse(P3 + message()), parse(P3 + message("int32 x = 1;"))
    assert broken_rules_of(new, old) == set()
    assert broken_rules_of(old, new, "FILE") == {"FIELD_NO_DELETE"}
    assert broken_rules_of(old, new, "WIRE") == {"FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED"}


# --- modules --------------------------------------------------------------------------------------------------------


def test_the_schemas_are_the_same_file_unless_both_have_names() -> None:
    """A name is only compared when both schemas were parsed with one."""
    texts = P3 + message()
    assert (
        broken_rules_of(parse(texts, "a.proto"), parse(texts))
        == broken_rules_of(parse(texts), parse(texts, "a.proto"))
        == set()
    )
    assert broken_rules_of(parse(texts, "a.proto"), parse(texts, "a.proto")) == set()
    assert broken_rules_of(parse(texts, "b.proto"), parse(texts, "a.proto"), "FILE") == {"FILE_NO_DELETE"}
    assert broken_rules_of(parse(texts, "b.proto"), parse(texts, "a.proto"), "PACKAGE") == set()


def test_imports_belong_to_the_module() -> None:
    """Changes in a reference count like those of the schema; a reference that is no longer used counts as deleted."""
    main = P3 + 'import "lib.proto"; message A { L x = 1; }'
    old = parse(main, lib=P3 + "message L { int32 y = 1; } message M {}")
    assert [
        finding.path for finding in check(parse(main, lib=P3 + "message L { bool y = 1; } message M {}"), old, "CSR")
    ]
    assert broken_rules_of(parse(main, lib=P3 + "message L { int32 y = 1; }"), old, "FILE") == {"MESSAGE_NO_DELETE"}
    moved = parse(P3 + 'import "bil.proto"; message A { L x = 1; }', bil=P3 + "message L { int32 y = 1; } message M {}")
    assert broken_rules_of(moved, old, "FILE") == {"FILE_NO_DELETE"}
    assert broken_rules_of(moved, old, "PACKAGE", "WIRE_JSON", "WIRE") == set()


def test_built_in_files_are_not_compared() -> None:
    """Dropping an import of a built-in file deletes nothing, yet its enums are known."""
    old = parse(P3 + 'import "google/protobuf/struct.proto"; message A { google.protobuf.NullValue x = 1; }')
    own = parse(P3 + "enum NullValue { NULL_VALUE = 0; } message A { NullValue x = 1; }")
    assert broken_rules_of(own, old, "FILE") == {"FIELD_SAME_TYPE"}
    assert broken_rules_of(own, old, "WIRE") == set()
    assert broken_rules_of(old, own, "PACKAGE") == {"FIELD_SAME_TYPE"}


def test_modules_of_several_roots() -> None:
    """Files without a common importer are compared together, and are identified by path."""
    old = [parse(P3 + "package a; message A {}", "a.proto"), parse(P3 + "package a; message B {}", "b.proto")]
    new = [parse(P3 + "package a; message A {} message B {}", "a.proto")]
    assert {finding.rule for finding in check_modules("buf:FILE", new, old)} == {"FILE_NO_DELETE"}
    assert check_modules("buf:PACKAGE", new, old) == check_modules("buf:FILE", old, old) == []
    with pytest.raises(UnknownRuleset):
        check_modules("confluent", new, old)


def test_a_descriptor_without_json_names() -> None:
    """A descriptor without JSON names is compared with the default ones."""
    schema = parse(P3 + message("int32 some_name = 1;"))
    bare = type(schema.proto).FromString(schema.proto.SerializeToString())
    bare.message_type[0].field[0].ClearField("json_name")
    assert broken_rules_of(PROTOBUF.parse(bare.SerializeToString(), {}), schema) == set()


# --- ranges ---------------------------------------------------------------------------------------------------------

SPANS = st.lists(st.tuples(st.integers(-9, 40), st.integers(0, 9)).map(lambda span: (span[0], span[0] + span[1])))


def numbers_in(spans: list[tuple[int, int]]) -> set[int]:
    """The numbers in some ranges."""
    return {number for start, end in spans for number in range(start, end + 1)}


@given(SPANS, SPANS)
def test_ranges_are_sets(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    """Difference and membership are those of the sets of numbers."""
    left = Ranges(one).difference(Ranges(two))
    assert numbers_in(left) == numbers_in(one) - numbers_in(two)
    assert all(before[1] < after[0] for before, after in pairwise(left))
    assert {number for number in range(-20, 60) if number in Ranges(one)} == numbers_in(one)


def test_ranges_as_text() -> None:
    """Ranges read as in the language, and many of them are cut short."""
    assert format_ranges([(1, 1), (4, 6), (9, 99)], 99) == "1, 4 to 6, 9 to max"
    assert format_ranges([(n, n) for n in range(0, 20, 2)], 99) == "0, 2, 4, 6, 8 and 5 more"


# --- time -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (message(*(f"reserved {n};" for n in range(1, 40000, 2))), message()),
        (message(*(f"int32 a{n} = {n};" for n in range(1, 15000))), message()),
        (
            "enum E { Z = 0; " + " ".join(f"V{n} = {n};" for n in range(1, 10000)) + " } "
            + message(*(f"E a{n} = {n};" for n in range(1, 5000))),
            message("enum E { Z = 0; " + " ".join(f"V{n} = {n};" for n in range(1, 10000)) + " }",
                    *(f"E a{n} = {n};" for n in range(1, 5000))),
        ),
    ],
    ids=["reserved", "fields", "enum"],
)  # fmt: skip
def test_hostile_sizes(old: str, new: str) -> None:
    """Thousands of ranges, fields or values are compared within seconds, not in the square of their number."""
    one, two = parse(P3 + old), parse(P3 + new)
    with limit_time(30, time.monotonic):
        for category in CATEGORIES:
            check(two, one, category)


def test_references_that_nobody_imports_are_compared() -> None:
    """Files of a module that the main file does not import are compared: enums, options, types, and deleted files."""
    main = b'syntax = "proto3"; package p.v1beta1; message M { int32 a = 1; }'
    old = {
        "e.proto": b'syntax = "proto3"; package p.v1beta1; enum E { E_A = 0; E_B = 1; }',
        "x.proto": b'syntax = "proto2"; package p.v1beta1;'
        b" message X { optional int64 n = 1 [jstype = JS_STRING]; optional bool b = 2; }",
        "gone.proto": b'syntax = "proto3"; package p.v1beta1; message G {}',
    }
    new = {
        "e.proto": b'syntax = "proto3"; package p.v1beta1; enum E { E_A = 0; }',
        "x.proto": b'syntax = "proto2"; package p.v1beta1; message X { optional int64 n = 1; optional string b = 2; }',
    }
    reader, writer = (PROTOBUF.parse(main, files, name="main.proto") for files in (new, old))
    rules = {finding.rule for finding in PROTOBUF.check(reader, writer, "buf:FILE")}
    assert rules == {"ENUM_VALUE_NO_DELETE", "FIELD_SAME_TYPE", "FIELD_SAME_JSTYPE", "FILE_NO_DELETE"}
    assert {finding.rule for finding in PROTOBUF.check(reader, writer, "buf:WIRE")} == {
        "ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED",
        "FIELD_WIRE_COMPATIBLE_TYPE",
    }
    assert PROTOBUF.check(writer, writer, "buf:FILE") == []
