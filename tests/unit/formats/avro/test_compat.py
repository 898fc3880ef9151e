"""Avro compatibility: each rule with its path and advice, warnings, rulesets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stele.core.findings import Finding, Severity
from stele.errors import UnknownRuleset
from stele.formats.avro import AVRO


def check_schemas(reader: Any, writer: Any, ruleset: str = "") -> list[Finding]:
    """Compare two schemas given as JSON values."""
    first, second = (AVRO.parse(json.dumps(value).encode(), {}, strict=False) for value in (reader, writer))
    return AVRO.check(first, second, ruleset)


def make_record(*fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """A record R with fields given as (name, type)."""
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields], **more}


def make_enum(*symbols: str, **more: Any) -> dict[str, Any]:
    """An enum E."""
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def make_fixed(size: int, **more: Any) -> dict[str, Any]:
    """A fixed F."""
    return {"type": "fixed", "name": "F", "size": size, **more}


@pytest.mark.parametrize(
    ("reader", "writer", "rule", "path"),
    [
        ("int", "long", "TYPE_MISMATCH", "/"),
        (make_record(("a", "int")), make_record(), "READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0"),
        (
            make_record(("a", make_enum("A", default="A"))),
            make_record(),
            "READER_FIELD_MISSING_DEFAULT_VALUE",
            "/fields/0",
        ),
        (
            make_record(("a", {"type": "array", "items": "int"})),
            make_record(("a", {"type": "array", "items": "string"})),
            "TYPE_MISMATCH",
            "/fields/0/type/items",
        ),
        (
            make_record(("a", {"type": "map", "values": "int"})),
            make_record(("a", {"type": "map", "values": "null"})),
            "TYPE_MISMATCH",
            "/fields/0/type/values",
        ),
        (make_record(("a", "int")), make_record(("a", ["null", "int"])), "TYPE_MISMATCH", "/fields/0/type/0"),
        (["null", "int"], ["null", "string"], "MISSING_UNION_BRANCH", "/1"),
        (["null", "int"], "string", "MISSING_UNION_BRANCH", "/"),
        (make_enum("A"), make_enum("A", "B"), "MISSING_ENUM_SYMBOLS", "/symbols"),
        (make_fixed(4), make_fixed(8), "FIXED_SIZE_MISMATCH", "/size"),
        (make_fixed(4), make_fixed(4, name="G"), "NAME_MISMATCH", "/name"),
    ],
)
def test_each_rule(reader: Any, writer: Any, rule: str, path: str) -> None:
    """Each rule is found once, at Java's path, with both sides, a reason and advice."""
    (finding,) = check_schemas(reader, writer)
    assert (finding.rule, finding.path, finding.level) == (rule, path, Severity.ERROR)
    assert finding.reader
    assert finding.writer
    assert finding.why.endswith(".")
    assert finding.fix.endswith(".")


def test_what_the_columns_say() -> None:
    """Findings hold missing symbols, sizes and names, so that a dialect can build its own message."""
    (symbols,) = check_schemas(make_enum("A"), make_enum("C", "A", "B"))
    assert symbols.writer == "[B, C]"
    (size,) = check_schemas(make_fixed(4), make_fixed(8))
    assert (size.reader, size.writer) == ("4", "8")
    (name,) = check_schemas(make_fixed(4), make_fixed(4, name="n.G"))
    assert (name.reader, name.writer) == ("F", "n.G")


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("long", "int"),
        ("double", "float"),
        ("bytes", "string"),
        (["string", "double"], "long"),
        ("long", ["int", "long"]),
        (make_enum("A", default="A"), make_enum("A", "B")),
        (make_record(aliases=["Old"]), make_record(name="Old")),
        (make_record(namespace="a"), make_record(namespace="b")),
        (make_record(), {**make_record(("x", "int")), "type": "error"}),
    ],
)
def test_readable(reader: Any, writer: Any) -> None:
    """Promotions, unions, enum defaults, aliases, and names that differ only in their namespace are compatible."""
    assert check_schemas(reader, writer) == []


def test_aliases_of_fields() -> None:
    """An alias finds the writer's field; two matches are ambiguous, even in a union branch that does not fit."""
    new = make_record(("b", "int"))
    new["fields"][0]["aliases"] = ["a"]
    assert check_schemas(new, make_record(("a", "int"))) == []
    both = make_record(("a", "int"), ("b", "int"))
    assert [finding.rule for finding in check_schemas(new, both)] == ["READER_FIELD_AMBIGUOUS"]
    assert "READER_FIELD_AMBIGUOUS" in {finding.rule for finding in check_schemas(["null", new], both)}


def test_nearest_branch_is_explained() -> None:
    """When a union has the right record with the wrong fields, the finding says what is wrong inside."""
    (finding,) = check_schemas(["null", make_record(("a", "int"))], ["null", make_record(("a", "string"))])
    assert finding.rule == "MISSING_UNION_BRANCH"
    assert "TYPE_MISMATCH" in finding.why
    assert "/fields/0/type" in finding.why


def test_shared_types_are_reported_once() -> None:
    """A broken type used by many fields is one finding."""
    old = make_record(("a", make_fixed(4)), ("b", "F"), ("c", "F"))
    new = make_record(("a", make_fixed(5)), ("b", "F"), ("c", "F"))
    assert [finding.path for finding in check_schemas(new, old)] == ["/fields/0/type/size"]


def test_recursive_types() -> None:
    """A recursive record is compatible with itself, and a change inside the recursion is found."""
    old = make_record(("value", "long"), ("next", ["null", "R"]))
    new = make_record(("value", "int"), ("next", ["null", "R"]))
    assert check_schemas(old, new) == []
    assert {finding.path for finding in check_schemas(new, old)} >= {"/fields/0/type"}


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}


def make_decimal(precision: int, scale: int) -> dict[str, Any]:
    """A decimal on bytes."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


@pytest.mark.parametrize(
    ("reader", "writer", "warned"),
    [
        (MICROS, MILLIS, True),
        (MILLIS, DATE, True),
        (make_decimal(9, 3), make_decimal(9, 2), True),
        (make_decimal(8, 2), make_decimal(9, 2), True),
        (make_decimal(10, 2), make_decimal(9, 2), False),
        (MILLIS, "long", False),
        ("long", MILLIS, False),
        (["null", MICROS], ["null", MILLIS], True),
    ],
)
def test_logical_types_only_warn(reader: Any, writer: Any, *, warned: bool) -> None:
    """A changed logical type is no error, as in Java, but a warning where values silently change."""
    findings = check_schemas(reader, writer)
    assert [finding.rule for finding in findings] == ["LOGICAL_TYPE_CHANGED"] * warned
    assert not any(finding.breaks for finding in findings)


def test_rulesets() -> None:
    """`confluent` equals `avro`; `avro-ruby` resolves equal decimals of any type; other names are rejected."""
    fixed_decimal = {**make_fixed(4), "logicalType": "decimal", "precision": 9, "scale": 2}
    assert check_schemas(make_decimal(9, 2), fixed_decimal, "avro")[0].breaks
    assert check_schemas(make_decimal(9, 2), fixed_decimal, "confluent") == check_schemas(
        make_decimal(9, 2), fixed_decimal
    )
    assert check_schemas(make_decimal(9, 2), fixed_decimal, "avro-ruby") == []
    assert check_schemas(["null", make_record()], make_record(namespace="n"), "avro") == []
    assert check_schemas(["null", make_record()], make_record(namespace="n"), "avro-ruby")[0].breaks
    with pytest.raises(UnknownRuleset, match="confluent"):
        check_schemas("int", "int", "strict")
