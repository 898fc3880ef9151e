"""The Pravega dialect answers as its transcripts require. Their rules have the numbers of its required behaviours."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conformance.apis.in_process import client_of
from tests.conformance.apis.transcripts import Rule, plain, play, read_rules
from tests.support.authentication import HeaderAuthenticator

from stele.apis.pravega import PravegaOptions, application
from stele.core.access import AccessRule, AccessRules, NamePattern, ResourceType
from stele.errors import Unauthenticated
from stele.server.asgi import App
from stele.server.dispatch import Dispatcher, MountedDialect
from stele.server.metrics import Metrics
from stele.service.access import AccessControl, Authenticator, Headers, Principal
from stele.service.registry import Registry

RULES = read_rules(*sorted((Path(__file__).parent / "pravega").glob("*.txt")))
AVRO = {"serializationFormat": "Avro"}
PROTOBUF = {"serializationFormat": {"serializationFormat": "Protobuf"}}
IN_PYTHON = {26, 27, 28, 30}
"""Behaviours that need more than requests and responses. They are tested below and in the tests of the wire format."""


def build_app(
    registry: Registry, authenticator: Authenticator | None = None, options: PravegaOptions | None = None
) -> App:
    """Return the dialect behind the server's dispatcher."""
    return Dispatcher(
        {}, MountedDialect("pravega", application(registry, options)), Metrics(), authenticator=authenticator
    )


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("rule", RULES, ids=[rule.sentence for rule in RULES])
async def test_rule(rule: Rule, store: str, client: httpx.AsyncClient) -> None:
    """Every request of a transcript gets the response in it."""
    await play(client, rule, media_type="application/json", refused=plain)


def test_every_must_have_behaviour_is_a_test() -> None:
    """Each of the thirty numbered behaviours has a rule, or a test if it needs more than requests and responses."""
    numbers = {int(match[1]) for rule in RULES if (match := re.match(r"(\d+)", rule.sentence))}
    assert numbers | IN_PYTHON == set(range(1, 31))


# --- what a transcript cannot say -----------------------------------------------------------------------------------


def properties(**more: Any) -> dict[str, Any]:
    """Return properties of a group for Avro schemas of any type."""
    return {"serializationFormat": AVRO, "compatibility": {"policy": "AllowAny"}, "allowMultipleTypes": True, **more}


def schema(text: str, type_name: str = "", **more: Any) -> dict[str, Any]:
    """Return a schema in the form of requests."""
    data = base64.b64encode(text.encode()).decode()
    return {"type": type_name, "serializationFormat": AVRO, "schemaData": data, **more}


def record(name: str, field: str = "a") -> str:
    """Return an Avro record with one field."""
    return f'{{"type":"record","name":"{name}","fields":[{{"name":"{field}","type":"int"}}]}}'


async def create_group(
    client: httpx.AsyncClient, group: str, headers: dict[str, str] | None = None, **more: Any
) -> None:
    """Create a group."""
    body = {"groupName": group, "groupProperties": properties(**more)}
    answer = await client.post("/v1/groups", json=body, headers=headers)
    assert answer.status_code == 201, answer.text


@pytest.mark.asyncio(loop_scope="module")
async def test_03_pages_cover_every_group(store: str, client: httpx.AsyncClient) -> None:
    """3: a client that reads pages until one is empty gets every group once, also while other groups change."""
    names = [f"group {number:03}" for number in range(25)]
    for name in names:
        await create_group(client, name)
    listed_names: list[str] = []
    token = ""
    while True:
        page = (await client.get("/v1/groups", params={"limit": 4, "continuationToken": token})).json()
        if not page["groups"]:
            break
        listed_names += page["groups"]
        token = page["continuationToken"]
        await client.delete(f"/v1/groups/{listed_names[-1]}")
        await create_group(client, f"a late {len(listed_names)}")
    assert listed_names == names


@pytest.mark.asyncio(loop_scope="module")
async def test_23_protobuf_history_is_shown_as_json(store: str, client: httpx.AsyncClient) -> None:
    """23: the text of a Protobuf schema in the history is its descriptor set as JSON, with field names."""
    await create_group(client, "g", serializationFormat={"serializationFormat": "Protobuf"})
    data = "CikKB2EucHJvdG8SAXAiEwoBTRIJCgFhGAEgASgFGgMKAU5iBnByb3RvMw=="
    await client.post("/v1/groups/g/schemas", json=schema("", "p.M") | PROTOBUF | {"schemaData": data})
    (row,) = (await client.get("/v1/groups/g/history")).json()["history"]
    (file,) = json.loads(row["schemaString"])["file"]
    assert file["package"] == "p"
    assert file["message_type"][0]["nested_type"] == [{"name": "N"}]
    assert row["schemaInfo"]["schemaData"] == data
    assert row["timestamp"] > 1_700_000_000_000


