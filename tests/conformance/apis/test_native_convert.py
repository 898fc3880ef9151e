"""The native API converts, infers, shows and lists schemas, independently of registered ones."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of

from stele.apis.native import application
from stele.formats.avro import AVRO
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

ORDER = (
    '{"type":"record","name":"Order","doc":"One.","fields":[{"name":"id","type":{"type":"string","logicalType":"uuid"}},'
    '{"name":"raw","type":"bytes","default":"\\u00ff"},{"name":"e","type":"E"}]}'
)
SYMBOLS = {"name": "E", "schema": '{"type":"enum","name":"E","symbols":["X"]}'}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of the native API of an empty node."""
    node = await Registry.open(await open_log("memory:"))
    async with client_of(application(node)) as client:
        yield client
    await node.close()


async def test_convert(client: httpx.AsyncClient) -> None:
    """The response has the schema, its losses, and whether data are lost."""
    body = {"format": "avro", "schema": ORDER, "to": "json", "references": [SYMBOLS]}
    answer = await client.post("/api/convert", json=body)
    assert answer.status_code == 200, answer.text
    conversion = answer.json()
    assert (conversion["format"], conversion["keeps_data"], conversion["losses"]) == ("json", True, [])
    assert json.loads(conversion["schema"])["properties"]["raw"]["default"] == "/w=="
    back = await client.post("/api/convert", json={"format": "json", "schema": conversion["schema"], "to": "avro"})
    assert back.json()["keeps_data"] is False
    loss = next(loss for loss in back.json()["losses"] if loss["path"] == "id")
    assert set(loss) == {"path", "what", "why", "data"}
    assert (loss["what"], loss["data"]) == ("FORMAT", True)


async def test_infer(client: httpx.AsyncClient) -> None:
    """Samples become a schema that reads them."""
    samples = [{"a": 1, "on": "2024-01-31"}, {"a": 2, "on": "2024-02-01", "b": [None, 2**62]}]
    answer = await client.post("/api/infer", json={"to": "avro", "samples": samples, "name": "com.acme.S"})
    assert answer.status_code == 200, answer.text
    schema = json.loads(answer.json()["schema"])
    assert (schema["name"], schema["namespace"]) == ("S", "com.acme")
    assert [field["name"] for field in schema["fields"]] == ["a", "on", "b"]
    plain = await client.post("/api/infer", json={"to": "avro", "samples": samples, "notations": False})
    assert json.loads(plain.json()["schema"])["fields"][1]["type"] == "string"


async def test_example(client: httpx.AsyncClient) -> None:
    """An example is shown as JSON and as bytes, which are the same value."""
    answer = await client.post("/api/example", json={"format": "avro", "schema": ORDER, "references": [SYMBOLS]})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["example"]["raw"] == base64.b64encode(b"bytes").decode()
    parsed = AVRO.parse(ORDER.encode(), {"E": SYMBOLS["schema"].encode()})
    datum = AVRO.codec(parsed).decode(base64.b64decode(body["encoded"]))
    assert (str(datum["id"]), datum["raw"]) == (body["example"]["id"], b"bytes")


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("json", '{"type":"object","properties":{"a":{"type":"string","format":"uuid"}},"required":["a"]}'),
        ("protobuf", 'syntax = "proto3"; message M { int64 a = 1; bytes b = 2; }'),
        ("thrift", "struct S { 1: required i64 a; 2: binary b }"),
    ],
)
async def test_examples_of_every_format(name: str, schema: str, client: httpx.AsyncClient) -> None:
    """Every format with data has an example."""
    answer = await client.post("/api/example", json={"format": name, "schema": schema})
    assert answer.status_code == 200, answer.text
    assert "a" in answer.json()["example"]


async def test_fields(client: httpx.AsyncClient) -> None:
    """Fields have path and type, and default and doc if there are any."""
    answer = await client.post("/api/fields", json={"format": "avro", "schema": ORDER, "references": [SYMBOLS]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["type_name"] == "Order"
    assert [field["path"] for field in answer.json()["fields"]] == ["id", "raw", "e"]
    assert answer.json()["fields"][1]["default"] == '"ÿ"'


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("convert", {"format": "avro", "schema": '"int"', "to": "opaque"}, "cannot_convert"),
        ("convert", {"format": "avro", "schema": '"int"', "to": "cobol"}, "unknown_format"),
        ("convert", {"format": "avro", "schema": '"nt"', "to": "json"}, "unresolved_reference"),
        ("convert", {"format": "avro", "schema": '"int"'}, "invalid_request"),
        ("infer", {"to": "avro", "samples": []}, "invalid_request"),
        ("infer", {"to": "avro", "samples": [1], "name": ""}, "invalid_name"),
        ("infer", {"to": "avro", "samples": [1], "enumerations": 10**9}, "invalid_request"),
        (
            "example",
            {"format": "avro", "schema": '{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}'},
            "invalid",
        ),
        ("fields", {"format": "json", "schema": "{"}, "malformed_schema"),
    ],
)
async def test_wrong_requests(path: str, body: dict[str, Any], kind: str, client: httpx.AsyncClient) -> None:
    """Requests that cannot be served are answered with 422, each with its own kind."""
    answer = await client.post(f"/api/{path}", json=body)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (422, kind), answer.text


async def test_limits(client: httpx.AsyncClient) -> None:
    """Schemas and samples over the limits are answered with 413."""
    giant = json.dumps({"type": "string", "doc": "x" * 2_000_000})
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    for path, body in (
        ("convert", {"format": "avro", "schema": giant, "to": "json"}),
        ("example", {"format": "avro", "schema": giant}),
        ("fields", {"format": "avro", "schema": giant}),
        ("infer", {"to": "avro", "samples": [deep]}),
        ("infer", {"to": "avro", "samples": [1] * 100_001}),
    ):
        answer = await client.post(f"/api/{path}", json=body)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "too_large"), answer.text


async def test_description_of_the_api(client: httpx.AsyncClient) -> None:
    """The OpenAPI document has the requests and responses."""
    paths = (await client.get("/_docs/native/openapi.json")).json()["paths"]
    for path, word in (("convert", "to"), ("infer", "samples"), ("example", "schema"), ("fields", "schema")):
        operation = paths[f"/api/{path}"]["post"]
        assert word in json.dumps(operation["requestBody"])
        assert {"200", "400", "413", "422"} <= set(operation["responses"])
