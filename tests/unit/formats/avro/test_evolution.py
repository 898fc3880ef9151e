"""Changes of Avro schemas: recursion, references, aliases, promotions, enum defaults, logical types."""

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
from stele.formats.avro.model import LogicalType, describe_consequence
from stele.wire import avro_single


def parse_schema(value: Any, references: Mapping[str, Any] | None = None) -> AvroSchema:
    """A schema given as a JSON value."""
    texts = {name: json.dumps(body).encode() for name, body in (references or {}).items()}
    return AVRO.parse(json.dumps(value).encode(), texts)


def make_record(name: str, *fields: Any, **more: Any) -> dict[str, Any]:
    """A record; a field given as a pair is a name and a type."""
    shaped = [field if isinstance(field, dict) else {"name": field[0], "type": field[1]} for field in fields]
    return {"type": "record", "name": name, "fields": shaped, **more}


def check_schemas(reader: Any, writer: Any) -> list[Finding]:
    """Compare two schemas given as JSON values."""
    return AVRO.check(parse_schema(reader), parse_schema(writer))


def write_and_read(writer: Any, reader: Any, datum: Any) -> Any:
    """A datum after it was written with one schema and read with another."""
    return AVRO.codec(parse_schema(writer), parse_schema(reader)).decode(AVRO.codec(parse_schema(writer)).encode(datum))


# --- recursion ------------------------------------------------------------------------------------------------------


def make_chain(kind: str) -> dict[str, Any]:
    """A list whose values are of a type."""
    return make_record("Node", ("value", kind), ("next", ["null", "Node"]))


def make_mutual_records(kind: str) -> dict[str, Any]:
    """A and B contain each other, through a union, a map and an array."""
    inner = make_record("B", ("x", kind), ("all", {"type": "map", "values": {"type": "array", "items": "A"}}))
    return make_record("A", ("b", ["null", inner]))


def test_recursive_data_survives_a_promotion() -> None:
    """Data of a type that contains itself are read at every depth, promoted on the way."""
    datum = {"value": 1, "next": {"value": 2, "next": {"value": 3, "next": None}}}
    assert check_schemas(make_chain("long"), make_chain("int")) == []
    assert write_and_read(make_chain("int"), make_chain("long"), datum) == datum
    tree = {"b": {"x": 1, "all": {"k": [{"b": None}, {"b": {"x": 2, "all": {}}}]}}}
    assert check_schemas(make_mutual_records("double"), make_mutual_records("int")) == []
    assert write_and_read(make_mutual_records("int"), make_mutual_records("double"), tree) == tree


def test_a_break_inside_a_recursion_is_found_and_explained_once() -> None:
    """There is one finding, at the path where the types differ, although the cycle passes it many times."""
    (finding,) = check_schemas(make_chain("int"), make_chain("long"))
    assert (finding.rule, finding.path) == ("TYPE_MISMATCH", "/fields/0/type")
    (finding,) = check_schemas(make_mutual_records("int"), make_mutual_records("string"))
    assert finding.rule == "MISSING_UNION_BRANCH"
    assert "TYPE_MISMATCH at /fields/0/type/1/fields/0/type" in finding.why


def test_circles_of_different_lengths_are_compared() -> None:
    """A list of one kind of node reads a list of two kinds in turn: the comparison ends, and so does reading."""
    two = make_record("Node", ("next", ["null", make_record("Other", ("next", ["null", "Node"]))]))
    one = make_record("Node", ("next", ["null", "Node"]), aliases=["Other"])
    assert check_schemas(one, two) == []
    datum = {"next": {"next": {"next": None}}}
    assert write_and_read(two, one, datum) == datum


# --- references -----------------------------------------------------------------------------------------------------

CURRENCY = {"type": "enum", "name": "Currency", "namespace": "shop", "symbols": ["EUR"]}
MONEY = make_record("Money", ("currency", "Currency"), namespace="shop")
ITEM = make_record("Item", ("price", "Money"), ("tax", "shop.Money"), namespace="shop")


