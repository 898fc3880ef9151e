"""Producers and consumers of the RocketMQ dialect with a real server, on every kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.server_process import serving

from stele.client import ResponseError, Retry, SchemaRegistryClient
from stele.client.rocketmq import RocketmqSubjects, number_of
from stele.client.serdes.rocketmq import ConsumedRecord, Consumer, Producer, RocketmqDeserializer, RocketmqSerializer
from stele.errors import (
    Conflict,
    DecodeError,
    EncodeError,
    FormatMismatch,
    FrameError,
    NotFound,
    RegistryUnreachable,
)
from stele.wire import rocketmq

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
ORDER_2 = ORDER.replace("]}", ',{"name":"n","type":"int","default":7}]}')
BAD = '{"type":"record","name":"Order","fields":[{"name":"other","type":"string"}]}'
OBJECT = '{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server over an empty store."""
    folder: Path = tmp_path_factory.mktemp("rocketmq")
    store = "memory:" if request.param == "memory" else f"sqlite:///{folder / 'stele.db'}"
    with serving("--store", store, folder=folder) as server:
        yield server.url


@pytest.fixture
def topics(url: str, request: pytest.FixtureRequest) -> Iterator[RocketmqSubjects]:
    """Subjects of a tenant that only this test uses."""
    with SchemaRegistryClient(url) as client:
        yield RocketmqSubjects(client, cluster="c", tenant=request.node.name)


class Wire:
    """A transport that records the sent messages."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes | None]] = []

    def __call__(self, topic: str, payload: bytes | None) -> None:
        """Record a message."""
        self.sent.append((topic, payload))


def read(
    topics: RocketmqSubjects, wire: Wire, reader: str | None = None, schema_type: str = "AVRO"
) -> list[ConsumedRecord[Any]]:
    """Return the records that a consumer reads from all sent messages."""
    consumer: Consumer[Any] = Consumer(RocketmqDeserializer(topics, reader, schema_type=schema_type), "orders")
    return [consumer.read(payload) for _, payload in wire.sent]


def test_28_a_producer_registers_and_updates(topics: RocketmqSubjects) -> None:
    """28: a producer with auto-registration registers its schema, a later one updates it, and consumers read both."""
    wire = Wire()
    for idl, value in ((ORDER, {"id": 1}), (ORDER_2, {"id": 2, "n": 3}), (ORDER, {"id": 4})):
        producer: Producer[Any] = Producer(RocketmqSerializer(topics, idl), wire, "orders")
        producer.send(value)
    assert topics.names() == ["orders"]
    assert [record.version for record in (topics.by_version("orders", 1), topics.get_bound_record("orders"))] == [1, 2]
    versions = [rocketmq.split_record(rocketmq.unframe_avro(payload or b"")[0]).version for _, payload in wire.sent]
    assert versions == [1, 2, 1]
    assert [record.message() for record in read(topics, wire)] == [{"id": 1}, {"id": 2, "n": 3}, {"id": 4}]
    assert [record.message()["n"] for record in read(topics, wire, ORDER_2)] == [7, 3, 7]
    refused: Producer[Any] = Producer(RocketmqSerializer(topics, BAD), wire, "orders")
    with pytest.raises(Conflict) as raised:
        refused.send({"other": ""})
    assert isinstance(raised.value, ResponseError)
    assert number_of(raised.value) == 40901
    assert len(wire.sent) == 3


def test_28_a_producer_that_may_not_register(topics: RocketmqSubjects) -> None:
    """28: without auto-registration an unknown schema raises; nothing is stored and nothing is sent."""
    wire = Wire()
    producer: Producer[Any] = Producer(RocketmqSerializer(topics, ORDER, auto_register=False), wire, "orders")
    with pytest.raises(NotFound):
        producer.send({"id": 1})
    assert topics.names() == []
    topics.register("orders", "Order", ORDER, owner="ann")
    producer.send({"id": 1})
    late: Producer[Any] = Producer(RocketmqSerializer(topics, ORDER_2, auto_register=False), wire, "orders")
    with pytest.raises(NotFound):
        late.send({"id": 1, "n": 1})
    topics.update("orders", "Order", ORDER_2)
    late.send({"id": 1, "n": 1})
    assert [record.message() for record in read(topics, wire)] == [{"id": 1}, {"id": 1, "n": 1}]


def test_24_what_cannot_be_decoded_is_flagged(topics: RocketmqSubjects) -> None:
    """24: a record that cannot be decoded is marked and keeps its bytes; other records are read."""
    wire = Wire()
    producer: Producer[Any] = Producer(RocketmqSerializer(topics, ORDER), wire, "orders")
    producer.send({"id": 1})
    good = wire.sent[0][1] or b""
    number, _ = rocketmq.unframe_avro(good)
    cases: list[tuple[bytes, type[Exception]]] = [
        (b"", FrameError),
        (b"plain text", FrameError),
        (rocketmq.frame_avro(number, b""), DecodeError),
        (good + b"\x00", DecodeError),
        (rocketmq.frame_avro(number + 1, b"\x02"), NotFound),
        (rocketmq.frame_avro(rocketmq.MAX_ID, b"\x02"), NotFound),
    ]
    wire.sent = [("orders", payload) for payload, _ in cases] + [("orders", good), ("orders", None)]
    records = read(topics, wire)
    for record, (payload, error) in zip(records, cases, strict=False):
        assert not record.is_deserialized
        assert record.undeserialized_message() == payload
        assert isinstance(record.error, error)
        with pytest.raises(error):
            record.message()
    assert [(row.is_deserialized, row.message()) for row in records[-2:]] == [(True, {"id": 1}), (True, None)]
    assert records[-2].undeserialized_message() == good


def test_24_an_outage_is_no_bad_record(url: str) -> None:
    """24: if the registry does not respond, the consumer raises, and no record is marked as invalid."""

    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("down")

    down = SchemaRegistryClient(url, retry=Retry(rounds=1), transport=httpx.MockTransport(fail))
    consumer: Consumer[Any] = Consumer(RocketmqDeserializer(RocketmqSubjects(down)), "orders")
    with pytest.raises(RegistryUnreachable):
        consumer.read(rocketmq.frame_avro(2**14 | 1, b"\x02"))


def test_json_records(topics: RocketmqSubjects) -> None:
    """JSON has its own header; values must be valid when they are written and when they are read."""
    wire = Wire()
    producer: Producer[Any] = Producer(RocketmqSerializer(topics, OBJECT, schema_type="JSON"), wire, "orders")
    producer.send({"id": 1})
    producer.send(None)
    number, text = rocketmq.unframe_json(wire.sent[0][1] or b"")
    assert (topics.get_bound_record("orders").record_id, bytes(text)) == (number, b'{"id":1}')
    assert [record.message() for record in read(topics, wire, schema_type="JSON")] == [{"id": 1}, None]
    with pytest.raises(EncodeError):
        producer.send({"id": "one"})
    wire.sent = [("orders", rocketmq.frame_json(number, text)) for text in (b"{}", b"{", b"\xff")]
    assert [record.is_deserialized for record in read(topics, wire, schema_type="JSON")] == [False] * 3
    framed = rocketmq.frame_avro(number, b"")
    wire.sent = [("orders", framed)]
    (record,) = read(topics, wire)
    assert isinstance(record.error, FormatMismatch)


def test_types_without_a_wire_format(topics: RocketmqSubjects) -> None:
    """Only Avro and JSON have a wire format."""
    with pytest.raises(FormatMismatch):
        RocketmqSerializer(topics, "struct T {}", schema_type="THRIFT")
