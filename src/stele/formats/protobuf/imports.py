"""Which files a `.proto` text imports."""

from __future__ import annotations

from stele.errors import MalformedSchema
from stele.formats.protobuf.compiler import builtin_sources
from stele.formats.protobuf.parse import read_descriptors
from stele.formats.protobuf.source_tree import SourceError, parse_source


def list_imports(text: bytes) -> list[str]:
    """Return the import paths of a document, built-in files left out."""
    descriptors = read_descriptors(text)
    if descriptors:
        paths = list(descriptors[-1].dependency)
    else:
        try:
            paths = [each.path for each in parse_source(text.decode("utf-8", "replace")).imports]
        except SourceError as error:
            raise MalformedSchema(str(error)) from None
    return [path for path in dict.fromkeys(paths) if path not in builtin_sources()]
