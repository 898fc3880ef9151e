"""The ruleset `confluent`, rule by rule."""

from __future__ import annotations

import time

import pytest
from tests.support.time_limit import limit_time

from stele.core.findings import Finding
from stele.errors import UnknownRuleset
from stele.formats.protobuf import PROTOBUF, ProtobufSchema

P2 = 'syntax = "proto2";\n'
P3 = 'syntax = "proto3";\n'


def parse(text: str, **references: str) -> ProtobufSchema:
    """A schema; keyword x stands for the reference x.proto."""
    return PROTOBUF.parse(text.encode(), {f"{name}.proto": source.encode() for name, source in references.items()})


def broken_rules(old: str, new: str, head: str = P3) -> list[str]:
    """The rules that new breaks when it reads data of old."""
    return sorted(finding.rule for finding in PROTOBUF.check(parse(head + new), parse(head + old), "confluent"))


def message_a(*fields: str) -> str:
    """A message A with the given members."""
    return f"message A {{ {' '.join(fields)} }}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("message A {}", "message A {} message B {}"),
        ("message A {} message B {}", "message B {} message A {}"),
        ("message A {}", "message A {} enum E { X = 0; }"),
        ("message A {} enum E { X = 0; }", "message A {}"),
        ("enum E { X = 0; }", "enum E { X = 0; Y = 1; }"),
        ("enum E { X = 0; Y = 1; }", "enum E { X = 0; }"),
        ("enum E { X = 0; Y = 1; }", "enum E { X = 0; Z = 1; }"),
        (message_a(), message_a("int32 x = 1;")),
        (message_a("int32 x = 1;"), message_a()),
        (message_a("int32 x = 1;"), message_a("int32 renamed = 1;")),
        (message_a("int32 x = 1;"), message_a("int32 x = 2;")),
        (message_a("map<string, int32> x = 1;"), message_a()),
        (message_a("string x = 1;"), message_a("repeated bytes x = 1;")),
        (message_a("optional string x = 1;"), message_a("repeated string x = 1;")),
        (message_a("int32 x = 1;"), message_a("repeated int32 x = 1;")),
        (message_a("repeated int32 x = 1;"), message_a("int32 x = 1;")),
        (message_a("optional int32 x = 1;"), message_a("int32 x = 1;")),
        (message_a("A x = 1;"), message_a("repeated A x = 1;")),
        (message_a(), message_a("oneof o { int32 x = 1; }")),
        (message_a("oneof o { int32 x = 1; int32 y = 2; }"), message_a()),
        (message_a("oneof o { int32 x = 1; }"), message_a("oneof o { int32 x = 1; string y = 2; }")),
        (message_a("oneof o { int32 x = 1; int32 y = 2; }"), message_a("oneof o { int32 x = 1; }", "int32 y = 2;")),
        (message_a("oneof o { int32 x = 1; int32 y = 2; }"), message_a("int32 x = 1;", "int32 y = 2;")),
        (message_a("oneof o { int32 x = 1; int32 y = 2; }"), message_a("oneof q { int32 x = 1; int32 y = 2; }")),
        (message_a("int32 x = 1;"), message_a("oneof o { int32 x = 1; int32 y = 2; }")),
        (message_a("optional int32 x = 1;"), message_a("oneof o { int32 x = 1; }")),
        (message_a("oneof _x { int32 x = 1; }"), message_a("int32 x = 1;")),
        (message_a("int32 x = 1 [deprecated = true];"), message_a("int32 x = 1;")),
        (message_a("int32 x = 1 [json_name = 'q'];"), message_a("int32 x = 1;")),
        (message_a("int32 x = 1;", "reserved 5;"), message_a("int32 x = 1;", "int32 y = 5;")),
        ("message A {} service S { rpc R (A) returns (A); }", "message A {}"),
        ("option java_package = 'a'; message A {}", "message A {}"),
    ],
)
def test_compatible_changes(old: str, new: str) -> None:
    """What the ruleset allows gives no finding at all."""
    assert broken_rules(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("package a; message A {}", "package b; message A {}", "PACKAGE_CHANGED"),
        ("package a; message A {}", "message A {}", "PACKAGE_CHANGED"),
        ("message A {} message B {}", "message A {}", "MESSAGE_REMOVED"),
        ("message A { message B {} }", "message A {}", "MESSAGE_REMOVED"),
        ("message A { message B { message C {} } }", "message A { message B {} }", "MESSAGE_REMOVED"),
        ("message A {} message B {}", "message A {} enum B { X = 0; }", "MESSAGE_REMOVED"),
        (message_a("int32 x = 1;"), message_a("A x = 1;"), "FIELD_KIND_CHANGED"),
        (message_a("A x = 1;"), message_a("bytes x = 1;"), "FIELD_KIND_CHANGED"),
        (message_a("map<string, int32> x = 1;"), message_a("int32 x = 1;"), "FIELD_KIND_CHANGED"),
        (message_a("repeated A x = 1;"), message_a("map<string, A> x = 1;"), "FIELD_KIND_CHANGED"),
        (message_a("map<string, A> x = 1;"), message_a("map<string, int32> x = 1;"), "FIELD_KIND_CHANGED"),
        (message_a("map<string, int32> x = 1;"), message_a("map<string, string> x = 1;"), "FIELD_SCALAR_KIND_CHANGED"),
        (message_a("map<string, int32> x = 1;"), message_a("map<int32, int32> x = 1;"), "FIELD_SCALAR_KIND_CHANGED"),
        (message_a("optional int32 x = 1;"), message_a("repeated int32 x = 1;"), "FIELD_NUMERIC_LABEL_CHANGED"),
        (
            message_a("A x = 1;") + " message B {}",
            message_a("B x = 1;") + " message B {}",
            "FIELD_NAMED_TYPE_CHANGED",
        ),
        (
            message_a("oneof o { int32 x = 1; int32 y = 2; }"),
            message_a("oneof o { int32 x = 1; }"),
            "ONEOF_FIELD_REMOVED",
        ),
        (message_a("oneof o { int32 x = 1; int32 y = 2; }"), message_a("int32 x = 1;"), "ONEOF_FIELD_REMOVED"),
        (
            message_a("oneof o { int32 x = 1; int32 y = 2; }"),
            message_a("oneof o { int32 z = 3; }"),
            "ONEOF_FIELD_REMOVED",
        ),
        (
            message_a("int32 x = 1; int32 y = 2;"),
            message_a("oneof o { int32 x = 1; int32 y = 2; }"),
            "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        ),
        (
            message_a("int32 x = 1; oneof o { int32 y = 2; }"),
            message_a("oneof o { int32 x = 1; int32 y = 2; }"),
            "FIELD_MOVED_TO_EXISTING_ONEOF",
        ),
        (
            message_a("oneof p { int32 x = 1; } oneof o { int32 y = 2; }"),
            message_a("oneof o { int32 x = 1; int32 y = 2; }"),
            "FIELD_MOVED_TO_EXISTING_ONEOF",
        ),
        (message_a("oneof o { int32 x = 1; }"), message_a("oneof o { string x = 1; }"), "FIELD_SCALAR_KIND_CHANGED"),
        (message_a("oneof o { int32 x = 1; }"), message_a("oneof q { string x = 1; }"), "FIELD_SCALAR_KIND_CHANGED"),
        (message_a("int32 x = 1;"), message_a("oneof q { string x = 1; }"), "FIELD_SCALAR_KIND_CHANGED"),
    ],
)
def test_incompatible_changes(old: str, new: str, rule: str) -> None:
    """Every incompatible change is named by its rule."""
    assert set(broken_rules(old, new)) == {rule}


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (message_a(), message_a("required int32 x = 1;"), "REQUIRED_FIELD_ADDED"),
        (message_a("required int32 x = 1;"), message_a(), "REQUIRED_FIELD_REMOVED"),
        (message_a("optional int32 x = 1;"), message_a("required int32 x = 1;"), "FIELD_NUMERIC_LABEL_CHANGED"),
        (message_a("required int32 x = 1;"), message_a("optional int32 x = 1;"), "FIELD_NUMERIC_LABEL_CHANGED"),
        (message_a("optional E x = 1; enum E { X = 0; }"), message_a("repeated E x = 1; enum E { X = 0; }"),
         "FIELD_NUMERIC_LABEL_CHANGED"),
        (message_a("optional group G = 1 {}"), message_a("optional G g = 1; message G {}"), "FIELD_KIND_CHANGED"),
    ],
)  # fmt: skip
def test_incompatible_changes_of_proto2(old: str, new: str, rule: str) -> None:
    """Changes of labels that only proto2 has are reported by their rules."""
    assert broken_rules(old, new, P2) == [rule]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (message_a("required string x = 1;"), message_a("optional string x = 1;")),
        (message_a("optional int32 x = 1 [default = 4];"), message_a("optional int32 x = 1 [default = 5];")),
        (message_a("optional group G = 1 {}"), message_a()),
        (message_a("extensions 5 to 9; extend A { optional int32 e = 5; }"), message_a()),
    ],
)
def test_compatible_changes_of_proto2(old: str, new: str) -> None:
    """Labels of strings, defaults, groups and extensions do not matter."""
    assert broken_rules(old, new, P2) == []


