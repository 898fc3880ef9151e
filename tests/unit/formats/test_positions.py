"""Where the declarations of a schema stand in its text, in every language that has a text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.errors import MalformedSchema
from stele.formats.json_reader import locate_values
from stele.formats.registry import get_format as find_format

AVRO = """{
  "type": "record", "name": "Order", "namespace": "shop",
  "fields": [
    {"name": "id", "type": "long"},
    {"name": "lines", "type": {"type": "array", "items":
      {"type": "record", "name": "Line", "fields": [
        {"name": "sku", "type": "string"}]}}},
    {"name": "state", "type": {"type": "enum", "name": "other.State", "symbols": ["OPEN",
      "PAID"]}}
  ]
}
"""
PROTOBUF = """syntax = "proto3";
package shop;

// An order.
message Order {
  int64 id = 1;
  message Line { string sku = 1; }
  oneof how {
    string card = 2;
  }
  enum State { OPEN = 0;
    PAID = 1; }
}
service Shop { rpc Find(Order) returns (Order); }
"""
JSON = """{
  "type": "object",
  "properties": {
    "id": {"type": "integer"},
    "a/b": {
      "type": "string"
    }
  },
  "required": ["id"]
}
"""
THRIFT = """namespace java shop

/** An order. */
struct Order {
  1: required i64 id
  2: string note
}
enum State { OPEN = 0,
  PAID = 1 }
service Shop {
  Order find(1: i64 id)
}
"""
XSD = """<?xml version="1.0"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:element name="order">
    <xs:complexType>
      <xs:sequence><xs:element name="id" type="xs:long"/>
        <xs:element name="note" type="xs:string"/></xs:sequence>
      <xs:attribute name="state" type="State"/>
    </xs:complexType>
  </xs:element>
  <xs:simpleType name="State"><xs:restriction base="xs:string"/></xs:simpleType>
</xs:schema>
"""


def get_format(name: str) -> Any:
    """The format, with what only some formats have."""
    return find_format(name)


PLACES = [
    ("avro", AVRO, {"/": (1, 1), "/fields/0": (4, 5), "/fields/0/type": (4, 20), "shop.Order": (1, 1)}),
    ("avro", AVRO, {"shop.Order.lines": (5, 5), "shop.Line": (5, 49), "shop.Line.sku": (7, 9)}),
    ("avro", AVRO, {"other.State.PAID": (9, 7), "/fields/2/type/symbols/1": (9, 7)}),
    ("protobuf", PROTOBUF, {"/": (1, 1), "shop.Order": (5, 1), "shop.Order.id": (6, 3), "shop.Order.Line": (7, 3)}),
    ("protobuf", PROTOBUF, {"shop.Order.Line.sku": (7, 18), "shop.Order.how": (8, 3), "shop.Order.card": (9, 5)}),
    ("protobuf", PROTOBUF, {"shop.Order.State.PAID": (12, 5), "shop.Shop.Find": (14, 16)}),
    ("json", JSON, {"#": (1, 1), "#/properties/id": (4, 5), "#/properties/a~1b/type": (6, 7), "#/required/0": (9, 16)}),
    ("thrift", THRIFT, {"/": (1, 1), "Order": (4, 1), "Order.id": (5, 3), "Order.note": (6, 3), "State": (8, 1)}),
    ("thrift", THRIFT, {"State.PAID": (9, 3), "Shop": (10, 1), "Shop.find": (11, 3), "Shop.find.id": (11, 14)}),
    ("xsd", XSD, {"/": (2, 1), "/order": (3, 3), "/order/id": (5, 20), "/order/note": (6, 9)}),
    ("xsd", XSD, {"/order/@state": (7, 7), "/type(State)": (10, 3)}),
    ("xsd", "\n\n" + XSD, {"/order": (5, 3)}),
]


@pytest.mark.parametrize(("name", "text", "expected"), PLACES)
def test_declarations_are_found_in_the_text(name: str, text: str, expected: dict[str, tuple[int, int]]) -> None:
    """Paths of findings and of outlines lead to the line and column where the declaration begins."""
    fmt = get_format(name)
    data = text.encode()
    positions = fmt.positions(fmt.parse(data, {}), data)
    assert {path: tuple(positions[path]) for path in expected} == expected


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, text, _ in PLACES])
def test_every_declaration_of_an_outline_has_a_position(name: str, text: str) -> None:
    """Every node of an outline has a position in the text."""
    fmt = get_format(name)
    parsed = fmt.parse(text.encode(), {})
    listed = {node.path for node in fmt.outline(parsed)} - {"namespace java"}
    assert listed <= fmt.positions(parsed, text.encode()).keys()


def test_a_descriptor_has_no_positions() -> None:
    """A Protobuf schema without source text has no lines."""
    fmt = get_format("protobuf")
    descriptor = fmt.render(fmt.parse(PROTOBUF.encode(), {}), "serialized").encode()
    assert fmt.positions(fmt.parse(descriptor, {}), descriptor) == {}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def list_pointers(value: object, pointer: str = "") -> list[str]:
    """Every JSON Pointer of a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = (list_pointers(item, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}") for key, item in items)
    return [pointer, *(each for one in below for each in one)]


@given(JSON_VALUES, st.sampled_from([None, 1]))
def test_every_value_of_a_json_document_is_located(value: object, indent: int | None) -> None:
    """The scanner finds the pointers that a parser finds, at places where a value or its name begins."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    positions = locate_values(text.encode())
    assert sorted(positions) == sorted(list_pointers(value))
    lines = text.split("\n")
    for pointer, (line, column) in positions.items():
        last = pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        begins = lines[line - 1][column - 1 :]
        assert begins.startswith(json.dumps(last, ensure_ascii=False)) or begins[0] not in " ,:]}"


def test_a_text_that_is_not_json_has_no_positions() -> None:
    """The scanner rejects every text that the decoder rejects."""
    with pytest.raises(MalformedSchema):
        locate_values(b'{"a": ]')
