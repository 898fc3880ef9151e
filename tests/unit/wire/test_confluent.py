"""The Confluent wire format, against bytes written down by hand from its description."""

from __future__ import annotations

from uuid import UUID

import pytest

from stele.errors import FrameError
from stele.wire import confluent

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


def test_frame_is_magic_id_payload() -> None:
    """The five bytes in front are a zero and the id, big-endian."""
    assert confluent.frame(258, b"xy") == b"\x00\x00\x00\x01\x02xy"


def test_frame_with_message_indexes() -> None:
    """Protobuf indexes stand between id and payload."""
    assert confluent.frame(1, b"p", [1]) == b"\x00\x00\x00\x00\x01\x02\x02p"


def test_unframe_shares_the_callers_bytes() -> None:
    """Splitting a frame copies no bytes."""
    data = b"\x00\x00\x00\x00\x07payload"
    schema_id, payload = confluent.unframe(data)
    assert (schema_id, bytes(payload), payload.obj) == (7, b"payload", data)


def test_empty_payload_is_a_frame() -> None:
    """An Avro null or an empty Protobuf message has no bytes, and is still a record."""
    assert confluent.unframe(confluent.frame(3, b"")) == (3, memoryview(b""))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "too few"),
        (b"\x00\x00\x00\x01", "too few"),
        (b'{"a":1}', "magic byte"),
        (b"\x01\x00\x00\x00\x01x", "magic byte"),
        (b"\x00\xff\xff\xff\xffx", "not a schema id"),
    ],
)
def test_unframe_refuses_what_is_no_frame(data: bytes, why: str) -> None:
    """Short, foreign and out-of-range frames raise an error that names the problem."""
    with pytest.raises(FrameError, match=why):
        confluent.unframe(data)


@pytest.mark.parametrize("schema_id", [-1, 2**31])
def test_frame_refuses_ids_no_client_could_read(schema_id: int) -> None:
    """Ids outside int32 are refused, because clients would read them as other ids."""
    with pytest.raises(FrameError, match="not a schema id"):
        confluent.frame(schema_id, b"")


@pytest.mark.parametrize(
    ("indexes", "encoded"),
    [
        ([0], b"\x00"),
        ([1], b"\x02\x02"),
        ([0, 0], b"\x04\x00\x00"),
        ([2, 0, 1], b"\x06\x04\x00\x02"),
        ([64], b"\x02\x80\x01"),
        ([2**31 - 1], b"\x02\xfe\xff\xff\xff\x0f"),
    ],
)
def test_message_indexes(indexes: list[int], encoded: bytes) -> None:
    """Indexes are zig-zag varints after their count; the list [0] is one zero byte."""
    assert confluent.encode_indexes(indexes) == encoded
    assert confluent.decode_indexes(encoded + b"rest") == (tuple(indexes), len(encoded))


def test_long_spelling_of_the_first_message_is_read() -> None:
    """Some writers spell [0] out as count one, index zero."""
    assert confluent.decode_indexes(b"\x02\x00") == ((0,), 2)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "end inside"),
        (b"\x02", "end inside"),
        (b"\x80", "end inside"),
        (b"\x01\x00", "negative"),
        (b"\x02\x01", "negative"),
        (b"\x02\xff\xff\xff\xff\xff\x01", "32 bits"),
        (b"\x02\xfe\xff\xff\xff\x7f", "32 bits"),
        (b"\xca\x01" + b"\x00" * 101, "more than 100"),
    ],
)
def test_odd_message_indexes_are_refused(data: bytes, why: str) -> None:
    """Truncated, negative, over-long and endless lists are errors, in bounded time."""
    with pytest.raises(FrameError, match=why):
        confluent.decode_indexes(data)


@pytest.mark.parametrize("indexes", [[], [-1], [2**31], [0] * 101])
def test_impossible_message_indexes_are_not_written(indexes: list[int]) -> None:
    """Message indexes that could not be read again are refused."""
    with pytest.raises(FrameError):
        confluent.encode_indexes(indexes)


def test_guid_header() -> None:
    """The header holds 01 and the guid in network order, then the indexes of a Protobuf record."""
    assert confluent.guid_header(GUID) == b"\x01" + GUID.bytes
    assert confluent.guid_header(GUID, [0]) == b"\x01" + GUID.bytes + b"\x00"


def test_read_prefers_the_header() -> None:
    """With a header the record is all payload, even one that looks like a frame."""
    frame = confluent.read_frame(b"\x00\x00\x00\x00\x01x", confluent.guid_header(GUID))
    assert (frame.schema, bytes(frame.payload())) == (GUID, b"\x00\x00\x00\x00\x01x")


def test_read_takes_either_magic_in_either_place() -> None:
    """A guid may stand in front of the payload and an id in the header."""
    assert confluent.read_frame(confluent.guid_header(GUID) + b"p").schema == GUID
    assert confluent.read_frame(b"p", b"\x00\x00\x00\x00\x09").schema == 9


@pytest.mark.parametrize(
    ("data", "header"),
    [(confluent.frame(5, b"p", [1, 0]), None), (b"p", confluent.guid_header(GUID, [1, 0]))],
    ids=["prefix", "header"],
)
def test_message_finds_the_indexes_beside_the_id(data: bytes, header: bytes | None) -> None:
    """Indexes are stored with the id, so a Protobuf payload has the same bytes in both layouts."""
    indexes, payload = confluent.read_frame(data, header).message()
    assert (indexes, bytes(payload)) == ((1, 0), b"p")


@pytest.mark.parametrize("header", [b"", b"\x01" + b"g" * 15, b"\x02" + b"g" * 16, b"\x00\x01"])
def test_broken_headers_are_refused(header: bytes) -> None:
    """An invalid header is an error, even if the payload begins with an id."""
    with pytest.raises(FrameError):
        confluent.read_frame(b"\x00\x00\x00\x00\x01x", header)


def test_left_over_header_bytes_are_refused() -> None:
    """Bytes after the id or after the indexes are refused, because the header does not fit the format."""
    frame = confluent.read_frame(b"p", confluent.guid_header(GUID, [1]))
    with pytest.raises(FrameError, match="after the guid"):
        frame.payload()
    with pytest.raises(FrameError, match="after the indexes"):
        confluent.read_frame(b"p", confluent.guid_header(GUID, [1]) + b"!").message()
