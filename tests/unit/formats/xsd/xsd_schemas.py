"""Helpers to write schemas in tests."""

from stele.core.findings import Finding
from stele.formats.xsd import XSD, ParsedXsd

XS = 'xmlns:xs="http://www.w3.org/2001/XMLSchema"'


def schema_text(body: str, head: str = "") -> bytes:
    """A schema document around some definitions."""
    return f"<xs:schema {XS} {head}>{body}</xs:schema>".encode()


def parse_schema(body: str, head: str = "") -> ParsedXsd:
    """Return the parsed schema around some definitions."""
    return XSD.parse(schema_text(body, head), {})


def root_of(model: str) -> str:
    """A root `r` of a complex type."""
    return f'<xs:element name="r"><xs:complexType>{model}</xs:complexType></xs:element>'


def simple_root(base: str, facets: str = "") -> str:
    """A root `r` of a simple type."""
    return (
        f'<xs:element name="r"><xs:simpleType><xs:restriction base="{base}">{facets}</xs:restriction>'
        "</xs:simpleType></xs:element>"
    )


def list_breaks(new: str, old: str, head: str = "") -> list[Finding]:
    """Return the breaking findings when documents of old are read with new; warnings are left out."""
    return [finding for finding in XSD.check(parse_schema(new, head), parse_schema(old, head)) if finding.breaks]
