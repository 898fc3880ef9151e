"""Containment of XML Schemas, rule by rule."""

from __future__ import annotations

import time

import pytest
from tests.support.time_limit import limit_time
from tests.unit.formats.xsd.xsd_schemas import list_breaks, root_of, simple_root

from stele.core.findings import Severity
from stele.errors import UnknownRuleset
from stele.formats.xsd import XSD
from stele.formats.xsd.codec import is_valid

A = '<xs:element name="a" type="xs:string"/>'
B = '<xs:element name="b" type="xs:string"/>'
BASE = '<xs:complexType name="T"><xs:sequence>' + A + "</xs:sequence></xs:complexType>"
DERIVED = (
    '<xs:complexType name="U"><xs:complexContent><xs:extension base="T"><xs:sequence>' + B + "</xs:sequence>"
    "</xs:extension></xs:complexContent></xs:complexType>"
)
ROOT_T = '<xs:element name="r" type="T"/>'
HEAD = '<xs:element name="h" type="xs:string" abstract="true"/><xs:element name="m" substitutionGroup="h"/>'
KEYED = (
    '<xs:element name="r"><xs:complexType><xs:sequence>'
    '<xs:element name="i" maxOccurs="unbounded"><xs:complexType><xs:attribute name="k" type="xs:string"/>'
    "</xs:complexType></xs:element></xs:sequence></xs:complexType>{}</xs:element>"
)
UNIQUE = '<xs:unique name="u"><xs:selector xpath="i"/><xs:field xpath="@k"/></xs:unique>'
TREE = (
    '<xs:complexType name="N"><xs:sequence><xs:element name="n" type="N" minOccurs="0" maxOccurs="{}"/>'
    '</xs:sequence><xs:attribute name="v" type="{}"/></xs:complexType><xs:element name="r" type="N"/>'
)


def sequence_root(*parts: str) -> str:
    """A root with a sequence."""
    return root_of(f"<xs:sequence>{''.join(parts)}</xs:sequence>")


def repeated_root(low: int, high: int | str) -> str:
    """A root with an element that repeats."""
    return sequence_root(f'<xs:element name="a" type="xs:string" minOccurs="{low}" maxOccurs="{high}"/>')


FITS = {
    "huge counters": (repeated_root(0, 2_000_000), repeated_root(3, 1_000_000)),
    "sequence into all": (root_of(f"<xs:all>{A}{B}</xs:all>"), sequence_root(A, B)),
    "all into choice": (
        root_of(f'<xs:choice maxOccurs="unbounded">{A}{B}</xs:choice>'),
        root_of(f"<xs:all>{A}{B}</xs:all>"),
    ),
    "regrouped": (sequence_root(f"<xs:sequence>{A}{B}</xs:sequence>"), sequence_root(A, B)),
    "pairs into any number": (
        sequence_root('<xs:element name="a" type="xs:string" minOccurs="0" maxOccurs="unbounded"/>'),
        root_of(f'<xs:sequence minOccurs="2" maxOccurs="5">{A}{A}</xs:sequence>'),
    ),
    "recursive type": (TREE.format("unbounded", "xs:long"), TREE.format("3", "xs:int")),
    "member of a substitution group": (
        HEAD + sequence_root('<xs:element ref="h"/>'),
        HEAD + sequence_root('<xs:element ref="m"/>'),
    ),
    "element under skip": (sequence_root('<xs:any processContents="skip"/>'), sequence_root(A)),
    "attribute under wildcard": (
        root_of('<xs:anyAttribute processContents="lax"/>'),
        root_of('<xs:attribute name="k"/>'),
    ),
    "unique dropped": (KEYED.format(""), KEYED.format(UNIQUE)),
    "unique kept": (KEYED.format(UNIQUE), KEYED.format(UNIQUE)),
    "derived type kept": (BASE + DERIVED + ROOT_T, BASE + DERIVED + ROOT_T),
    "made mixed": (
        root_of(f"<xs:sequence>{A}</xs:sequence>").replace("complexType>", 'complexType mixed="true">', 1),
        sequence_root(A),
    ),
    "any type": ('<xs:element name="r"/>', sequence_root(A)),
    "dates from earlier on": (
        simple_root("xs:date", '<xs:minInclusive value="2000-01-01"/>'),
        simple_root("xs:date", '<xs:minInclusive value="2010-01-01"/>'),
    ),
    "few digits as a small integer": (
        simple_root("xs:short"),
        simple_root("xs:string", '<xs:pattern value="-?[0-9]{1,4}"/>'),
    ),
    "digits as integer": (simple_root("xs:integer"), simple_root("xs:string", '<xs:pattern value="[0-9]{1,4}"/>')),
    "patterns of two steps": (
        simple_root("xs:string", '<xs:pattern value="[a-c]+x?"/>'),
        simple_root("xs:string", '<xs:pattern value="[ab]+"/><xs:maxLength value="4"/>'),
    ),
    "into a union": (
        '<xs:element name="r"><xs:simpleType><xs:union memberTypes="xs:date xs:long"/></xs:simpleType></xs:element>',
        simple_root("xs:int"),
    ),
    "list of wider items": (
        '<xs:element name="r"><xs:simpleType><xs:list itemType="xs:long"/></xs:simpleType></xs:element>',
        '<xs:element name="r"><xs:simpleType><xs:list itemType="xs:int"/></xs:simpleType></xs:element>',
    ),
    "fixed to free": ('<xs:element name="r" type="xs:string"/>', '<xs:element name="r" type="xs:string" fixed="1"/>'),
    "boolean as its texts": (
        simple_root("xs:string", '<xs:pattern value="\\s*(true|false|[01])\\s*"/>'),
        simple_root("xs:string", '<xs:enumeration value="true"/>'),
    ),
}