def test_references_over_several_documents() -> None:
    """Named types of documents that refer to each other are known, by full name or by the namespace in force."""
    references = {"shop.Currency": CURRENCY, "shop.Money": MONEY, "shop.Item": ITEM}
    order = make_record("Order", ("item", "Item"), ("fee", "shop.Money"), ("currency", "Currency"), namespace="shop")
    paths = [field.path for field in AVRO.fields(parse_schema(order, references))]
    assert paths == [
        *("item", "item.price", "item.price.currency", "item.tax", "item.tax.currency"),
        *("fee", "fee.currency", "currency"),
    ]


def test_the_namespace_is_inherited_and_left() -> None:
    """A name without dots is looked up in the enclosing namespace, then in none; inner namespaces apply only inside."""
    inner = make_record("Inner", ("c", "Currency"), ("plain", "Plain"), namespace="shop")
    schema = make_record("Outer", ("i", inner), ("again", "shop.Inner"), ("p", "Plain"), namespace="other")
    references = {"shop.Currency": CURRENCY, "Plain": {"type": "fixed", "name": "Plain", "size": 1}}
    parsed_schema = parse_schema(schema, references)
    assert [field.type for field in AVRO.fields(parsed_schema)][:3] == ["shop.Inner", "shop.Currency", "Plain"]
    with pytest.raises(UnresolvedReference, match="'Inner' is not defined"):
        parse_schema(make_record("Outer", ("i", inner), ("again", "Inner"), namespace="other"), references)


def test_a_name_defined_twice_says_where_first() -> None:
    """Whichever document defines a name again, the error names the reference that had it first."""
    with pytest.raises(MalformedSchema, match=r"'again': /name: 'shop\.Currency' .* in the reference 'shop\.Currency'"):
        parse_schema("string", {"shop.Currency": CURRENCY, "again": CURRENCY})
    with pytest.raises(MalformedSchema, match=r"twice, first in the reference 'shop\.Currency'") as caught:
        parse_schema(make_record("R", ("c", CURRENCY)), {"shop.Currency": CURRENCY})
    assert caught.value.path == "/fields/0/type/name"
    with pytest.raises(MalformedSchema, match="defined twice") as caught:
        parse_schema(make_record("R", ("a", CURRENCY), ("b", CURRENCY)))
    assert "reference" not in caught.value.why


def test_references_come_in_order() -> None:
    """A reference that names a later one is refused with a hint at the order."""
    with pytest.raises(UnresolvedReference, match=r"'shop\.Money'.*reference that comes before"):
        parse_schema("string", {"shop.Money": MONEY, "shop.Currency": CURRENCY})


def test_a_change_inside_a_reference_is_a_change() -> None:
    """The types of references are compared as if they were part of the schema."""
    grown = {**CURRENCY, "symbols": ["EUR", "CHF"]}
    order = make_record("Order", ("m", "Money"), namespace="shop")
    old, new = (parse_schema(order, {"shop.Currency": each, "shop.Money": MONEY}) for each in (CURRENCY, grown))
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
    """A renamed type reads the old one by its alias. An alias without dots is in the type's own namespace."""
    old = make_record("Old", ("a", "int"), namespace="n")
    new = make_record(name, ("a", "int"), namespace="n", aliases=aliases)
    findings = check_schemas(new, old)
    assert (findings == []) is fits
    assert all("aliases" in finding.fix for finding in findings)


def test_aliases_of_fields_move_data() -> None:
    """A renamed field takes the old one's values; without the alias it would need a default."""
    old = make_record("R", ("a", "int"))
    new = make_record("R", {"name": "b", "type": "long", "aliases": ["a"]})
    assert check_schemas(new, old) == []
    assert write_and_read(old, new, {"a": 1}) == {"b": 1}
    (finding,) = check_schemas(make_record("R", ("b", "long")), old)
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
    assert (check_schemas(reader, writer) == []) is fits
    if (writer, reader) in PROMOTIONS:
        datum, read = PROMOTIONS[writer, reader]
        assert write_and_read(writer, reader, datum) == read


