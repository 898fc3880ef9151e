"""Avro schemas that change: recursion, references, aliases, promotions, enum defaults, logical types, all explained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core.findings import Finding
from stele.errors import DecodeError, MalformedSchema, UnresolvedReference
from stele.formats.avro import AVRO, AvroSchema
from stele.formats.avro.logical_types import describe_consequence
from stele.formats.avro.model import LogicalType
from stele.wire import avro_single


def parse(value: Any, references: Mapping[str, Any] | None = None) -> AvroSchema:
    """A schema given as a JSON value."""
    texts = {name: json.dumps(body).encode() for name, body in (references or {}).items()}
    return AVRO.parse(json.dumps(value).encode(), texts)


def record(name: str, *fields: Any, **more: Any) -> dict[str, Any]:
    """A record; a field given as a pair is a name and a type."""
    shaped = [field if isinstance(field, dict) else {"name": field[0], "type": field[1]} for field in fields]
    return {"type": "record", "name": name, "fields": shaped, **more}


def check(reader: Any, writer: Any) -> list[Finding]:
    """Compare two schemas given as JSON values."""
    return AVRO.check(parse(reader), parse(writer))


def moved(writer: Any, reader: Any, datum: Any) -> Any:
    """A datum after it was written with one schema and read with another."""
    return AVRO.codec(parse(writer), parse(reader)).decode(AVRO.codec(parse(writer)).encode(datum))


# --- recursion ------------------------------------------------------------------------------------------------------


def chain(kind: str) -> dict[str, Any]:
    """A list whose values are of a type."""
    return record("Node", ("value", kind), ("next", ["null", "Node"]))


def mutual(kind: str) -> dict[str, Any]:
    """A and B contain each other, through a union, a map and an array."""
    inner = record("B", ("x", kind), ("all", {"type": "map", "values": {"type": "array", "items": "A"}}))
    return record("A", ("b", ["null", inner]))


def test_recursive_data_survives_a_promotion() -> None:
    """Data of a type that contains itself are read at every depth, promoted on the way."""
    datum = {"value": 1, "next": {"value": 2, "next": {"value": 3, "next": None}}}
    assert check(chain("long"), chain("int")) == []
    assert moved(chain("int"), chain("long"), datum) == datum
    tree = {"b": {"x": 1, "all": {"k": [{"b": None}, {"b": {"x": 2, "all": {}}}]}}}
    assert check(mutual("double"), mutual("int")) == []
    assert moved(mutual("int"), mutual("double"), tree) == tree


def test_a_break_inside_a_recursion_is_found_and_explained_once() -> None:
    """The finding leads to the place where the types differ, though the circle passes it again and again."""
    (finding,) = check(chain("int"), chain("long"))
    assert (finding.rule, finding.path) == ("TYPE_MISMATCH", "/fields/0/type")
    (finding,) = check(mutual("int"), mutual("string"))
    assert finding.rule == "MISSING_UNION_BRANCH"
    assert "TYPE_MISMATCH at /fields/0/type/1/fields/0/type" in finding.why


def test_circles_of_different_lengths_are_compared() -> None:
    """A list of one kind of node reads a list of two kinds in turn: the comparison ends, and so does reading."""
    two = record("Node", ("next", ["null", record("Other", ("next", ["null", "Node"]))]))
    one = record("Node", ("next", ["null", "Node"]), aliases=["Other"])
    assert check(one, two) == []
    datum = {"next": {"next": {"next": None}}}
    assert moved(two, one, datum) == datum


# --- references -----------------------------------------------------------------------------------------------------

CURRENCY = {"type": "enum", "name": "Currency", "namespace": "shop", "symbols": ["EUR"]}
MONEY = record("Money", ("currency", "Currency"), namespace="shop")
ITEM = record("Item", ("price", "Money"), ("tax", "shop.Money"), namespace="shop")


def test_references_over_several_documents() -> None:
    """Named types of documents that refer to each other are known, by full name or by the namespace in force."""
    references = {"shop.Currency": CURRENCY, "shop.Money": MONEY, "shop.Item": ITEM}
    order = record("Order", ("item", "Item"), ("fee", "shop.Money"), ("currency", "Currency"), namespace="shop")
    paths = [field.path for field in AVRO.fields(parse(order, references))]
    assert paths == [
        *("item", "item.price", "item.price.currency", "item.tax", "item.tax.currency"),
        *("fee", "fee.currency", "currency"),
    ]


def test_the_namespace_is_inherited_and_left() -> None:
    """A name without dots is of the namespace around it, else of none; a nested namespace holds for what is inside."""
    inner = record("Inner", ("c", "Currency"), ("plain", "Plain"), namespace="shop")
    schema = record("Outer", ("i", inner), ("again", "shop.Inner"), ("p", "Plain"), namespace="other")
    references = {"shop.Currency": CURRENCY, "Plain": {"type": "fixed", "name": "Plain", "size": 1}}
    found = parse(schema, references)
    assert [field.type for field in AVRO.fields(found)][:3] == ["shop.Inner", "shop.Currency", "Plain"]
    with pytest.raises(UnresolvedReference, match="'Inner' is not defined"):
        parse(record("Outer", ("i", inner), ("again", "Inner"), namespace="other"), references)


def test_a_name_defined_twice_says_where_first() -> None:
    """Whichever document defines a name again, the error names the reference that had it first."""
    with pytest.raises(MalformedSchema, match=r"'again': /name: 'shop\.Currency' .* in the reference 'shop\.Currency'"):
        parse("string", {"shop.Currency": CURRENCY, "again": CURRENCY})
    with pytest.raises(MalformedSchema, match=r"twice, first in the reference 'shop\.Currency'") as caught:
        parse(record("R", ("c", CURRENCY)), {"shop.Currency": CURRENCY})
    assert caught.value.path == "/fields/0/type/name"
    with pytest.raises(MalformedSchema, match="defined twice") as caught:
        parse(record("R", ("a", CURRENCY), ("b", CURRENCY)))
    assert "reference" not in caught.value.why


def test_references_come_in_order() -> None:
    """A reference that names a later one is refused with a hint at the order."""
    with pytest.raises(UnresolvedReference, match=r"'shop\.Money'.*reference that comes before"):
        parse("string", {"shop.Money": MONEY, "shop.Currency": CURRENCY})


def test_a_change_inside_a_reference_is_a_change() -> None:
    """What a schema refers to is compared as if it stood there."""
    grown = {**CURRENCY, "symbols": ["EUR", "CHF"]}
    order = record("Order", ("m", "Money"), namespace="shop")
    old, new = (parse(order, {"shop.Currency": each, "shop.Money": MONEY}) for each in (CURRENCY, grown))
    assert AVRO.check(new, old) == []
    (finding,) = AVRO.check(old, new)
    assert finding.rule == "MISSING_ENUM_SYMBOLS"
    assert finding.path == "/fields/0/type/fields/0/type/symbols"


# --- aliases --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "aliases", "fits"),
    [
        ("New", ["Old"], True),
        ("New", ["n.Old"], True),
        ("New", ["m.Old"], False),
        ("New", [], False),
        ("Old", [], True),
    ],
)
def test_aliases_of_types(name: str, aliases: list[str], *, fits: bool) -> None:
    """A renamed type reads the old one by its alias, which is of its own namespace unless it has dots."""
    old = record("Old", ("a", "int"), namespace="n")
    new = record(name, ("a", "int"), namespace="n", aliases=aliases)
    findings = check(new, old)
    assert (findings == []) is fits
    assert all("aliases" in finding.fix for finding in findings)


def test_aliases_of_fields_move_data() -> None:
    """A renamed field takes the old one's values; without the alias it would need a default."""
    old = record("R", ("a", "int"))
    new = record("R", {"name": "b", "type": "long", "aliases": ["a"]})
    assert check(new, old) == []
    assert moved(old, new, {"a": 1}) == {"b": 1}
    (finding,) = check(record("R", ("b", "long")), old)
    assert "alias" in finding.fix


