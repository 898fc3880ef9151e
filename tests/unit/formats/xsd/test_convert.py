"""Conversion of XML Schema to the neutral model, feature by feature."""

from __future__ import annotations

from typing import Any

import pytest

from stele.errors import CannotConvert, InvalidRequest
from stele.formats.capabilities import FromModel, ToModel
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    Fixed,
    Loss,
    Model,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
    Union,
    UnionOption,
)
from stele.formats.xsd import XSD


def read_model(body: str, element: str = "", space: str = "") -> tuple[Model, list[Loss]]:
    """The model of a schema with these declarations."""
    target = f' targetNamespace="{space}" xmlns="{space}" elementFormDefault="qualified"' if space else ""
    text = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"{target}>{body}</xs:schema>'
    return XSD.to_model(XSD.parse(text.encode(), {}), element)


def read_content(inner: str, attributes: str = "", more: str = "", mixed: str = "false") -> tuple[Model, list[Loss]]:
    """The model of an element `r` with that content."""
    kind = f'<xs:complexType mixed="{mixed}">{inner}{attributes}</xs:complexType>'
    return read_model(f'<xs:element name="r">{kind}</xs:element>{more}')


def fields_of(model: Model) -> dict[str, RecordField]:
    """The fields of the root."""
    assert isinstance(model.root, TypeReference)
    record = model.types[model.root.name]
    assert isinstance(record, RecordType)
    return {field.name: field for field in record.fields}


def element_declaration(name: str, kind: str = "xs:int", rest: str = "") -> str:
    """A declaration."""
    return f'<xs:element name="{name}" type="{kind}" {rest}/>'


def restricted_type(base: str, facets: str) -> str:
    """A global simple type `T`."""
    return f'<xs:simpleType name="T"><xs:restriction base="{base}">{facets}</xs:restriction></xs:simpleType>'


def test_xml_schema_is_read_and_not_written() -> None:
    """XML Schema can be converted to the model, but not from it."""
    assert isinstance(XSD, ToModel)
    assert not isinstance(XSD, FromModel)


@pytest.mark.parametrize(
    ("word", "kind", "words"),
    [
        ("boolean", Scalar(ScalarKind.BOOLEAN), set()),
        ("byte", Scalar(ScalarKind.INT8), set()),
        ("unsignedLong", Scalar(ScalarKind.UINT64), set()),
        ("integer", Scalar(ScalarKind.INTEGER), set()),
        ("decimal", Decimal(None), set()),
        ("float", Scalar(ScalarKind.FLOAT32), set()),
        ("double", Scalar(ScalarKind.FLOAT64), set()),
        ("string", Scalar(ScalarKind.STRING), set()),
        ("base64Binary", Scalar(ScalarKind.BYTES), set()),
        ("date", Scalar(ScalarKind.DATE), {"ZONE"}),
        ("time", Time(), {"ZONE"}),
        ("dateTime", Timestamp(utc=False), {"ZONE"}),
        ("duration", Duration(TimeUnit.MILLI, calendar=True), {"PRECISION"}),
        ("gYear", Scalar(ScalarKind.STRING), set()),
        ("ID", Scalar(ScalarKind.STRING), {"IDENTITY"}),
        ("anySimpleType", Scalar(ScalarKind.STRING), {"ANY"}),
        ("anyType", Scalar(ScalarKind.ANY), {"ANY"}),
        ("NMTOKENS", Array(Scalar(ScalarKind.STRING)), set()),
    ],
)
def test_built_in_types_have_their_kinds(word: str, kind: Type, words: set[str]) -> None:
    """Each family of built-in types has its kind and its losses."""
    model, losses = read_model(element_declaration("r", f"xs:{word}"))
    assert model.root == kind
    assert {loss.what for loss in losses} == words


