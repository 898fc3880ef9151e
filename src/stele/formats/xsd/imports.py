"""Which documents a schema document includes or imports."""

from __future__ import annotations

from stele.formats.xsd.xml_reader import read_schema

_LINKS = tuple(f"{{http://www.w3.org/2001/XMLSchema}}{word}" for word in ("import", "include", "override", "redefine"))


def list_imports(text: bytes) -> list[str]:
    """Return the locations that the document names."""
    locations = (element.get("schemaLocation", "").strip() for element in read_schema(text).iterchildren(*_LINKS))
    return list(dict.fromkeys(location for location in locations if location))


def list_exports(text: bytes) -> list[str]:
    """Return the target namespace, which an import without a location names."""
    namespace = read_schema(text).get("targetNamespace", "")
    return [namespace] if namespace else []
