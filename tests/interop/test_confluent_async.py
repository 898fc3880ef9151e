"""confluent-kafka's async client and serializers, unmodified: every format, naming strategy and place of identity."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    Metadata,
    MetadataProperties,
    Schema,
    ServerConfig,
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry._async.avro import AsyncAvroDeserializer, AsyncAvroSerializer
from confluent_kafka.schema_registry._async.json_schema import AsyncJSONDeserializer, AsyncJSONSerializer
from confluent_kafka.schema_registry._async.protobuf import AsyncProtobufDeserializer, AsyncProtobufSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

RECORD = '{"type":"record","name":"%s","namespace":"awaited","fields":[{"name":"a","type":"string"}]}'
OBJECT = {
    "title": "awaited.J",
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "additionalProperties": False,
}
PROTO = 'syntax = "proto3";\npackage awaited;\nmessage First {}\nmessage Second { string a = 1; }\n'
VALUE = {"a": "long enough"}
STRATEGIES = {
    "{topic}-value": topic_subject_name_strategy,
    "awaited.{record}": record_subject_name_strategy,
    "{topic}-awaited.{record}": topic_record_subject_name_strategy,
}


@pytest_asyncio.fixture
async def client(registry_url: str) -> AsyncIterator[AsyncSchemaRegistryClient]:
    """confluent-kafka's async client."""
    async with AsyncSchemaRegistryClient({"url": registry_url}) as client:
        yield client


@pytest_asyncio.fixture
async def fresh(registry_url: str) -> AsyncIterator[AsyncSchemaRegistryClient]:
    """A second client with an empty cache."""
    async with AsyncSchemaRegistryClient({"url": registry_url}) as client:
        yield client


def context(topic: str, headers: list[Any] | None = None) -> SerializationContext:
    """Return the serialization context of a record's value."""
    return SerializationContext(topic, MessageField.VALUE, headers)


async def test_client(client: AsyncSchemaRegistryClient, fresh: AsyncSchemaRegistryClient, topic: str) -> None:
    """Registration, all lookups, verdicts, settings, modes, metadata and deletion work."""
    one, two = (
        Schema(RECORD % "R", "AVRO"),
        Schema((RECORD % "R").replace("}]}", '},{"name":"b","type":"int","default":0}]}')),
    )
    first = await client.register_schema(topic, one)
    full = await client.register_schema_full_response(topic, two, normalize_schemas=True)
    assert full.schema_id != first
    assert (await fresh.get_schema(first, topic)).schema_str == one.schema_str
    latest = await fresh.get_latest_version(topic)
    assert (latest.version, latest.schema_id) == (2, full.schema_id)
    assert (await fresh.get_schema_by_guid(str(latest.guid))).schema_str == latest.schema.schema_str
    assert set(await client.get_schema_types()) == {"AVRO", "JSON", "PROTOBUF"}
    assert await client.get_subjects_by_schema_id(first) is not None
    assert [(row.subject, row.version) for row in await client.get_schema_versions(full.schema_id)] == [(topic, 2)]
    assert (await fresh.lookup_schema(topic, one)).version == 1
    assert await client.get_subjects(subject_prefix=topic) == [topic]
    assert await client.get_versions(topic) == [1, 2]
    assert await client.get_referenced_by(topic, 1) == []
    assert await client.test_compatibility(topic, two)
    assert not await client.test_compatibility_all_versions(topic, Schema('"int"', "AVRO"))
    with pytest.raises(SchemaRegistryError) as refused:
        await client.register_schema(topic, Schema('"int"', "AVRO"))
    assert refused.value.http_status_code == 409
    await client.set_compatibility(topic, "FULL")
    assert await client.get_compatibility(topic) == "FULL"
    assert (await client.set_config(topic, ServerConfig(compatibility_group="g"))) is not None
    assert (await client.get_config(topic)).compatibility_group == "g"
    await client.delete_config(topic)
    assert await client.update_mode(topic, "READONLY") == "READONLY"
    assert await client.get_mode(topic) == "READONLY"
    assert await client.delete_mode(topic) == "READONLY"
    assert await client.get_global_mode() == "READWRITE"
    assert "." in await client.get_contexts()
    owned = Metadata(tags=None, properties=MetadataProperties({"owner": "me"}), sensitive=None)
    await client.register_schema(topic, Schema(two.schema_str, "AVRO", [], owned))
    assert (await client.get_latest_with_metadata(topic, {"owner": "me"})).version == 3
    assert await client.delete_version(topic, 1) == 1
    assert await client.delete_subject(topic) == [2, 3]
    assert await client.delete_subject(topic, permanent=True) == [1, 2, 3]