@pytest.mark.parametrize(
    ("base", "facets", "kind", "constraints"),
    [
        ("xs:integer", '<xs:minInclusive value="0"/><xs:maxInclusive value="9"/>', Scalar(ScalarKind.INT32), (0, 9)),
        ("xs:int", '<xs:minInclusive value="1"/>', Scalar(ScalarKind.INT32), (1, None)),
        ("xs:decimal", '<xs:totalDigits value="9"/><xs:fractionDigits value="2"/>', Decimal(9, 2), (None, None)),
    ],
)
def test_numbers_keep_their_bounds(base: str, facets: str, kind: Type, constraints: tuple[Any, Any]) -> None:
    """Facets select the width, and become constraints if the width does not express them."""
    field = fields_of(
        read_content(f"<xs:sequence>{element_declaration('x', 'T')}</xs:sequence>", more=restricted_type(base, facets))[
            0
        ]
    )["x"]
    assert field.type == kind
    assert (field.constraints.get("minimum"), field.constraints.get("maximum")) == constraints
    assert not {"exclusiveMinimum", "exclusiveMaximum"} & field.constraints.keys()


def test_texts_keep_length_pattern_and_lists_of_values() -> None:
    """Facets of strings become JSON Schema keywords; a pattern with syntax of XML Schema only is a loss."""
    facets = '<xs:maxLength value="3"/><xs:pattern value="[A-Z]+"/>'
    inner = f"<xs:sequence>{element_declaration('x', 'T')}</xs:sequence>"
    field = fields_of(read_content(inner, more=restricted_type("xs:token", facets))[0])["x"]
    assert field.constraints == {"maxLength": 3, "pattern": "^(?:[A-Z]+)$"}
    odd = read_content(inner, more=restricted_type("xs:token", r'<xs:pattern value="\i\c*"/>'))[1]
    assert [loss.what for loss in odd] == ["CONSTRAINT"]
    model, _ = read_content(
        inner, more=restricted_type("xs:token", '<xs:enumeration value="a"/><xs:enumeration value="b c"/>')
    )
    listed = model.types["T"]
    assert isinstance(listed, Enumeration)
    assert [symbol.name for symbol in listed.symbols] == ["a", "b c"]
    assert read_content(inner, more=restricted_type("xs:hexBinary", '<xs:length value="4"/>'))[0].types["T"] == Fixed(
        "T", 4
    )


def test_unions_and_lists() -> None:
    """A union has the distinct types of its members, a list is an array."""
    more = '<xs:simpleType name="U"><xs:union memberTypes="xs:int xs:string xs:token"/></xs:simpleType>'
    assert read_model(element_declaration("r", "U") + more)[0].root == Union(
        (UnionOption(Scalar(ScalarKind.INT32), "int"), UnionOption(Scalar(ScalarKind.STRING), "string"))
    )


def test_occurrence_decides_about_lists_and_absence() -> None:
    """An optional element is not required, a repeated one is a list, a nillable one is nullable."""
    parts = [
        *(
            element_declaration("a"),
            element_declaration("b", rest='minOccurs="0"'),
            element_declaration("c", rest='minOccurs="2" maxOccurs="3"'),
        ),
        *(
            element_declaration("d", rest='nillable="true"'),
            element_declaration("e", rest='default="7"'),
            element_declaration("f", rest='fixed="8"'),
        ),
    ]
    fields = fields_of(read_content(f"<xs:sequence>{''.join(parts)}</xs:sequence>")[0])
    assert [(f.required, f.nullable, f.default) for f in fields.values()] == [
        *((True, False, ABSENT), (False, False, ABSENT), (True, False, ABSENT)),
        *((True, True, ABSENT), (True, False, 7), (True, False, 8)),
    ]
    assert fields["c"].type == Array(Scalar(ScalarKind.INT32))
    assert fields["c"].constraints == {"minItems": 2, "maxItems": 3}
    assert fields["f"].constraints == {"const": 8}


def test_choices_are_groups_when_they_are_simple() -> None:
    """A choice of elements becomes a group; the limits of other choices are lost, which is reported."""
    model, _ = read_content(f"<xs:choice>{element_declaration('a')}{element_declaration('b')}</xs:choice>")
    record = model.types["r"]
    assert isinstance(record, RecordType)
    assert record.at_most_one == {"choice": ("a", "b")}
    assert not any(field.required for field in record.fields)
    sequence = f"<xs:sequence>{element_declaration('b')}{element_declaration('c')}</xs:sequence>"
    nested = f"<xs:choice>{element_declaration('a')}{sequence}</xs:choice>"
    assert [loss.what for loss in read_content(nested)[1]] == ["CHOICE"]
    repeated, losses = read_content(
        f'<xs:choice maxOccurs="unbounded">{element_declaration("a")}{element_declaration("b")}</xs:choice>'
    )
    assert all(isinstance(field.type, Array) for field in fields_of(repeated).values())
    assert [(loss.what, loss.data) for loss in losses] == [("ORDER", True)]


