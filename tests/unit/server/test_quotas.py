"""Quotas of one caller: counted from the log, reduced by purges, refused in the form of each dialect."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from tests.unit.service.test_registry import put

from stele.core import queries
from stele.core.access import AccessRules
from stele.core.commands import DeleteMode, DeleteSubject
from stele.core.model import CreatorUsage, SubjectKey
from stele.core.snapshot import dump_state, load_state
from stele.errors import QuotaUsedUp
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings
from stele.service.access import CALLER, SYSTEM, AccessControl, Caller, Principal
from stele.service.limits import Limits
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore

AVRO = json.dumps({"type": "record", "name": "R", "fields": []})
GROUP: dict[str, Any] = {
    "serializationFormat": {"serializationFormat": "Avro"},
    "compatibility": {"policy": "AllowAny"},
    "allowMultipleTypes": True,
}
TYPES = ("int", "long", "float")


class Registration(NamedTuple):
    """A request of a dialect that registers a schema; status is that of its refusal."""

    method: str
    path: str
    body: Any
    content_type: str
    status: int = 403


REGISTRATIONS = {
    "confluent": Registration(
        "POST", "/subjects/s/versions", {"schema": AVRO}, "application/vnd.schemaregistry.v1+json", 422
    ),
    "pravega": Registration(
        "POST",
        "/v1/groups/p/schemas",
        {
            "type": "R",
            "serializationFormat": GROUP["serializationFormat"],
            "schemaData": base64.b64encode(AVRO.encode()).decode(),
        },
        "application/json",
    ),
    "schema-repo": Registration("PUT", "/schema-repo/r/register", AVRO, "text/plain"),
    "cncf": Registration("POST", "/schemagroups/g/schemas/s", AVRO, "application/json"),
    "rocketmq": Registration(
        "POST",
        "/schema-registry/v1/subject/s/schema/S",
        {"schemaIdl": AVRO, "schemaType": "AVRO"},
        "application/json",
    ),
    "openschema": Registration(
        "POST", "/openschema/subjects/o/versions", {"schemaDefinition": AVRO}, "application/json"
    ),
}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a server whose callers may have one schema; it has one."""
    server = InProcessServer(ServerSettings(store="memory:", max_caller_schemas=1))
    with httpx.Client(transport=InProcessTransport(server), base_url="http://127.0.0.1:8081") as client:
        for method, path, body in (
            ("PUT", "/schemagroups/g", {"format": "Avro"}),
            ("POST", "/v1/groups", {"groupName": "p", "groupProperties": GROUP}),
            ("POST", "/subjects/first/versions", {"schema": '"string"'}),
        ):
            assert client.request(method, path, json=body).status_code < 300, path
        form = {"content-type": "application/x-www-form-urlencoded"}
        assert client.put("/schema-repo/r", content="", headers=form).status_code == 200
        yield client
    server.stop()


@pytest.mark.parametrize("dialect", REGISTRATIONS)
def test_every_dialect_refuses_in_its_own_shape(client: httpx.Client, dialect: str) -> None:
    """The response contains the number of schemas of the caller and the name of the setting; other requests succeed."""
    row = REGISTRATIONS[dialect]
    body = row.body if isinstance(row.body, str) else json.dumps(row.body)
    refused = client.request(row.method, row.path, content=body, headers={"content-type": row.content_type})
    assert refused.status_code == row.status, refused.text
    assert "max_caller_schemas" in refused.text
    assert "1 schemas are registered by" in refused.text
    if dialect == "confluent":
        assert refused.json()["error_code"] == 42209
    again = client.post("/subjects/first/versions", json={"schema": '"string"'})
    assert again.status_code == 200, "what is registered already is no new schema"


def test_refusals_are_counted(client: httpx.Client) -> None:
    """The metric increases by one with each refusal."""

    def count() -> float:
        return float(client.get("/metrics").text.partition("\nstele_quota_refusals ")[2].partition("\n")[0])

    before = count()
    assert client.post("/subjects/s/versions", json={"schema": '"long"'}).status_code == 422
    assert count() == before + 1


async def register(registry: Registry, name: str, subject: str, text: str) -> None:
    """Register a JSON schema as a caller; an empty name stands for the server itself."""
    token = CALLER.set(Caller(Principal(name)) if name else SYSTEM)
    try:
        await put(registry, text.encode(), SubjectKey("", subject))
    finally:
        CALLER.reset(token)


async def test_each_caller_has_a_quota_of_its_own() -> None:
    """Other callers, super users and the server itself do not use up a caller's quota, and a purge frees some."""
    registry = await Registry.open(MemoryLog(MemoryStore()), Limits(caller_schemas=2))
    registry.access = AccessControl(AccessRules((), default_allow=True), frozenset({"user:root"}))
    for number in range(2):
        await register(registry, "ann", f"a{number}", f'"{TYPES[number]}"')
    with pytest.raises(QuotaUsedUp, match="2 schemas are registered by ann"):
        await register(registry, "ann", "a3", '"bytes"')
    for name in ("bob", "root", ""):
        for number in range(2 if name == "bob" else 3):
            await register(registry, name, f"{name or 'own'}{number}", f'"{TYPES[number]}"')
    assert registry.quota_refusals == 1
    await registry.execute(DeleteSubject(SubjectKey("", "a0")))
    with pytest.raises(QuotaUsedUp):
        await register(registry, "ann", "a3", '"bytes"')
    await registry.execute(DeleteSubject(SubjectKey("", "a0"), DeleteMode.HARD))
    await register(registry, "ann", "a3", '"bytes"')
    await registry.close()


async def test_bytes_count_for_each_version() -> None:
    """The same text in two subjects counts twice, and a batch that is rolled back does not count."""
    registry = await Registry.open(MemoryLog(MemoryStore()), Limits(caller_bytes=20))
    text = '"string"'
    await register(registry, "ann", "a", text)
    await register(registry, "ann", "b", text)
    results = await asyncio.gather(
        *(register(registry, "ann", f"c{number}", f'"{TYPES[number]}"') for number in range(3)), return_exceptions=True
    )
    assert [type(result) for result in results] == [QuotaUsedUp] * 3
    assert queries.find_usage_of_creator(registry.state, "ann") == CreatorUsage(2, 2 * len(text))
    await registry.close()


async def test_a_node_that_starts_anew_knows_what_callers_have() -> None:
    """The index of a running node equals the one built from a snapshot, after any deletions."""
    registry = await Registry.open(MemoryLog(MemoryStore()), Limits(caller_schemas=10))
    await register(registry, "ann", "a", '"int"')
    await register(registry, "bob", "a", '"long"')
    await register(registry, "ann", "b", '"int"')
    await registry.execute(DeleteSubject(SubjectKey("", "b")))
    await registry.execute(DeleteSubject(SubjectKey("", "b"), DeleteMode.HARD))
    await register(registry, "bob", "c", '"int"')
    usages = {name: queries.find_usage_of_creator(registry.state, name) for name in ("ann", "bob", "eve")}
    restored = load_state(dump_state(registry.state))
    assert usages == {name: queries.find_usage_of_creator(restored, name) for name in usages}
    assert usages == {"ann": CreatorUsage(1, 5), "bob": CreatorUsage(2, 11), "eve": CreatorUsage()}
    await registry.close()
