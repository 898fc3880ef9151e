"""Schemas made to hurt, found by fuzzing or by looking: each ends in a clear error, or an answer, soon."""

from __future__ import annotations

from time import process_time

import pytest

from stele.core.findings import Severity
from stele.errors import MalformedSchema
from stele.formats.xsd import XSD

SECONDS = 20.0


def schema_of(inner: str) -> bytes:
    """A schema whose element r has the simple type s, given by what defines it."""
    return (
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
        f'<xs:element name="r" type="s"/><xs:simpleType name="s">{inner}</xs:simpleType></xs:schema>'
    ).encode()


def restricted_text(facet: str, values: list[str]) -> bytes:
    """A restriction of strings by many facets."""
    facets = "".join(f'<xs:{facet} value="{value}"/>' for value in values)
    return schema_of(f'<xs:restriction base="xs:string">{facets}</xs:restriction>')


def test_unions_of_many_members() -> None:
    """Two thousand members on each side, the same few types again and again, are compared once for each two types."""
    started = process_time()
    parsed = XSD.parse(schema_of(f'<xs:union memberTypes="{"xs:int xs:string " * 1_000}"/>'), {})
    assert XSD.check(parsed, parsed) == []
    assert process_time() - started < SECONDS


def test_unions_of_many_different_members() -> None:
    """Where hundreds of different types meet hundreds of others, the effort is spent before a verdict: undecided."""

    def union(letter: str) -> bytes:
        members = (
            f'<xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="{letter}{n}(x|y)*"/></xs:restriction>'
            "</xs:simpleType>"
            for n in range(200)
        )
        return schema_of(f"<xs:union>{''.join(members)}</xs:union>")

    reader, writer = XSD.parse(union("a"), {}), XSD.parse(union("b"), {})
    started = process_time()
    findings = XSD.check(reader, writer)
    assert any(finding.breaks for finding in findings)
    assert process_time() - started < SECONDS


def test_long_code_lists() -> None:
    """Lists of thousands of codes are compared exactly: what was added is found, what was left in is fine."""
    codes = [f"C{n}" for n in range(5_000)]
    small, large = (
        XSD.parse(restricted_text("enumeration", codes), {}),
        XSD.parse(restricted_text("enumeration", [*codes, "N"]), {}),
    )
    started = process_time()
    assert XSD.check(large, small) == []
    (finding,) = XSD.check(small, large)
    assert finding.level is Severity.ERROR
    assert ">N<" in (finding.witness or "")
    assert process_time() - started < SECONDS


@pytest.mark.parametrize(
    "text",
    [
        restricted_text("enumeration", [f"C{n}" for n in range(7_000)]),
        restricted_text("pattern", [f"(a|b){{{n}}}" for n in range(700)]),
        restricted_text("pattern", ["(a|b|c)" * 1_000] * 10),
        schema_of(f'<xs:union memberTypes="{"xs:int " * 7_000}"/>'),
    ],
    ids=["elements", "patterns", "long patterns", "members"],
)
def test_too_many_components(text: bytes) -> None:
    """Schemas that would keep the library busy for seconds are refused before it sees them."""
    with pytest.raises(MalformedSchema, match="6000 are the most"):
        XSD.parse(text, {})


def test_documentation_costs_nothing() -> None:
    """What stands in annotations is no component."""
    notes = "<xs:annotation><xs:documentation>" + "<p>x</p>" * 10_000 + "</xs:documentation></xs:annotation>"
    assert XSD.parse(schema_of(f'{notes}<xs:restriction base="xs:string"/>'), {}).type_name == "r"
