"""The RocketMQ wire formats, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.errors import FrameError
from stele.formats.avro import AvroFormat
from stele.wire import rocketmq

FRAMES: list[tuple[Callable[..., bytes], Callable[..., tuple[int, memoryview]], int]] = [
    (rocketmq.frame_avro, rocketmq.unframe_avro, 9),
    (rocketmq.frame_json, rocketmq.unframe_json, 8),
]
ids = st.builds(
    lambda schema, version: schema << 14 | version,
    st.integers(0, 2**49 - 1),
    st.integers(1, rocketmq.MAX_VERSION),
)


def test_23_avro_header() -> None:
    """23: an Avro record is the id as Avro bytes, nine of them, and the datum (docs/protocols/rocketmq.md)."""
    framed = rocketmq.frame_avro(2**22 + 1, b"\x0a")
    assert framed == bytes.fromhex("10 0000000000400001 0a")
    number, datum = rocketmq.unframe_avro(framed)
    assert (number, bytes(datum)) == (2**22 + 1, b"\x0a")


def test_23_avro_header_is_avro() -> None:
    """23: an Avro reader that reads a frame as a record of bytes and a long gets the id and the datum."""
    text = b'{"type":"record","name":"R","fields":[{"name":"id","type":"bytes"},{"name":"x","type":"long"}]}'
    avro = AvroFormat()
    codec = avro.codec(avro.parse(text, {}))
    value = codec.decode(rocketmq.frame_avro(2**40 | 3, b"\x0a"))
    assert value == {"id": (2**40 | 3).to_bytes(8, "big"), "x": 5}


def test_23_json_header() -> None:
    """23: a JSON record is the id, eight bytes, and the text."""
    text = json.dumps({"x": 5}).encode()
    framed = rocketmq.frame_json(2**22 + 1, text)
    assert framed == bytes.fromhex("0000000000400001") + text
    number, payload = rocketmq.unframe_json(framed)
    assert (number, bytes(payload)) == (2**22 + 1, text)


def test_02_record_ids_come_apart() -> None:
    """2: a record id is a schema id with 14 free bits, and a version in them."""
    assert rocketmq.record_id(2**22, 1) == 2**22 + 1
    assert rocketmq.split_record(2**22 + 1) == (2**22, 1)
    assert rocketmq.split_record(16383) == (0, 16383)


@pytest.mark.parametrize(
    ("schema", "version"), [(2**22, 0), (2**22, 16384), (2**22, -1), (1, 1), (-(2**14), 1), (2**63, 1)]
)
def test_numbers_that_make_no_record_id(schema: int, version: int) -> None:
    """A version beyond 14 bits would change the schema id, so it is refused; so is a schema id with low bits."""
    with pytest.raises(FrameError):
        rocketmq.record_id(schema, version)


@pytest.mark.parametrize("number", [-1, 0, 2**14, 2**63, 2**70])
def test_ids_out_of_range(number: int) -> None:
    """An invalid record id is neither written nor split."""
    for frame, _, _ in FRAMES:
        with pytest.raises(FrameError):
            frame(number, b"")
    with pytest.raises(FrameError):
        rocketmq.split_record(number)


BROKEN = [b"", b"\x10", b"\x10" + bytes(7), b"\x00" + bytes(8), b"\x10" + bytes(8), b"\x20" * 9]


@pytest.mark.parametrize("data", BROKEN)
def test_bytes_that_are_no_avro_frame(data: bytes) -> None:
    """Bytes that are too short, have another length or no version are refused, and never read past the end."""
    with pytest.raises(FrameError):
        rocketmq.unframe_avro(data)


@pytest.mark.parametrize("data", [b"", bytes(7), bytes(8), b"\xff" * 8])
def test_bytes_that_are_no_json_frame(data: bytes) -> None:
    """Bytes that are too short, or have an id that no JVM could write, are refused."""
    with pytest.raises(FrameError):
        rocketmq.unframe_json(data)


@given(ids, st.binary(max_size=20))
def test_frames_come_apart_as_they_were_put_together(number: int, payload: bytes) -> None:
    """Every id and payload are returned unchanged, from a view as from bytes."""
    for frame, unframe, header in FRAMES:
        framed = frame(number, memoryview(payload))
        assert len(framed) == header + len(payload)
        for data in (framed, memoryview(framed)):
            record_id, rest = unframe(data)
            assert (record_id, bytes(rest)) == (number, payload)
    assert rocketmq.record_id(*rocketmq.split_record(number)) == number


@given(st.binary(max_size=40))
def test_any_bytes(data: bytes) -> None:
    """Any bytes are a frame or raise `FrameError`."""
    for frame, unframe, _ in FRAMES:
        try:
            number, rest = unframe(data)
        except FrameError:
            continue
        assert frame(number, rest) == data
