"""One registry, many dialects: single cases that random walks through all dialects (tests/property) found."""

from __future__ import annotations

import base64
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

WORD = '{"type":"string"}'
"""A text that is valid Avro and valid JSON Schema."""
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'


@pytest_asyncio.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole server over an empty registry that allows any schema."""
    registry = await Registry.open(await open_log("memory:"))
    async with client_of(build_dispatcher(registry, ServerSettings(), Metrics())) as client:
        await client.put("/config", json={"compatibility": "NONE"})
        yield client
    await registry.close()


def read_answer(answer: httpx.Response, status: int = 200) -> Any:
    """Return the decoded body of a response with that status."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    return answer.json() if "json" in answer.headers.get("content-type", "") and answer.content else answer.text


def info(text: str, format_name: str, type_name: str = "") -> dict[str, Any]:
    """Return a schema in the form of the Pravega dialect; an unknown format is a custom one."""
    known = format_name in {"Avro", "Json"}
    language = {"serializationFormat": format_name if known else "Custom", "fullTypeName": format_name}
    data = base64.b64encode(text.encode()).decode()
    return {"type": type_name, "serializationFormat": language, "schemaData": data}


async def group(client: httpx.AsyncClient, name: str, format_name: str) -> None:
    """Create a group of a format that allows any schema."""
    properties = {
        "serializationFormat": info("", format_name)["serializationFormat"]
        if format_name != "Any"
        else {"serializationFormat": "Any"},
        "compatibility": {"policy": "AllowAny"},
        "allowMultipleTypes": True,
    }
    read_answer(await client.post("/v1/groups", json={"groupName": name, "groupProperties": properties}), 201)


async def test_one_text_in_two_languages_is_two_schemas(client: httpx.AsyncClient) -> None:
    """Ids, types and look-ups distinguish a JSON Schema and an Avro schema of the same text, in any order."""
    await group(client, "a", "Any")
    read_answer(await client.post("/v1/groups/a/schemas", json=info(WORD, "Avro")), 201)
    json_schema = {"schema": WORD, "schemaType": "JSON"}
    assert read_answer(await client.post("/subjects/j/versions", json=json_schema))["id"] == 2
    assert read_answer(await client.get("/schemas/ids/1"))["schemaType"] == "AVRO"
    assert read_answer(await client.get("/schemas/ids/2"))["schemaType"] == "JSON"
    read_answer(await client.post("/subjects/a", json=json_schema), 404)
    assert read_answer(await client.post("/subjects/a/versions", json=json_schema))["version"] == 2
    for number, name in ((0, "Avro"), (1, "Json")):
        again = read_answer(await client.post("/v1/groups/a/schemas", json=info(WORD, name)), 201)
        assert (again["id"], again["serializationFormat"]) == (number, name)


async def test_unread_text_is_no_schema_elsewhere(client: httpx.AsyncClient) -> None:
    """A text that schema-repo stored without parsing, in a subject of another format, is not found as a schema."""
    read_answer(await client.post("/subjects/s/versions", json={"schema": "{}", "schemaType": "JSON"}))
    read_answer(await client.put("/schema-repo/s/register", content='"int"', headers={"content-type": "text/plain"}))
    read_answer(await client.post("/subjects/s", json={"schema": '"int"'}), 404)
    assert read_answer(await client.post("/subjects/s/versions", json={"schema": '"int"'}))["version"] == 3


