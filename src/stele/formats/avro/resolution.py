"""Matches the parts of a reader's schema to those of a writer's (Avro 1.12, "Schema Resolution")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stele.formats.avro.model import (
    NO_DEFAULT,
    AvroField,
    AvroFixed,
    AvroNamedType,
    AvroRecord,
    AvroType,
    AvroUnion,
)

PROMOTIONS: Final[Mapping[str, frozenset[str]]] = {
    "long": frozenset({"int"}),
    "float": frozenset({"int", "long"}),
    "double": frozenset({"int", "long", "float"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
"""Kinds of the writer's types that a reader's type reads by promotion, by the kind of the reader's type."""


def find_best_branch(writer: AvroType, reader: AvroUnion) -> AvroType | None:
    """Return the branch of a reader's union that reads a writer's type; None when there is none.

    The same type is preferred to a renamed one, and that to a promotion.
    """
    for matches in (_is_same_type, _is_renamed_type, _is_promoted):
        for branch in reader.branches:
            if matches(writer, branch):
                return branch
    return None


def _is_same_type(writer: AvroType, reader: AvroType) -> bool:
    if isinstance(writer, AvroNamedType) and isinstance(reader, AvroNamedType):
        return writer.kind == reader.kind and writer.name == reader.name
    return writer.kind == reader.kind


def _is_renamed_type(writer: AvroType, reader: AvroType) -> bool:
    if not (isinstance(writer, AvroNamedType) and isinstance(reader, AvroNamedType) and writer.kind == reader.kind):
        return False
    return writer.name in reader.aliases or writer.name.rpartition(".")[2] == reader.name.rpartition(".")[2]


def _is_promoted(writer: AvroType, reader: AvroType) -> bool:
    return writer.kind in PROMOTIONS.get(reader.kind, ())


def map_fields(writer: AvroRecord, reader: AvroRecord) -> dict[str, AvroField] | str:
    """Return the reader's field for each of the writer's fields that has one, by the writer's field name.

    Returns an error text if the records cannot be resolved.
    """
    sources: dict[str, AvroField] = {}
    for field in reader.fields:
        names = dict.fromkeys((field.name, *field.aliases))
        source = next((name for name in names if name in writer.by_name and name not in sources), None)
        if source is not None:
            sources[source] = field
        elif field.default is NO_DEFAULT:
            return f"{reader.name} has the field {field.name!r} without a default, and {writer.name} does not have it"
    return sources


def is_empty(node: AvroType, known: dict[int, bool] | None = None) -> bool:
    """Return whether every value of a type takes no bytes at all."""
    known = {} if known is None else known
    if isinstance(node, AvroRecord):
        if id(node) not in known:
            known[id(node)] = True  # a record inside itself adds nothing of its own
            known[id(node)] = all(is_empty(field.type, known) for field in node.fields)
        return known[id(node)]
    return node.kind == "null" or (isinstance(node, AvroFixed) and node.size == 0)