def test_a_group_is_compared_below_its_field() -> None:
    """A group can be renamed with its field, which removes no message; its content is compared."""
    old = message_a("optional group G = 1 { optional int32 x = 1; message I {} }")
    assert broken_rules(old, message_a("optional group H = 1 { optional int64 y = 1; message I {} }"), P2) == []
    new = message_a("optional group G = 1 { optional string x = 1; }")
    assert broken_rules(old, new, P2) == ["FIELD_SCALAR_KIND_CHANGED", "MESSAGE_REMOVED"]


FAMILIES = [
    ["int32", "int64", "uint32", "uint64", "bool", "E"],
    ["sint32", "sint64"],
    ["string", "bytes"],
    ["fixed32", "sfixed32"],
    ["fixed64", "sfixed64"],
    ["float"],
    ["double"],
]


@pytest.mark.parametrize("old", [kind for family in FAMILIES for kind in family])
def test_scalars_change_within_their_family_only(old: str) -> None:
    """Of all pairs of scalar types exactly those of one family are compatible."""
    for family in FAMILIES:
        for new in family:
            expected = [] if old in family else ["FIELD_SCALAR_KIND_CHANGED"]
            enum = " enum E { X = 0; }"
            assert broken_rules(message_a(f"{old} x = 1;") + enum, message_a(f"{new} x = 1;") + enum) == expected, new


