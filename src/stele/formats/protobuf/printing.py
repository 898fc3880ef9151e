"""The stable texts of a schema: printed as Confluent's registry does, normalized, and canonical."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stele.formats.protobuf.canonical_text import print_canonical
from stele.formats.protobuf.confluent_text import print_tree
from stele.formats.protobuf.descriptor_tree import build_tree, sort_tree
from stele.formats.protobuf.lenient import resolve_names
from stele.formats.protobuf.source_tree import FileNode, SourceError, parse_source

if TYPE_CHECKING:
    from stele.formats.protobuf.model import ProtobufSchema


def print_schema(schema: ProtobufSchema, *, extensions: bool = True) -> str:
    """Return the schema as text in the author's order of members of a kind; see `confluent_text.print_tree`."""
    return print_tree(_read_tree(schema), extensions=extensions)


def resolve_schema(schema: ProtobufSchema) -> str:
    """Return the schema as text with full names and maps as maps, in the author's order of members of a kind."""
    return print_tree(_resolve_tree(schema))


def normalize_schema(schema: ProtobufSchema) -> str:
    """Return the schema as text with full names and all sorted that has no order."""
    tree = _resolve_tree(schema)
    sort_tree(tree)
    return print_tree(tree)


def _resolve_tree(schema: ProtobufSchema) -> FileNode:
    if not schema.is_partial:
        return build_tree(schema.proto, schema, fold=True)
    tree = _read_tree(schema)
    resolve_names(tree, schema.files)
    return tree


def canonicalize_schema(schema: ProtobufSchema) -> str:
    """Return the text that fingerprints are made of: the normalized one where the descriptors do not say all."""
    return normalize_schema(schema) if schema.is_partial else print_canonical(schema)


def _read_tree(schema: ProtobufSchema) -> FileNode:
    if schema.text:
        try:
            return parse_source(schema.text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape"))
        except SourceError:  # the compiler takes more than the standard allows
            return build_tree(schema.proto, schema)
    return build_tree(schema.sent or schema.proto, schema)