# --- enums ----------------------------------------------------------------------------------------------------------


def test_enum_defaults() -> None:
    """The default of a reader's enum replaces unknown symbols; the default of the field does not."""
    new = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    plain = {"type": "enum", "name": "E", "symbols": ["A"]}
    assert check_schemas({**plain, "default": "A"}, new) == []
    assert write_and_read(new, {**plain, "default": "A"}, "B") == "A"
    field = make_record("R", {"name": "e", "type": plain, "default": "A"})
    (finding,) = check_schemas(field, make_record("R", ("e", new)))
    assert (finding.rule, finding.writer) == ("MISSING_ENUM_SYMBOLS", "[B]")
    assert "default symbol" in finding.fix
    with pytest.raises(DecodeError):
        write_and_read(make_record("R", ("e", new)), field, {"e": "B"})


# --- logical types --------------------------------------------------------------------------------------------------


def make_logical_type(name: str, kind: str = "long", **more: int) -> dict[str, Any]:
    """A logical type."""
    return {"type": kind, "logicalType": name, **more}


def make_decimal(precision: int, scale: int) -> dict[str, Any]:
    """A decimal on bytes."""
    return make_logical_type("decimal", "bytes", precision=precision, scale=scale)


@pytest.mark.parametrize(
    ("reader", "writer", "words"),
    [
        (
            make_logical_type("timestamp-micros"),
            make_logical_type("timestamp-millis"),
            "every time is off by a factor of 1,000.",
        ),
        (
            make_logical_type("timestamp-millis"),
            make_logical_type("timestamp-nanos"),
            "every time is off by a factor of 1,000,000.",
        ),
        (
            make_logical_type("time-micros"),
            make_logical_type("time-millis", "int"),
            "every time is off by a factor of 1,000.",
        ),
        (
            make_logical_type("local-timestamp-millis"),
            make_logical_type("timestamp-millis"),
            "they silently change meaning.",
        ),
        (make_decimal(9, 3), make_decimal(9, 2), "every number is off by a factor of 10."),
        (make_decimal(9, 0), make_decimal(9, 4), "every number is off by a factor of 10,000."),
        (make_decimal(8, 2), make_decimal(9, 2), "numbers of more than 8 digits no longer fit."),
    ],
)
def test_changes_of_logical_types_say_what_happens(reader: Any, writer: Any, words: str) -> None:
    """A warning says what becomes of the values, also inside unions, arrays and records."""
    deep = [make_record("R", ("x", ["null", {"type": "array", "items": side}])) for side in (reader, writer)]
    for new, old in ((reader, writer), tuple(deep)):
        (finding,) = check_schemas(new, old)
        assert (finding.rule, finding.breaks) == ("LOGICAL_TYPE_CHANGED", False)
        assert finding.why.endswith(words)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 40), st.integers(1, 40))
def test_the_factor_of_a_decimal_is_the_same_both_ways(ours: int, theirs: int, more: int, less: int) -> None:
    """The factor by which decimals are wrong is the same whichever side reads."""
    left, right = LogicalType("decimal", ours + more, ours), LogicalType("decimal", theirs + less, theirs)
    if ours != theirs:
        assert describe_consequence(left, right) == describe_consequence(right, left)


# --- single objects -------------------------------------------------------------------------------------------------


def test_the_fingerprint_of_a_single_object_is_turned_round() -> None:
    """`fingerprints` returns big-endian bytes like Java's hex; a single object has them in reverse (little-endian)."""
    rabin = AVRO.fingerprints(parse_schema("int"))["rabin"]
    assert rabin.hex() == "7275d51a3f395c8f"  # the value the specification's own test data has for "int"
    assert avro_single.frame(rabin, b"\x02") == bytes.fromhex("c3018f5c393f1ad5757202")
