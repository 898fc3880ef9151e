"""confluent-kafka's serializers and Stele's write the same bytes, and each side reads what the other wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaReference as TheirReference
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry import header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer as TheirJsonDeserializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer as TheirJsonSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from stele.client import Schema, SchemaReference, SchemaRegistryClient
from stele.client.serdes import (
    AvroDeserializer,
    AvroSerializer,
    Deserializer,
    Headers,
    IdPlace,
    JsonDeserializer,
    JsonSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)

RECORD = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "price", "type": "double"},
            {"name": "rate", "type": "float"},
            {"name": "paid", "type": "boolean"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "counts", "type": {"type": "map", "values": "int"}},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "DONE"]}},
            {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 4}},
            {"name": "raw", "type": "bytes"},
            {"name": "parent", "type": ["null", "Order"], "default": None},
        ],
    }
)


def order(number: int, **more: Any) -> dict[str, Any]:
    """Return a value of RECORD."""
    return {
        "id": number,
        "price": number / 3,
        "rate": 0.5,
        "paid": number % 2 == 0,
        "note": None,
        "tags": ["a", "ü", ""],
        "counts": {"x": -(number % 100)},
        "state": "DONE",
        "digest": b"\x00\x01\x02\xff",
        "raw": b"",
        "parent": None,
    } | more


AVRO_CASES = [
    ('"string"', "grüß dich"),
    ('"long"', -(2**63)),
    ('"double"', 1e-7),
    ('"boolean"', True),
    ('"bytes"', b"\x00bare"),
    ('["null", "bytes"]', b"not bare"),
    ('{"type": "array", "items": "int"}', [1, -1, 2**31 - 1]),
    (RECORD, order(7)),
    (RECORD, order(2**62, note="ü", parent=order(1))),
]

PERSON = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Person",
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name"],
    }
)

JSON_VALUES = [
    {"name": "Zoë", "age": 3},
    {"z": [1, 2.5, None, True, {"deep": []}], "name": '日本 \u2028 " \\ / \u007f'},
    {"name": "", "small": 1e-7, "large": 1e22, "negative": -0.0, "long": 2**63 - 1},
]


def context(topic: str, headers: Headers | None = None) -> SerializationContext:
    """Return the serialization context of a record."""
    return SerializationContext(topic, MessageField.VALUE, headers)


@pytest.mark.parametrize(("schema", "value"), AVRO_CASES)
def test_avro(ours: SchemaRegistryClient, theirs: TheirClient, topic: str, schema: str, value: Any) -> None:
    """Both sides write the same bytes for Avro values of every type, and read them."""
    data = TheirAvroSerializer(theirs, schema)(value, context(topic))
    assert data is not None
    assert AvroSerializer(ours, schema)(value, topic=topic) == data
    assert AvroDeserializer(ours)(data, topic=topic) == value
    assert TheirAvroDeserializer(theirs)(data, context(topic)) == value


def test_avro_registered_by_ours(ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """confluent-kafka looks up the schema that Stele registered, and reads its records."""
    data = AvroSerializer(ours, RECORD, auto_register=True)(order(1), topic=topic)
    their_serializer = TheirAvroSerializer(theirs, RECORD, conf={"auto.register.schemas": False})
    assert their_serializer(order(1), context(topic)) == data
    assert TheirAvroDeserializer(theirs)(data, context(topic)) == order(1)


def test_avro_with_references(ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """A schema with types from two other subjects works on both sides."""
    money = '{"type":"record","name":"Money","namespace":"shop","fields":[{"name":"cents","type":"long"}]}'
    line = '{"type":"record","name":"Line","namespace":"shop","fields":[{"name":"price","type":"shop.Money"}]}'
    bill = (
        '{"type":"record","name":"Bill","namespace":"shop","fields":'
        '[{"name":"lines","type":{"type":"array","items":"shop.Line"}},{"name":"total","type":"shop.Money"}]}'
    )
    ours.register(f"{topic}.money", Schema(money))
    ours.register(f"{topic}.line", Schema(line, references=(SchemaReference("shop.Money", f"{topic}.money", 1),)))
    names = [("shop.Money", f"{topic}.money", 1), ("shop.Line", f"{topic}.line", 1)]
    value = {"lines": [{"price": {"cents": 5}}], "total": {"cents": 5}}

    their_schema = TheirSchema(bill, "AVRO", [TheirReference(*name) for name in names])
    data = TheirAvroSerializer(theirs, their_schema)(value, context(topic))
    our_schema = Schema(bill, references=tuple(SchemaReference(*name) for name in names))
    assert AvroSerializer(ours, our_schema)(value, topic=topic) == data
    assert Deserializer(ours)(data) == value
    assert TheirAvroDeserializer(theirs)(data, context(topic)) == value


def test_avro_use_latest(ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """Both sides write with the subject's newest version with that setting."""
    ours.register(f"{topic}-value", Schema(RECORD))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    data = TheirAvroSerializer(theirs, None, conf=conf)(order(3), context(topic))
    assert AvroSerializer(ours, use_latest=True)(order(3), topic=topic) == data


