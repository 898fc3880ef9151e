"""Which types a document uses and which it defines, told without its references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stele.formats.avro.model import PRIMITIVES, namespace_of
from stele.formats.avro.parse import NAMED_KINDS, qualify_name
from stele.formats.json_reader import decode_json


def list_imports(text: bytes) -> list[str]:
    """Return the full names of types that the document uses before it defines them, or without doing so."""
    defined: set[str] = set()
    missing: dict[str, None] = {}
    for name, space in _walk_names(decode_json(text), ""):
        if space is None:
            defined.add(name)
            continue
        full = qualify_name(name, space)
        if full not in defined and name not in defined:
            missing[full] = None
    return list(missing)


def list_exports(text: bytes) -> list[str]:
    """Return the full names of the types that the document defines."""
    return [name for name, space in _walk_names(decode_json(text), "") if space is None]


def _walk_names(node: Any, space: str) -> Iterator[tuple[str, str | None]]:
    """Yield (full name, None) for each definition and (name as written, namespace in force) for each use."""
    if isinstance(node, str):
        if node not in PRIMITIVES:
            yield node, space
    elif isinstance(node, list):
        for branch in node:
            yield from _walk_names(branch, space)
    elif isinstance(node, dict):
        word = node.get("type")
        if isinstance(word, str) and word in NAMED_KINDS:
            name, own = node.get("name"), node.get("namespace")
            full = qualify_name(name if isinstance(name, str) else "", own if isinstance(own, str) else space)
            yield full, None
            fields = node.get("fields")
            for field in fields if isinstance(fields, list) else ():
                yield from _walk_names(field.get("type") if isinstance(field, dict) else None, namespace_of(full))
        elif word in {"array", "map"}:
            yield from _walk_names(node.get("items" if word == "array" else "values"), space)
        else:
            yield from _walk_names(word, space)
