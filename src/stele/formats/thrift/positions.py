"""Where declarations stand in the text of a document."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from stele.core.findings import SourcePosition
from stele.formats.thrift.schema import Senum, ThriftEnum, ThriftField, ThriftSchema, ThriftService, ThriftStruct


def locate_declarations(schema: ThriftSchema) -> dict[str, SourcePosition]:
    """Return positions by the paths of findings: `Order`, `Order.note`, `Shop.find.id`."""
    text = schema.unit.text
    starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
    found = {"/": SourcePosition(1, 1)}
    for path, at in _walk_offsets(schema):
        line = bisect_right(starts, at)
        found.setdefault(path, SourcePosition(line, at - starts[line - 1] + 1))
    return found


def _walk_offsets(schema: ThriftSchema) -> Iterator[tuple[str, int]]:
    """Yield (path, offset in characters) of each declaration."""
    for definition in schema.unit.document.definitions:
        name = definition.name
        yield name, definition.at
        match definition:
            case ThriftEnum():
                yield from ((f"{name}.{value.name}", value.at) for value in definition.values)
            case Senum():
                yield from ((f"{name}.{value}", definition.at) for value in definition.values)
            case ThriftStruct():
                yield from _walk_fields(definition.fields, name)
            case ThriftService():
                for function in definition.functions:
                    path = f"{name}.{function.name}"
                    yield path, function.at
                    yield from _walk_fields((*function.arguments, *function.throws), path)
            case _:
                pass


def _walk_fields(fields: Iterable[ThriftField], path: str) -> Iterator[tuple[str, int]]:
    return ((f"{path}.{field.name}", field.at) for field in fields)