@pytest.mark.parametrize("case", FITS.values(), ids=FITS)
def test_contained(case: tuple[str, str]) -> None:
    """The new schema takes every document of the old one, and that is proved."""
    assert list_breaks(*case) == []


BREAKS = {
    "counter lowered": (repeated_root(0, 3), repeated_root(0, 5), "CHILD_NOT_ALLOWED"),
    "minimum raised": (repeated_root(2, 9), repeated_root(1, 9), "CHILD_REQUIRED"),
    "derived type gone": (BASE + ROOT_T, BASE + DERIVED + ROOT_T, "SUBTYPE_REMOVED"),
    "type made abstract": (BASE.replace("name=", 'abstract="true" name=', 1) + ROOT_T, BASE + ROOT_T, "TYPE_ABSTRACT"),
    "member gone": (
        HEAD.replace('"m"', '"o"') + sequence_root('<xs:element ref="h"/>'),
        HEAD + sequence_root('<xs:element ref="h"/>'),
        "CHILD_NOT_ALLOWED",
    ),
    "deep in a tree": (TREE.format("unbounded", "xs:int"), TREE.format("3", "xs:long"), "VALUE_NOT_ALLOWED"),
    "unique added": (KEYED.format(UNIQUE), KEYED.format(""), "IDENTITY_ADDED"),
    "mixed dropped": (
        sequence_root(A),
        root_of(f"<xs:sequence>{A}</xs:sequence>").replace("complexType>", 'complexType mixed="true">', 1),
        "TEXT_NOT_ALLOWED",
    ),
    "text to elements": (sequence_root(A), simple_root("xs:string"), "TEXT_NOT_ALLOWED"),
    "elements to text": (simple_root("xs:string"), sequence_root(A), "CHILD_NOT_ALLOWED"),
    "attribute gone": (root_of(""), root_of('<xs:attribute name="k"/>'), "ATTRIBUTE_NOT_ALLOWED"),
    "attribute wildcard gone": (
        root_of(""),
        root_of('<xs:anyAttribute processContents="skip"/>'),
        "ATTRIBUTE_NOT_ALLOWED",
    ),
    "wildcard narrowed": (
        sequence_root('<xs:any namespace="urn:a" processContents="skip"/>'),
        sequence_root('<xs:any namespace="urn:a urn:b" processContents="skip"/>'),
        "CHILD_NOT_ALLOWED",
    ),
    "fixed changed": (
        '<xs:element name="r" type="xs:int" fixed="2"/>',
        '<xs:element name="r" type="xs:int" fixed="1"/>',
        "FIXED_VALUE",
    ),
    "fixed added": (
        '<xs:element name="r" type="xs:int" fixed="2"/>',
        '<xs:element name="r" type="xs:int"/>',
        "FIXED_VALUE",
    ),
    "default gone": (
        '<xs:element name="r" type="xs:int"/>',
        '<xs:element name="r" type="xs:int" default="1"/>',
        "DEFAULT_REMOVED",
    ),
    "root gone": (
        '<xs:element name="q" type="xs:int"/>',
        '<xs:element name="r" type="xs:int"/>',
        "ROOT_ELEMENT_REMOVED",
    ),
    "pattern narrowed": (
        simple_root("xs:string", '<xs:pattern value="[a-y]*"/>'),
        simple_root("xs:string", '<xs:pattern value="[a-z]*"/>'),
        "VALUE_NOT_ALLOWED",
    ),
    "digits": (
        simple_root("xs:decimal", '<xs:totalDigits value="4"/>'),
        simple_root("xs:decimal", '<xs:totalDigits value="5"/>'),
        "VALUE_NOT_ALLOWED",
    ),
    "names that become identifiers": (
        sequence_root('<xs:element name="a" type="xs:ID" maxOccurs="2"/>'),
        sequence_root('<xs:element name="a" type="xs:NCName" maxOccurs="2"/>'),
        "VALUE_NOT_ALLOWED",
    ),
    "an end beyond the precision of decimals": (
        simple_root("xs:integer", f'<xs:minExclusive value="{10**40}"/>'),
        simple_root("xs:integer", f'<xs:minInclusive value="{10**40}"/>'),
        "VALUE_NOT_ALLOWED",
    ),
    "one digit too many for a small integer": (
        simple_root("xs:short"),
        simple_root("xs:string", '<xs:pattern value="[0-9]{5}"/><xs:pattern value="70000"/>'),
        "VALUE_NOT_ALLOWED",
    ),
    "list of narrower items": (
        '<xs:element name="r"><xs:simpleType><xs:list itemType="xs:int"/></xs:simpleType></xs:element>',
        '<xs:element name="r"><xs:simpleType><xs:list itemType="xs:token"/></xs:simpleType></xs:element>',
        "VALUE_NOT_ALLOWED",
    ),
}


