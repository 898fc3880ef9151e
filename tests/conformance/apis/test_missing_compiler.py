"""Without the extra `protobuf`, each dialect answers a Protobuf schema in its own shape, with what to install."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of

from stele.formats.protobuf import compiler, parse
from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log

PROTO = 'syntax = "proto3"; package p; message Order { int64 id = 1; }'
HINT = "the Protobuf compiler is not installed: pip install 'stele-registry[protobuf]'"


@pytest_asyncio.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server whose environment lacks the compiler."""
    monkeypatch.setattr(compiler, "find_spec", lambda _name: None)
    monkeypatch.setattr(parse, "_CACHE", parse.SchemaCache(1 << 20))
    monkeypatch.setattr(parse, "_COMPILER", compiler.CompilerPool(1))
    compiler.builtin_sources.cache_clear()
    registry = await Registry.open(await open_log("memory:"))
    async with client_of(build_dispatcher(registry, ServerSettings(), Metrics())) as client:
        yield client
    await registry.close()
    compiler.builtin_sources.cache_clear()


async def _register_with_pravega(client: httpx.AsyncClient) -> httpx.Response:
    kind = {"serializationFormat": "Protobuf"}
    properties = {"serializationFormat": kind, "compatibility": {"policy": "AllowAny"}, "allowMultipleTypes": False}
    creation = await client.post("/v1/groups", json={"groupName": "g", "groupProperties": properties})
    assert creation.status_code == 201
    data = "CikKB2EucHJvdG8SAXAiEwoBTRIJCgFhGAEgASgFGgMKAU5iBnByb3RvMw=="
    body = {"type": "p.M", "serializationFormat": kind, "schemaData": data}
    return await client.post("/v1/groups/g/schemas", json=body)


async def _register_with_openschema(client: httpx.AsyncClient) -> httpx.Response:
    subject = {"subject": "s", "tenant": "default", "namespace": "default", "status": "released"}
    creation = await client.post("/openschema/subjects/s/", json=subject)
    assert creation.status_code == 200
    body = {"schemaDefinition": PROTO, "serialization": "PB"}
    return await client.post("/openschema/subjects/s/versions", json=body)


async def test_each_dialect_says_what_to_install(client: httpx.AsyncClient) -> None:
    """The status is 501 in every dialect; the body is that of the dialect's errors."""
    confluent = await client.post("/subjects/s/versions", json={"schema": PROTO, "schemaType": "PROTOBUF"})
    native = await client.post("/api/check", json={"format": "protobuf", "schema": PROTO, "against": []})
    media = {"content-type": "text/vnd.ms.protobuf"}
    await client.put("/schemagroups/default", json={})
    cncf = await client.post("/schemagroups/default/schemas/s?format=protobuf", content=PROTO, headers=media)
    await client.put("/$schemaGroups/g", json={"schemaType": "Protobuf"})
    azure = await client.put("/$schemaGroups/g/schemas/s?api-version=2022-10", content=PROTO, headers=media)
    rocketmq = await client.post(
        "/schema-registry/v1/subject/s/schema/s", json={"schemaIdl": PROTO, "schemaType": "PROTOBUF"}
    )
    answers: dict[str, tuple[httpx.Response, Any]] = {
        "confluent": (confluent, {"error_code": 501, "message": HINT}),
        "native": (native, {"kind": "not_installed", "message": HINT}),
        "pravega": (await _register_with_pravega(client), HINT),
        "cncf": (cncf, {"status": 501, "detail": HINT}),
        "azure": (azure, {"error": {"code": "NotImplemented", "message": HINT}}),
        "rocketmq": (rocketmq, {"status": 50101, "message": HINT}),
        "openschema": (await _register_with_openschema(client), {"errorCode": 50101, "errorMessage": HINT}),
    }
    for dialect, (answer, expected) in answers.items():
        assert answer.status_code == 501, (dialect, answer.text)
        body = answer.json() if isinstance(expected, dict) else answer.text
        body = body["error"] if dialect == "native" else body
        assert body == expected or {name: body[name] for name in expected} == expected, (dialect, body)


async def test_other_schemas_do_not_need_it(client: httpx.AsyncClient) -> None:
    """Avro and JSON Schema can still be registered."""
    for format_name, text in (("AVRO", '"int"'), ("JSON", "{}")):
        body = {"schema": text, "schemaType": format_name}
        assert (await client.post(f"/subjects/{format_name}/versions", json=body)).status_code == 200
