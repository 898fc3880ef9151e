"""Records through a broker: what one side produces, the other consumes."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from stele.client import SchemaRegistryClient
from stele.client.serdes import AvroSerializer, Deserializer, Headers, IdPlace, JsonSerializer

SCHEMA = '{"type":"record","name":"Reading","fields":[{"name":"n","type":"int"},{"name":"at","type":"string"}]}'
OBJECT = '{"type":"object"}'


def through(broker: str, topic: str, produce: Callable[[Producer], None], count: int) -> list[Message]:
    """Produce, flush, and consume `count` records."""
    # Without idempotence, a record with a late acknowledgement is stored twice.
    producer = Producer({"bootstrap.servers": broker, "enable.idempotence": True})
    produce(producer)
    assert producer.flush(120) == 0
    consumer = Consumer({"bootstrap.servers": broker, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    records: list[Message] = []
    try:
        for _ in range(400):
            record = consumer.poll(0.5)
            if record is not None and record.error() is None:
                records.append(record)
            if len(records) == count:
                return records
    finally:
        consumer.close()
    raise AssertionError(f"{len(records)} of {count} records came")


def test_they_produce_we_consume(ours: SchemaRegistryClient, theirs: TheirClient, broker: str, topic: str) -> None:
    """Keys and values that confluent-kafka's serializer produced are consumed unchanged."""
    serialize = TheirAvroSerializer(theirs, SCHEMA)

    def produce(producer: Producer) -> None:
        for number in range(20):
            key = serialize({"n": -number, "at": "here"}, SerializationContext(topic, MessageField.KEY))
            value = serialize({"n": number, "at": "here"}, SerializationContext(topic, MessageField.VALUE))
            producer.produce(topic, value=value, key=key, partition=0)

    deserialize = Deserializer(ours)
    records = through(broker, topic, produce, 20)
    read = [
        (deserialize(record.key(), topic=topic, field="key"), deserialize(record.value(), topic=topic))
        for record in records
    ]
    assert read == [({"n": -number, "at": "here"}, {"n": number, "at": "here"}) for number in range(20)]


def test_we_produce_they_consume(ours: SchemaRegistryClient, theirs: TheirClient, broker: str, topic: str) -> None:
    """Records that Stele produced are consumed by confluent-kafka, half of them with the identity in headers.

    confluent-kafka's deserializer refuses payloads shorter than six bytes wherever the identity is, so the values are
    longer.
    """
    in_front = AvroSerializer(ours, SCHEMA, auto_register=True)
    in_header = AvroSerializer(ours, SCHEMA, auto_register=True, id_in=IdPlace.HEADER)

    def produce(producer: Producer) -> None:
        for number in range(20):
            headers: Headers = []
            serialize = in_header if number % 2 else in_front
            value = serialize({"n": number, "at": "there"}, topic=topic, headers=headers)
            producer.produce(topic, value=value, headers=headers, partition=0)

    deserialize = TheirAvroDeserializer(theirs)
    read = []
    for record in through(broker, topic, produce, 20):
        context = SerializationContext(topic, MessageField.VALUE, record.headers())
        read.append(deserialize(record.value(), context))
    assert read == [{"n": number, "at": "there"} for number in range(20)]


def test_one_topic_of_several_formats(ours: SchemaRegistryClient, broker: str, topic: str) -> None:
    """One deserializer reads Avro, JSON and tombstones from one topic, each by its own schema."""
    avro = AvroSerializer(ours, SCHEMA, auto_register=True, naming=lambda topic, field, record: f"{topic}-avro")
    json = JsonSerializer(ours, OBJECT, auto_register=True, naming=lambda topic, field, record: f"{topic}-json")

    def produce(producer: Producer) -> None:
        for value in (avro({"n": 1, "at": "home"}, topic=topic), json({"n": 2}, topic=topic), avro(None, topic=topic)):
            producer.produce(topic, value=value, key=b"k", partition=0)

    deserialize = Deserializer(ours)
    records = through(broker, topic, produce, 3)
    assert [deserialize(record.value(), headers=record.headers()) for record in records] == [
        {"n": 1, "at": "home"},
        {"n": 2},
        None,
    ]
