"""The RocketMQ dialect answers as its transcripts require. Their rules have the numbers of its required behaviours."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conformance.apis.in_process import client_of
from tests.conformance.apis.transcripts import Rule, play, read_rules, says

from stele.apis.rocketmq import application
from stele.core.commands import ClearMode, CompatibilityCheck, RegisterSchema, SetMode
from stele.core.decide.register import make_document
from stele.core.model import Mode, SettingsLevel, SubjectKey
from stele.core.policy import POLICIES
from stele.server.app import Server
from stele.server.asgi import App
from stele.server.dispatch import Dispatcher, MountedDialect
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry

RULES = read_rules(*sorted((Path(__file__).parent / "rocketmq").glob("*.txt")))
ROOT = "/schema-registry/v1"
ELSEWHERE = {
    23: "unit/wire/test_rocketmq.py",
    24: "conformance/apis/test_rocketmq_client.py",
    25: "unit/codegen/test_compilers.py",
    27: "spark/test_stream_sql.py",
    28: "conformance/apis/test_rocketmq_client.py",
}
"""Behaviours of clients, with the file that tests them."""


def is_refusal(expected: str, answer: httpx.Response) -> bool:
    """Return whether a response is an error with the five-digit number, a message, and nothing else."""
    number, _, sentence = expected.partition(" ")
    error = answer.json()
    return set(error) == {"status", "message"} and error["status"] == int(number) and says(sentence, error["message"])


def build_app(registry: Registry) -> App:
    """Return the dialect behind the server's dispatcher."""
    return Dispatcher({}, MountedDialect("rocketmq", application(registry)), Metrics())


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("rule", RULES, ids=[rule.sentence for rule in RULES])
async def test_rule(rule: Rule, store: str, client: httpx.AsyncClient) -> None:
    """Every request of a transcript gets the response in it."""
    await play(client, rule, media_type="application/json", refused=is_refusal)


# --- what a transcript cannot say -----------------------------------------------------------------------------------


def record(*fields: str) -> str:
    """Return an Avro record of int fields; a field whose name ends with `?` has a default."""
    default = {True: {"default": 0}, False: {}}
    definitions = [{"name": name.rstrip("?"), "type": "int", **default[name.endswith("?")]} for name in fields]
    return json.dumps({"type": "record", "name": "R", "fields": definitions})


async def register_schema(client: httpx.AsyncClient, text: str, **more: Any) -> None:
    """Register the schema `s`."""
    answer = await client.post(f"{ROOT}/subject/t/schema/s", json={"schemaIdl": text, **more})
    assert answer.status_code == 200, answer.text


async def update_schema(client: httpx.AsyncClient, text: str) -> int:
    """Update the schema `s` and return the status."""
    return (await client.put(f"{ROOT}/subject/t/schema/s", json={"schemaIdl": text})).status_code


