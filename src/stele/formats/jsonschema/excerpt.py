"""Short texts of places in a schema, for findings."""

from __future__ import annotations

from collections.abc import Iterable

from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.jsonschema.text import Json, write_json

_TEXT_LIMIT = 80


def excerpt_at(parsed: ParsedJsonSchema, path: Iterable[str | int]) -> str:
    """What a schema has at a path, references on the way followed, shortened; '' where it has nothing."""
    value: Json = parsed.root
    for step in path:
        value = parsed.links.follow_references(value)
        name = str(step)
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return ""
    text = write_json(value).decode()
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"
