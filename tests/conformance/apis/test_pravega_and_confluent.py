"""One registry, two dialects: changes through the Pravega dialect apply in the Confluent dialect, and vice versa."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest_asyncio
from tests.conformance.apis.in_process import client_of

from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log

A1 = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int"}]}'
A2 = A1.replace("]}", ',{"name":"b","type":"string","default":""}]}')
A3 = A1.replace("]}", ',{"name":"b","type":"string"}]}')
OTHER = A1.replace('"R"', '"S"')
PROTO = 'syntax = "proto3";\npackage p;\n\nmessage M {\n  int32 a = 1;\n}\n'


@pytest_asyncio.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole server over an empty registry."""
    registry = await Registry.open(await open_log("memory:"))
    async with client_of(build_dispatcher(registry, ServerSettings(), Metrics())) as client:
        yield client
    await registry.close()


async def put(client: httpx.AsyncClient, path: str, body: Any, status: int = 200) -> Any:
    """Send a PUT and return the decoded response."""
    return _read_answer(await client.put(path, json=body), status)


async def post(client: httpx.AsyncClient, path: str, body: Any, status: int = 200) -> Any:
    """Send a POST and return the decoded response."""
    return _read_answer(await client.post(path, json=body), status)


async def get(client: httpx.AsyncClient, path: str, status: int = 200) -> Any:
    """Send a GET and return the decoded response."""
    return _read_answer(await client.get(path), status)


def _read_answer(answer: httpx.Response, status: int) -> Any:
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    return answer.json() if answer.content and "json" in answer.headers["content-type"] else answer.text


async def group(client: httpx.AsyncClient, policy: str, *, several: bool = True) -> None:
    """Create the group `g` for Avro schemas."""
    properties = {
        "serializationFormat": {"serializationFormat": "Avro"},
        "compatibility": {"policy": policy},
        "allowMultipleTypes": several,
    }
    await post(client, "/v1/groups", {"groupName": "g", "groupProperties": properties}, 201)


def info(text: str, format_name: str = "Avro", type_name: str = "") -> dict[str, Any]:
    """Return a schema in the form of the Pravega API."""
    data = base64.b64encode(text.encode()).decode()
    return {"type": type_name, "serializationFormat": {"serializationFormat": format_name}, "schemaData": data}


async def test_policies_of_groups_hold_for_subjects(client: httpx.AsyncClient) -> None:
    """A schema that a group refuses is refused for its subject; a policy without a level is shown as a stricter one."""
    await group(client, "DenyAll")
    await post(client, "/subjects/g/versions", {"schema": A1})
    await post(client, "/subjects/g/versions", {"schema": A2}, 409)
    for path in ("/config/g", "/config/g?defaultToGlobal=true"):
        config = await get(client, path)
        assert (config["compatibilityLevel"], config["steleCompatibility"]["kind"]) == ("FULL_TRANSITIVE", "deny_all")
    await put(client, "/v1/groups/g/compatibility", {"compatibility": {"policy": "Backward"}})
    await post(client, "/subjects/g/versions", {"schema": A3}, 409)
    assert (await post(client, "/subjects/g/versions", {"schema": A2}))["version"] == 2
    till = {"backwardPolicy": {"backwardPolicy": {"name": "BackwardTill", "versionInfo": _version("n.R", 1)}}}
    await put(client, "/v1/groups/g/compatibility", {"compatibility": {"policy": "Advanced", "advanced": till}})
    assert (await get(client, "/config/g"))["compatibilityLevel"] == "BACKWARD_TRANSITIVE"
    history = (await get(client, "/v1/groups/g/history"))["history"]
    assert [row["compatibility"]["policy"] for row in history] == ["DenyAll", "Backward"]


async def test_settings_of_subjects_hold_for_groups(client: httpx.AsyncClient) -> None:
    """The level of a subject is the policy of its group, also for conditional updates; without it, the group's own."""
    await group(client, "AllowAny")
    await put(client, "/config/g", {"compatibility": "FORWARD"})
    assert (await get(client, "/v1/groups/g"))["compatibility"] == {"policy": "Forward"}
    await post(client, "/v1/groups/g/schemas", info(A3), 201)
    await post(client, "/v1/groups/g/schemas", info(A1), 409)
    change = {"compatibility": {"policy": "DenyAll"}, "previousCompatibility": {"policy": "AllowAny"}}
    await put(client, "/v1/groups/g/compatibility", change, 409)
    change["previousCompatibility"] = {"policy": "Forward"}
    await put(client, "/v1/groups/g/compatibility", change)
    await client.delete("/config/g")
    assert (await get(client, "/v1/groups/g"))["compatibility"] == {"policy": "AllowAny"}
    await post(client, "/v1/groups/g/schemas", info(A1), 201)


async def test_a_group_of_one_type_is_one_for_all(client: httpx.AsyncClient) -> None:
    """A second type is refused through the other dialect, too, at any level."""
    await group(client, "AllowAny", several=False)
    await post(client, "/subjects/g/versions", {"schema": A1})
    await put(client, "/config/g", {"compatibility": "NONE"})
    assert "TYPE_CHANGED" in str(await post(client, "/subjects/g/versions", {"schema": OTHER}, 409))
    await post(client, "/subjects/g/versions", {"schema": A3})


async def test_the_format_of_a_group_holds_for_its_subject(client: httpx.AsyncClient) -> None:
    """A JSON schema is refused for the subject of an Avro group."""
    await group(client, "AllowAny")
    await post(client, "/subjects/g/versions", {"schema": "{}", "schemaType": "JSON"}, 422)
    await post(client, "/subjects/g/versions", {"schema": A1})