def test_guid_in_header(ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """Both sides write the guid into the same header with the same bytes, and find it there."""
    their_headers: Headers = []
    our_headers: Headers = []
    conf = {"schema.id.serializer": header_schema_id_serializer}
    data = TheirAvroSerializer(theirs, RECORD, conf=conf)(order(1), context(topic, their_headers))
    assert AvroSerializer(ours, RECORD, id_in=IdPlace.HEADER)(order(1), topic=topic, headers=our_headers) == data
    assert our_headers == their_headers
    assert Deserializer(ours)(data, headers=their_headers) == order(1)
    assert TheirAvroDeserializer(theirs)(data, context(topic, our_headers)) == order(1)


@pytest.mark.parametrize("value", JSON_VALUES)
def test_json(ours: SchemaRegistryClient, theirs: TheirClient, topic: str, value: dict[str, Any]) -> None:
    """Both sides write the same bytes for JSON values, including the spelling of numbers, and read them."""
    data = TheirJsonSerializer(PERSON, theirs)(value, context(topic))
    assert data is not None
    assert JsonSerializer(ours, PERSON)(value, topic=topic) == data
    assert JsonDeserializer(ours)(data, topic=topic) == value
    assert TheirJsonDeserializer(None, schema_registry_client=theirs)(data, context(topic)) == value


def test_json_with_references(ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """Both sides follow a `$ref` to another subject, for writing and for reading."""
    address = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
    ours.register(f"{topic}.address", Schema(address, "JSON"))
    person = '{"title":"P","type":"object","properties":{"home":{"$ref":"address.json"}}}'
    value = {"home": {"city": "Köln"}}
    their_schema = TheirSchema(person, "JSON", [TheirReference("address.json", f"{topic}.address", 1)])
    data = TheirJsonSerializer(their_schema, theirs)(value, context(topic))
    our_schema = Schema(person, "JSON", (SchemaReference("address.json", f"{topic}.address", 1),))
    assert JsonSerializer(ours, our_schema)(value, topic=topic) == data
    assert Deserializer(ours)(data) == value
    assert TheirJsonDeserializer(None, schema_registry_client=theirs)(data, context(topic)) == value


PROTO = """
syntax = "proto3";
package wirecheck.one;
message First { string text = 1; }
message Second {
  message Inner { int64 id = 1; map<string, int32> counts = 2; }
  Inner inner = 1;
  repeated double numbers = 2;
}
"""

IMPORTED = """
syntax = "proto3";
package wirecheck.two;
message Money { int64 cents = 1; }
"""

IMPORTER = """
syntax = "proto3";
package wirecheck.two;
import "wirecheck_money.proto";
import "google/protobuf/timestamp.proto";
message Bill { Money total = 1; google.protobuf.Timestamp at = 2; }
"""

Compile = Callable[[dict[str, str]], list[ModuleType]]


def test_protobuf(ours: SchemaRegistryClient, theirs: TheirClient, topic: str, compile_proto: Compile) -> None:
    """Both sides write the same indexes for messages at any position in a file, and read them."""
    (module,) = compile_proto({"wirecheck_one.proto": PROTO})
    second = module.Second(inner=module.Second.Inner(id=5, counts={"a": 1}), numbers=[0.5])
    for message in (module.First(text="ü"), module.First(), second, second.inner):
        kind = type(message)
        data = TheirProtobufSerializer(kind, theirs)(message, context(topic))
        assert data is not None
        assert ProtobufSerializer(ours, kind)(message, topic=topic) == data
        assert ProtobufDeserializer(ours, message=kind)(data) == message
        dynamic = Deserializer(ours)(data)
        assert dynamic.DESCRIPTOR.full_name == kind.DESCRIPTOR.full_name
        assert dynamic.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)
        assert TheirProtobufDeserializer(kind, {}, theirs)(data, context(topic)) == message


def test_protobuf_by_text(ours: SchemaRegistryClient, theirs: TheirClient, topic: str, compile_proto: Compile) -> None:
    """confluent-kafka reads with generated classes what Stele writes from a .proto text and dicts."""
    (module,) = compile_proto({"wirecheck_three.proto": PROTO.replace("wirecheck.one", "wirecheck.three")})
    ours.register(f"{topic}-value", Schema(PROTO.replace("wirecheck.one", "wirecheck.three"), "PROTOBUF"))
    serialize = ProtobufSerializer(ours, use_latest=True, message="wirecheck.three.Second.Inner")
    data = serialize({"id": "5"}, topic=topic)
    message = TheirProtobufDeserializer(module.Second.Inner, {}, theirs)(data, context(topic))
    assert message == module.Second.Inner(id=5)


def test_protobuf_with_imports(
    ours: SchemaRegistryClient, theirs: TheirClient, topic: str, compile_proto: Compile
) -> None:
    """Imports become the same references on both sides; well-known ones need none."""
    money, bill = compile_proto({"wirecheck_money.proto": IMPORTED, "wirecheck_bill.proto": IMPORTER})
    message = bill.Bill(total=money.Money(cents=5))
    message.at.FromSeconds(1_000_000)
    data = TheirProtobufSerializer(bill.Bill, theirs)(message, context(topic))
    assert ProtobufSerializer(ours, bill.Bill)(message, topic=topic) == data
    assert [reference.name for reference in ours.version(f"{topic}-value").references] == ["wirecheck_money.proto"]
    assert Deserializer(ours)(data).SerializeToString() == message.SerializeToString()
    assert TheirProtobufDeserializer(bill.Bill, {}, theirs)(data, context(topic)) == message
    again = ProtobufSerializer(ours, bill.Bill, auto_register=True)(message, topic=f"{topic}-again")
    assert TheirProtobufSerializer(bill.Bill, theirs)(message, context(f"{topic}-again")) == again


def test_none_is_a_tombstone_on_both_sides(ours: SchemaRegistryClient, theirs: TheirClient, topic: str) -> None:
    """Both sides serialize None as None."""
    assert TheirAvroSerializer(theirs, RECORD)(None, context(topic)) is None
    assert AvroSerializer(ours, RECORD)(None, topic=topic) is None
