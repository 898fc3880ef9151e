"""The rule for one pair of schemas: by kind, with the special cases between kinds."""

from __future__ import annotations

from collections.abc import Iterator

from stele.formats.jsonschema.confluent import arrays, combined, objects, scalars
from stele.formats.jsonschema.confluent.changes import STRICT, Change
from stele.formats.jsonschema.confluent.engine import Comparison, Found, Inner
from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.jsonschema.shapes import Kind, Model, Shape


def changes(reader: ParsedJsonSchema, writer: ParsedJsonSchema, *, allowed: frozenset[str] = STRICT) -> list[Change]:
    """What changed from the writer's schema (the original) to the reader's (the update), harmless changes included.

    allowed is the table of compatible types: it decides which branches of combinations belong together.
    Raises `TooLarge` when the schemas are too entangled to compare.
    """
    return Comparison(compare, allowed).run(Model(writer).shape(writer.root), Model(reader).shape(reader.root))


def compare(comparison: Comparison, old: Shape, new: Shape) -> Iterator[Found | Inner]:
    """Changes between one pair, and the pairs inside it."""
    across: list[Found | Inner] = []
    if new.kind is Kind.COMBINED and old.kind is not Kind.COMBINED:
        across = list(combined.into_combination(comparison, old, new))
    elif old.kind is Kind.COMBINED and new.kind is not Kind.COMBINED:
        across = list(combined.out_of_combination(comparison, old, new))
    if across:
        yield from across
    elif old.kind is not new.kind or (old.kind is Kind.EMPTY and old.whole is not new.whole):
        if old.kind is not Kind.FALSE and new.kind is not Kind.EMPTY and not _both_bytes(old, new):
            yield Found("TYPE_CHANGED")
    else:
        yield from scalars.remarks(old, new)
        yield from _same_kind(comparison, old, new)


def _same_kind(comparison: Comparison, old: Shape, new: Shape) -> Iterator[Found | Inner]:
    match old.kind:
        case Kind.STRING:
            yield from scalars.string(old, new)
        case Kind.NUMBER:
            yield from scalars.number(old, new)
        case Kind.ENUM:
            yield from scalars.enumeration(old, new)
        case Kind.CONST:
            yield from scalars.constant(old, new)
        case Kind.OBJECT:
            yield from objects.objects(comparison, old, new)
        case Kind.ARRAY:
            yield from arrays.arrays(comparison, old, new)
        case Kind.COMBINED:
            yield from combined.combinations(comparison, old, new)
        case Kind.NOT:
            yield from combined.negations(comparison, old, new)
        case _:
            return


def _both_bytes(old: Shape, new: Shape) -> bool:
    """Kafka Connect's bytes may be written as string or as number: it tells them by this mark and so do the rules."""
    return all(shape.whole and shape.source.get("connect.type") == "bytes" for shape in (old, new))
