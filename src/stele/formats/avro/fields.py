"""All fields of a schema by dotted path, for search, pages and lint."""

from __future__ import annotations

from typing import Final

from stele.core.ports import Field
from stele.formats.avro.java_json import to_java_json
from stele.formats.avro.model import (
    NO_DEFAULT,
    AvroArray,
    AvroMap,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
    describe_type,
)

MAX_FIELDS: Final = 10_000
"""The list ends here: a type used twice at each of n levels has 2**n fields."""

MAX_DEPTH: Final = 100
"""Records inside records that are listed."""


def list_fields(schema: AvroSchema) -> list[Field]:
    """Return fields depth first; `[]` enters an array, `{}` a map.

    A record inside itself is named, not entered again.
    """
    lister = _FieldLister()
    lister.list_type(schema.root, "")
    return lister.found


class _FieldLister:
    def __init__(self) -> None:
        self.found: list[Field] = []
        self.open: list[AvroRecord] = []

    def list_type(self, node: AvroType, path: str) -> None:
        """List what is below a type that stands at path."""
        while isinstance(node, (AvroArray, AvroMap)):
            path += "[]" if isinstance(node, AvroArray) else "{}"
            node = node.items if isinstance(node, AvroArray) else node.values
        if isinstance(node, AvroUnion):
            for branch in node.branches:
                self.list_type(branch, path)
        elif isinstance(node, AvroRecord) and len(self.open) < MAX_DEPTH and node not in self.open:
            self.open.append(node)
            self._list_record(node, f"{path}." if path else "")
            self.open.pop()

    def _list_record(self, record: AvroRecord, prefix: str) -> None:
        for field in record.fields:
            if len(self.found) >= MAX_FIELDS:
                return
            default = None if field.default is NO_DEFAULT else to_java_json(field.default)
            self.found.append(Field(prefix + field.name, describe_type(field.type), default, field.doc or ""))
            self.list_type(field.type, prefix + field.name)
