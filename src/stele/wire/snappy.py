"""Raw blocks of Snappy, in plain Python: no framing, no checksum.

A block is the length of what it makes as a varint, then elements: literals, and copies of what came out before. Written
for single data of a few kilobytes; whoever has megabytes wants a native library.

Source: docs/protocols/pravega.md#snappy.
"""

from __future__ import annotations

from typing import Final

from stele.errors import FrameError

_SHORTEST: Final = 4
"""Bytes a match must have to be worth a copy."""
_WINDOW: Final = 1 << 16
_LONGEST_COPY: Final = 64
_MAX_LENGTH: Final = 2**32 - 1


def compress(data: bytes) -> bytes:
    """One block that makes the data."""
    if len(data) > _MAX_LENGTH:
        raise FrameError(f"{len(data)} bytes are more than a block can make")
    out = bytearray(_varint(len(data)))
    seen: dict[bytes, int] = {}
    position = start = 0
    while position + _SHORTEST <= len(data):
        word = data[position : position + _SHORTEST]
        before = seen.get(word)
        seen[word] = position
        if before is None or position - before >= _WINDOW:
            position += 1
            continue
        length = _SHORTEST
        while position + length < len(data) and data[before + length] == data[position + length]:
            length += 1
        _put_literal(out, data[start:position])
        _put_copies(out, position - before, length)
        position += length
        start = position
    _put_literal(out, data[start:])
    return bytes(out)


def decompress(block: bytes, *, max_bytes: int) -> bytes:
    """What a block makes. Raises `FrameError` when that is more than max_bytes, or the block is corrupt."""
    length, position = _length(block)
    if length > max_bytes:
        raise FrameError(f"the payload has {length} bytes when decompressed, more than {max_bytes}")
    out = bytearray()
    while position < len(block):
        tag = block[position]
        position += 1
        if tag & 3 == 0:
            size, position = _literal_size(block, tag, position)
            out += block[position : position + size]
            position += size
            if position > len(block):
                raise _corrupt("a literal is cut off")
        else:
            size, offset, position = _copy(block, tag, position)
            if not 0 < offset <= len(out):
                raise _corrupt("a copy begins before the data")
            _repeat(out, offset, size)
        if len(out) > length:
            raise _corrupt("it makes more than it says")
    if len(out) != length:
        raise _corrupt("it makes less than it says")
    return bytes(out)


# --- writing --------------------------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _put_literal(out: bytearray, data: bytes) -> None:
    if not data:
        return
    last = len(data) - 1
    if last < 60:
        out.append(last << 2)
    else:
        size = last.to_bytes((last.bit_length() + 7) // 8, "little")
        out.append((59 + len(size)) << 2)
        out += size
    out += data


def _put_copies(out: bytearray, offset: int, length: int) -> None:
    while length:
        size = min(length, _LONGEST_COPY)
        out.append((size - 1) << 2 | 2)
        out += offset.to_bytes(2, "little")
        length -= size


# --- reading --------------------------------------------------------------------------------------------------------


def _length(block: bytes) -> tuple[int, int]:
    value = 0
    for position, byte in enumerate(block[:5]):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            if value > _MAX_LENGTH:
                break
            return value, position + 1
    raise _corrupt("it does not begin with its length")


def _literal_size(block: bytes, tag: int, position: int) -> tuple[int, int]:
    last = tag >> 2
    if last < 60:
        return last + 1, position
    width = last - 59
    return _little(block, position, width) + 1, position + width


def _copy(block: bytes, tag: int, position: int) -> tuple[int, int, int]:
    """(size, offset, where the next element begins)"""
    if tag & 3 == 1:
        return (tag >> 2 & 7) + 4, tag >> 5 << 8 | _little(block, position, 1), position + 1
    width = 2 if tag & 3 == 2 else 4
    return (tag >> 2) + 1, _little(block, position, width), position + width


def _little(block: bytes, position: int, width: int) -> int:
    if position + width > len(block):
        raise _corrupt("an element is cut off")
    return int.from_bytes(block[position : position + width], "little")


def _repeat(out: bytearray, offset: int, size: int) -> None:
    """Append what stands offset bytes before the end; the copy may run into itself."""
    piece = bytes(out[len(out) - offset : len(out) - offset + size])
    while len(piece) < size:
        piece += piece
    out += piece[:size]


def _corrupt(why: str) -> FrameError:
    return FrameError(f"the payload is not a block of Snappy: {why}")