@pytest.mark.parametrize("place", ["prefix", "header"])
@pytest.mark.parametrize("subject", STRATEGIES)
async def test_avro(
    client: AsyncSchemaRegistryClient, fresh: AsyncSchemaRegistryClient, topic: str, subject: str, place: str
) -> None:
    """Avro records round-trip for each naming strategy, with the identity in the prefix or in a header."""
    record = f"A{topic[-8:]}"
    conf: dict[str, Any] = {"subject.name.strategy": STRATEGIES[subject]}
    headers: list[Any] = []
    if place == "header":
        conf["schema.id.serializer"] = header_schema_id_serializer
    serializer = await AsyncAvroSerializer(client, RECORD % record, conf=conf)
    data = await serializer(VALUE, context(topic, headers))
    assert [len(value) for _, value in headers] == ([17] if place == "header" else [])
    deserializer = await AsyncAvroDeserializer(fresh)
    assert await deserializer(data, context(topic, headers)) == VALUE
    assert subject.format(topic=topic, record=record) in await client.get_subjects()


@pytest.mark.parametrize("place", ["prefix", "header"])
@pytest.mark.parametrize("subject", STRATEGIES)
async def test_json(
    client: AsyncSchemaRegistryClient, fresh: AsyncSchemaRegistryClient, topic: str, subject: str, place: str
) -> None:
    """JSON documents round-trip likewise. The title is the record's name."""
    record = f"J{topic[-8:]}"
    conf: dict[str, Any] = {"subject.name.strategy": STRATEGIES[subject]}
    headers: list[Any] = []
    if place == "header":
        conf["schema.id.serializer"] = header_schema_id_serializer
    schema = json.dumps({**OBJECT, "title": f"awaited.{record}"})
    serializer = await AsyncJSONSerializer(schema, client, conf=conf)
    data = await serializer(VALUE, context(topic, headers))
    deserializer = await AsyncJSONDeserializer(None, schema_registry_client=fresh)
    assert await deserializer(data, context(topic, headers)) == VALUE
    assert subject.format(topic=topic, record=record) in await client.get_subjects()


@pytest.mark.parametrize("place", ["prefix", "header"])
@pytest.mark.parametrize("subject", STRATEGIES)
async def test_protobuf(
    client: AsyncSchemaRegistryClient,
    topic: str,
    subject: str,
    place: str,
    compile_proto: Callable[[dict[str, str]], list[ModuleType]],
) -> None:
    """Protobuf messages that are not the first of their file round-trip likewise."""
    package = f"awaited.p{topic[-8:]}"
    (module,) = compile_proto({f"awaited_{topic[-8:]}.proto": PROTO.replace("package awaited", f"package {package}")})
    conf: dict[str, Any] = {"subject.name.strategy": STRATEGIES[subject]}
    headers: list[Any] = []
    if place == "header":
        conf["schema.id.serializer"] = header_schema_id_serializer
    serializer = await AsyncProtobufSerializer(module.Second, client, conf=conf)
    message = module.Second(a="long enough")
    data = await serializer(message, context(topic, headers))
    deserializer = await AsyncProtobufDeserializer(module.Second, {}, client)
    assert await deserializer(data, context(topic, headers)) == message
    wanted = subject.format(topic=topic, record="").replace("awaited.", f"{package}.Second")
    assert wanted in await client.get_subjects()


async def test_use_latest_and_by_id(
    client: AsyncSchemaRegistryClient, fresh: AsyncSchemaRegistryClient, topic: str
) -> None:
    """Serializers without registration use the newest version, the one with given metadata, or one by its id."""
    schema_id = await client.register_schema(f"{topic}-value", Schema(RECORD % "L", "AVRO"))
    owned = Metadata(tags=None, properties=MetadataProperties({"major": "1"}), sensitive=None)
    wider = (RECORD % "L").replace("}]}", '},{"name":"b","type":"int","default":0}]}')
    await client.register_schema(f"{topic}-value", Schema(wider, "AVRO", [], owned))
    off = {"auto.register.schemas": False}
    by_latest = {**off, "use.latest.version": True}
    by_metadata = {**off, "use.latest.with.metadata": {"major": "1"}}
    for conf, expected in (
        (by_latest, {**VALUE, "b": 0}),
        (by_metadata, {**VALUE, "b": 0}),
        ({**off, "use.schema.id": schema_id}, VALUE),
    ):
        serializer = await AsyncAvroSerializer(client, conf=conf)
        data = await serializer(VALUE, context(topic))
        deserializer = await AsyncAvroDeserializer(fresh)
        assert await deserializer(data, context(topic)) == expected