def test_syntaxes_compare_by_meaning() -> None:
    """A required field of an edition counts as required, and moving a file between syntaxes as such is no change."""
    edition = 'edition = "2023";\n'
    required = parse(edition + message_a("int32 x = 1 [features.field_presence = LEGACY_REQUIRED];"))
    assert [f.rule for f in PROTOBUF.check(required, parse(edition + message_a()))] == ["REQUIRED_FIELD_ADDED"]
    two, three = parse(P2 + message_a("optional int32 x = 1;")), parse(P3 + message_a("int32 x = 1;"))
    assert PROTOBUF.check(two, three) == PROTOBUF.check(three, two) == []
    assert PROTOBUF.check(parse(edition + message_a("int32 x = 1;")), two) == []


def test_imported_messages_are_compared() -> None:
    """A change inside an import is found from the field that uses it, also two imports away."""
    head = P3 + 'import "x.proto"; message A { l.X x = 1; }'
    middle = P3 + 'package l; import "y.proto"; message X { repeated Y y = 1; }'
    old = parse(head, x=middle, y=P3 + "package l; message Y { int32 v = 1; message In {} }")
    new = parse(head, x=middle, y=P3 + "package l; message Y { string v = 1; }")
    changes = {(f.rule, f.path) for f in PROTOBUF.check(new, old)}
    assert changes == {
        ("FIELD_SCALAR_KIND_CHANGED", "l.Y.v"),
        ("MESSAGE_REMOVED", "l.Y.In"),
        ("FIELD_NAMED_TYPE_CHANGED", "l.X.y"),
        ("FIELD_NAMED_TYPE_CHANGED", "A.x"),
    }
    assert PROTOBUF.check(old, old) == []


