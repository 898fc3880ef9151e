"""Async serializers and deserializers produce the same bytes as the blocking ones, and never block the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio
from google.protobuf.struct_pb2 import Struct
from tests.unit.client.rules.registry import RuledRegistry
from tests.unit.client.rules.test_encrypt import CONFIG, VALUE, registry_with
from tests.unit.client.test_serdes import ORDER, ORDER_2, PERSON, PROTO, Registry

from stele.client import AsyncSchemaRegistryClient, Retry, Rule, RuleSet, SchemaRegistryClient, SchemaSnapshot
from stele.client.serdes import (
    AsyncDeserializer,
    AsyncSerializer,
    AvroDeserializer,
    AvroSerializer,
    Deserializer,
    Headers,
    IdPlace,
    JsonSerializer,
    ProtobufSerializer,
    RuleFailed,
    Rules,
)
from stele.client.serdes.rules import RuleContext, RuleExecutor
from stele.errors import ContentNotFound, EncodeError, InvalidRequest


@pytest.fixture
def registry() -> Registry:
    """An empty registry."""
    return Registry()


@pytest_asyncio.fixture
async def client(registry: Registry) -> AsyncIterator[AsyncSchemaRegistryClient]:
    """An async client of the registry."""
    transport = httpx.MockTransport(registry.handle)
    async with AsyncSchemaRegistryClient("http://registry", transport=transport) as client:
        yield client


def blocking(registry: Registry) -> SchemaRegistryClient:
    """Return a blocking client of the registry."""
    return SchemaRegistryClient("http://registry", transport=httpx.MockTransport(registry.handle))


CASES: list[tuple[Any, Any, Any]] = [
    (AvroSerializer, ORDER, {"id": 21}),
    (JsonSerializer, PERSON, {"name": "Ann"}),
    (ProtobufSerializer, PROTO, {"id": 3}),
    (ProtobufSerializer, Struct, Struct()),
]


@pytest.mark.parametrize(("kind", "schema", "value"), CASES)
@pytest.mark.parametrize("id_in", IdPlace)
async def test_same_bytes(
    kind: Any, schema: Any, value: Any, id_in: IdPlace, registry: Registry, client: AsyncSchemaRegistryClient
) -> None:
    """Both kinds write the same payload and headers, read each other's records, and send equal requests."""
    ours: Headers = []
    data = await AsyncSerializer(kind(client, schema, auto_register=True, id_in=id_in))(
        value, topic="orders", headers=ours
    )
    requests = dict(registry.asked)
    theirs: Headers = []
    other = Registry()
    assert kind(blocking(other), schema, auto_register=True, id_in=id_in)(value, topic="orders", headers=theirs) == data
    assert (ours, requests) == (theirs, dict(other.asked))
    read = await AsyncDeserializer(Deserializer(client))(data, topic="orders", headers=ours)
    assert read == Deserializer(blocking(other))(data, topic="orders", headers=ours)


async def test_choices(registry: Registry, client: AsyncSchemaRegistryClient) -> None:
    """The newest version is written and read, missing schemas and unfit values raise, and None is a tombstone."""
    blocked = blocking(registry)
    AvroSerializer(blocked, ORDER, auto_register=True)({"id": 1}, topic="orders")
    old = AvroSerializer(blocked, ORDER)({"id": 1}, topic="orders")
    AvroSerializer(blocked, ORDER_2, auto_register=True)({"id": 1, "note": "x"}, topic="orders")
    newest = AsyncSerializer(AvroSerializer(client, use_latest=True))
    assert (await newest({"id": 1, "note": "y"}, topic="orders") or b"")[4] == 2
    reader = AsyncDeserializer(AvroDeserializer(client, use_latest=True))
    assert await reader(old, topic="orders") == {"id": 1, "note": "none"}
    assert await newest(None, topic="orders") is None
    assert await reader(None) is None
    with pytest.raises(ContentNotFound):
        await AsyncSerializer(AvroSerializer(client, '"long"'))(1, topic="orders")
    with pytest.raises(EncodeError):
        await newest({"id": "no"}, topic="orders")


