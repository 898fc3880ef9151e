"""Parsing of XML Schemas: positions of faults, references, and hostile documents."""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

import pytest
from tests.support.time_limit import limit_time
from tests.unit.formats.xsd.xsd_schemas import XS, parse_schema, root_of, schema_text, simple_root

from stele.core.ports import Format, TextForm
from stele.errors import MalformedSchema, SteleError, UnresolvedReference
from stele.formats.xsd import XSD, ParsedXsd

TYPES = schema_text('<xs:complexType name="T"><xs:sequence><xs:element name="a"/></xs:sequence></xs:complexType>')
OTHER = schema_text('<xs:element name="o" type="xs:int"/>', 'targetNamespace="urn:o"')


def test_the_port() -> None:
    """The format satisfies the port, and has the promised names."""
    port: Format[ParsedXsd] = XSD
    assert (port.name, port.rulesets[0]) == ("xsd", "containment@1")
    assert parse_schema('<xs:element name="r"/>', 'targetNamespace="urn:t"').type_name == "{urn:t}r"
    assert parse_schema("").type_name == ""


@pytest.mark.parametrize(
    ("bad", "line", "column"),
    [
        (b"<a>\n <b>", 2, 5),
        (schema_text('\n <xs:element name="r" type="xs:nt"/>'), 2, 2),
        (schema_text("\n\n" + simple_root("xs:string", '\n<xs:pattern value="["/>')), 4, 1),
        (schema_text('\n<xs:element name="1"/>'), 2, 1),
        (b"<html/>", 1, 1),
        (b"", 1, 1),
    ],
)
def test_faults_have_places(bad: bytes, line: int, column: int) -> None:
    """An error has the line and column of the element, or of the character."""
    with pytest.raises(MalformedSchema) as caught:
        XSD.parse(bad, {})
    assert (caught.value.line, caught.value.column) == (line, column)
    assert len(caught.value.why) > 5


def test_references() -> None:
    """Includes lead to texts by schemaLocation, imports by schemaLocation or namespace, redefinitions take effect."""
    own = schema_text(
        '<xs:include schemaLocation="sub/types.xsd"/><xs:import namespace="urn:o"/>'
        '<xs:element name="r"><xs:complexType><xs:complexContent><xs:extension base="T"><xs:sequence>'
        '<xs:element ref="o:o"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType></xs:element>',
        'xmlns:o="urn:o"',
    )
    parsed = XSD.parse(own, {"sub/types.xsd": TYPES, "urn:o": OTHER}, name="main.xsd")
    assert XSD.codec(parsed).validate('<r><a/><x:o xmlns:x="urn:o">1</x:o></r>') == []
    redefined = schema_text(
        '<xs:redefine schemaLocation="./types.xsd"><xs:complexType name="T"><xs:complexContent><xs:extension base="T">'
        '<xs:attribute name="k" use="required"/></xs:extension></xs:complexContent></xs:complexType></xs:redefine>'
        '<xs:element name="r" type="T"/>'
    )
    codec = XSD.codec(XSD.parse(redefined, {"types.xsd": TYPES}))
    assert codec.validate("<r><a/></r>")
    assert codec.validate('<r k="1"><a/></r>') == []


def test_circular_includes() -> None:
    """Two documents that include one another are read once each."""
    one = schema_text('<xs:include schemaLocation="two.xsd"/><xs:element name="r" type="T"/>')
    two = schema_text(
        '<xs:include schemaLocation="one.xsd"/><xs:complexType name="T"><xs:attribute name="k"/></xs:complexType>'
    )
    assert XSD.codec(XSD.parse(one, {"two.xsd": two}, name="one.xsd")).validate("<r/>") == []


