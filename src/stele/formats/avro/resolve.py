"""Which parts of a reader's schema take which parts of a writer's (Avro 1.12, "Schema Resolution")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stele.formats.avro.model import NO_DEFAULT, Fixed, Named, Record, RecordField, Type, Union

PROMOTIONS: Final[Mapping[str, frozenset[str]]] = {
    "long": frozenset({"int"}),
    "float": frozenset({"int", "long"}),
    "double": frozenset({"int", "long", "float"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
"""By the reader's type, the writer's types it also reads."""


def best_branch(writer: Type, reader: Union) -> Type | None:
    """The branch of a reader's union that takes a writer's type: same full name, same name, alias, then promotion."""
    for matches in (_same, _renamed, _promoted):
        for branch in reader.branches:
            if matches(writer, branch):
                return branch
    return None


def _same(writer: Type, reader: Type) -> bool:
    if isinstance(writer, Named) and isinstance(reader, Named):
        return writer.kind == reader.kind and writer.name == reader.name
    return writer.kind == reader.kind


def _renamed(writer: Type, reader: Type) -> bool:
    if not (isinstance(writer, Named) and isinstance(reader, Named) and writer.kind == reader.kind):
        return False
    return writer.name in reader.aliases or writer.name.rpartition(".")[2] == reader.name.rpartition(".")[2]


def _promoted(writer: Type, reader: Type) -> bool:
    return writer.kind in PROMOTIONS.get(reader.kind, ())


def sources_of(writer: Record, reader: Record) -> dict[str, RecordField] | str:
    """The reader's field each of the writer's fields goes to, or why the records cannot be resolved."""
    sources: dict[str, RecordField] = {}
    for field in reader.fields:
        names = dict.fromkeys((field.name, *field.aliases))
        found = next((name for name in names if name in writer.by_name and name not in sources), None)
        if found is not None:
            sources[found] = field
        elif field.default is NO_DEFAULT:
            return f"{reader.name} has the field {field.name!r} without a default, and {writer.name} does not have it"
    return sources


def is_empty(node: Type, known: dict[int, bool] | None = None) -> bool:
    """Whether every value of a type takes no bytes at all."""
    known = {} if known is None else known
    if isinstance(node, Record):
        if id(node) not in known:
            known[id(node)] = True  # met again inside itself it adds nothing of its own
            known[id(node)] = all(is_empty(field.type, known) for field in node.fields)
        return known[id(node)]
    return node.kind == "null" or (isinstance(node, Fixed) and node.size == 0)