async def test_many_at_once(registry: Registry, client: AsyncSchemaRegistryClient) -> None:
    """Concurrent tasks share one serializer, and register its schema once."""
    serialize = AsyncSerializer(AvroSerializer(client, ORDER, auto_register=True))
    read = AsyncDeserializer(AvroDeserializer(client))
    data = await asyncio.gather(*(serialize({"id": number}, topic="orders") for number in range(50)))
    assert [row["id"] for row in await asyncio.gather(*map(read, data))] == list(range(50))
    assert len(registry.schemas) == 1


async def test_kinds_of_clients(registry: Registry, client: AsyncSchemaRegistryClient) -> None:
    """A blocking serializer refuses an async client and the other way round. Snapshots work with both."""
    blocked = blocking(registry)
    with pytest.raises(InvalidRequest, match="AsyncSerializer"):
        AvroSerializer(client, ORDER)({"id": 1}, topic="orders")
    with pytest.raises(InvalidRequest, match="AsyncDeserializer"):
        AvroDeserializer(client)(b"\0\0\0\0\1\2")
    with pytest.raises(InvalidRequest):
        AsyncSerializer(AvroSerializer(blocked, ORDER))
    with pytest.raises(InvalidRequest):
        AsyncDeserializer(AvroDeserializer(blocked))
    data = AvroSerializer(blocked, ORDER, auto_register=True)({"id": 9}, topic="orders")
    snapshot = SchemaSnapshot.from_json(blocked.snapshot(subjects=["orders-value"]).to_json())
    assert await AsyncDeserializer(AvroDeserializer(snapshot))(data) == {"id": 9}


class Threaded(RuleExecutor):
    """Checks that it runs in a thread, and that the event loop continues meanwhile."""

    def run(self, context: RuleContext, value: Any) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        done = asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "yes"), LOOPS[-1]).result(120)
        return {**value, "s": f"{done} {context.rule.expr}"}


LOOPS: list[asyncio.AbstractEventLoop] = []


def open_client(registry: RuledRegistry) -> AsyncSchemaRegistryClient:
    """Return an async client that caches no changeable answers."""
    transport = httpx.MockTransport(registry.handle)
    return AsyncSchemaRegistryClient("http://registry", transport=transport, cache_ttl=0, retry=Retry(rounds=1))


async def test_rules_run_in_a_thread() -> None:
    """The event loop is free while an executor runs, and failures are raised to the awaiting caller."""
    LOOPS.append(asyncio.get_running_loop())
    schema = '{"type":"record","name":"R","fields":[{"name":"s","type":"string"}]}'
    registry = RuledRegistry()
    rules = [Rule("w", mode="WRITE", type="THREADED", expr="written"), Rule("x", mode="READ", type="NOBODY")]
    registry.add("t-value", schema, ruleSet=msgspec.to_builtins(RuleSet(domain_rules=rules)))
    runs = Rules(executors={"THREADED": Threaded})
    async with open_client(registry) as client:
        data = await AsyncSerializer(AvroSerializer(client, use_latest=True, rules=runs))({"s": "x"}, topic="t")
        assert data is not None
        assert b"yes written" in data
        with pytest.raises(RuleFailed, match="NOBODY"):
            await AsyncDeserializer(AvroDeserializer(client, rules=runs))(data, topic="t")


async def test_encryption() -> None:
    """Data keys are created and found through the async client. The blocking side reads the records."""
    registry = registry_with()
    async with open_client(registry) as client:
        data = await AsyncSerializer(AvroSerializer(client, use_latest=True, rules=Rules(CONFIG)))(VALUE, topic="t")
        assert data is not None
        assert b"secret" not in data
        assert await AsyncDeserializer(AvroDeserializer(client, rules=Rules(CONFIG)))(data, topic="t") == VALUE
    assert list(registry.deks) == [("kek", "t-value", "AES256_GCM")]
    assert AvroDeserializer(registry.client(), rules=Rules(CONFIG))(data, topic="t") == VALUE


async def test_keys_from_elsewhere() -> None:
    """The data keys may be in another registry with a blocking client."""
    registry, keys = registry_with(), RuledRegistry()
    rules = Rules(CONFIG, client=keys.client())
    async with open_client(registry) as client:
        data = await AsyncSerializer(AvroSerializer(client, use_latest=True, rules=rules))(VALUE, topic="t")
        assert await AsyncDeserializer(AvroDeserializer(client, rules=rules))(data, topic="t") == VALUE
    assert not registry.deks
    assert keys.deks
