"""The two rulesets beyond the case files: what each checks, the paths of findings, and the direction."""

from __future__ import annotations

import pytest

from stele.core.findings import Finding, Severity
from stele.errors import UnknownRuleset
from stele.formats.thrift import THRIFT


def check_schemas(reader: str, writer: str, ruleset: str, shared: tuple[str, str] = ("", "")) -> list[Finding]:
    """The findings; shared holds the texts of `shared.thrift` for the reader and the writer."""
    sides = zip((reader, writer), shared, strict=True)
    schemas = [THRIFT.parse(text.encode(), {"shared.thrift": other.encode()}) for text, other in sides]
    return THRIFT.check(schemas[0], schemas[1], ruleset)


def rules_and_paths(findings: list[Finding]) -> list[tuple[str, str]]:
    """Rule and path of each."""
    return [(finding.rule, finding.path) for finding in findings]


def test_unknown_ruleset() -> None:
    """A ruleset of another format raises an error that names it; '' means the first ruleset."""
    schema = THRIFT.parse(b"struct S {}", {})
    with pytest.raises(UnknownRuleset, match="thrift-audit"):
        THRIFT.check(schema, schema, "confluent")
    assert THRIFT.check(schema, schema) == []


def test_the_audit_is_directional() -> None:
    """The writer is the old file of the audit: a field that can be added cannot be removed."""
    small, large = "struct S { 1: i32 a }", "struct S { 1: i32 a, 2: i32 b }"
    assert check_schemas(large, small, "thrift-audit") == []
    assert rules_and_paths(check_schemas(small, large, "thrift-audit")) == [("FIELD_REMOVED", "S.b")]


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ("enum E { A, C = 2 }", "enum E { A, B }", [("ENUM_VALUE_REMOVED", "E.B")]),
        ("struct S {}", "exception S {}", [("STRUCT_REMOVED", "S")]),
        ("typedef i32 S", "union S {}", [("STRUCT_REMOVED", "S")]),
        ("struct S { 1: i32 a, 3: i32 c }", "struct S { 1: i32 a, 2: i32 b }", [("FIELD_REMOVED", "S.b")]),
        (
            "struct S { 1: i32 a, 2: required i32 b, 3: i32 c }",
            "struct S { 1: i32 a, 3: i32 c }",
            [("FIELD_INSERTED", "S.b")],
        ),
        ("struct S { 1: required i32 a }", "struct S {}", [("REQUIRED_FIELD_ADDED", "S.a")]),
        ("struct S { i32 a, i32 b }", "struct S { i32 a }", [("FIELD_INSERTED", "S.b")]),
        ("service W {}", "service V {}", [("SERVICE_REMOVED", "V")]),
        (
            "service V { i32 f(1: i64 x, 2: required i32 y) }",
            "service V { oneway void f(1: i32 x) }",
            [
                ("FUNCTION_ONEWAY_CHANGED", "V.f"),
                ("RETURN_TYPE_CHANGED", "V.f"),
                ("FIELD_TYPE_NAME_CHANGED", "V.f.x"),
                ("REQUIRED_FIELD_ADDED", "V.f.y"),
            ],
        ),
        ("exception X {}\nservice V { void f() throws (1: X e) }", "service V { void f() }", []),
        ("union U { 1: i32 a }", "union U { 1: required i32 a }", []),
        ("struct S { 1: list<binary> a, 2: i8 b }", "struct S { 1: list<string> a, 2: byte b }", []),
    ],
)
def test_audit_failures(new: str, old: str, expected: list[tuple[str, str]]) -> None:
    """What the compiler reports as a failure is an error, with the dotted place."""
    assert rules_and_paths([each for each in check_schemas(new, old, "thrift-audit") if each.breaks]) == expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ("", "enum E { A }", [("ENUM_REMOVED", "E")]),
        ("enum E { B }", "enum E { A }", [("ENUM_VALUE_RENAMED", "E.A")]),
        ("struct S { 1: i32 b = 2 }", "struct S { 1: i32 a }", [("DEFAULT_CHANGED", "S.a"), ("FIELD_RENAMED", "S.a")]),
        ("const i32 K = 1\nstruct S { 1: i32 a = K }", "struct S { 1: i32 a = 1 }", []),
        ("struct S { 1: required i32 a = 1 }", "struct S { 1: required i32 a = 2 }", []),
        (
            "namespace py b",
            "namespace py a\nnamespace go a",
            [("NAMESPACE_CHANGED", "py"), ("NAMESPACE_CHANGED", "go")],
        ),
        (
            "const i32 B = 2\nconst i64 C = 1",
            "const i32 A = 1\nconst i32 B = 1\nconst i32 C = 1",
            [("CONSTANT_REMOVED", "A"), ("CONSTANT_CHANGED", "B"), ("CONSTANT_CHANGED", "C")],
        ),
    ],
)
def test_audit_warnings(new: str, old: str, expected: list[tuple[str, str]]) -> None:
    """A warning of the compiler's audit is a warning."""
    findings = check_schemas(new, old, "thrift-audit")
    assert rules_and_paths(findings) == expected
    assert {finding.level for finding in findings} <= {Severity.WARNING}