@pytest.mark.parametrize("case", BREAKS.values(), ids=BREAKS)
def test_refused_with_proof(case: tuple[str, str, str]) -> None:
    """The new schema refuses a document of the old one; the finding names the rule and shows the document."""
    new, old, rule = case
    findings = list_breaks(new, old)
    assert rule in {finding.rule for finding in findings}
    for finding in findings:
        assert finding.level is Severity.ERROR
        assert finding.witness is not None
        assert finding.path.startswith("/")
        assert finding.why
        assert finding.fix


def test_undecided_is_said() -> None:
    """A pair that is neither proved nor refuted gives a finding of level UNKNOWN."""
    test = '<xs:sequence/><xs:attribute name="k" type="xs:int"/><xs:assert test="not(@k = 987654)"/>'
    findings = list_breaks(root_of(test), root_of('<xs:sequence/><xs:attribute name="k" type="xs:int"/>'))
    assert [(finding.rule, finding.level) for finding in findings] == [("ASSERTION_ADDED", Severity.UNKNOWN)]


def test_type_without_documents_breaks_nothing() -> None:
    """A type whose every document would be infinite has no documents that a change could break."""
    endless = '<xs:complexType name="N"><xs:sequence><xs:element name="n" type="N"/>{}</xs:sequence></xs:complexType>'
    assert (
        list_breaks(
            endless.format("") + '<xs:element name="r" type="N"/>',
            endless.format(A) + '<xs:element name="r" type="N"/>',
        )
        == []
    )


def test_namespaces() -> None:
    """Names are compared with their namespaces, and witnesses carry them."""
    head = 'targetNamespace="urn:t" xmlns:t="urn:t" elementFormDefault="qualified"'
    assert list_breaks(sequence_root(A), sequence_root(A), head) == []
    (finding,) = list_breaks(sequence_root(B), sequence_root(A), head)
    assert finding.witness is not None
    assert "urn:t" in finding.witness


def test_unknown_ruleset() -> None:
    """An unknown ruleset raises an error that names it."""
    parsed = XSD.parse(b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"/>', {})
    with pytest.raises(UnknownRuleset, match="nope"):
        XSD.check(parsed, parsed, "nope")


HOSTILE = {
    "all of thirty against a sequence": (
        sequence_root(*(f'<xs:element name="e{i}" type="xs:int"/>' for i in range(30))),
        root_of("<xs:all>" + "".join(f'<xs:element name="e{i}" type="xs:int"/>' for i in range(30)) + "</xs:all>"),
    ),
    "nested counters": (
        root_of('<xs:sequence maxOccurs="99999"><xs:sequence maxOccurs="99999">' + A + "</xs:sequence></xs:sequence>"),
        root_of(
            '<xs:sequence maxOccurs="99999"><xs:sequence maxOccurs="99998">' + A + A + "</xs:sequence></xs:sequence>"
        ),
    ),
    "one counter lowered by one": (repeated_root(0, 999_999), repeated_root(0, 1_000_000)),
    "exponential patterns": (
        simple_root("xs:string", '<xs:pattern value="(a|b)*a(a|b){40}"/>'),
        simple_root("xs:string", '<xs:pattern value="(a|b)*b(a|b){40}"/>'),
    ),
}


@pytest.mark.parametrize("case", HOSTILE.values(), ids=HOSTILE)
def test_entangled_schemas_end(case: tuple[str, str]) -> None:
    """Content models and patterns made to explode end within seconds, and are never called compatible by mistake."""
    with limit_time(30, time.monotonic):
        assert list_breaks(*case)


def test_validation_agrees() -> None:
    """A validator with both schemas confirms the verdict on the witness."""
    new, old, _ = BREAKS["unique added"]
    (finding,) = list_breaks(new, old)
    assert finding.witness is not None
    head = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
    mine, theirs = (XSD.parse(f"{head}{side}</xs:schema>".encode(), {}) for side in (old, new))
    assert is_valid(mine, finding.witness.encode())
    assert not is_valid(theirs, finding.witness.encode())
