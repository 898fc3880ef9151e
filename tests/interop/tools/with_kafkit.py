"""Runs Kafkit's httpx client, serializers and raw calls against a registry. Argument: its URL."""

from __future__ import annotations

import asyncio
import sys

import httpx
import pytest
from kafkit.registry import Deserializer, PolySerializer, Serializer
from kafkit.registry.errors import RegistryBadRequestError
from kafkit.registry.httpx import RegistryApi

ONE = {"type": "record", "name": "Kit", "namespace": "k", "fields": [{"name": "a", "type": "int"}]}
TWO = {**ONE, "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": ""}]}
BAD = {**ONE, "fields": [{"name": "a", "type": "string"}]}


async def main(url: str) -> None:
    """Register, evolve, encode, decode, refuse, configure, delete."""
    async with httpx.AsyncClient(timeout=60) as http:
        api = RegistryApi(http_client=http, url=url)
        one = await Serializer.register(registry=api, schema=ONE)
        two = await Serializer.register(registry=api, schema=TWO)
        assert one.id != two.id
        assert await api.get(f"{url}/subjects/k.Kit/versions") == [1, 2]
        assert (await api.get_schema_by_subject("k.Kit"))["id"] == two.id
        assert (await api.get_schema_by_subject("k.Kit", 1))["version"] == 1

        fresh = RegistryApi(http_client=http, url=url)
        read = await Deserializer(registry=fresh).deserialize(two({"a": 1, "b": "x"}), include_schema=True)
        assert (read["id"], read["message"]) == (two.id, {"a": 1, "b": "x"})
        assert read["schema"]["name"] in {"Kit", "k.Kit"}
        many = PolySerializer(registry=fresh)
        data = await many.serialize({"a": 2}, schema=ONE)
        assert (await Deserializer(registry=fresh).deserialize(data))["message"] == {"a": 2}

        with pytest.raises(RegistryBadRequestError) as refused:
            await fresh.register_schema(BAD)
        assert refused.value.status_code == 409
        path = "/config{/subject}"
        assert await api.put(path, url_vars={"subject": "k.Kit"}, data={"compatibility": "FULL"})
        assert await api.get(path, url_vars={"subject": "k.Kit"}) == {"compatibilityLevel": "FULL"}
        assert await api.delete("/subjects{/subject}", url_vars={"subject": "k.Kit"}) == [1, 2]


asyncio.run(main(sys.argv[1]))