def test_unused_messages_of_imports_are_not_compared() -> None:
    """Messages of an import that no field uses are not compared, not even their package."""
    head = P3 + 'import "x.proto"; message A { %s }'
    old = parse(head % "", x=P3 + "package l; message X { int32 v = 1; } message Gone {}")
    new = parse(head % "", x=P3 + "package l; message X { string v = 1; }")
    assert PROTOBUF.check(new, old) == []
    moved = parse(head % "k.X x = 1;", x=P3 + "package k; message X { int32 v = 1; }")
    used = parse(head % "l.X x = 1;", x=P3 + "package l; message X { int32 v = 1; }")
    assert PROTOBUF.check(moved, used) == []


def test_a_message_may_move_to_an_import_only_by_name() -> None:
    """A type that goes to another file is a removed message; the field that uses it is still compared by content."""
    old = parse(P3 + "message A { X x = 1; } message X { int32 v = 1; }")
    same = parse(P3 + 'import "x.proto"; message A { X x = 1; }', x=P3 + "message X { int32 v = 1; }")
    other = parse(P3 + 'import "x.proto"; message A { X x = 1; }', x=P3 + "message X { string v = 1; }")
    assert [f.rule for f in PROTOBUF.check(same, old)] == ["MESSAGE_REMOVED"]
    assert {f.rule for f in PROTOBUF.check(other, old)} == {
        "MESSAGE_REMOVED", "FIELD_NAMED_TYPE_CHANGED", "FIELD_SCALAR_KIND_CHANGED"}  # fmt: skip


def test_recursion_and_long_chains_end() -> None:
    """Messages that contain each other, and chains of thousands, are compared once each, in bounded time."""
    cycle = P3 + "package l; message X { Y y = 1; X x = 2; } message Y { X x = 1; %s v = 2; }"
    head = P3 + 'import "x.proto"; message A { l.X x = 1; }'
    findings = PROTOBUF.check(parse(head, x=cycle % "string"), parse(head, x=cycle % "int32"))
    assert sum(f.rule == "FIELD_SCALAR_KIND_CHANGED" for f in findings) == 1
    assert {f.path for f in findings if f.rule == "FIELD_NAMED_TYPE_CHANGED"} == {"A.x", "l.X.x", "l.X.y", "l.Y.x"}
    chain = "".join(f"message M{i} {{ M{i + 1} a = 1; M{i + 1} b = 2; }}" for i in range(3000))
    head = P3 + 'import "x.proto"; message A { M0 x = 1; }'
    new, old = (parse(head, x=P3 + chain + f"message M3000 {{ {kind} v = 1; }}") for kind in ("string", "int32"))
    with limit_time(30, time.monotonic):
        assert len(PROTOBUF.check(new, old)) == 2 * 3000 + 2


def test_a_finding_explains_itself() -> None:
    """A finding has path, both sides, reason and fix; the same comparison always gives the same findings."""
    old = parse(P3 + "package p; message A { message B { repeated int32 n = 7; } }")
    new = parse(P3 + "package p; message A { message B { string n = 7; } }")
    (finding,) = PROTOBUF.check(new, old)
    assert finding == Finding(
        rule="FIELD_SCALAR_KIND_CHANGED",
        path="p.A.B.n",
        reader="string n = 7",
        writer="repeated int32 n = 7",
        why="Field 7 was written as varint data and cannot be read as length-delimited data.",
        fix="Keep `repeated int32 n = 7`, and give the new field a number that was never used.",
    )
    assert finding.breaks
    assert PROTOBUF.check(new, old) == [finding]


def test_rulesets_are_named() -> None:
    """The default is the first ruleset; an unknown name is refused."""
    schema = parse(P3 + message_a())
    assert PROTOBUF.rulesets[0] == "confluent@1"
    assert PROTOBUF.check(schema, schema) == PROTOBUF.check(schema, schema, "confluent") == []
    with pytest.raises(UnknownRuleset, match="no ruleset 'nope'"):
        PROTOBUF.check(schema, schema, "nope")