def test_attributes_and_text_are_fields() -> None:
    """Attributes stand beside elements; text beside attributes is `value`."""
    attributes = (
        '<xs:attribute name="id" type="xs:int" use="required"/><xs:attribute name="n" type="xs:int" default="1"/>'
    )
    inner = f'<xs:simpleContent><xs:extension base="xs:string">{attributes}</xs:extension></xs:simpleContent>'
    model, losses = read_content(inner)
    fields = fields_of(model)
    assert [(f.name, f.required, f.default) for f in fields.values()] == [
        *(("id", True, ABSENT), ("n", False, 1), ("value", True, ABSENT))
    ]
    assert [loss.what for loss in losses] == ["ATTRIBUTE"]
    both = read_content(f"<xs:all>{element_declaration('id')}</xs:all>", '<xs:attribute name="id" type="xs:int"/>')[0]
    assert set(fields_of(both)) == {"id", "id_2"}


def test_what_has_no_place_is_a_loss_of_data() -> None:
    """Mixed text, wildcards, and derived types that can replace a type are losses of data."""
    losses = read_content('<xs:sequence><xs:any minOccurs="0"/></xs:sequence>', "<xs:anyAttribute/>", mixed="true")[1]
    assert [(loss.what, loss.data) for loss in losses] == [("ANY", True), ("ANY", True), ("MIXED", True)]
    base = '<xs:complexType name="B"/><xs:complexType name="D"><xs:complexContent><xs:extension base="B"/>'
    derived = f"{element_declaration('r', 'B')}{base}</xs:complexContent></xs:complexType>"
    assert [(loss.what, loss.data) for loss in read_model(derived)[1]] == [("SUBTYPE", True)]


def test_substitution_groups_are_choices() -> None:
    """Every element that can replace a head becomes a field of a group; that others can join is a loss."""
    more = element_declaration("h") + element_declaration("m", rest='substitutionGroup="h"')
    model, losses = read_content('<xs:sequence><xs:element ref="h"/></xs:sequence>', more=more)
    record = model.types["r"]
    assert isinstance(record, RecordType)
    assert record.at_most_one == {"choice": ("h", "m")}
    assert [loss.what for loss in losses] == ["SUBSTITUTION"]


def test_names_documentation_and_circles() -> None:
    """Namespaces become packages, documentation is kept, a type inside itself is named."""
    note = "<xs:annotation><xs:documentation>words</xs:documentation></xs:annotation>"
    inside = element_declaration("n", "N", 'minOccurs="0"')
    kind = f'<xs:complexType name="N">{note}<xs:sequence>{inside}</xs:sequence></xs:complexType>'
    model, _ = read_model(element_declaration("r", "N") + kind, space="http://www.acme.com/orders/v1")
    assert list(model.types) == ["com.acme.orders.v1.N"]
    assert model.types["com.acme.orders.v1.N"].doc == "words"
    assert fields_of(model)["n"].type == model.root


def test_an_element_is_chosen_by_name() -> None:
    """The first global element is the default; unknown names, and schemas without elements, are refused."""
    both = element_declaration("a") + element_declaration("b", "xs:string")
    assert read_model(both)[0].root == Scalar(ScalarKind.INT32)
    assert read_model(both, "b")[0].root == Scalar(ScalarKind.STRING)
    with pytest.raises(InvalidRequest):
        read_model(both, "c")
    with pytest.raises(CannotConvert):
        read_model('<xs:complexType name="T"/>')


def test_long_chains_of_types_end() -> None:
    """A thousand types, each inside the previous one and the last around the first, cause no recursion error."""
    kinds = "".join(
        f'<xs:complexType name="C{n}"><xs:sequence><xs:element name="x" type="C{(n + 1) % 1000}" minOccurs="0"/>'
        "</xs:sequence></xs:complexType>"
        for n in range(1_000)
    )
    assert len(read_model(element_declaration("r", "C0") + kinds)[0].types) == 1_000
