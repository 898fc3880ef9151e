"""Where a record carries its schema: in front of the payload or in a record header."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from stele.wire.confluent import HEADER_NAMES, RecordField

Headers = list[tuple[str, bytes]]
"""Record headers as Kafka clients take them; a serializer that writes headers appends to the list it is given."""

SeenHeaders = Iterable[tuple[str, bytes | str | None]] | None
"""Record headers as Kafka clients hand them out."""


class IdPlace(Enum):
    """Where a serializer puts the schema's identity. A deserializer finds it in either place."""

    PREFIX = "prefix"
    """The 32-bit id, before the payload: what everybody can read."""
    HEADER = "header"
    """The guid, in a record header: the payload stays bare, and the identity is the same in every registry."""


def header_of(headers: SeenHeaders, field: RecordField) -> bytes | None:
    """Value of the header that carries the field's schema, or None."""
    if not headers:
        return None
    name = HEADER_NAMES[field]
    return next((value for key, value in headers if key == name and isinstance(value, bytes)), None)