@pytest.mark.asyncio(loop_scope="module")
async def test_27_ids_are_dense_and_unique_under_concurrency(store: str, client: httpx.AsyncClient) -> None:
    """27: concurrently added schemas get dense, unique ids, and versions per type; equal schemas share an id."""
    await create_group(client, "g")
    bodies = [schema(record(f"R{number % 3}", f"f{number}")) for number in range(15)]
    answers = await asyncio.gather(*(client.post("/v1/groups/g/schemas", json=body) for body in bodies))
    infos = [answer.json() for answer in answers]
    assert sorted(info["id"] for info in infos) == list(range(15))
    for name in ("R0", "R1", "R2"):
        own = sorted((info["id"], info["version"]) for info in infos if info["type"] == name)
        assert [version for _, version in own] == list(range(5))
    same = await asyncio.gather(*(client.post("/v1/groups/g/schemas", json=schema(record("Same"))) for _ in range(10)))
    assert {answer.json()["id"] for answer in same} == {15}


def _authenticate(headers: Headers) -> Principal:
    name = dict(headers).get(b"authorization", b"").decode()
    if not name:
        raise Unauthenticated("who are you?")
    return Principal(name)


RULES_OF_28 = (
    AccessRule("user:admin", ("admin",)),
    AccessRule("user:ann", ("writer",), resource_type=ResourceType.SUBJECT, name="ann", pattern=NamePattern.PREFIX),
)


@pytest.mark.asyncio(loop_scope="module")
async def test_28_who_may_do_what(store: str, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """28: requests without credentials get 401, those without the right 403; lists have only readable groups."""
    monkeypatch.setattr(registry, "access", AccessControl(AccessRules(RULES_OF_28, default_allow=False)))
    app = build_app(registry, HeaderAuthenticator(_authenticate))
    admin, ann = {"authorization": "admin"}, {"authorization": "ann"}
    async with client_of(app) as client:
        assert (await client.get("/ping")).status_code == 401
        assert (await client.get("/v1/groups/ann")).status_code == 401
        for name in ("ann", "ann%2F2", "bob", "cid"):
            await create_group(client, name.replace("%2F", "/"), admin)
        for method, path, body, status in (
            ("GET", "/v1/groups/ann", None, 200),
            ("GET", "/v1/groups/ann%2F2", None, 200),
            ("GET", "/v1/groups/bob", None, 403),
            ("GET", "/v1/groups/nobody", None, 403),
            ("POST", "/v1/groups", {"groupName": "carl", "groupProperties": properties()}, 403),
            ("POST", "/v1/groups/ann/schemas", schema(record("R")), 201),
            ("POST", "/v1/groups/bob/schemas", schema(record("R")), 403),
            ("PUT", "/v1/groups/ann/compatibility", {"compatibility": {"policy": "DenyAll"}}, 403),
            ("POST", "/v1/groups/bob/codecTypes", {"name": "c"}, 403),
            ("DELETE", "/v1/groups/ann/schemas/schema/0", None, 403),
            ("DELETE", "/v1/groups/ann/schemas/format/Avro/type/R/versions/0", None, 403),
            ("DELETE", "/v1/groups/ann", None, 403),
            ("POST", "/v1/schemas/addedTo", schema(record("R")), 200),
        ):
            answer = await client.request(method, path, json=body, headers=ann)
            assert answer.status_code == status, (method, path, answer.text)
        page = (await client.get("/v1/groups?limit=1", headers=ann)).json()
        assert list(page["groups"]) == ["ann"]
        page = (await client.get("/v1/groups", headers=ann)).json()
        assert list(page["groups"]) == ["ann", "ann/2"]
        assert len((await client.get("/v1/groups", headers=admin)).json()["groups"]) == 4


@pytest.mark.asyncio(loop_scope="module")
async def test_30_limits(store: str, client: httpx.AsyncClient) -> None:
    """30: more than 8 MiB of schema, 100 properties or 200 bytes of a property are answered with 400."""
    long, many = {"k": "v" * 201}, {str(number): "" for number in range(101)}
    for wrong in (long, many, {"k" * 201: ""}, {"ä" * 101: ""}):
        body = {"groupName": "g", "groupProperties": properties(properties=wrong)}
        assert (await client.post("/v1/groups", json=body)).status_code == 400
    await create_group(client, "g", properties={str(number): "v" * 200 for number in range(100)})
    for wrong in (long, many):
        answer = await client.post("/v1/groups/g/schemas", json=schema(record("R"), properties=wrong))
        assert answer.status_code == 400, answer.text
    large = {"type": "b", "serializationFormat": {"serializationFormat": "Custom", "fullTypeName": "x"}}
    await create_group(client, "x", serializationFormat={"serializationFormat": "Any"})
    for size in (8 * 1024 * 1024 + 1, 16 * 1024 * 1024):
        body = {**large, "schemaData": base64.b64encode(bytes(size)).decode()}
        assert (await client.post("/v1/groups/x/schemas", json=body)).status_code == 400
    codec = {"name": "c", "properties": {"p": "x" * 900 * 1024}}
    assert (await client.post("/v1/groups/g/codecTypes", json=codec)).status_code == 400
    for group in ("g", "x"):
        assert (await client.get(f"/v1/groups/{group}/schemas/versions")).json() == {"schemas": []}
    assert (await client.get("/v1/groups/g/codecTypes")).json() == {"codecTypes": []}
