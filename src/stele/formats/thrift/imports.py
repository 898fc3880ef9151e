"""Which documents a Thrift document includes."""

from __future__ import annotations

from stele.errors import MalformedSchema
from stele.formats.thrift.grammar import parse_document
from stele.formats.thrift.schema import Include


def list_imports(text: bytes) -> list[str]:
    """Return the paths of the includes."""
    try:
        document = parse_document(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise MalformedSchema(f"the document is not UTF-8: {error.reason}") from None
    return list(dict.fromkeys(each.path for each in document.headers if isinstance(each, Include)))
