"""Avro single-object encoding."""

from __future__ import annotations

import pytest

from stele.errors import FrameError
from stele.wire import avro_single


def test_fingerprint_is_little_endian_on_the_wire() -> None:
    """The example of the Avro project: marker, reversed fingerprint, payload."""
    assert avro_single.frame(bytes(range(8)), b"p") == b"\xc3\x01\x07\x06\x05\x04\x03\x02\x01\x00p"


def test_unframe_gives_the_fingerprint_as_formats_do() -> None:
    """The returned fingerprint equals `Format.fingerprints(...)["rabin"]` of the schema."""
    assert avro_single.unframe(avro_single.frame(b"abcdefgh", b"")) == (b"abcdefgh", memoryview(b""))


@pytest.mark.parametrize("data", [b"", b"\xc3\x01" + b"x" * 7, b"\x00\x00" + b"x" * 8, b"\xc3\x02" + b"x" * 8])
def test_other_bytes_are_refused(data: bytes) -> None:
    """Bytes that are too short or have no marker are refused."""
    with pytest.raises(FrameError):
        avro_single.unframe(data)


def test_fingerprints_of_another_length_are_refused() -> None:
    """A fingerprint of another length, such as an MD5, is refused, because it would shift the payload."""
    with pytest.raises(FrameError):
        avro_single.frame(b"x" * 16, b"")
