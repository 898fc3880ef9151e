"""Hostile XML Schemas: each ends soon in a clear error or an answer."""

from __future__ import annotations

import pytest
from tests.support.memory import peak_memory, reset_peak_memory
from tests.support.time_limit import limit_time

from stele.core.findings import Severity
from stele.errors import MalformedSchema
from stele.formats.xsd import XSD
from stele.formats.xsd.regex import Pattern

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
    """Two unions of two thousand members of the same few types compare each pair of types once."""
    with limit_time(SECONDS):
        parsed = XSD.parse(schema_of(f'<xs:union memberTypes="{"xs:int xs:string " * 1_000}"/>'), {})
        assert XSD.check(parsed, parsed) == []


def test_unions_of_many_different_members() -> None:
    """If hundreds of different types meet hundreds of others, the budget is spent and the change is refused."""

    def union(letter: str) -> bytes:
        members = (
            f'<xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="{letter}{n}(x|y)*"/></xs:restriction>'
            "</xs:simpleType>"
            for n in range(200)
        )
        return schema_of(f"<xs:union>{''.join(members)}</xs:union>")

    reader, writer = XSD.parse(union("a"), {}), XSD.parse(union("b"), {})
    with limit_time(SECONDS):
        findings = XSD.check(reader, writer)
        assert any(finding.breaks for finding in findings)


def test_long_code_lists() -> None:
    """Lists of thousands of codes are compared exactly: an added code is found."""
    codes = [f"C{n}" for n in range(5_000)]
    small, large = (
        XSD.parse(restricted_text("enumeration", codes), {}),
        XSD.parse(restricted_text("enumeration", [*codes, "N"]), {}),
    )
    with limit_time(SECONDS):
        assert XSD.check(large, small) == []
        (finding,) = XSD.check(small, large)
        assert finding.level is Severity.ERROR
        assert ">N<" in (finding.witness or "")


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
    with pytest.raises(MalformedSchema, match="the limit is 6000"):
        XSD.parse(text, {})


def test_documentation_costs_nothing() -> None:
    """Annotations do not count as components."""
    notes = "<xs:annotation><xs:documentation>" + "<p>x</p>" * 10_000 + "</xs:documentation></xs:annotation>"
    assert XSD.parse(schema_of(f'{notes}<xs:restriction base="xs:string"/>'), {}).type_name == "r"


PATTERNS = {
    "a wide class that may be repeated": (r"[\w-[aeiou]]{1,20000}", "x?"),
    "sequences that may be skipped": ("(a|b|c|d|e)*" * 1_500, "x?"),
    "many wide classes": (r"\w?\p{L}?[^\d\s]?" * 300, r"\w?"),
    "counters in counters": ("((a?){0,50}b?){0,50}" * 100, "c?"),
    "branches in branches": ("(" * 40 + "a" + "|b)*c?" * 40, "d?"),
}


@pytest.mark.parametrize(("pattern", "more"), PATTERNS.values(), ids=PATTERNS)
def test_entangled_patterns_take_bounded_time_and_memory(pattern: str, more: str) -> None:
    """All patterns of one check share a budget; similar patterns once ran for minutes and took gigabytes."""
    old, new = (XSD.parse(restricted_text("pattern", [text]), {}) for text in (pattern, pattern + more))
    memory = reset_peak_memory()
    with limit_time(SECONDS):
        findings = XSD.check(new, old)
    assert peak_memory() - memory < 100 << 20
    assert all(finding.level is Severity.UNKNOWN for finding in findings)


def test_values_beside_entangled_patterns() -> None:
    """Defaults are matched with the patterns when the schema is read, and all of them share a budget."""

    def type_with_default(number: int) -> str:
        kind = f'<xs:restriction base="xs:string"><xs:pattern value="{"(a|b|c|d|e)*" * 60}x{number}"/></xs:restriction>'
        element = f'<xs:element name="e{number}" type="t{number}" default="{"abcde" * 20}x{number}"/>'
        return f'{element}<xs:simpleType name="t{number}">{kind}</xs:simpleType>'

    def parse_types(count: int) -> None:
        types = "".join(map(type_with_default, range(count)))
        XSD.parse(f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{types}</xs:schema>'.encode(), {})

    parse_types(2)
    with limit_time(SECONDS), pytest.raises(MalformedSchema, match="too entangled"):
        parse_types(40)


def test_a_pattern_gives_its_memory_back() -> None:
    """A pattern lives as long as its schema; the memory for matching one text is released."""
    pattern = Pattern("(a|b|c|d|e)*" * 300 + "x")
    for text in ("abcde" * 10 + "x", "edcba" * 10 + "y"):
        pattern.match(text)
        assert pattern._algebra.remembered <= 50_000
    assert Pattern("(a|b)*x").match("ab" * 100_000 + "x")