# --- promotions -----------------------------------------------------------------------------------------------------

PROMOTIONS = {
    **{("int", wide): (7, 7) for wide in ("long", "float", "double")},
    **{("long", wide): (7, 7) for wide in ("float", "double")},
    ("float", "double"): (0.5, 0.5),
    ("string", "bytes"): ("é", "é".encode()),
    ("bytes", "string"): ("é".encode(), "é"),
}
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@pytest.mark.parametrize("writer", PRIMITIVES)
@pytest.mark.parametrize("reader", PRIMITIVES)
def test_promotions(reader: str, writer: str) -> None:
    """Exactly the promotions of the specification are compatible, and the data are read accordingly."""
    fits = reader == writer or (writer, reader) in PROMOTIONS
    assert (check(reader, writer) == []) is fits
    if (writer, reader) in PROMOTIONS:
        datum, read = PROMOTIONS[writer, reader]
        assert moved(writer, reader, datum) == read


# --- enums ----------------------------------------------------------------------------------------------------------


def test_enum_defaults() -> None:
    """A reader's default stands for symbols it does not know; a default of the field does not."""
    new = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    plain = {"type": "enum", "name": "E", "symbols": ["A"]}
    assert check({**plain, "default": "A"}, new) == []
    assert moved(new, {**plain, "default": "A"}, "B") == "A"
    field = record("R", {"name": "e", "type": plain, "default": "A"})
    (finding,) = check(field, record("R", ("e", new)))
    assert (finding.rule, finding.writer) == ("MISSING_ENUM_SYMBOLS", "[B]")
    assert "default symbol" in finding.fix
    with pytest.raises(DecodeError):
        moved(record("R", ("e", new)), field, {"e": "B"})


