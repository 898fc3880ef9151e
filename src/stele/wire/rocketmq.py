"""The RocketMQ wire formats.

    Avro    10 | record id, int64 big-endian | datum      the id written as Avro `bytes`: 10 is its length
    JSON         record id, int64 big-endian | text

A record id is the id of a schema with the version in its low 14 bits. Readers of other registries must know the
subject, too, because these registries use only the version. There is no magic byte, so a reader must know which of the
two formats it reads.

Source: docs/protocols/rocketmq.md#wire-format.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from stele.errors import FrameError

LENGTH: Final = 0x10
"""First byte of an Avro frame: zig-zag of 8, the length of the id."""
MAX_ID: Final = 2**63 - 1
"""Largest record id: a signed 64-bit integer for the JVM clients."""
VERSION_BITS: Final = 14
"""Number of low bits of a record id that hold the version."""
MAX_VERSION: Final = 2**VERSION_BITS - 1
"""Largest version that has a record id."""

_ID = 8


class RecordId(NamedTuple):
    """The parts of a record id: the id of the schema, whose low 14 bits are zero, and the version."""

    schema: int
    version: int


def record_id(schema: int, version: int) -> int:
    """Return the id of a version of a schema. Raises `FrameError` for numbers that do not fit."""
    if not 0 <= schema <= MAX_ID or schema & MAX_VERSION:
        raise FrameError(f"{schema} is not a schema id: its low {VERSION_BITS} bits must be zero")
    if not 0 < version <= MAX_VERSION:
        raise FrameError(f"{version} is not a version: it must lie between 1 and {MAX_VERSION}")
    return schema | version


def split_record(number: int) -> RecordId:
    """Return the parts of a record id. Raises `FrameError` for an id that no schema has."""
    _require_id(number)
    return RecordId(number & ~MAX_VERSION, number & MAX_VERSION)


def frame_avro(number: int, datum: bytes | memoryview) -> bytes:
    """Return one Avro datum with its record id in front. Raises `FrameError` for a bad id."""
    _require_id(number)
    return b"".join((bytes((LENGTH,)), number.to_bytes(_ID, "big"), datum))


def unframe_avro(data: bytes | memoryview) -> tuple[int, memoryview]:
    """Return record id and datum of an Avro frame. Raises `FrameError` for anything else."""
    view = memoryview(data)
    if len(view) < _ID + 1:
        raise FrameError(f"{len(view)} bytes are too few for a frame: length and record id take {_ID + 1}")
    if view[0] != LENGTH:
        raise FrameError(f"the first byte is {view[0]:#04x}, not the length {LENGTH:#04x} of a record id")
    return _id_of(view[1 : _ID + 1]), view[_ID + 1 :]


def frame_json(number: int, text: bytes | memoryview) -> bytes:
    """Return one JSON text with its record id in front. Raises `FrameError` for a bad id."""
    _require_id(number)
    return b"".join((number.to_bytes(_ID, "big"), text))


def unframe_json(data: bytes | memoryview) -> tuple[int, memoryview]:
    """Return record id and text of a JSON frame. Raises `FrameError` for anything else."""
    view = memoryview(data)
    if len(view) < _ID:
        raise FrameError(f"{len(view)} bytes are too few for a frame: the record id takes {_ID}")
    return _id_of(view[:_ID]), view[_ID:]


def _id_of(view: memoryview) -> int:
    number = int.from_bytes(view, "big")
    _require_id(number)
    return number


def _require_id(number: int) -> None:
    if not 0 < number <= MAX_ID or not number & MAX_VERSION:
        raise FrameError(f"{number} is not a record id: it must be a schema id with a version from 1 to {MAX_VERSION}")
