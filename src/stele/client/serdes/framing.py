"""Where a record carries its schema: in front of the payload or in a record header."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from stele.wire.confluent import HEADER_NAMES, RecordField

Headers = list[tuple[str, str | bytes | None]]
"""Record headers as confluent-kafka takes them; a serializer that writes headers appends to the list it is given."""

SeenHeaders = Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]] | None
"""Record headers as Kafka clients return them."""


class IdPlace(Enum):
    """Where a serializer puts the schema's identity. A deserializer finds it in either place."""

    PREFIX = "prefix"
    """The 32-bit id, before the payload. Every client can read it."""
    HEADER = "header"
    """The guid, in a record header. The payload has no prefix, and the identity is the same in every registry."""


def header_of(headers: SeenHeaders, field: RecordField) -> bytes | None:
    """Return the value of the header that carries the field's schema, or None."""
    if not headers:
        return None
    name = HEADER_NAMES[field]
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return next((value for key, value in pairs if key == name and isinstance(value, bytes)), None)
