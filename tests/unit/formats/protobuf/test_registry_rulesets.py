"""The rulesets `apicurio` and `xregistry`: one change after the other."""

from __future__ import annotations

import pytest

from stele.formats.protobuf import PROTOBUF, ProtobufSchema

P3 = 'syntax = "proto3"; '
P2 = 'syntax = "proto2"; '


def parse(text: str) -> ProtobufSchema:
    """A schema of that text."""
    return PROTOBUF.parse(text.encode(), {})


def broken_rules(ruleset: str, old: str, new: str, head: str = P3) -> list[str]:
    """Return the rules that a change breaks. Every finding must have a reason and a fix."""
    findings = PROTOBUF.check(parse(head + new), parse(head + old), ruleset)
    assert all(finding.path and finding.why and finding.fix for finding in findings)
    return [finding.rule for finding in findings]


TWO = "message M { int32 a = 1; string b = 2; }"
S = "message A {} message B {} service S { rpc F(A) returns (B); }"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (TWO, TWO, []),
        (TWO, "message M { int32 a = 1; string b = 2; int64 c = 3; }", []),
        (TWO, "message M { int32 a = 1; }", ["FIELD_REMOVED_WITHOUT_RESERVATION"]),
        (TWO, "message M { int32 a = 1; reserved 2; }", ["FIELD_REMOVED_WITHOUT_RESERVATION"]),
        (TWO, 'message M { int32 a = 1; reserved 2 to 9; reserved "b"; }', []),
        (TWO, "", ["FIELD_REMOVED_WITHOUT_RESERVATION"] * 2),
        ("message M {}", "", []),
        (TWO, "message M { int32 a = 3; string b = 2; }", ["FIELD_NUMBER_CHANGED"]),
        (TWO, "message M { int64 a = 1; string b = 2; }", ["FIELD_TYPE_CHANGED"]),
        (TWO, "message M { repeated int32 a = 1; string b = 2; }", ["FIELD_LABEL_CHANGED"]),
        (TWO, "message M { int32 x = 1; string b = 2; }", ["FIELD_NAME_CHANGED"]),
        ("message M { map<string, int32> a = 1; }", "message M { map<string, int64> a = 1; }", ["FIELD_TYPE_CHANGED"]),
        ("message M { reserved 4; }", "message M { int32 a = 4; }", ["RESERVED_FIELD_USED", "RESERVED_FIELD_RELEASED"]),
        ('message M { reserved "a"; }', 'message M { int32 a = 1; reserved "a", "b"; }', None),
        ("message M { reserved 4 to max; }", "message M { reserved 5 to max; }", ["RESERVED_FIELD_RELEASED"]),
        ('message M { reserved "x"; }', "message M {}", ["RESERVED_FIELD_RELEASED"]),
        ("enum E { Z = 0; A = 1; }", "enum E { Z = 0; A = 2; }", ["ENUM_VALUE_NUMBER_CHANGED"]),
        ("enum E { Z = 0; A = 1; }", "enum E { Z = 0; B = 1; }", ["ENUM_VALUE_NAME_CHANGED"]),
        ("enum E { Z = 0; A = 1; }", "enum E { Z = 0; }", ["ENUM_VALUE_REMOVED"]),
        ("enum E { Z = 0; A = 1; }", "enum E { Z = 0; reserved 1; }", []),
        ("enum E { Z = 0; }", "", []),
        (S, "message A {} message B {} service S {}", ["RPC_REMOVED"]),
        (S, S.replace("rpc F(A)", "rpc F(stream A)"), ["RPC_SIGNATURE_CHANGED"]),
        (S, S.replace("rpc F(A)", "rpc F(B)"), ["RPC_SIGNATURE_CHANGED"]),
        ("message O { message I { int32 a = 1; } }", "message O {}", ["FIELD_REMOVED_WITHOUT_RESERVATION"]),
    ],
)
def test_apicurio(old: str, new: str, expected: list[str] | None) -> None:
    """Names, numbers and types must stay, and removed fields must be reserved."""
    if expected is None:
        with pytest.raises(Exception, match="reserved"):
            broken_rules("apicurio", old, new)
        return
    assert broken_rules("apicurio", old, new) == expected


