"""Frames are equal, byte for byte, to those of confluent-kafka. Needs no server."""

from __future__ import annotations

from io import BytesIO
from uuid import UUID

from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from stele.wire import confluent

IDS = st.integers(0, confluent.MAX_ID)
INDEXES = st.lists(st.integers(0, confluent.MAX_ID), min_size=1, max_size=20)
PAYLOADS = st.binary(max_size=20)


@given(IDS, INDEXES, PAYLOADS)
def test_prefix(schema_id: int, indexes: list[int], payload: bytes) -> None:
    """Both sides write the same prefix before every payload, with and without indexes, and read each other's."""
    assert SchemaId("AVRO", schema_id).id_to_bytes() + payload == confluent.frame(schema_id, payload)
    data = SchemaId("PROTOBUF", schema_id, None, indexes).id_to_bytes() + payload
    assert data == confluent.frame(schema_id, payload, indexes)
    theirs = SchemaId("PROTOBUF")
    assert theirs.from_bytes(BytesIO(data)).read() == payload
    frame = confluent.read_frame(data)
    assert (frame.schema, list(frame.message()[0])) == (theirs.id, theirs.message_indexes)


@given(st.uuids(), INDEXES)
def test_header(guid: UUID, indexes: list[int]) -> None:
    """Both sides write the same bytes into the record header."""
    assert SchemaId("PROTOBUF", None, str(guid), indexes).guid_to_bytes() == confluent.guid_header(guid, indexes)
    assert SchemaId("JSON", None, str(guid)).guid_to_bytes() == confluent.guid_header(guid)
