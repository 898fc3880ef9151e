"""The Confluent wire format.

    prefix     00 | id, int32 big-endian | [message indexes, Protobuf only] | payload
    header     record header `__key_schema_id` or `__value_schema_id`: 01 | guid, 16 bytes | [message indexes];
               the payload is bare

A reader reads the header first, and accepts either magic byte in either place, as the vendor's own clients do.

Message indexes say which message of a Protobuf file the payload is: a count and then that many positions, outermost
message first, all as zig-zag varints. The commonest list, `[0]`, is written as the single byte 00; `02 00` is read too.

Source: docs/protocols/confluent.md#wire-format. Checked byte for byte against confluent-kafka (tests/interop).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from stele.errors import FrameError

MAGIC_ID = 0x00
"""First byte of a frame that carries a 32-bit schema id."""
MAGIC_GUID = 0x01
"""First byte of a frame that carries a 128-bit schema guid."""
MAX_ID = 2**31 - 1
"""Largest schema id: ids are signed 32-bit integers for the JVM clients."""
MAX_INDEXES = 100
"""Deepest message nesting read or written; protoc itself refuses far less."""

RecordField = Literal["key", "value"]
"""The two places of a Kafka record that have a schema."""

HEADER_NAMES: dict[RecordField, str] = {"key": "__key_schema_id", "value": "__value_schema_id"}
"""Names of the record headers which carry the guid."""

_ID_END = 5
_GUID_END = 17
_MAX_VARINT = 5  # bytes; zig-zag of a non-negative int32 needs 32 bits


class Frame(NamedTuple):
    """The parts of a record.

    schema  the 32-bit id or the guid
    header  rest of the record header after the guid, or None when the id was in front of the payload
    body    the record without the id; still begins with the message indexes when they were not in the header
    """

    schema: int | UUID
    header: memoryview | None
    body: memoryview

    def payload(self) -> memoryview:
        """Return the payload of a format without message indexes. Raises `FrameError` for more bytes in the header."""
        if self.header:
            raise FrameError(f"{len(self.header)} unexpected bytes after the guid in the record header")
        return self.body

    def message(self) -> tuple[tuple[int, ...], memoryview]:
        """Return message indexes and payload of a Protobuf record. Raises `FrameError`."""
        if self.header is None:
            indexes, end = decode_indexes(self.body)
            return indexes, self.body[end:]
        indexes, end = decode_indexes(self.header)
        if end != len(self.header):
            raise FrameError(f"{len(self.header) - end} unexpected bytes after the indexes in the record header")
        return indexes, self.body


def frame(schema_id: int, payload: bytes | memoryview, indexes: Sequence[int] | None = None) -> bytes:
    """Return one record with its id in front; indexes only for Protobuf. Raises `FrameError` for a bad id or index."""
    middle = b"" if indexes is None else encode_indexes(indexes)
    return b"".join((id_prefix(schema_id), middle, payload))


def id_prefix(schema_id: int) -> bytes:
    """Return the five bytes in front of every record of a schema. Raises `FrameError` for an id out of range."""
    if not 0 <= schema_id <= MAX_ID:
        raise FrameError(f"{schema_id} is not a schema id: it must lie between 0 and {MAX_ID}")
    return schema_id.to_bytes(_ID_END, "big")  # the magic byte is the leading zero


def unframe(data: bytes | memoryview) -> tuple[int, memoryview]:
    """Return id and rest of a record with its 32-bit id in front. Raises `FrameError` for anything else."""
    if len(data) < _ID_END:
        raise FrameError(f"{len(data)} bytes are too few for a frame: magic byte and id take {_ID_END}")
    view = memoryview(data)
    if view[0] != MAGIC_ID:
        raise FrameError(f"the first byte is {view[0]:#04x}, not the magic byte {MAGIC_ID:#04x} of a schema id")
    schema_id = int.from_bytes(view[1:_ID_END], "big")
    if schema_id > MAX_ID:
        raise FrameError(f"{schema_id} is not a schema id: it must lie between 0 and {MAX_ID}")
    return schema_id, view[_ID_END:]


def read_frame(data: bytes | memoryview, header: bytes | None = None) -> Frame:
    """Split a record, wherever its id is. header is the value of the record header, None when there is none.

    Raises `FrameError`.
    """
    if header is None:
        schema, rest = _read_identity(memoryview(data))
        return Frame(schema, None, rest)
    schema, rest = _read_identity(memoryview(header))
    return Frame(schema, rest, memoryview(data))


def guid_header(guid: UUID, indexes: Sequence[int] | None = None) -> bytes:
    """Return the record header's value for a schema; indexes only for Protobuf. Raises `FrameError` for a bad index."""
    return bytes((MAGIC_GUID,)) + guid.bytes + (b"" if indexes is None else encode_indexes(indexes))


def encode_indexes(indexes: Sequence[int]) -> bytes:
    """Return message indexes as bytes. Raises `FrameError` for an empty or too long list, or an impossible position."""
    if not 0 < len(indexes) <= MAX_INDEXES:
        raise FrameError(f"{len(indexes)} message indexes were given: there must be between 1 and {MAX_INDEXES}")
    for index in indexes:
        if not 0 <= index <= MAX_ID:
            raise FrameError(f"{index} is not a message index: it must lie between 0 and {MAX_ID}")
    if len(indexes) == 1 and indexes[0] == 0:
        return b"\x00"
    return b"".join(_write_varint(number << 1) for number in (len(indexes), *indexes))


def decode_indexes(data: bytes | memoryview, offset: int = 0) -> tuple[tuple[int, ...], int]:
    """Return the message indexes at an offset, and the offset of the bytes after them. Raises `FrameError`."""
    count, offset = _read_zigzag(data, offset)
    if count == 0:
        return (0,), offset
    if count > MAX_INDEXES:
        raise FrameError(f"{count} message indexes are more than {MAX_INDEXES}")
    indexes = []
    for _ in range(count):
        index, offset = _read_zigzag(data, offset)
        indexes.append(index)
    return tuple(indexes), offset


def _read_identity(data: memoryview) -> tuple[int | UUID, memoryview]:
    if len(data) and data[0] == MAGIC_GUID:
        if len(data) < _GUID_END:
            raise FrameError(f"{len(data)} bytes are too few for a frame: magic byte and guid take {_GUID_END}")
        return UUID(bytes=bytes(data[1:_GUID_END])), data[_GUID_END:]
    return unframe(data)


def _write_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_zigzag(data: bytes | memoryview, offset: int) -> tuple[int, int]:
    """Return one non-negative zig-zag varint of at most 32 bits, and the offset after it."""
    value = 0
    for position in range(_MAX_VARINT):
        if offset + position >= len(data):
            raise FrameError("the bytes end inside the message indexes")
        byte = data[offset + position]
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            break
    else:
        raise FrameError("a message index takes more than 32 bits")
    if value & 1 or value >> 1 > MAX_ID:
        raise FrameError("a message index is negative or takes more than 32 bits")
    return value >> 1, offset + position + 1
