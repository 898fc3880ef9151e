"""Azure's registry clients, unmodified. Arguments: host and port of a registry behind TLS, a CA's certificate."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import pytest
import requests
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.transport import AsyncioRequestsTransport
from azure.schemaregistry import SchemaFormat, SchemaRegistryClient
from azure.schemaregistry.aio import SchemaRegistryClient as AsyncClient
from azure.schemaregistry.encoder.avroencoder import AvroEncoder, InvalidContentError
from azure.schemaregistry.encoder.jsonencoder import JsonSchemaEncoder

GROUP = "readings"
ONE = json.dumps({"type": "record", "name": "Reading", "namespace": "plant", "fields": [{"name": "a", "type": "int"}]})
TWO = ONE.replace("]}", ', {"name": "b", "type": "string", "default": "none"}]}')
BAD = ONE.replace('"int"', '"string"')
JSON = json.dumps(
    {"$id": "plant.Reading", "title": "plant.Reading", "type": "object", "properties": {"a": {"type": "integer"}}}
)


class Credential:
    """Credentials with a meaningless token."""

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """Return the same token for every call."""
        return AccessToken("token", int(time.time()) + 3600)


class AsyncCredential:
    """The same credentials for the async client."""

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """Return the same token for every call."""
        return Credential().get_token(*scopes)

    async def close(self) -> None:
        """Do nothing."""


def make_groups(host: str, ca: str) -> None:
    """Create the groups with the REST API, because the client has no call for this."""
    for group, body in (
        (GROUP, {"schemaType": "Avro", "schemaCompatibility": "Backward"}),
        ("documents", {"schemaType": "Json", "schemaCompatibility": "None"}),
        ("others", {"schemaType": "Custom"}),
    ):
        url = f"https://{host}/$schemagroups/{group}?api-version=2022-10"
        assert requests.put(url, json=body, verify=ca, timeout=60).status_code == 201


def schemas(client: SchemaRegistryClient) -> None:
    """Register, evolve, refuse, read by id, version and content, use other formats, and read missing schemas."""
    with pytest.raises(ResourceNotFoundError):
        client.register_schema("nowhere", "plant.Reading", ONE, SchemaFormat.AVRO)
    one = client.register_schema(GROUP, "plant.Reading", ONE, SchemaFormat.AVRO)
    two = client.register_schema(GROUP, "plant.Reading", TWO, "avro")
    again = client.register_schema(GROUP, "plant.Reading", ONE, "Avro")
    assert (one.group_name, one.name, one.version, one.format) == (GROUP, "plant.Reading", 1, SchemaFormat.AVRO)
    assert (two.version, again.version, again.id) == (2, 1, one.id)
    for wrong, status in ((BAD, 409), ("{", 400)):
        with pytest.raises(HttpResponseError) as refused:
            client.register_schema(GROUP, "plant.Reading", wrong, "Avro")
        assert refused.value.status_code == status
        assert refused.value.error is not None, "the client understands the error's body"
    assert client.get_schema(one.id).definition == ONE
    by_number = client.get_schema(group_name=GROUP, name="plant.Reading", version=2)
    assert (by_number.definition, by_number.properties.id) == (TWO, two.id)
    assert by_number.properties.format is SchemaFormat.AVRO
    assert client.get_schema_properties(GROUP, "plant.Reading", TWO, "Avro").id == two.id
    for missing in (
        lambda: client.get_schema_properties(GROUP, "plant.Reading", BAD, "Avro"),
        lambda: client.get_schema("0" * 32),
        lambda: client.get_schema(group_name=GROUP, name="plant.Reading", version=3),
    ):
        with pytest.raises(ResourceNotFoundError):
            missing()
    generated = client._generated_client  # its lists have no public name
    assert list(generated.list_schema_groups()) == ["documents", "others", GROUP]
    assert list(generated.list_schema_versions(GROUP, "plant.Reading")) == [1, 2]
    for group, text, kind in (("documents", JSON, SchemaFormat.JSON), ("others", "any text", SchemaFormat.CUSTOM)):
        registration = client.register_schema(group, "plant.Reading", text, kind)
        read = client.get_schema(registration.id)
        assert (read.definition, read.properties.format) == (text, kind)


def data(client: SchemaRegistryClient, host: str, ca: str) -> None:
    """Encode and decode, with a reader's schema, with automatic registration, and after the schema was deleted."""
    encoder = AvroEncoder(client=client, group_name=GROUP)
    old = encoder.encode({"a": 1}, schema=ONE)
    new = encoder.encode({"a": 2, "b": "x"}, schema=TWO)
    assert old["content_type"] == f"avro/binary+{client.get_schema_properties(GROUP, 'plant.Reading', ONE, 'Avro').id}"
    fresh = AvroEncoder(client=client)
    assert fresh.decode(old) == {"a": 1}
    assert fresh.decode(new) == {"a": 2, "b": "x"}
    assert fresh.decode(old, readers_schema=TWO) == {"a": 1, "b": "none"}
    with pytest.raises(ResourceNotFoundError):
        encoder.encode({"a": 1}, schema=ONE.replace('"Reading"', '"Unknown"'))
    with pytest.raises(InvalidContentError):
        encoder.encode({"a": "text"}, schema=ONE)
    eager = AvroEncoder(client=client, group_name=GROUP, auto_register=True)
    message = eager.encode({"a": 3}, schema=ONE.replace('"Reading"', '"Eager"'))
    assert AvroEncoder(client=client).decode(message) == {"a": 3}

    documents = JsonSchemaEncoder(client=client, group_name="documents", validate=lambda schema, content: None)
    json_message = documents.encode({"a": 4}, schema=JSON)
    assert json_message["content_type"].startswith("application/json;serialization=Json+")
    assert documents.decode(json_message) == {"a": 4}

    url = f"https://{host}/$schemagroups/{GROUP}/schemas/plant.Reading?api-version=2022-10"
    assert requests.delete(url, verify=ca, timeout=60).status_code == 204
    assert AvroEncoder(client=client).decode(old) == {"a": 1}, "data can be read after their schema was deleted"
    assert client.register_schema(GROUP, "plant.Reading", BAD, "Avro").version == 3, "numbers never come back"


async def coroutines(host: str, ca: str) -> None:
    """Register and read with the async client."""
    transport = AsyncioRequestsTransport(connection_verify=ca)
    async with AsyncClient(host, AsyncCredential(), transport=transport) as client:
        registration = await client.register_schema(GROUP, "plant.Async", ONE, "Avro")
        assert (await client.get_schema(registration.id)).definition == ONE


def main(host: str, ca: str) -> None:
    """Run all steps."""
    make_groups(host, ca)
    with SchemaRegistryClient(host, Credential(), connection_verify=ca) as client:
        schemas(client)
        data(client, host, ca)
    asyncio.run(coroutines(host, ca))


main(*sys.argv[1:])
