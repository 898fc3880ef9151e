"""Where types, fields and symbols stand in the text of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stele.core.findings import SourcePosition
from stele.formats.avro.model import namespace_of
from stele.formats.avro.parse import NAMED_KINDS, qualify_name
from stele.formats.json_reader import decode_json, locate_values

_INNER = ("type", "items", "values")
"""Members of an object that hold a type."""


def locate_declarations(text: bytes) -> dict[str, SourcePosition]:
    """Return positions by JSON Pointer (`/fields/0`, for findings) and by name (`shop.Order.note`, for outlines)."""
    by_pointer = locate_values(text)
    top = by_pointer.pop("")
    by_name = {name: by_pointer.get(pointer, top) for name, pointer in _walk_names(decode_json(text), "", "")}
    return {"/": top, **by_name, **by_pointer}


def _walk_names(node: Any, pointer: str, space: str) -> Iterator[tuple[str, str]]:
    """Yield (name, JSON Pointer) of what a valid type declares; space is the namespace in force."""
    if isinstance(node, list):
        for index, branch in enumerate(node):
            yield from _walk_names(branch, f"{pointer}/{index}", space)
        return
    if not isinstance(node, dict):
        return
    if node.get("type") in NAMED_KINDS:
        own = node.get("namespace")
        name = qualify_name(node["name"], own if isinstance(own, str) else space)
        space = namespace_of(name)
        yield name, pointer
        for index, symbol in enumerate(node.get("symbols", ())):
            yield f"{name}.{symbol}", f"{pointer}/symbols/{index}"
        for index, field in enumerate(node.get("fields", ())):
            yield f"{name}.{field['name']}", f"{pointer}/fields/{index}"
            yield from _walk_names(field["type"], f"{pointer}/fields/{index}/type", space)
        return
    for key in _INNER:
        yield from _walk_names(node.get(key), f"{pointer}/{key}", space)
