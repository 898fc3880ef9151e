"""confluent-kafka's own client and serializers against the profiles `redpanda` and `karapace`, unmodified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from stele.testing import registry

AVRO = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
OTHER = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'
JSON = '{"type":"object","title":"T","properties":{"a":{"type":"integer"}}}'
PROTO = 'syntax = "proto3";\n\n// A note.\nmessage M {\n  int32 a = 1;\n}\n'
DATUM = {"a": 7}
VALUE = SerializationContext("t", MessageField.VALUE)
REFUSALS = {
    "redpanda": 'Schema being registered is incompatible with an earlier schema for subject "t-value", details: [',
    "karapace": "Incompatible schema, compatibility_mode=BACKWARD. Incompatibilities: "
    "reader type: string not compatible with writer type: int",
}


@pytest.fixture(params=list(REFUSALS))
def maker(request: pytest.FixtureRequest) -> str:
    """The name of a profile."""
    return str(request.param)


@pytest.fixture
def theirs(maker: str) -> Iterator[TheirClient]:
    """The client, on its own registry with that profile."""
    with registry(port=0, confluent_profile=maker) as box:
        client = TheirClient({"url": box.url})
        yield client


def test_avro(theirs: TheirClient, maker: str) -> None:
    """A record is written and read back, and an incompatible schema is refused with the profile's message."""
    data = AvroSerializer(theirs, AVRO)(DATUM, VALUE)
    assert AvroDeserializer(theirs)(data, VALUE) == DATUM
    assert theirs.lookup_schema("t-value", Schema(AVRO, "AVRO")).version == 1
    assert theirs.get_latest_version("t-value").schema.schema_str == AVRO
    assert theirs.test_compatibility("t-value", Schema(AVRO, "AVRO"))
    assert not theirs.test_compatibility("t-value", Schema(OTHER, "AVRO"))
    with pytest.raises(SchemaRegistryError) as refused:
        theirs.register_schema("t-value", Schema(OTHER, "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)
    assert refused.value.error_message.startswith(REFUSALS[maker])


def test_json(theirs: TheirClient) -> None:
    """A document is written and read back."""
    data = JSONSerializer(JSON, theirs)(DATUM, VALUE)
    assert JSONDeserializer(None, schema_registry_client=theirs)(data, VALUE) == DATUM
    assert theirs.get_latest_version("t-value").schema.schema_type == "JSON"


def test_protobuf(theirs: TheirClient, maker: str, compile_proto: Callable[[dict[str, str]], list[ModuleType]]) -> None:
    """A message is written and read back. Redpanda keeps the text as it was registered."""
    message: Any = compile_proto({"m.proto": PROTO})[0].M
    data = ProtobufSerializer(message, theirs, {"use.deprecated.format": False})(message(a=7), VALUE)
    decode = ProtobufDeserializer(message, {"use.deprecated.format": False}, theirs)
    assert decode(data, VALUE).a == 7
    schema_id = theirs.register_schema("text", Schema(PROTO, "PROTOBUF"))
    if maker == "redpanda":
        assert theirs.get_schema(schema_id).schema_str == PROTO


def test_deletion(theirs: TheirClient) -> None:
    """Soft and permanent deletion work, and the subject is not found afterwards."""
    theirs.register_schema("t", Schema(AVRO, "AVRO"))
    assert theirs.delete_subject("t") == [1]
    assert theirs.delete_subject("t", permanent=True) == [1]
    with pytest.raises(SchemaRegistryError) as missing:
        theirs.lookup_schema("t", Schema(AVRO, "AVRO"))
    assert missing.value.error_code == 40401
