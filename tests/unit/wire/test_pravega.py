"""The Pravega wire format: frames, codecs, and Snappy blocks in plain Python."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.errors import FrameError
from stele.wire import pravega

_PIECES = st.sampled_from([b"ab", b"abcd", b"x" * 40, b"\0"])
TEXTS = st.binary(max_size=300) | st.lists(_PIECES, max_size=60).map(b"".join)


def test_a_frame_is_one_and_the_id_in_four_bytes() -> None:
    """26: 01, the encoding id big-endian, the payload."""
    assert pravega.frame(258, b"p") == b"\x01\x00\x00\x01\x02p"
    assert pravega.unframe(b"\x01\x7f\xff\xff\xff") == (pravega.MAX_ID, memoryview(b""))


@given(st.integers(0, pravega.MAX_ID), st.binary(max_size=20))
@settings(max_examples=scale_examples(50), deadline=None)
def test_unframe_gives_back_what_was_framed(encoding_id: int, payload: bytes) -> None:
    """Splitting a frame gives the id and payload it was made from."""
    assert pravega.unframe(pravega.frame(encoding_id, payload)) == (encoding_id, payload)


@pytest.mark.parametrize("data", [b"", b"\x01\0\0\0", b"\x00\0\0\0\1p", b"\x01\x80\0\0\0p"])
def test_other_bytes_are_no_frame(data: bytes) -> None:
    """Bytes that are too short, or have another magic byte or a negative id, are refused."""
    with pytest.raises(FrameError):
        pravega.unframe(data)


@pytest.mark.parametrize("encoding_id", [-1, 2**31])
def test_ids_are_31_bits(encoding_id: int) -> None:
    """Ids that JVM clients could not read are refused."""
    with pytest.raises(FrameError):
        pravega.frame(encoding_id, b"")


@pytest.mark.parametrize("codec", pravega.CODECS)
@given(data=TEXTS)
@settings(max_examples=scale_examples(60), deadline=None)
def test_decompressing_undoes_compressing(codec: str, data: bytes) -> None:
    """26: every codec returns the original serialized datum."""
    assert pravega.decompress(codec, memoryview(pravega.compress(codec, data))) == data


def test_gzip_of_others_is_read() -> None:
    """Several members, and zero bytes after the last one, are read as Java's reader reads them."""
    assert (
        pravega.decompress(pravega.GZIP, gzip.compress(b"ab", mtime=0) + gzip.compress(b"cd", mtime=0) + b"\0\0")
        == b"abcd"
    )
    assert gzip.decompress(pravega.compress(pravega.GZIP, b"abc")) == b"abc"


@pytest.mark.parametrize("codec", [pravega.GZIP, pravega.SNAPPY])
def test_no_more_is_made_than_allowed(codec: str) -> None:
    """A small payload that would give a too large datum is refused at the limit; the limit itself is allowed."""
    bomb = pravega.compress(codec, bytes(2_000_000))
    assert len(bomb) < 200_000
    with pytest.raises(FrameError):
        pravega.decompress(codec, bomb, max_bytes=1_999_999)
    assert pravega.decompress(codec, bomb, max_bytes=2_000_000) == bytes(2_000_000)
    endless = b"".join([pravega.compress(codec, b"x" * 100)] * 3)
    with pytest.raises(FrameError):
        pravega.decompress(codec, endless, max_bytes=299)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"nonsense",
        gzip.compress(b"abc", mtime=0)[:-1],
        gzip.compress(b"abc", mtime=0) + b"x",
        gzip.compress(b"", mtime=0) * 101,
    ],
)
def test_corrupt_gzip_is_a_frame_error(payload: bytes) -> None:
    """A payload that is not gzip, is truncated, or is followed by other bytes is refused."""
    with pytest.raises(FrameError):
        pravega.decompress(pravega.GZIP, payload)


@given(st.binary(max_size=40), st.integers(0, 60))
@settings(max_examples=scale_examples(200), deadline=None)
def test_any_bytes_are_a_block_or_a_frame_error(junk: bytes, length: int) -> None:
    """Hostile blocks raise only `FrameError`, and never give more data than they declare."""
    try:
        data = pravega.decompress(pravega.SNAPPY, bytes([length]) + junk, max_bytes=50)
    except FrameError:
        return
    assert len(data) == length <= 50


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"\x00", b""),
        (b"\x03\x08abc", b"abc"),
        (b"\x0a\x00a\x15\x01", b"a" * 10),  # a copy of one byte, of 9, that runs into itself
        (b"\x08\x0cabcd\x0e\x04\x00", b"abcdabcd"),
        (b"\x08\x0cabcd\x0f\x04\x00\x00\x00", b"abcdabcd"),
        (b"\x64\xf0\x63" + b"x" * 100, b"x" * 100),
        (b"\x64\xf4\x63\x00" + b"x" * 100, b"x" * 100),
    ],
)
def test_all_kinds_of_elements_are_read(block: bytes, expected: bytes) -> None:
    """Literals with and without a separate length are read, and copies with offsets of one, two and four bytes."""
    assert pravega.decompress(pravega.SNAPPY, block, max_bytes=1000) == expected


@given(TEXTS)
@settings(max_examples=scale_examples(60), deadline=None)
def test_blocks_agree_with_a_native_library(data: bytes) -> None:
    """Each side reads the blocks that the other one writes."""
    native = pa.Codec("snappy")
    assert native.decompress(pravega.compress(pravega.SNAPPY, data), len(data)).to_pybytes() == data
    assert pravega.decompress(pravega.SNAPPY, native.compress(data).to_pybytes(), max_bytes=len(data)) == data


def test_unknown_codecs_are_named() -> None:
    """An unknown codec is refused with its name, in both directions."""
    for work in (pravega.compress, pravega.decompress):
        with pytest.raises(FrameError, match=r"'zip'"):
            work("zip", b"")