def test_audit_looks_at_one_file() -> None:
    """Included documents are not audited, and their types are compared by the last part of their names."""
    new, old = 'include "shared.thrift"\nstruct S { 1: shared.T t }', "struct S { 1: T t }\nstruct T { 1: i32 a }"
    findings = check_schemas(new, old, "thrift-audit", ("struct T { 1: string a }", ""))
    assert rules_and_paths(findings) == [("STRUCT_REMOVED", "T")]


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ("struct S { 1: list<i64> a }", "struct S { 1: list<i32> a }", [("FIELD_TYPE_CHANGED", "S.a[]")]),
        ("struct S { 1: map<i32, i8> a }", "struct S { 1: map<i32, i16> a }", [("FIELD_TYPE_CHANGED", "S.a{}")]),
        ("struct S { 1: map<i8, i8> a }", "struct S { 1: map<i16, i8> a }", [("FIELD_TYPE_CHANGED", "S.a{}.key")]),
        (
            "struct N { 1: i32 a }\nstruct M { 1: i64 a }\nstruct S { 1: list<M> n }",
            "struct N { 1: i32 a }\nstruct S { 1: list<N> n }",
            [("FIELD_TYPE_CHANGED", "S.n[].a")],
        ),
        (
            "enum E { A, B }\nenum F { A }\nstruct S { 1: F e }",
            "enum E { A, B }\nstruct S { 1: E e }",
            [("ENUM_VALUE_REMOVED", "S.e.B")],
        ),
        ("struct S { 1: required i32 a }", "struct S { 1: i32 a }", [("REQUIRED_FIELD_MAY_BE_MISSING", "S.a")]),
        ("struct S { 1: required i32 a }", "struct S { 1: i32 a = 1 }", []),
        (
            "struct S { 1: required i32 a }",
            "struct S { 1: optional i32 a = 1 }",
            [("REQUIRED_FIELD_MAY_BE_MISSING", "S.a")],
        ),
        ("struct S { 1: required i32 a = 2 }", "struct S { 1: optional i32 a }", []),
        ("struct S { 1: required i32 a }", "union S { 1: i32 a }", [("REQUIRED_FIELD_MAY_BE_MISSING", "S.a")]),
        ("union S { 1: required i32 a }", "union S { 2: i32 b, 1: i32 a }", []),
        ("typedef T S\nstruct T { 1: i32 a }", "struct S { 1: i32 a }", []),
        (
            "struct S { 1: Id a, 2: L l }\ntypedef i32 Id\ntypedef list<Id> L",
            "struct S { 1: i32 a, 2: list<i32> l }",
            [],
        ),
        ("exception S {}", "struct S {}", []),
        ("service V {}", "service V { void f() }\nconst i32 K = 1\nnamespace", []),
        ("struct S { 1: uuid a }", "struct S { 1: string a }", [("FIELD_TYPE_CHANGED", "S.a")]),
    ],
)
def test_wire_errors(reader: str, writer: str, expected: list[tuple[str, str]]) -> None:
    """A change that makes bytes unreadable is an error at its first occurrence; names and services do not matter."""
    writer = writer.removesuffix("\nnamespace")
    assert rules_and_paths([each for each in check_schemas(reader, writer, "thrift-wire") if each.breaks]) == expected


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ("struct S { 1: string a }", "struct S { 1: binary a }", [("BINARY_READ_AS_STRING", "S.a")]),
        ("enum E { A }\nstruct S { 1: E a }", "struct S { 1: i32 a }", [("INTEGER_READ_AS_ENUM", "S.a")]),
        ("struct S { 1: i32 a }", "enum E { A }\nstruct S { 1: E a }", [("ENUM_REMOVED", "E")]),
        ("union S { 1: i32 a, 2: i32 b }", "struct S { 1: i32 a, 2: i32 b }", [("STRUCT_READ_AS_UNION", "S")]),
        ("union S { 1: i32 a }", "union S { 1: i32 a, 2: i32 b }", [("UNION_MEMBER_REMOVED", "S.b")]),
    ],
)
def test_wire_warnings(reader: str, writer: str, expected: list[tuple[str, str]]) -> None:
    """A change after which data can be read, but perhaps with another meaning, is a warning."""
    findings = check_schemas(reader, writer, "thrift-wire")
    assert rules_and_paths(findings) == expected
    assert {finding.level for finding in findings} == {Severity.WARNING}


def test_wire_follows_includes() -> None:
    """Structs of included documents are compared."""
    text = 'include "shared.thrift"\nstruct S { 1: shared.T t }'
    shared = ("struct T { 1: shared2 a }\ntypedef i64 shared2", "struct T { 1: i32 a }")
    assert rules_and_paths(check_schemas(text, text, "thrift-wire", shared)) == [("FIELD_TYPE_CHANGED", "S.t.a")]


def test_recursive_structs() -> None:
    """Structs that contain themselves or each other are compared once."""
    writer = "struct A { 1: B b, 2: A a }\nstruct B { 1: list<A> a, 2: i32 x }"
    assert check_schemas(writer, writer, "thrift-wire") == []
    assert rules_and_paths(check_schemas(writer.replace("i32", "i64"), writer, "thrift-wire")) == [
        ("FIELD_TYPE_CHANGED", "B.x")
    ]
