"""Runs both clients of python-schema-registry-client, Avro and JSON messages, against a registry. Argument: its URL."""

from __future__ import annotations

import asyncio
import sys

import httpx
import pytest
from schema_registry.client import AsyncSchemaRegistryClient, SchemaRegistryClient
from schema_registry.client.errors import ClientError
from schema_registry.client.schema import AvroSchema, JsonSchema
from schema_registry.serializers import AsyncAvroMessageSerializer, AvroMessageSerializer, JsonMessageSerializer

ONE = AvroSchema({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
TWO = AvroSchema(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": ""}],
    }
)
BAD = AvroSchema({"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]})
JSON = JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False})
PATIENCE = httpx.Timeout(120)


def synchronous(url: str) -> None:
    """Register, evolve, look up, check, encode, decode, delete."""
    client = SchemaRegistryClient(url, timeout=PATIENCE)
    first = client.register("psrc", ONE)
    second = client.register("psrc", TWO)
    assert first != second
    assert client.register("psrc", ONE) == first
    assert client.get_versions("psrc") == [1, 2]
    assert client.get_by_id(first).flat_schema == ONE.flat_schema
    latest = client.get_schema("psrc")
    assert (latest.schema_id, latest.version) == (second, 2)
    assert client.check_version("psrc", ONE).version == 1
    assert client.test_compatibility("psrc", TWO)
    assert not client.test_compatibility("psrc", BAD)
    with pytest.raises(ClientError) as refused:
        SchemaRegistryClient(url, timeout=PATIENCE).register("psrc", BAD)
    assert refused.value.http_code == 409
    assert client.update_compatibility("NONE", "psrc")
    assert client.get_compatibility("psrc") == "NONE"
    assert [(row.subject, row.version) for row in client.get_schema_subject_versions(second)] == [("psrc", 2)]
    assert "psrc" in client.get_subjects()

    avro = AvroMessageSerializer(client)
    assert avro.decode_message(avro.encode_record_with_schema("psrc", TWO, {"a": 1, "b": "x"})) == {"a": 1, "b": "x"}
    json = JsonMessageSerializer(client)
    message = json.encode_record_with_schema("psrc-json", JSON, {"a": 3})
    assert JsonMessageSerializer(SchemaRegistryClient(url, timeout=PATIENCE)).decode_message(message) == {"a": 3}

    assert client.delete_version("psrc", 1) == 1
    assert client.delete_subject("psrc") == [2]
    assert "psrc" not in client.get_subjects()


async def asynchronous(url: str) -> None:
    """Run the same steps with the async client."""
    client = AsyncSchemaRegistryClient(url, timeout=PATIENCE)
    first = await client.register("psrc-async", ONE)
    await client.register("psrc-async", TWO)
    assert await client.get_versions("psrc-async") == [1, 2]
    avro = AsyncAvroMessageSerializer(client)
    message = await avro.encode_record_with_schema_id(first, {"a": 5})
    assert await avro.decode_message(message) == {"a": 5}
    assert await client.test_compatibility("psrc-async", TWO)
    assert await client.delete_subject("psrc-async") == [1, 2]


synchronous(sys.argv[1])
asyncio.run(asynchronous(sys.argv[1]))