async def test_subjects_are_groups_with_the_right_numbers(client: httpx.AsyncClient) -> None:
    """A subject is a group of any format; ids and versions are lower by one, data the same, and both keep counting."""
    await post(client, "/subjects/s%2F1/versions", {"schema": A1})
    assert await get(client, "/v1/groups/s%2F1") == {
        "serializationFormat": {"serializationFormat": "Any", "fullTypeName": "Any"},
        "compatibility": {"policy": "Backward"},
        "allowMultipleTypes": False,
        "properties": {},
    }
    assert list((await get(client, "/v1/groups"))["groups"]) == ["s/1"]
    assert base64.b64decode((await get(client, "/v1/groups/s%2F1/schemas/schema/0"))["schemaData"]).decode() == A1
    assert await post(client, "/v1/groups/s%2F1/schemas", info(A1), 201) == _version("n.R", 0)
    assert await post(client, "/v1/groups/s%2F1/schemas", info(A2), 201) == _version("n.R", 1)
    version = await get(client, "/subjects/s%2F1/versions/2")
    assert (version["schema"], version["version"]) == (A2, 2)
    assert (await post(client, "/v1/schemas/addedTo", info(A1)))["groups"] == {"s/1": _version("n.R", 0)}
    await client.delete("/subjects/s%2F1/versions/1")
    listed = (await get(client, "/v1/groups/s%2F1/schemas/versions"))["schemas"]
    assert [row["versionInfo"]["id"] for row in listed] == [1]
    await get(client, "/v1/groups/s%2F1/schemas/schema/0")
    await client.delete("/v1/groups/s%2F1")
    await get(client, "/subjects/s%2F1/versions", 404)


async def test_what_the_other_dialect_kept_apart_arrives_whole(client: httpx.AsyncClient) -> None:
    """References are resolved and Protobuf sources compiled, so that clients of Pravega can read the schema."""
    enum = '{"type":"enum","name":"E","symbols":["X"]}'
    await post(client, "/subjects/e/versions", {"schema": enum})
    user = '{"type":"record","name":"U","fields":[{"name":"e","type":"E"}]}'
    reference = {"name": "E", "subject": "e", "version": 1}
    await post(client, "/subjects/u/versions", {"schema": user, "references": [reference]})
    data = base64.b64decode((await get(client, "/v1/groups/u/schemas/schema/0"))["schemaData"])
    assert json.loads(data)["fields"][0]["type"] == json.loads(enum)
    await post(client, "/subjects/p/versions", {"schema": PROTO, "schemaType": "PROTOBUF"})
    schema = await get(client, "/v1/groups/p/schemas/schema/0")
    assert schema["type"] == "p.M"
    assert b"proto3" in base64.b64decode(schema["schemaData"])
    assert await post(client, "/v1/groups/p/schemas", schema, 201) == _version("p.M", 0, "Protobuf")


async def test_descriptors_are_shown_as_sources(client: httpx.AsyncClient) -> None:
    """A Protobuf schema from a descriptor set is shown as `.proto` text in the other dialect, by id and by version."""
    properties = {
        "serializationFormat": {"serializationFormat": "Protobuf"},
        "compatibility": {"policy": "Backward"},
        "allowMultipleTypes": False,
    }
    await post(client, "/v1/groups", {"groupName": "g", "groupProperties": properties}, 201)
    sent = {**info("", "Protobuf", "p.M"), "schemaData": "CikKB2EucHJvdG8SAXAiEwoBTRIJCgFhGAEgASgFGgMKAU5iBnByb3RvMw=="}
    await post(client, "/v1/groups/g/schemas", sent, 201)
    text = (await get(client, "/subjects/g/versions/1"))["schema"]
    assert text.startswith('syntax = "proto3";')
    assert (await get(client, "/schemas/ids/1"))["schema"] == text
    assert (await client.get("/subjects/g/versions/1/schema")).text == text
    assert [row["schema"] for row in await get(client, "/schemas")] == [text]
    more = text.replace("int32 a = 1;", "int32 a = 1; int32 b = 2;")
    assert (await post(client, "/subjects/g/versions", {"schema": more, "schemaType": "PROTOBUF"}))["version"] == 2
    changed = text.replace("int32 a = 1;", "string a = 1;")
    await post(client, "/subjects/g/versions", {"schema": changed, "schemaType": "PROTOBUF"}, 409)


async def test_modes_forbid_what_both_write(client: httpx.AsyncClient) -> None:
    """A read-only subject accepts no schema as a group, but its schemas are found."""
    await group(client, "AllowAny")
    await post(client, "/v1/groups/g/schemas", info(A1), 201)
    await put(client, "/mode/g", {"mode": "READONLY"})
    await post(client, "/v1/groups/g/schemas", info(A2), 403)
    await post(client, "/v1/groups/g/schemas", info(A1), 201)
    await put(client, "/v1/groups/g/compatibility", {"compatibility": {"policy": "DenyAll"}}, 403)


async def test_both_own_something_below_v1(client: httpx.AsyncClient) -> None:
    """`/v1/metadata` belongs to the Confluent dialect, the rest of `/v1` to Pravega's, each with its own errors."""
    assert "scope" in await get(client, "/v1/metadata/id")
    assert (await get(client, "/v1/metadata/nothing", 404))["error_code"] == 404
    assert await get(client, "/v1/nothing", 404) == "Not Found"
    assert (await get(client, "/ping")) == ""
    assert "/v1/groups" in (await get(client, "/_docs/pravega/openapi.json"))["paths"]


def _version(type_name: str, number: int, format_name: str = "Avro") -> dict[str, Any]:
    return {"type": type_name, "serializationFormat": format_name, "version": number, "id": number}
