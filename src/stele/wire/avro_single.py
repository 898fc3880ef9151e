"""Avro single-object encoding: C3 01 | Rabin fingerprint of the schema, 8 bytes little-endian | payload.

Source: docs/protocols/avro.md#single-object-encoding. The functions take and return fingerprints as
`Format.fingerprints` returns them (kind `rabin`, 8 bytes big-endian). Only on the wire their bytes are reversed.
"""

from __future__ import annotations

from stele.errors import FrameError

MARKER = b"\xc3\x01"
"""The two bytes which begin every single object."""

_FINGERPRINT = 8
_PAYLOAD = len(MARKER) + _FINGERPRINT


def frame(rabin: bytes, payload: bytes | memoryview) -> bytes:
    """Return one object after its schema's fingerprint (8 bytes big-endian). Raises `FrameError` on another length."""
    if len(rabin) != _FINGERPRINT:
        raise FrameError(f"a Rabin fingerprint has {_FINGERPRINT} bytes, not {len(rabin)}")
    return b"".join((MARKER, rabin[::-1], payload))


def unframe(data: bytes | memoryview) -> tuple[bytes, memoryview]:
    """Return fingerprint (8 bytes big-endian) and payload of a single object. Raises `FrameError`."""
    view = memoryview(data)
    if len(view) < _PAYLOAD:
        raise FrameError(f"{len(view)} bytes are too few for a single object: marker and fingerprint take {_PAYLOAD}")
    if view[: len(MARKER)] != MARKER:
        raise FrameError(f"the bytes begin with {view[: len(MARKER)].hex(' ')}, not with the marker {MARKER.hex(' ')}")
    return bytes(view[len(MARKER) : _PAYLOAD])[::-1], view[_PAYLOAD:]
