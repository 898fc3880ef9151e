"""The rule for one pair of schemas: by kind, with the special cases between kinds."""

from __future__ import annotations

from collections.abc import Iterator

from stele.formats.jsonschema.confluent import combined, containers, scalars
from stele.formats.jsonschema.confluent.changes import STRICT, SchemaChange
from stele.formats.jsonschema.confluent.engine import InnerPair, LocalChange, SchemaDiff
from stele.formats.jsonschema.confluent.shapes import SchemaShape, ShapeKind, ShapeModel
from stele.formats.jsonschema.parse import ParsedJsonSchema


def list_changes(
    reader: ParsedJsonSchema, writer: ParsedJsonSchema, *, allowed: frozenset[str] = STRICT
) -> list[SchemaChange]:
    """Return the changes from the writer's schema (the original) to the reader's (the update), harmless ones included.

    allowed is the table of compatible types: it decides which branches of combinations belong together.
    Raises `TooLarge` when the schemas are too entangled to compare.
    """
    return SchemaDiff(compare_pair, allowed).list_changes(
        ShapeModel(writer).get_shape(writer.root), ShapeModel(reader).get_shape(reader.root)
    )


def compare_pair(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    """Changes between one pair, and the pairs inside it."""
    across: list[LocalChange | InnerPair] = []
    if new.kind is ShapeKind.COMBINED and old.kind is not ShapeKind.COMBINED:
        across = list(combined.into_combination(comparison, old, new))
    elif old.kind is ShapeKind.COMBINED and new.kind is not ShapeKind.COMBINED:
        across = list(combined.out_of_combination(comparison, old, new))
    if across:
        yield from across
    elif old.kind is not new.kind or (old.kind is ShapeKind.EMPTY and old.whole is not new.whole):
        if old.kind is not ShapeKind.FALSE and new.kind is not ShapeKind.EMPTY and not _both_bytes(old, new):
            yield LocalChange("TYPE_CHANGED")
    else:
        yield from scalars.compare_annotations(old, new)
        yield from _same_kind(comparison, old, new)


def _same_kind(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    match old.kind:
        case ShapeKind.STRING:
            yield from scalars.compare_strings(old, new)
        case ShapeKind.NUMBER:
            yield from scalars.compare_numbers(old, new)
        case ShapeKind.ENUM:
            yield from scalars.compare_enums(old, new)
        case ShapeKind.CONST:
            yield from scalars.compare_constants(old, new)
        case ShapeKind.OBJECT:
            yield from containers.compare_objects(comparison, old, new)
        case ShapeKind.ARRAY:
            yield from containers.compare_arrays(comparison, old, new)
        case ShapeKind.COMBINED:
            yield from combined.compare_combinations(comparison, old, new)
        case ShapeKind.NOT:
            yield from combined.compare_negations(comparison, old, new)
        case _:
            return


def _both_bytes(old: SchemaShape, new: SchemaShape) -> bool:
    """Kafka Connect's bytes may be written as string or as number: it tells them by this mark and so do the rules."""
    return all(shape.whole and shape.source.get("connect.type") == "bytes" for shape in (old, new))
