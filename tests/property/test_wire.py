"""Properties of the wire formats: reading reverses writing, and any bytes are read or rejected."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from stele.errors import FrameError
from stele.wire import avro_single, confluent

IDS = st.integers(0, confluent.MAX_ID)
INDEXES = st.lists(IDS, min_size=1, max_size=confluent.MAX_INDEXES)
PAYLOADS = st.binary(max_size=64)


@given(IDS, PAYLOADS)
def test_unframe_inverts_frame(schema_id: int, payload: bytes) -> None:
    """Every id and payload come back."""
    assert confluent.unframe(confluent.frame(schema_id, payload)) == (schema_id, memoryview(payload))


@given(IDS, INDEXES, PAYLOADS)
def test_message_inverts_indexed_frames(schema_id: int, indexes: list[int], payload: bytes) -> None:
    """Every list of indexes comes back, whatever payload follows it."""
    frame = confluent.read_frame(confluent.frame(schema_id, payload, indexes))
    assert (frame.schema, frame.message()) == (schema_id, (tuple(indexes), memoryview(payload)))


@given(st.uuids(), INDEXES, PAYLOADS)
def test_header_frames_are_inverse(guid: UUID, indexes: list[int], payload: bytes) -> None:
    """The same holds for guids in record headers."""
    frame = confluent.read_frame(payload, confluent.guid_header(guid, indexes))
    assert (frame.schema, frame.message()) == (guid, (tuple(indexes), memoryview(payload)))


@given(st.binary(max_size=40), st.none() | st.binary(max_size=24))
def test_any_bytes_are_read_or_refused(data: bytes, header: bytes | None) -> None:
    """No input raises anything but `FrameError`."""
    with suppress(FrameError):
        frame = confluent.read_frame(data, header)
        with suppress(FrameError):
            frame.message()
        frame.payload()


@given(st.binary(max_size=40))
def test_what_decodes_encodes_to_the_same_meaning(data: bytes) -> None:
    """Decoded indexes can be written again, and do not change in another round."""
    with suppress(FrameError):
        indexes, _ = confluent.decode_indexes(data)
        again = confluent.encode_indexes(indexes)
        assert confluent.decode_indexes(again) == (indexes, len(again))


@given(st.binary(min_size=8, max_size=8), PAYLOADS)
def test_single_objects_are_inverse(rabin: bytes, payload: bytes) -> None:
    """Fingerprint and payload of a single object come back."""
    assert avro_single.unframe(avro_single.frame(rabin, payload)) == (rabin, memoryview(payload))
