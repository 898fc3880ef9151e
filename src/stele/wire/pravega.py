"""The Pravega wire format.

    01 | encoding id, int32 big-endian | payload

An encoding id stands for a version with a codec, within one group, so a reader must know the group. The payload is the
datum, serialized and then compressed by the codec. Protobuf has no message indexes, because the encoding names the
type.

| codec                         | payload                                                        |
|-------------------------------|----------------------------------------------------------------|
| `''`                          | not compressed                                                 |
| `application/x-gzip`          | gzip (RFC 1952)                                                |
| `application/x-snappy-framed` | one raw block of Snappy, without the framing of its name       |

Writers in Java may compress more of a buffer than they filled, so a decompressed payload may end with zero bytes.

Source: docs/protocols/pravega.md#wire-format.
"""

from __future__ import annotations

import zlib
from types import ModuleType
from typing import Final

from stele.errors import FrameError, NotInstalled

MAGIC: Final = 0x01
"""First byte of every frame."""
MAX_ID: Final = 2**31 - 1
"""Largest encoding id: a signed 32-bit integer for the JVM clients."""
NONE: Final = ""
GZIP: Final = "application/x-gzip"
SNAPPY: Final = "application/x-snappy-framed"
CODECS: Final = (NONE, GZIP, SNAPPY)
"""The supported codecs. A group may have others, whose payloads only their authors can read."""
MAX_PAYLOAD: Final = 64 * 1024 * 1024
"""Default limit of a decompressed payload, in bytes."""

_HEADER = 5
_MAX_MEMBERS = 100  # of one gzip payload; writers make one, and each further one costs a copy of all that follow
_GZIP = 31  # window bits of zlib that mean: gzip, largest window


def frame(encoding_id: int, payload: bytes | memoryview) -> bytes:
    """Return one datum, compressed by its codec, with its encoding id in front. Raises `FrameError` for a bad id."""
    if not 0 <= encoding_id <= MAX_ID:
        raise FrameError(f"{encoding_id} is not an encoding id: it must lie between 0 and {MAX_ID}")
    return b"".join((bytes((MAGIC,)), encoding_id.to_bytes(4, "big"), payload))


def unframe(data: bytes | memoryview) -> tuple[int, memoryview]:
    """Return encoding id and payload of a frame. Raises `FrameError` for anything else."""
    view = memoryview(data)
    if len(view) < _HEADER:
        raise FrameError(f"{len(view)} bytes are too few for a frame: magic byte and encoding id take {_HEADER}")
    if view[0] != MAGIC:
        raise FrameError(f"the first byte is {view[0]:#04x}, not the magic byte {MAGIC:#04x} of an encoding id")
    encoding_id = int.from_bytes(view[1:_HEADER], "big")
    if encoding_id > MAX_ID:
        raise FrameError(f"{encoding_id} is not an encoding id: it must lie between 0 and {MAX_ID}")
    return encoding_id, view[_HEADER:]


def compress(codec: str, serialized: bytes | memoryview) -> bytes:
    """Return the payload of a serialized datum. Raises `FrameError` for an unknown codec, `NotInstalled`."""
    if codec == NONE:
        return bytes(serialized)
    if codec == GZIP:
        packer = zlib.compressobj(wbits=_GZIP)
        return packer.compress(serialized) + packer.flush()
    if codec == SNAPPY:
        return bytes(_import_cramjam().snappy.compress_raw(bytes(serialized)))
    raise _unknown_codec(codec)


def decompress(codec: str, payload: bytes | memoryview, *, max_bytes: int = MAX_PAYLOAD) -> bytes:
    """Return the serialized datum of a payload, perhaps followed by zero bytes (see above).

    Never returns more than max_bytes. Raises `FrameError` for more, for corrupt payloads, and for a codec that is not
    one of `CODECS`; `NotInstalled` for Snappy without the extra `snappy`.
    """
    if codec == NONE:
        return bytes(payload)
    if codec == GZIP:
        return _decompress_gzip(bytes(payload), max_bytes)
    if codec == SNAPPY:
        return _decompress_snappy(bytes(payload), max_bytes)
    raise _unknown_codec(codec)


def _decompress_gzip(data: bytes, max_bytes: int) -> bytes:
    """Return the data of all members of a gzip file, as Java does; zero bytes may follow the last member."""
    parts: list[bytes] = []
    left = max_bytes
    for _ in range(_MAX_MEMBERS):
        unpacker = zlib.decompressobj(wbits=_GZIP)
        try:
            part = unpacker.decompress(data, left + 1)
        except zlib.error as error:
            raise FrameError(f"the payload is not gzip: {error}") from None
        if len(part) > left:
            raise FrameError(f"the payload has more than {max_bytes} bytes when decompressed")
        if not unpacker.eof:
            raise FrameError("the payload ends within its gzip data")
        parts.append(part)
        left -= len(part)
        data = unpacker.unused_data
        if not data.strip(b"\0"):
            return b"".join(parts)
    raise FrameError(f"the payload has more than {_MAX_MEMBERS} gzip members")


def _decompress_snappy(block: bytes, max_bytes: int) -> bytes:
    """Return the data of one raw block, whose first bytes have the length of the data."""
    cramjam = _import_cramjam()
    try:
        length = cramjam.snappy.decompress_raw_len(block)
        if length > max_bytes:
            raise FrameError(f"the payload has {length} bytes when decompressed, more than {max_bytes}")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise FrameError(f"the payload is not Snappy: {error}") from None


def _import_cramjam() -> ModuleType:
    try:
        import cramjam
    except ModuleNotFoundError:
        raise NotInstalled("cramjam", "snappy") from None
    return cramjam


def _unknown_codec(codec: str) -> FrameError:
    return FrameError(f"the codec {codec!r} is not known; known: {', '.join(map(repr, CODECS))}")