# --- logical types --------------------------------------------------------------------------------------------------


def logical(name: str, kind: str = "long", **more: int) -> dict[str, Any]:
    """A logical type."""
    return {"type": kind, "logicalType": name, **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    """A decimal on bytes."""
    return logical("decimal", "bytes", precision=precision, scale=scale)


@pytest.mark.parametrize(
    ("reader", "writer", "words"),
    [
        (logical("timestamp-micros"), logical("timestamp-millis"), "every time is off by a factor of 1,000."),
        (logical("timestamp-millis"), logical("timestamp-nanos"), "every time is off by a factor of 1,000,000."),
        (logical("time-micros"), logical("time-millis", "int"), "every time is off by a factor of 1,000."),
        (logical("local-timestamp-millis"), logical("timestamp-millis"), "they silently change meaning."),
        (decimal(9, 3), decimal(9, 2), "every number is off by a factor of 10."),
        (decimal(9, 0), decimal(9, 4), "every number is off by a factor of 10,000."),
        (decimal(8, 2), decimal(9, 2), "numbers of more than 8 digits no longer fit."),
    ],
)
def test_changes_of_logical_types_say_what_happens(reader: Any, writer: Any, words: str) -> None:
    """A warning says what becomes of the values, also inside unions, arrays and records."""
    deep = [record("R", ("x", ["null", {"type": "array", "items": side}])) for side in (reader, writer)]
    for new, old in ((reader, writer), tuple(deep)):
        (finding,) = check(new, old)
        assert (finding.rule, finding.breaks) == ("LOGICAL_TYPE_CHANGED", False)
        assert finding.why.endswith(words)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 40), st.integers(1, 40))
def test_the_factor_of_a_decimal_is_the_same_both_ways(ours: int, theirs: int, more: int, less: int) -> None:
    """Which side reads does not matter for how far numbers are off."""
    left, right = LogicalType("decimal", ours + more, ours), LogicalType("decimal", theirs + less, theirs)
    if ours != theirs:
        assert describe_consequence(left, right) == describe_consequence(right, left)


# --- single objects -------------------------------------------------------------------------------------------------


def test_the_fingerprint_of_a_single_object_is_turned_round() -> None:
    """`fingerprints` reads like Java's hex, big-endian; on the wire its bytes come in reverse (spec: little-endian)."""
    rabin = AVRO.fingerprints(parse("int"))["rabin"]
    assert rabin.hex() == "7275d51a3f395c8f"  # the value the specification's own test data has for "int"
    assert avro_single.frame(rabin, b"\x02") == bytes.fromhex("c3018f5c393f1ad5757202")
