"""The subject that a topic is associated with, from the registry or the fallback, blocking and awaited."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from tests.unit.client.test_serdes import ORDER, Registry

from stele.client import (
    AssociatedName,
    Association,
    AsyncSchemaRegistryClient,
    SchemaRegistryClient,
    SchemaSnapshot,
    record_name,
)
from stele.client.serdes import AsyncSerializer, AvroDeserializer, AvroSerializer
from stele.client.serdes.steps import ASSOCIATION_TTL, AssociatedSubjects, run_blocking
from stele.errors import InvalidName, Unavailable


class Associating(Registry):
    """A registry with associations: subjects by (cluster, topic, type). Without any it lacks the route."""

    def __init__(self, rows: dict[tuple[str, str, str], str] | None) -> None:
        super().__init__()
        self.rows = rows
        self.queries: list[str] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        parts = request.url.path.strip("/").split("/")
        if parts[0] != "associations":
            return super().handle(request)
        self.queries.append(request.url.query.decode())
        if self.rows is None:
            return httpx.Response(404, text="no such route")
        _, _, namespace, topic = parts
        kinds = request.url.params.get_list("associationType")
        associations = [
            {"subject": subject, "resourceName": topic, "associationType": kind, "frozen": False}
            for (cluster, name, kind), subject in self.rows.items()
            if name == topic and kind in kinds and namespace in {"-", cluster}
        ]
        return httpx.Response(200, json=associations)

    @property
    def client(self) -> SchemaRegistryClient:
        """Return a client of this registry."""
        return SchemaRegistryClient("http://registry", transport=httpx.MockTransport(self.handle))


SHARED = {("lkc-1", "orders", "value"): "shared", ("lkc-2", "orders", "value"): "other"}


def write_records(registry: Associating, naming: AssociatedName, **call: Any) -> list[str]:
    """Return the subjects that a registering serializer has created."""
    serialize = AvroSerializer(registry.client, ORDER, naming=naming, auto_register=True)
    for number in range(3):
        serialize({"id": number}, **{"topic": "orders", **call})
    return list(registry.subjects)


def test_the_registry_says_the_subject() -> None:
    """A topic's values use the subject it is associated with, which is requested once."""
    registry = Associating(SHARED)
    assert write_records(registry, AssociatedName("lkc-1")) == ["shared"]
    assert registry.queries == ["resourceType=topic&associationType=value"]


def test_asked_again_after_a_while() -> None:
    """Associations, and their absence, are cached for a time and then requested again."""
    registry, now = Associating(None), [0.0]
    client = SchemaRegistryClient("http://registry", transport=httpx.MockTransport(registry.handle), cache_ttl=0)
    names = AssociatedSubjects(client, AssociatedName(), clock=lambda: now[0])

    def find_subject() -> str:
        return run_blocking(names.find_subject("orders", "value", ""), client)

    assert {find_subject() for _ in range(3)} == {"orders-value"}
    registry.rows = {("lkc-1", "orders", "value"): "shared"}
    now[0] = ASSOCIATION_TTL
    assert (find_subject(), len(registry.queries)) == ("orders-value", 1)
    now[0] += 1
    assert {find_subject() for _ in range(3)} == {"shared"}
    assert len(registry.queries) == 2


@pytest.mark.parametrize("rows", [None, {}, SHARED])
def test_the_fallback(rows: dict[tuple[str, str, str], str] | None) -> None:
    """Keys, other topics, and registries without associations use the fallback, by default the topic's name."""
    assert write_records(Associating(rows), AssociatedName("lkc-1"), field="key") == ["orders-key"]
    assert write_records(Associating(rows), AssociatedName(), topic="t") == ["t-value"]
    assert write_records(Associating(rows), AssociatedName("lkc-3", fallback=record_name)) == ["shop.Order"]
    with pytest.raises(InvalidName, match="without an associated subject"):
        write_records(Associating(rows), AssociatedName("lkc-3", fallback=None))


def test_ambiguous_and_unnamed_topics() -> None:
    """Two clusters with different subjects for a topic raise an error, and so does a missing topic."""
    with pytest.raises(InvalidName, match="several subjects: other, shared"):
        write_records(Associating(SHARED), AssociatedName())
    alike = dict.fromkeys(SHARED, "shared")
    assert write_records(Associating(alike), AssociatedName()) == ["shared"]
    with pytest.raises(InvalidName, match="needs a topic"):
        write_records(Associating(SHARED), AssociatedName(), topic="")


def test_a_registry_that_fails_is_no_registry_without_associations() -> None:
    """Only a missing association uses the fallback. An outage raises an error."""
    transport = httpx.MockTransport(lambda request: httpx.Response(503))
    with (
        SchemaRegistryClient("http://registry", transport=transport, sleep=lambda _: None) as client,
        pytest.raises(Unavailable),
    ):
        client.associated_subject(AssociatedName(), "orders", "value")


def test_readers() -> None:
    """A deserializer finds its reader's schema by association. A snapshot has none and uses the fallback."""
    registry = Associating(SHARED)
    client = registry.client
    data = AvroSerializer(client, ORDER, naming=AssociatedName("lkc-1"), auto_register=True)({"id": 7}, topic="orders")
    newest = AvroDeserializer(client, naming=AssociatedName("lkc-1"), use_latest=True)
    assert newest(data, topic="orders") == {"id": 7}
    assert pickle.loads(pickle.dumps(AvroDeserializer(client.snapshot(subjects=["shared"]), naming=AssociatedName())))(
        data, topic="orders"
    ) == {"id": 7}
    shared = client.snapshot(subjects=["shared"]).schemas
    pinned = SchemaSnapshot(tuple(replace(schema, subject="orders-value") for schema in shared))
    assert AvroDeserializer(pinned, naming=AssociatedName(), use_latest=True)(data, topic="orders") == {"id": 7}


def test_awaited() -> None:
    """The async serializer uses associations in the same way."""
    registry = Associating(SHARED)

    async def write() -> None:
        async with AsyncSchemaRegistryClient(
            "http://registry", transport=httpx.MockTransport(registry.handle)
        ) as client:
            serialize = AsyncSerializer(
                AvroSerializer(client, ORDER, naming=AssociatedName("lkc-2"), auto_register=True)
            )
            await serialize({"id": 1}, topic="orders")
            (association,) = await client.associations("orders", "lkc-2", types=["value"])
            assert association == Association("other", resource_name="orders", association_type="value")

    asyncio.run(write())
    assert list(registry.subjects) == ["other"]
