"""What named types are called: as in `$defs`, else by title, else by where they stand."""

from __future__ import annotations

import re
from typing import Final

from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.jsonschema.text import Json

_NAME: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*", re.ASCII)
_WORD: Final = re.compile(r"[^\W_]+")
_EXTENSION: Final = re.compile(r"(\.schema)?\.json$")


class SchemaNames:
    """The names schemas have in their documents."""

    def __init__(self, parsed: ParsedJsonSchema) -> None:
        self._names: dict[int, str] = {}
        for label, text in parsed.references.items():
            self._names.setdefault(id(text), _title_name(text) or _file_name(label))
        if isinstance(parsed.root, dict) and _title_name(parsed.root):
            self._names[id(parsed.root)] = _title_name(parsed.root)
        for text in (parsed.root, *parsed.references.values()):
            self._add_definitions(text)

    def _add_definitions(self, text: Json) -> None:
        for keyword in ("$defs", "definitions"):
            found = text.get(keyword) if isinstance(text, dict) else None
            for name, schema in (found if isinstance(found, dict) else {}).items():
                if name:
                    self._names.setdefault(id(schema), name)

    def name_of(self, schema: Json) -> str:
        """The name of a schema; '' when it has none."""
        return self._names.get(id(schema)) or _title_name(schema)


def join_names(parent: str, member: str) -> str:
    """The name of what stands at a member of a record: `Order` and `ship_to` make `OrderShipTo`."""
    if not parent and _NAME.fullmatch(member):
        return member
    return parent + "".join(word[0].upper() + word[1:] for word in _WORD.findall(member))


def _title_name(schema: Json) -> str:
    title = schema.get("title") if isinstance(schema, dict) else None
    return title if isinstance(title, str) and _NAME.fullmatch(title) else ""


def _file_name(label: str) -> str:
    """The name of a document: its file's, without the extension."""
    return join_names("", _EXTENSION.sub("", label.rpartition("/")[2])) or "Root"
