"""All fields of a schema by dotted path, for search, pages and lint."""

from __future__ import annotations

from typing import Final

from stele.core.ports import Field
from stele.formats.avro.javajson import dumps
from stele.formats.avro.model import NO_DEFAULT, Array, AvroSchema, Map, Record, Type, Union, short

MAX_FIELDS: Final = 10_000
"""The list ends here: a type used twice at each of n levels has 2**n fields."""

MAX_DEPTH: Final = 100
"""Records inside records that are listed."""


def fields(schema: AvroSchema) -> list[Field]:
    """Fields depth first; `[]` enters an array, `{}` a map. A record inside itself is named, not entered again."""
    lister = _Lister()
    lister.enter(schema.root, "")
    return lister.found


class _Lister:
    def __init__(self) -> None:
        self.found: list[Field] = []
        self.open: list[Record] = []

    def enter(self, node: Type, path: str) -> None:
        """List what is below a type that stands at path."""
        while isinstance(node, (Array, Map)):
            path += "[]" if isinstance(node, Array) else "{}"
            node = node.items if isinstance(node, Array) else node.values
        if isinstance(node, Union):
            for branch in node.branches:
                self.enter(branch, path)
        elif isinstance(node, Record) and len(self.open) < MAX_DEPTH and node not in self.open:
            self.open.append(node)
            self._record(node, f"{path}." if path else "")
            self.open.pop()

    def _record(self, record: Record, prefix: str) -> None:
        for field in record.fields:
            if len(self.found) >= MAX_FIELDS:
                return
            default = None if field.default is NO_DEFAULT else dumps(field.default)
            self.found.append(Field(prefix + field.name, short(field.type), default, field.doc or ""))
            self.enter(field.type, prefix + field.name)