BASE = record("a", "o?")
CHANGES = {
    "add a field": record("a", "o?", "n"),
    "add an optional field": record("a", "o?", "n?"),
    "delete a field": record("o?"),
    "delete an optional field": record("a"),
    "replace an optional field": record("a", "p?"),
}
PERMITTED = {
    "BACKWARD": {"add an optional field", "delete a field", "delete an optional field", "replace an optional field"},
    "FORWARD": {"add a field", "add an optional field", "delete an optional field", "replace an optional field"},
    "FULL": {"add an optional field", "delete an optional field", "replace an optional field"},
    "NONE": set(CHANGES),
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("policy", sorted(POLICIES))
async def test_05_permitted_changes(policy: str, store: str, client: httpx.AsyncClient) -> None:
    """5: each policy, transitive ones included, permits exactly the changes of RIP-42's table."""
    permitted = PERMITTED[policy.removesuffix("_TRANSITIVE")]
    for name, change in CHANGES.items():
        await register_schema(client, BASE, compatibility=policy)
        status = await update_schema(client, change)
        assert status == (200 if name in permitted else 409), name
        assert (await client.delete(f"{ROOT}/subject/t/schema")).status_code == 200


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("policy", sorted(POLICIES))
async def test_04_transitivity(policy: str, store: str, client: httpx.AsyncClient) -> None:
    """4: a transitive policy compares with all versions, a plain one with the last only, NONE with none."""
    of_text = '{"type":"record","name":"R","fields":[{"name":"x","type":"string","default":""}]}'
    await register_schema(client, record("x?"), compatibility=policy)
    assert await update_schema(client, record()) == 200
    assert await update_schema(client, of_text) == (409 if policy.endswith("_TRANSITIVE") else 200)
    schema = (await client.get(f"{ROOT}/tenant/default/schema/s")).json()
    assert schema["meta"]["compatibility"] == policy


@pytest.mark.asyncio(loop_scope="module")
async def test_14_the_last_version_is_16383(store: str, registry: Registry, client: httpx.AsyncClient) -> None:
    """14: a version number beyond 14 bits is refused, because its record id would belong to another schema."""
    level, key = SettingsLevel("", "s"), SubjectKey("", "s")
    await registry.execute(SetMode(level, Mode.IMPORT))
    for number in (16382, 16383):
        document = make_document(b'{"type":"fixed","name":"F","size":%d}' % number, "avro")
        await registry.execute(RegisterSchema(key, document, version_number=number, schema_id=number))
    await registry.execute(ClearMode(level))
    answer = await client.get(f"{ROOT}/subject/s/schema")
    assert answer.json()["recordId"] & 0x3FFF == answer.json()["version"] == 16383
    answer = await client.put(f"{ROOT}/subject/s/schema/s", json={"schemaIdl": record("a")})
    assert (answer.status_code, answer.json()["status"]) == (400, 40001)
    assert "16383" in answer.json()["message"]
    await registry.execute(RegisterSchema(key, make_document(b'"int"', "avro"), check=CompatibilityCheck.SKIP))
    rows = (await client.get(f"{ROOT}/subject/s/schema/versions")).json()
    assert [(row["version"], row["recordId"] is None) for row in rows] == [
        (16382, False),
        (16383, False),
        (16384, True),
    ]
    assert (await client.get(f"{ROOT}/subject/s/schema")).json()["recordId"] is None


@pytest.mark.asyncio(loop_scope="module")
async def test_writers_at_once(store: str, client: httpx.AsyncClient) -> None:
    """Of concurrent registrations of a schema one succeeds; concurrent updates get numbers without gaps."""
    body = {"schemaIdl": record("a"), "compatibility": "NONE"}
    answers = await asyncio.gather(*(client.post(f"{ROOT}/subject/t{n}/schema/s", json=body) for n in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    subjects = (await client.get(f"{ROOT}/cluster/default/tenant/default/subjects")).json()
    assert len(subjects) == 1, "who lost has bound nothing"
    updates = await asyncio.gather(
        *(client.put(f"{ROOT}/subject/u{n}/schema/s", json={"schemaIdl": record(f"f{n}")}) for n in range(8))
    )
    assert sorted(answer.json()["version"] for answer in updates) == list(range(2, 10))
    for number, answer in enumerate(updates):
        bound = (await client.get(f"{ROOT}/subject/u{number}/schema")).json()
        assert bound["recordId"] == answer.json()["recordId"]


@pytest.mark.asyncio(loop_scope="module")
async def test_26_the_store_is_a_setting(tmp_path: Path) -> None:
    """26: registered schemas are kept in the configured store, and are present after a restart."""
    store = f"sqlite:///{tmp_path / 'log.db'}"
    for store_url in (store, "memory:"):
        server = Server(ServerSettings(store=store_url))
        registry = await server.start()
        async with client_of(server) as client:
            await register_schema(client, record("a"))
        assert registry.state.seq == 2, "the adoption of the newest rulesets and the registration"
        await server.stop()
    again = Server(ServerSettings(store=store))
    await again.start()
    async with client_of(again) as client:
        schema = (await client.get(f"{ROOT}/subject/t/schema")).json()
    assert (schema["schemaFullName"], schema["version"], schema["idl"]) == ("default/s", 1, record("a"))
    await again.stop()


def test_every_must_have_behaviour_is_a_test() -> None:
    """Each numbered behaviour of this dialect and of its clients has a rule or a test with that number."""
    numbers = {int(match[1]) for rule in RULES if (match := re.match(r"(\d+)", rule.sentence))}
    here = {
        int(digits) for digits in re.findall(r"^async def test_(\d+)", Path(__file__).read_text("utf-8"), re.MULTILINE)
    }
    assert numbers | here | set(ELSEWHERE) == {*range(1, 15), *range(23, 29)}
    tests = Path(__file__).parents[2]
    for number, name in ELSEWHERE.items():
        assert f"def test_{number:02}_" in (tests / name).read_text("utf-8")