@pytest.mark.parametrize("kind", ["include", "redefine", "import"])
@pytest.mark.parametrize("target", ["file", "http"])
def test_nothing_is_fetched(kind: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schemaLocation is never opened, be it a file that exists or an address."""
    there = tmp_path / "types.xsd"
    there.write_bytes(OTHER if kind == "import" else TYPES)

    def refuse(*_: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    locations = ["types.xsd", there.as_uri(), str(there)] if target == "file" else ["http://127.0.0.1:9/types.xsd"]
    for location in locations:
        namespace = ' namespace="urn:o"' if kind == "import" else ""
        with pytest.raises(UnresolvedReference, match="not among the references"):
            XSD.parse(schema_text(f'<xs:{kind} schemaLocation="{location}"{namespace}/>'), {})


def definition_chain(count: int, step: str, end: str) -> str:
    """Definitions each of which uses the next."""
    return "".join(step.format(i, i + 1) for i in range(count)) + end.format(count)


LAUGHS = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
HOSTILE = {
    "billion laughs": f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]><xs:schema {XS}>&l9;</xs:schema>'.encode(),
    "external entity": f'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hosts">]><xs:schema {XS}>&e;</xs:schema>'.encode(),
    "external subset": f'<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd"><xs:schema {XS}/>'.encode(),
    "laughs in UTF-16": f'<!DOCTYPE x [<!ENTITY a "b">]><xs:schema {XS}/>'.encode("utf-16"),
    "deep nesting": b"<a>" * 100_000,
    "ten megabytes": schema_text("<!--" + "x" * 10_000_000 + "-->"),
    "too many elements": schema_text('<xs:element name="e"/>' * 50_000),
    "doubling groups": schema_text(
        definition_chain(
            40,
            '<xs:group name="g{0}"><xs:sequence><xs:group ref="g{1}"/><xs:group ref="g{1}"/></xs:sequence></xs:group>',
            '<xs:group name="g{0}"><xs:sequence><xs:element name="x"/></xs:sequence></xs:group>',
        )
    ),
    "group inside itself": schema_text('<xs:group name="g"><xs:sequence><xs:group ref="g"/></xs:sequence></xs:group>'),
    "long derivation": schema_text(
        definition_chain(
            3000,
            '<xs:simpleType name="s{0}"><xs:restriction base="s{1}"/></xs:simpleType>',
            '<xs:simpleType name="s{0}"><xs:restriction base="xs:int"/></xs:simpleType>',
        )
    ),
    "pattern nested too deep": schema_text(simple_root("xs:string", f'<xs:pattern value="{"(" * 500}a{")" * 500}"/>')),
    "huge quantifier": schema_text(simple_root("xs:string", '<xs:pattern value="a{99999999999}"/>')),
    "huge length": schema_text(simple_root("xs:string", f'<xs:length value="{"9" * 5000}"/>')),
    "assertion that counts": schema_text(root_of('<xs:sequence/><xs:assert test="count(1 to 99999999999) > 1"/>')),
    "assertion with a regular expression": schema_text(
        root_of("<xs:sequence/><xs:assert test=\"matches(., '(a+)+b')\"/>")
    ),
    "assertion that reads": schema_text(root_of("<xs:sequence/><xs:assert test=\"doc('file:///etc/passwd')\"/>")),
    "null byte": schema_text("\0"),
    "not UTF-8": b"<xs:schema \xff\xfe/>",
    "unknown encoding": b'<?xml version="1.0" encoding="nope"?><a/>',
}


@pytest.mark.parametrize("bad", HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents_are_refused(bad: bytes) -> None:
    """Documents that try to exhaust resources or to read files are rejected with a message within seconds."""
    with limit_time(30, time.monotonic), pytest.raises(MalformedSchema):
        XSD.parse(bad, {})


def test_pattern_bombs_are_harmless() -> None:
    """A pattern that takes a backtracking engine for ever is parsed, used while parsing, and matched at once."""
    with limit_time(30, time.monotonic):
        bomb = '<xs:pattern value="(a+)+b"/>'
        codec = XSD.codec(parse_schema(simple_root("xs:string", bomb)))
        assert codec.validate(f"<r>{'a' * 5000}b</r>") == []
        assert codec.validate(f"<r>{'a' * 5000}</r>")
        with pytest.raises(MalformedSchema):
            parse_schema(
                f'<xs:simpleType name="s"><xs:restriction base="xs:string">{bomb}</xs:restriction></xs:simpleType>'
                + simple_root("s", f'<xs:enumeration value="{"a" * 5000}"/>')
            )


def test_versions() -> None:
    """Features of 1.1 make a document 1.1; all others stay 1.0."""
    assert parse_schema(simple_root("xs:int")).version == "1.0"
    asserted = parse_schema(root_of('<xs:attribute name="a" type="xs:int"/><xs:assert test="@a > 3"/>'))
    assert asserted.version == "1.1"
    codec = XSD.codec(asserted)
    assert codec.validate('<r a="4"/>') == []
    assert codec.validate('<r a="3"/>')


def test_canonical_forms() -> None:
    """Style does not change the printed text; annotations are printed, but left out of the canonical form."""
    plain = parse_schema(
        '<xs:element name="r" type="xs:int"><xs:annotation><xs:documentation>A <b>b</b></xs:documentation>'
        "</xs:annotation></xs:element>"
    )
    styled = parse_schema(
        "\n <!-- c --> <xs:element type='xs:int'   name='r' >\n<xs:annotation ><xs:documentation>A <b>b</b>"
        "</xs:documentation> </xs:annotation>\n </xs:element>"
    )
    bare = parse_schema('<xs:element id="x" name="r" type="xs:int"/>')
    assert XSD.canonical(plain, TextForm.PRINTED) == XSD.canonical(styled, TextForm.PRINTED)
    assert b"A <b>b</b>" in XSD.canonical(plain, TextForm.NORMALIZED)
    assert XSD.canonical(plain, TextForm.CANONICAL) == XSD.canonical(bare, TextForm.CANONICAL)
    prints = XSD.fingerprints(plain)
    assert prints == XSD.fingerprints(bare)
    assert {kind: len(value) for kind, value in prints.items()} == {"sha256": 32, "md5": 16}


def test_every_refusal_is_ours() -> None:
    """Malformed parts of a schema raise one of our errors or parse, whatever the library raises."""
    good = schema_text(root_of("<xs:sequence><xs:element name='a' type='xs:int' minOccurs='0'/></xs:sequence>"))
    for index in range(0, len(good), 3):
        for change in (b"", b"<", b'"', b"xs:"):
            with contextlib.suppress(SteleError):
                XSD.parse(good[:index] + change + good[index + 1 :], {})