def test_apicurio_takes_no_required_field_in_proto2() -> None:
    """A new required field is refused, because older data lack it; a new optional one is allowed."""
    old = "message M { optional int32 a = 1; }"
    new = "message M { optional int32 a = 1; required int32 b = 2; }"
    assert broken_rules("apicurio", old, new, P2) == ["REQUIRED_FIELD_ADDED"]
    assert broken_rules("apicurio", old, new.replace("required", "optional"), P2) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (TWO, TWO, []),
        (TWO, "message M { int64 x = 1; bytes y = 2; }", []),
        (TWO, "message M { int32 a = 1; reserved 2; }", ["FIELD_REMOVED_WITHOUT_RESERVATION"]),
        (TWO, 'message M { int32 a = 1; reserved 1000, 2; reserved "b"; }', []),
        (TWO, 'message M { int32 a = 1; reserved 1000; reserved "b"; }', ["FIELD_REMOVED_WITHOUT_RESERVATION"]),
        (TWO, "", ["MESSAGE_REMOVED"]),
        (TWO, "message M { sint32 a = 1; string b = 2; }", ["FIELD_TYPE_CHANGED"]),
        (TWO, "message M { repeated int32 a = 1; repeated string b = 2; }", ["FIELD_CARDINALITY_CHANGED"]),
        ("message M { M a = 1; }", "message M { bytes a = 1; }", []),
        ("message M { bytes a = 1; }", "message M { M a = 1; }", ["FIELD_TYPE_CHANGED"]),
        ("message M { map<string, int32> a = 1; }", "message M { map<int32, int64> a = 1; }", ["MAP_KEY_TYPE_CHANGED"]),
        ("message M { map<string, M> a = 1; }", "message M { repeated M a = 1; }", ["MAP_CHANGED"]),
        ("message M { oneof o { int32 a = 1; } }", "message M { int32 a = 1; }", []),
        ("message M { oneof o { int32 a = 1; int32 b = 2; } }", "message M { oneof o { int32 b = 2; } int32 a = 1; }",
         ["FIELD_ONEOF_CHANGED"]),
        ("message M { oneof o { int32 a = 1; } }", "message M { oneof p { int32 a = 1; } }", ["FIELD_ONEOF_CHANGED"]),
        ("message M { int32 a = 1; }", "message M { oneof o { int32 a = 1; } }", []),
        ("enum E { Z = 0; A = 1; } message M { E a = 1; }", "enum E { Z = 0; } message M { E a = 1; }",
         ["ENUM_VALUE_REMOVED"]),
        ("enum E { Z = 0; } message M { E a = 1; }", "message M { int32 a = 1; }",
         ["ENUM_REMOVED", "FIELD_TYPE_CHANGED"]),
        ("package a; message M {}", "package b; message N {}", ["PACKAGE_CHANGED"]),
        (S, S.replace("service S", "service T"), ["SERVICE_REMOVED"]),
        (S, S.replace("rpc F", "rpc G"), ["RPC_REMOVED"]),
        (S, S.replace("returns (B)", "returns (stream B)"), ["RPC_STREAMING_CHANGED"]),
        (S, S.replace("rpc F(A)", "rpc F(B)"), []),
        ("message O { message I {} enum E { Z = 0; } }", "message O {}", ["MESSAGE_REMOVED", "ENUM_REMOVED"]),
    ],
)  # fmt: skip
def test_xregistry(old: str, new: str, expected: list[str]) -> None:
    """Fields are matched by number, everything else by name; types stay within their family."""
    assert broken_rules("xregistry", old, new) == expected
