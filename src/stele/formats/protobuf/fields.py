"""The fields of a schema as a flat list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from google.protobuf.descriptor import FieldDescriptor as F

from stele.core.ports import Field
from stele.formats.protobuf.layout import Path, SourceLayout
from stele.formats.protobuf.type_names import WELL_KNOWN, enum_of, is_map, map_parts, type_text

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from stele.formats.protobuf.model import ProtobufSchema

MAX_FIELDS = 10_000
"""Messages that use each other can be combined in more ways than anyone can read: the list ends here."""
MAX_DEPTH = 32


def list_fields(schema: ProtobufSchema) -> list[Field]:
    """Return all fields, depth first.

    Paths start in the first message of the file. Top-level messages that no earlier one uses follow, their paths
    beginning with the message's name. `[]` enters the elements of a repeated field, `{}` the values of a map. A message
    is not entered again inside itself, nor is a well-known one such as Timestamp.
    """
    lister = _Lister(schema)
    found: list[Field] = []
    for number, message in enumerate(schema.list_messages()):
        if message.full_name not in lister.seen:
            prefix = f"{message.name}." if number else ""
            found += islice(lister.walk_message(message, prefix, ()), MAX_FIELDS - len(found))
    return found


class _Lister:
    """Walks messages; `seen` holds the full names of those it has entered."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self._layout = SourceLayout(schema)
        self._schema = schema
        self.seen: set[str] = set()

    def walk_message(self, message: Descriptor, prefix: str, above: tuple[str, ...]) -> Iterator[Field]:
        """Yield the fields of message and below, their paths after prefix; above are the messages around it."""
        self.seen.add(message.full_name)
        place = self._message_path(message)
        for field in message.fields:
            path = prefix + field.name
            comment = self._layout.comment_at((*place, 2, field.index)) if place else ""
            yield Field(path, type_text(field), _default_text(field), comment)
            value = map_parts(field)[1] if is_map(field) else field
            inner = value.message_type
            entered = (*above, message.full_name)
            if inner is None or inner.full_name in WELL_KNOWN or inner.full_name in entered or len(above) > MAX_DEPTH:
                continue
            mark = "{}" if is_map(field) else "[]" if field.is_repeated else ""
            yield from self.walk_message(inner, f"{path}{mark}.", entered)

    def _message_path(self, message: Descriptor) -> Path:
        """Return where the message is in the file; () for a message of another file, which has no comments here."""
        path = self._schema.message_positions.get(message.full_name, ())
        return (4, path[0], *(step for index in path[1:] for step in (3, index))) if path else ()


def _default_text(field: FieldDescriptor) -> str | None:
    """Return the default the author wrote, as JSON text."""
    if not field.has_default_value:
        return None
    value = field.default_value
    if field.type == F.TYPE_ENUM:
        value = enum_of(field).values_by_number[value].name
    elif field.type == F.TYPE_BYTES:
        value = value.decode("latin-1")
    return json.dumps(value)