async def test_what_has_no_name_has_that_of_its_group(client: httpx.AsyncClient) -> None:
    """A schema without a name is one schema in every dialect, with one number for its type."""
    first = {"type": "s", "serializationFormat": "Json", "version": 0, "id": 0}
    read_answer(await client.post("/subjects/s/versions", json={"schema": WORD, "schemaType": "JSON"}))
    assert read_answer(await client.post("/v1/groups/s/schemas", json=info(WORD, "Json")), 201) == first
    assert read_answer(await client.post("/v1/groups/s/schemas", json=info(WORD, "Json", "s")), 201) == first
    assert read_answer(await client.post("/v1/groups/s/schemas/versions/find", json=info(WORD, "Json", "s"))) == first
    assert read_answer(await client.post("/v1/schemas/addedTo", json=info(WORD, "Json", "s")))["groups"] == {"s": first}
    second = read_answer(await client.post("/v1/groups/s/schemas", json=info("{}", "Json", "s")), 201)
    assert (second["version"], second["id"]) == (1, 1)
    read_answer(await client.post("/subjects/p/versions", json={"schema": '"string"'}))
    for name in ("", "string", "p"):
        assert (
            read_answer(await client.post("/v1/groups/p/schemas", json=info('"string"', "Avro", name)), 201)["id"] == 0
        )


async def test_what_topics_are_bound_to_can_be_deleted_elsewhere(client: httpx.AsyncClient) -> None:
    """A binding of the RocketMQ dialect does not block a deletion in the Confluent dialect, which cannot end it."""
    body = {"schemaIdl": RECORD, "schemaType": "AVRO"}
    read_answer(await client.post("/schema-registry/v1/subject/s/schema/s", json=body))
    assert read_answer(await client.delete("/subjects/s/versions/1")) == 1
    assert read_answer(await client.delete("/subjects/s?permanent=true")) == [1]
    read_answer(await client.post("/schema-registry/v1/subject/s/schema/s", json=body))
    assert read_answer(await client.delete("/subjects/s")) == [1]
    read_answer(await client.get("/schema-registry/v1/subject/s/schema"), 404)


async def test_types_of_a_group_are_not_compared_elsewhere_either(client: httpx.AsyncClient) -> None:
    """In OpenSchema, types of a group are not compared with each other for a new level or a deletion."""
    await group(client, "g", "Avro")
    longer = RECORD.replace("]}", ',{"name":"b","type":"int","default":0}]}')
    for text in (RECORD, RECORD.replace('"R"', '"S"'), longer, longer.replace('"R"', '"S"')):
        read_answer(await client.post("/v1/groups/g/schemas", json=info(text, "Avro")), 201)
    level = {"compatibility": "BACKWARD_TRANSITIVE"}
    assert read_answer(await client.put("/openschema/config/g", json=level)) == level
    read_answer(await client.put("/openschema/config/g", json={"compatibility": "BACKWARD"}))
    assert read_answer(await client.delete("/openschema/subjects/g/versions/2")) == {"version": 2}


async def test_a_format_nobody_knows_is_one_for_all(client: httpx.AsyncClient) -> None:
    """A custom format is the same in the Pravega, CNCF, schema-repo and RocketMQ dialects."""
    document = {"content": "some words", "headers": {"content-type": "text/plain"}}
    await group(client, "g", "words")
    read_answer(await client.post("/schemagroups/default/schemas/g?format=words", **document))
    read_answer(await client.post("/schemagroups/default/schemas/g?format=verse", **document), 400)
    read_answer(await client.post("/schemagroups/default/schemas/s?format=words", **document))
    group_properties = read_answer(await client.get("/v1/groups/s"))
    assert group_properties["serializationFormat"] == {"serializationFormat": "Custom", "fullTypeName": "words"}
    assert read_answer(await client.post("/v1/groups/s/schemas", json=info("some words", "words")), 201)["id"] == 0
    read_answer(await client.post("/v1/groups/s/schemas", json=info("some words", "verse")), 417)
    await group(client, "empty", "words")
    headers = {"content-type": "text/plain"}
    assert read_answer(await client.put("/schema-repo/empty/register", content="some words", headers=headers)) == "0"
    listed = read_answer(await client.get("/v1/groups/empty/schemas/versions"))["schemas"]
    assert [row["versionInfo"]["serializationFormat"] for row in listed] == ["words"]
    idl = {"schemaIdl": "other words", "schemaType": "TEXT"}
    await group(client, "other", "words")
    assert (
        read_answer(await client.post("/schema-registry/v1/subject/o/schema/other", json=idl), 409)["status"] == 40901
    )
