"""The OpenSchema dialect answers as its transcripts require. Rules have the numbers of its required behaviours."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from tests.conformance.apis.in_process import client_of
from tests.conformance.apis.transcripts import Rule, play, read_rules, says

from stele.apis.openschema import MEDIA_TYPE, OpenSchemaOptions, application
from stele.server.asgi import App
from stele.server.dialects import build_dispatcher
from stele.server.dispatch import Dispatcher, MountedDialect
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWN = set(map(int, re.findall(r"^async def test_(\d+)", Path(__file__).read_text("utf-8"), re.MULTILINE)))
RULES = read_rules(*sorted((Path(__file__).parent / "openschema").glob("*.txt")))


def is_refusal(expected: str, answer: httpx.Response) -> bool:
    """Return whether a response is an error with a code that begins with the status, a message, and nothing else."""
    code, _, sentence = expected.partition(" ")
    error = answer.json()
    return (
        set(error) == {"errorCode", "errorMessage"}
        and error["errorCode"] == int(code)
        and error["errorCode"] // 100 == answer.status_code
        and says(sentence, error["errorMessage"])
    )


def build_app(registry: Registry, options: OpenSchemaOptions | None = None) -> App:
    """Return the dialect behind the server's dispatcher."""
    return Dispatcher({}, MountedDialect("openschema", application(registry, options)), Metrics())


@pytest.mark.parametrize("rule", RULES, ids=[rule.sentence for rule in RULES])
async def test_rule(rule: Rule, store: str, client: httpx.AsyncClient) -> None:
    """Every request of a transcript gets the response in it."""
    await play(client, rule, media_type=MEDIA_TYPE, refused=is_refusal)


# --- what a transcript cannot say -----------------------------------------------------------------------------------

SUBJECT = {"subject": "s", "tenant": "default", "namespace": "default", "status": "released"}


async def test_16_times(store: str, client: httpx.AsyncClient) -> None:
    """16: the time of creation stays; the time of the last change grows with description, policy and schemas."""
    times = []
    for change in ("description", "again", "config", "schema"):
        if change == "config":
            assert (await client.put("/config/s", json={"compatibility": "FULL"})).status_code == 200
        elif change == "schema":
            await asyncio.sleep(0.05)
            assert (await client.post("/subjects/s/versions", json={"schemaDefinition": '"int"'})).status_code == 200
        else:
            assert (await client.post("/subjects/s/", json={**SUBJECT, "description": change})).status_code == 200
        times.append((await client.get("/subjects/s")).json())
    assert len({row["createdTime"] for row in times}) == 1
    changed = [row["lastModifiedTime"] for row in times]
    assert changed == sorted(set(changed)), "each later than the one before"
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}", moment) for moment in changed)


async def test_22_the_media_type_decides_at_the_root(registry: Registry, store: str) -> None:
    """22: at the root, clients that name the media type get this API, all others Confluent's, on cached paths, too."""
    named, plain = {"accept": MEDIA_TYPE}, {"accept": "*/*"}
    async with client_of(build_dispatcher(registry, ServerSettings(), Metrics())) as client:
        registration = await client.post(
            "/subjects/s/versions", json={"schemaDefinition": '"int"'}, headers={"content-type": MEDIA_TYPE}
        )
        assert registration.json() == {"id": "1"}
        assert (await client.get("/subjects", headers=named)).json() == {"name": ["s"]}
        assert (await client.get("/subjects", headers=plain)).json() == ["s"]
        assert (await client.get("/openschema/subjects", headers=plain)).json() == {"name": ["s"]}
        assert (await client.get("/config/s", headers=named)).json() == {"compatibility": "BACKWARD"}
        assert (await client.get("/config/s?defaultToGlobal=true", headers=plain)).json() == {
            "compatibilityLevel": "BACKWARD"
        }
        for _ in range(3):
            assert (await client.get("/schemas/ids/1", headers=plain)).json()["schema"] == '"int"'
            error = await client.get("/schemas/ids/1", headers=named)
            assert error.json() == {"errorCode": 40400, "errorMessage": "Not Found"}
        both = {"accept": f"application/vnd.schemaregistry.v1+json, {MEDIA_TYPE};q=0.3"}
        assert (await client.get("/subjects", headers=both)).json() == ["s"]
        paths = (await client.get("/_docs/openschema/openapi.json")).json()["paths"]
        assert "/subjects/{subject}/versions" in paths


async def test_too_many_pairs_to_compare(registry: Registry, store: str) -> None:
    """A policy for which more pairs of versions must be compared than the limit is refused."""
    async with client_of(build_app(registry, OpenSchemaOptions(max_pairs=2))) as client:
        for number in range(3):
            await client.post("/subjects/s/versions", json={"schemaDefinition": {"type": "int", "note": number}})
        assert (await client.put("/config/s", json={"compatibility": "FULL"})).status_code == 200
        answer = await client.put("/config/s", json={"compatibility": "FULL_TRANSITIVE"})
        assert (answer.status_code, answer.json()["errorCode"]) == (422, 42201)
        assert (await client.get("/config/s")).json() == {"compatibility": "FULL"}


async def test_posting_a_subject_at_once(store: str, client: httpx.AsyncClient) -> None:
    """Of concurrent requests to create a subject, one creates it and the others change it."""
    bodies = [{**SUBJECT, "description": str(number)} for number in range(8)]
    answers = await asyncio.gather(*(client.post("/subjects/s/", json=body) for body in bodies))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["createdTime"] for answer in answers}) == 1


async def test_every_must_have_behaviour_is_a_test() -> None:
    """Each numbered behaviour of this dialect has a rule, or a test if it needs more than requests."""
    numbers = {int(match[1]) for rule in RULES if (match := re.match(r"(\d+)", rule.sentence))}
    assert numbers | OWN == set(range(15, 23))
