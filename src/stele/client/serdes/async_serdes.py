"""Serializers and deserializers for asyncio: the same objects, driven without blocking the event loop.

    async with AsyncSchemaRegistryClient("http://localhost:8081") as registry:
        serialize = AsyncSerializer(AvroSerializer(registry, ORDER, auto_register=True))
        data = await serialize(order, topic="orders")

The async client sends the requests. Encoding and decoding run on the event loop, because they take microseconds. Rules
run in a thread, because their executors may block: key management services, requests for data keys, user code.
"""

from __future__ import annotations

from typing import Any

from stele.client.aio import AsyncSchemaRegistryClient
from stele.client.serdes.deserializer import BaseDeserializer
from stele.client.serdes.framing import Headers, SeenHeaders
from stele.client.serdes.serializer import Serializer
from stele.client.serdes.steps import run_async
from stele.client.sync import SchemaRegistryClient
from stele.errors import InvalidRequest
from stele.wire.confluent import RecordField


class AsyncSerializer:
    """A serializer to be awaited. Raises `InvalidRequest` for one whose client is not an async client."""

    def __init__(self, serializer: Serializer) -> None:
        if not isinstance(serializer.client, AsyncSchemaRegistryClient):
            raise InvalidRequest("an asynchronous serializer needs an AsyncSchemaRegistryClient")
        self._serializer = serializer

    async def __call__(
        self, value: Any, *, topic: str = "", field: RecordField = "value", headers: Headers | None = None
    ) -> bytes | None:
        """Return the value as framed bytes; see `Serializer.__call__`."""
        return await run_async(self._serializer.serialize_steps(value, topic, field, headers), self._serializer.client)


class AsyncDeserializer:
    """A deserializer to be awaited. Raises `InvalidRequest` if its source is neither an async client nor a snapshot."""

    def __init__(self, deserializer: BaseDeserializer) -> None:
        if isinstance(deserializer.source, SchemaRegistryClient):
            raise InvalidRequest("an asynchronous deserializer needs an AsyncSchemaRegistryClient, or a snapshot")
        self._deserializer = deserializer

    async def __call__(
        self, data: bytes | None, *, topic: str = "", field: RecordField = "value", headers: SeenHeaders = None
    ) -> Any:
        """Return the value in a record; see `BaseDeserializer.__call__`."""
        return await run_async(
            self._deserializer.deserialize_steps(data, topic, field, headers), self._deserializer.source
        )
