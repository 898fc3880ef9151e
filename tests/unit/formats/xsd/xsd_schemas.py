"""Short ways to write schemas in tests."""

from stele.core.findings import Finding
from stele.formats.xsd import XSD, ParsedXsd

XS = 'xmlns:xs="http://www.w3.org/2001/XMLSchema"'


def text(body: str, head: str = "") -> bytes:
    """A schema document around some definitions."""
    return f"<xs:schema {XS} {head}>{body}</xs:schema>".encode()


def schema(body: str, head: str = "") -> ParsedXsd:
    """The same, parsed."""
    return XSD.parse(text(body, head), {})


def root(model: str) -> str:
    """A root `r` of a complex type."""
    return f'<xs:element name="r"><xs:complexType>{model}</xs:complexType></xs:element>'


def simple(base: str, facets: str = "") -> str:
    """A root `r` of a simple type."""
    return (
        f'<xs:element name="r"><xs:simpleType><xs:restriction base="{base}">{facets}</xs:restriction>'
        "</xs:simpleType></xs:element>"
    )


def check(new: str, old: str, head: str = "") -> list[Finding]:
    """What breaks when documents of old are read with new; warnings are left out."""
    return [finding for finding in XSD.check(schema(new, head), schema(old, head)) if finding.breaks]
