"""Documents of XML Schemas: codec, fields and columns."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.formats.xsd.xsd_schemas import parse_schema, root_of, simple_root

from stele.core.ports import Field
from stele.errors import DecodeError, EncodeError, Invalid
from stele.formats.xsd import XSD

ORDER = """
<xs:element name="order"><xs:annotation><xs:documentation>An order</xs:documentation></xs:annotation><xs:complexType>
  <xs:sequence>
    <xs:element name="item" type="t:Item" maxOccurs="unbounded"/>
    <xs:element name="note" type="xs:string" minOccurs="0"/>
    <xs:element name="sum"><xs:simpleType><xs:restriction base="xs:decimal">
      <xs:totalDigits value="10"/><xs:fractionDigits value="2"/></xs:restriction></xs:simpleType></xs:element>
  </xs:sequence><xs:attribute name="id" type="xs:int" use="required"/></xs:complexType></xs:element>
<xs:complexType name="Item"><xs:simpleContent><xs:extension base="xs:string">
  <xs:attribute name="q" type="xs:unsignedByte" default="1"/></xs:extension></xs:simpleContent></xs:complexType>
"""
HEAD = 'targetNamespace="urn:t" xmlns:t="urn:t" elementFormDefault="qualified"'
DATUM: dict[str, Any] = {
    "order": {"@xmlns": "urn:t", "@id": 5, "item": [{"@q": 2, "$": "a"}, {"@q": 1, "$": "b"}], "sum": Decimal("1.25")}
}


def test_round_trip() -> None:
    """A dict becomes a valid document and comes back equal."""
    codec = XSD.codec(parse_schema(ORDER, HEAD))
    document = codec.encode(DATUM)
    assert b'<item q="2">a</item>' in document
    assert codec.decode(document) == DATUM
    assert codec.encode(document) == codec.encode(document.decode()) == document


def test_reader_decides() -> None:
    """Decoding validates with the reader's schema, encoding with the writer's."""
    codec = XSD.codec(parse_schema(simple_root("xs:int")), parse_schema(simple_root("xs:byte")))
    assert codec.decode(codec.encode("<r>5</r>")) == {"r": 5}
    with pytest.raises(DecodeError, match="/r"):
        codec.decode(codec.encode("<r>500</r>"))
    with pytest.raises(EncodeError):
        codec.encode("<r>x</r>")


@pytest.mark.parametrize(
    "datum",
    [
        '<order xmlns="urn:t"/>',
        "<nope/>",
        "<order",
        b"\xff",
        "\ud800",
        '<!DOCTYPE x [<!ENTITY a "b">]><order xmlns="urn:t" id="1"><item>&a;</item><sum>1</sum></order>',
        {"nope": 1},
        {"order": {"@xmlns": "urn:t", "@id": "x"}},
        {"a": 1, "b": 2},
        7,
        None,
    ],
)
def test_what_does_not_fit(datum: object) -> None:
    """Data that make no valid document are rejected by encode, decode and validate."""
    codec = XSD.codec(parse_schema(ORDER, HEAD))
    assert codec.validate(datum)
    with pytest.raises(EncodeError):
        codec.encode(datum)
    if isinstance(datum, bytes):
        with pytest.raises(DecodeError):
            codec.decode(datum)


def test_hostile_data() -> None:
    """Nesting, cycles and schema locations in data raise an error or are ignored, and are never followed."""
    anything = XSD.codec(parse_schema('<xs:element name="r"/>'))
    cycle: dict[str, Any] = {}
    cycle["r"] = cycle
    assert "nested" in anything.validate(cycle)[0]
    assert anything.validate("<r>" * 5000 + "</r>" * 5000)
    hint = '<r xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:schemaLocation="urn:x file:///etc/passwd"/>'
    assert anything.validate(hint) == []


@pytest.mark.parametrize(
    "body",
    [
        ORDER,
        simple_root("xs:string", '<xs:pattern value="[A-Z]{2}\\d{4}-[a-f]+"/>'),
        simple_root("xs:int", '<xs:minExclusive value="41"/><xs:maxInclusive value="42"/>'),
        root_of('<xs:choice><xs:element name="a" type="xs:date"/><xs:any processContents="lax"/></xs:choice>'),
        (
            '<xs:complexType name="N"><xs:sequence><xs:element name="n" type="t:N" minOccurs="0"/></xs:sequence>'
            '<xs:attribute name="i" type="xs:ID" use="required"/></xs:complexType><xs:element name="r" type="t:N"/>'
        ),
    ],
)
def test_examples_fit(body: str) -> None:
    """The example of a schema is valid, also under facets that leave little room."""
    codec = XSD.codec(parse_schema(body, HEAD))
    assert codec.validate(codec.example()) == []


def test_no_example() -> None:
    """For a schema without any document, the codec raises an error for the example."""
    with pytest.raises(EncodeError, match="no small document"):
        XSD.codec(parse_schema('<xs:simpleType name="s"><xs:restriction base="xs:int"/></xs:simpleType>')).example()


def test_fields() -> None:
    """Elements and attributes are listed with paths, types, defaults and documentation; recursion ends."""
    assert XSD.fields(parse_schema(ORDER, HEAD)) == [
        Field("order", "complex", None, "An order"),
        Field("order.@id", "int", optional=False),
        Field("order.item[]", "Item"),
        Field("order.item[].@q", "unsignedByte", "1", optional=True),
        Field("order.note", "string", optional=True),
        Field("order.sum", "decimal"),
    ]
    endless = '<xs:complexType name="N"><xs:sequence><xs:element name="n" type="N"/></xs:sequence></xs:complexType>'
    paths = [field.path for field in XSD.fields(parse_schema(endless + '<xs:element name="r" type="N"/>'))]
    assert paths == ["r", "r.n"]


def test_columns() -> None:
    """Documents become rows: repeated elements are lists, attributes beside text a struct, numbers by their range."""
    item = pa.struct([pa.field("@q", pa.uint8()), pa.field("$", pa.string())])
    assert XSD.arrow_schema(parse_schema(ORDER, HEAD)) == pa.schema(
        [
            pa.field("@id", pa.int32(), nullable=False),
            pa.field("item", pa.list_(pa.field("item", item, nullable=False)), nullable=False),
            pa.field("note", pa.string()),
            pa.field("sum", pa.decimal128(10, 2), nullable=False),
        ]
    )
    assert XSD.arrow_schema(parse_schema(simple_root("xs:double"))) == pa.schema(
        [pa.field("$", pa.float64(), nullable=False)]
    )
    with pytest.raises(Invalid, match="no global element"):
        XSD.arrow_schema(parse_schema(""))
