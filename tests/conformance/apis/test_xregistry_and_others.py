"""One registry, several dialects: changes through xRegistry apply in the others, and vice versa; rights; replay."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from tests.conformance.apis.in_process import client_of
from tests.conformance.apis.xregistry_client import A1, A2, AVRO, DETAILS, GROUP, SCHEMA, XregistryClient, avro, fill
from tests.conformance.apis.xregistry_world import build_app, xr

from stele.apis.xregistry import application
from stele.core.access import AccessRule, AccessRules, ResourceType
from stele.core.events import VersionRegistered, encode_record
from stele.service.access import CALLER, OPEN_ACCESS, AccessControl, Caller, Principal
from stele.service.registry import Registry
from stele.storage import open_log

__all__ = ["build_app", "xr"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFLUENT = "/contexts/.g/subjects/s"
CNCF = "/schemagroups/g/schemas/s"


async def post(client: httpx.AsyncClient, path: str, text: str, status: int = 200, **more: Any) -> Any:
    """Register a schema through the Confluent dialect and return the decoded response."""
    answer = await client.post(path, json={"schema": text, **more})
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_what_others_register(xr: XregistryClient, client: httpx.AsyncClient) -> None:
    """Schemas of other dialects are schemas here, with any names and with the policy in force."""
    await post(client, f"{CONFLUENT}/versions", A1)
    await post(client, f"{CONFLUENT}/versions", A2)
    body = await xr.read(f"{DETAILS}?inline")
    assert body["format"] == "Avro/1.12"
    assert body["schema"] == json.loads(A2)
    assert body["contenttype"] == "application/json"
    assert body["meta"]["compatibility"] == "backward"
    assert body["meta"]["epoch"] >= 1
    assert {name: each["ancestorid"] for name, each in body["versions"].items()} == {"1": "1", "2": "1"}
    await xr.ask("POST", DETAILS, {"format": "Avro/1.12", "schema": "int"}, code="compatibility_violation")
    await client.post("/subjects/a%2Fb%20c/versions", json={"schema": A1})
    await client.post("/subjects/%C3%BC/versions", json={"schema": '{"type": "object"}', "schemaType": "JSON"})
    await client.put("/schemagroups/cncf", json={"description": "D", "groupProperties": {"a": "b"}})
    document = b"syntax = 'proto3';\nmessage M {}"
    headers = {"content-type": "text/x-proto"}
    await client.post("/schemagroups/cncf/schemas/p?format=protobuf", content=document, headers=headers)
    tree = await xr.read("/?inline=schemagroups.schemas")
    assert set(tree["schemagroups"]) == {"cncf", "default", "g"}
    assert set(tree["schemagroups"]["default"]["schemas"]) == {"a~2Fb~20c", "_~~~C3~BC"}
    assert (tree["schemagroups"]["cncf"]["description"], tree["schemagroups"]["cncf"]["labels"]) == ("D", {"a": "b"})
    answer = await xr.ask("GET", "/schemagroups/cncf/schemas/p")
    assert answer.content == document
    assert answer.headers["content-type"] == "text/x-proto"
    assert answer.headers["xregistry-format"] == "Protobuf/3"
    assert (await xr.ask("GET", "/schemagroups/default/schemas/a~2Fb~20c")).text == A1
    assert (await xr.read("/schemagroups/default/schemas/_~~~C3~BC$details"))["format"] == "JsonSchema/draft-07"


async def test_what_xregistry_registers(xr: XregistryClient, client: httpx.AsyncClient) -> None:
    """Schemas from here are subjects in the others, byte for byte, with their type, policy and description."""
    await xr.ask("PUT", GROUP, {"description": "D", "labels": {"a": "b"}, "format": AVRO}, status=201)
    odd = A1.replace(",", " , ")
    await xr.ask("PUT", SCHEMA, odd, status=201, xRegistry_format=AVRO, content_type="application/avro+json")
    await xr.ask("PUT", f"{SCHEMA}/versions/v2$details", avro(A2), status=201)
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"compatibility": "full"})
    assert (await client.get(f"{CONFLUENT}/versions")).json() == [1, 2]
    assert json.loads((await client.get(f"{CONFLUENT}/versions/2")).json()["schema"]) == json.loads(A2)
    assert (await client.get("/contexts/.g/config/s")).json()["compatibilityLevel"] == "FULL"
    answer = await client.get(f"{CNCF}/versions/1")
    assert answer.text == odd
    assert answer.headers["content-type"] == "application/avro+json"
    group = (await client.get("/schemagroups/g")).json()
    assert (group["description"], group["groupProperties"], group["format"]) == ("D", {"a": "b"}, "avro")
    await post(client, f"{CONFLUENT}/versions", '"int"', 409)
    await post(client, f"{CONFLUENT}/versions", '{"type": "object"}', 422, schemaType="JSON")
    await xr.ask("DELETE", f"{SCHEMA}/versions/v2")
    assert (await client.get(f"{CONFLUENT}/versions")).json() == [1]
    await xr.ask("DELETE", SCHEMA)
    assert (await client.get(f"{CONFLUENT}/versions")).status_code == 404
    await xr.ask("DELETE", GROUP)
    assert (await client.get("/schemagroups/g")).status_code == 404


async def test_both_write_one_schema(xr: XregistryClient, client: httpx.AsyncClient) -> None:
    """A schema can have versions of several dialects; their ids do not change, and epochs grow."""
    await xr.ask("PUT", f"{SCHEMA}/versions/2$details", avro(A1, name="mine"), status=201)
    meta = await xr.read(f"{SCHEMA}/meta")
    await post(client, f"{CONFLUENT}/versions", A2)
    versions = await xr.read(f"{SCHEMA}/versions")
    assert set(versions) == {"2", "2~"}
    assert versions["2"]["name"] == "mine"
    assert versions["2~"]["ancestorid"] == "2"
    after = await xr.read(f"{SCHEMA}/meta")
    assert after["defaultversionid"] == "2~"
    assert after["epoch"] > meta["epoch"]
    await xr.ask("PATCH", f"{SCHEMA}/versions/2~$details", {"name": "theirs"})
    await post(client, f"{CONFLUENT}/versions", A2.replace('"b"', '"c"'))
    versions = await xr.read(f"{SCHEMA}/versions")
    assert {name: each.get("name") for name, each in versions.items()} == {"2": "mine", "2~": "theirs", "3": None}
    await client.delete(f"{CONFLUENT}/versions/2")
    versions = await xr.read(f"{SCHEMA}/versions")
    assert set(versions) == {"2", "3"}
    assert versions["3"]["ancestorid"] == "3"
    await client.delete(CONFLUENT)
    await xr.ask("GET", SCHEMA, code="not_found")


async def test_exact_policies(xr: XregistryClient, client: httpx.AsyncClient) -> None:
    """A policy without a word is shown by the nearest stricter word and in full, and can be sent back."""
    await fill(xr)
    exact = {"kind": "directional", "backward": "all", "forward": "latest"}
    await client.put("/api/policies/s?context=.g", json={"exactly": exact})
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"stelecompatibility": exact})
    meta = await xr.read(f"{SCHEMA}/meta")
    assert meta["compatibility"] == "full_transitive"
    assert meta["stelecompatibility"]["forward"] == "latest"
    again = await xr.ask(
        "PUT", f"{SCHEMA}/meta", {name: meta[name] for name in ("compatibility", "stelecompatibility")}
    )
    assert again.json()["stelecompatibility"] == meta["stelecompatibility"]
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"stelecompatibility": {"kind": "odd"}}, code="invalid_attribute")


async def test_an_import_is_one_record(xr: XregistryClient, registry: Registry) -> None:
    """A request with many entities is one record of the log, and each of its versions has its own uid."""
    await fill(xr)
    before = registry.state.seq
    schemas = {f"s{number}": avro(A1.replace('"R"', f'"R{number}"')) for number in range(20)}
    await xr.ask("POST", "/", {"schemagroups": {"g": {"schemas": schemas}, "h": {"schemas": schemas}}})
    assert registry.state.seq == before + 1
    _, record = (await registry.read_log(before, 5))[0]
    uids = [event.uid for event in record.events if isinstance(event, VersionRegistered)]
    assert len(uids) == len(set(uids)) == 40


async def test_replay(xr: XregistryClient, registry: Registry) -> None:
    """A node that folds the records of the log again shows the same entities."""
    await fill(xr, A1, A2)
    await xr.ask("PATCH", DETAILS, {"labels": {"a": "b"}, "meta": {"deprecated": {}}})
    await xr.ask("PUT", "/schemagroups/h", {"name": "H"}, status=201)
    await xr.ask("DELETE", f"{SCHEMA}/versions/1")
    before = await xr.read("/?inline=*")
    records = await registry.read_log(0, 1000)
    log = await open_log("memory:")
    assert await log.append(0, [encode_record(record) for _, record in records])
    await registry.reset(log)
    assert await xr.read("/?inline=*") == before


async def test_purged_texts_of_one_record_are_erased(
    xr: XregistryClient, client: httpx.AsyncClient, registry: Registry
) -> None:
    """Two texts of one record are both removed from the log when they are deleted permanently."""
    texts = [A1.replace('"a"', f'"Secret{number}"') for number in range(2)]
    await xr.ask("POST", f"{GROUP}/schemas", {f"s{number}": avro(text) for number, text in enumerate(texts)})
    for number in range(2):
        for permanent in ("", "?permanent=true"):
            answer = await client.delete(f"/contexts/.g/subjects/s{number}{permanent}")
            assert answer.status_code == 200
    log = b"".join(encode_record(record) for _, record in await registry.read_log(0, 1000))
    assert b"Secret" not in log


def act_as(name: str) -> Any:
    """Set the caller of the following requests in this task."""
    return CALLER.set(Caller(Principal(name)))


async def test_rights(xr: XregistryClient, registry: Registry) -> None:
    """Writers add and describe versions; replacing a document requires `delete`, another ancestor requires `force`."""
    await fill(xr, A1, A2)
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"compatibility": "backward"})
    await fill(xr, schema="/schemagroups/hidden/schemas/secret")
    rules = [AccessRule("user:w", ("writer",), resource_type=ResourceType.NAMESPACE, namespace="g")]
    registry.access = AccessControl(AccessRules(rules, default_allow=False))
    token = act_as("w")
    async with client_of(application(registry)) as direct:

        async def ask(method: str, path: str, body: Any = None) -> int:
            content = None if body is None else json.dumps(body)
            return (await direct.request(method, path, content=content)).status_code

        try:
            assert await ask("PATCH", DETAILS, {"name": "x"}) == 200
            assert await ask("POST", DETAILS, avro(A2)) == 201
            assert await ask("PUT", DETAILS, avro(A1)) == 403
            assert await ask("POST", DETAILS, avro(A2, ancestorid="request")) == 403
            assert await ask("DELETE", SCHEMA) == 403
            assert await ask("PUT", "/schemagroups/hidden", {}) == 403
            assert await ask("POST", "/schemagroups", {"hidden": {"epoch": 99}}) == 403
            assert await ask("PUT", "/", {}) == 403
            tree = (await direct.get("/?inline=*")).json()
            assert set(tree["schemagroups"]) == {"g"}
            assert (
                await ask(
                    "PUT", f"{GROUP}/schemas/link$details", {"meta": {"xref": "/schemagroups/hidden/schemas/secret"}}
                )
                == 201
            )
            assert "name" not in (await direct.get(f"{GROUP}/schemas/link$details")).json()
            assert await ask("GET", f"{GROUP}/schemas/link") == 404
        finally:
            CALLER.reset(token)
            registry.access = OPEN_ACCESS


async def test_two_nodes(tmp_path: Any) -> None:
    """Two nodes on one store serve the same entities, and writes of both are present."""
    store = f"sqlite:///{tmp_path / 'stele.db'}"
    nodes = [await Registry.open(await open_log(store)) for _ in range(2)]
    clients = [XregistryClient(client_of(build_app(node))) for node in nodes]
    await fill(clients[0])
    await asyncio.gather(*(client.ask("POST", DETAILS, avro(A2), status=201) for client in clients * 4))
    versions = [await client.read(f"{SCHEMA}/versions") for client in clients]
    assert versions[0] == versions[1]
    assert len(versions[0]) == 9
    for node, client in zip(nodes, clients, strict=True):
        await client.http.aclose()
        await node.close()
