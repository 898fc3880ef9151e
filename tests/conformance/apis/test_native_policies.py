"""The native API shows and sets policies in full, at every level, and they apply in other dialects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of

from stele.core.commands import AdoptRulesets, CreateSubject, SetMode, SubjectDefaults
from stele.core.model import REGISTRY_LEVEL, Mode, SubjectKey
from stele.core.policy import ALLOW_ANY
from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

BACKWARD = {"kind": "directional", "backward": "latest", "forward": "none", "checkers": []}
ANY = {"kind": "allow_any", "backward": "none", "forward": "none", "checkers": []}
DENY = {**ANY, "kind": "deny_all"}
MIXED = {"kind": "directional", "backward": "since:2", "forward": "all", "checkers": ["lint:DOC_REQUIRED"]}
NONE = {"policy": None, "ruleset": None}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def registry(brief_logging: None) -> AsyncIterator[Registry]:
    """One node, emptied for every test."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module")
async def client(registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole server over an empty registry."""
    await registry.reset(await open_log("memory:"))
    async with client_of(build_dispatcher(registry, ServerSettings(), Metrics())) as client:
        yield client


async def show(client: httpx.AsyncClient, name: str = "") -> Any:
    """Return the policy in force at a level."""
    answer = await client.get(f"/api/policies/{name}" if name else "/api/policies")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def put(client: httpx.AsyncClient, name: str, status: int = 200, **change: Any) -> Any:
    """Set a policy and return the response, which must have that status."""
    answer = await client.put(f"/api/policies/{name}" if name else "/api/policies", json=change)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_a_registry_nobody_set_anything_in(client: httpx.AsyncClient) -> None:
    """Without settings the default is in force everywhere, with the rulesets that apply."""
    answer = await show(client)
    assert answer["rulesets"]["avro"].startswith("avro@")
    assert answer["rulesets"].keys() >= {"avro", "json", "protobuf", "thrift", "xsd"}
    assert answer == {
        "namespace": None,
        "subject": None,
        "policy": BACKWARD,
        "name": "BACKWARD",
        "nearest": "BACKWARD",
        "source": "default",
        "ruleset": None,
        "rulesets": answer["rulesets"],
        "own": NONE,
    }
    assert (await show(client, "a"))["source"] == "default"


async def test_levels_from_bottom_to_top(client: httpx.AsyncClient) -> None:
    """A subject has its own policy, else its namespace's, else the registry's, and the response names the level."""
    await put(client, "", policy={"backward": "all"})
    await put(client, ":.team:", policy={"kind": "deny_all"})
    await put(client, ":.team:a%2Fb", policy=MIXED)
    own = await show(client, ":.team:a%2Fb")
    assert (own["namespace"], own["subject"], own["source"], own["policy"]) == ("team", "a/b", "subject", MIXED)
    assert (own["name"], own["nearest"], own["own"]["policy"]) == (None, "FULL_TRANSITIVE", MIXED)
    below = await show(client, ":.team:other")
    assert (below["source"], below["policy"], below["own"]) == ("namespace", DENY, NONE)
    space = await show(client, ":.team:")
    assert (space["namespace"], space["subject"], space["own"]["policy"]) == ("team", None, DENY)
    elsewhere = await show(client, "a")
    assert (elsewhere["namespace"], elsewhere["source"], elsewhere["name"]) == ("", "registry", "BACKWARD_TRANSITIVE")


async def test_policies_of_creation(registry: Registry, client: httpx.AsyncClient) -> None:
    """The policy with which a dialect created a subject takes precedence over that of its namespace."""
    await registry.execute(CreateSubject(SubjectKey("", "a"), SubjectDefaults(policy=ALLOW_ANY)))
    assert {"source": "creation", "policy": ANY, "own": NONE}.items() <= (await show(client, "a")).items()


async def test_clearing(client: httpx.AsyncClient) -> None:
    """DELETE removes policy and ruleset of a level, also if there are none; other settings of the level stay."""
    await client.put("/config/a", json={"normalize": True, "compatibility": "FULL"})
    await put(client, "a", policy=MIXED, ruleset="confluent")
    answer = (await client.delete("/api/policies/a")).json()
    assert (answer["source"], answer["policy"], answer["ruleset"], answer["own"]) == ("default", BACKWARD, None, NONE)
    assert (await client.get("/config/a")).json() == {"normalize": True, "compatibilityLevel": "BACKWARD"}
    await put(client, "b", policy=MIXED)
    for _ in range(2):
        assert (await client.delete("/api/policies/b")).status_code == 200
        assert (await client.get("/config/b")).status_code == 404


async def test_a_change_replaces(client: httpx.AsyncClient) -> None:
    """A member that a PUT leaves out is removed."""
    await put(client, "a", policy=MIXED, ruleset="confluent")
    assert (await put(client, "a", ruleset="confluent@1"))["own"] == {"policy": None, "ruleset": "confluent@1"}
    assert (await put(client, "a", policy=DENY))["own"] == {"policy": DENY, "ruleset": None}


async def test_rulesets(registry: Registry, client: httpx.AsyncClient) -> None:
    """A level can prefer a ruleset, and pin its version; the response has the ruleset that applies to every format."""
    rulesets = (await put(client, "a", ruleset="confluent"))["rulesets"]
    assert rulesets["avro"].startswith("confluent@")
    assert rulesets["thrift"].startswith("thrift-")
    await registry.execute(AdoptRulesets((("avro", "confluent", 7),)))
    assert (await show(client, "a"))["rulesets"]["avro"] == "confluent@7"
    assert (await put(client, "a", ruleset="confluent@1"))["rulesets"]["avro"] == "confluent@1"


async def test_conditional_changes(client: httpx.AsyncClient) -> None:
    """A change that expects another policy than the one in force is refused, and nothing is changed."""
    await put(client, "a", policy=MIXED, expected=BACKWARD)
    error = await put(client, "a", 412, policy=DENY, expected=BACKWARD)
    assert error["error"]["kind"] == "precondition_failed"
    assert (await show(client, "a"))["policy"] == MIXED
    await put(client, "a", policy=DENY, expected=MIXED)
    await put(client, "b", 412, expected=DENY)
    await put(client, "", policy=ANY, expected=BACKWARD)


@pytest.mark.parametrize(
    ("name", "body", "kind"),
    [
        ("a", {"policy": {"backward": "some"}}, "unknown_policy"),
        ("a", {"policy": {"kind": "deny_all", "backward": "all"}}, "unknown_policy"),
        ("a", {"policy": {"checkers": ["nobody"]}}, "unknown_ruleset"),
        ("a", {"policy": {"checkers": ["lint:NOBODY"]}}, "unknown_ruleset"),
        ("a", {"policy": {"kind": "some"}}, "invalid_request"),
        ("a", {"policy": {"checkers": [str(n) for n in range(33)]}}, "invalid_request"),
        ("a", {"policy": "FULL"}, "invalid_request"),
        ("a", {"ruleset": "nobody"}, "unknown_ruleset"),
        ("a", {"ruleset": "confluent@99"}, "unknown_ruleset"),
        ("a", {"ruleset": ""}, "invalid_request"),
        ("a", {"expected": {"backward": "x"}}, "unknown_policy"),
        (":.team", {}, "invalid_name"),
        ("a%00", {}, "invalid_name"),
        ("%FF", {"policy": DENY}, "invalid_name"),
    ],
)
async def test_refused(name: str, body: Any, kind: str, client: httpx.AsyncClient) -> None:
    """Invalid names and changes, and missing validators and rulesets, are refused and change nothing."""
    error = await put(client, name, 422, **body)
    assert error["error"]["kind"] == kind
    assert (await show(client, "a"))["own"] == NONE


async def test_read_only(registry: Registry, client: httpx.AsyncClient) -> None:
    """A read-only level keeps its policy."""
    await registry.execute(SetMode(REGISTRY_LEVEL, Mode.READONLY))
    assert (await put(client, "a", 403, policy=DENY))["error"]["kind"] == "read_only"
    assert (await show(client, "a"))["name"] == "BACKWARD"


async def test_it_holds_in_the_confluent_dialect(client: httpx.AsyncClient) -> None:
    """A policy with different directions is enforced in the Confluent dialect, and shown there in full."""
    await put(client, "a", policy={"backward": "latest", "forward": "all"})
    first, wide = {"schema": '"int"'}, {"schema": '["int", "string"]'}
    assert (await client.post("/subjects/a/versions", json=first)).status_code == 200
    assert (await client.post("/subjects/a/versions", json=wide)).status_code == 409
    config = (await client.get("/config/a")).json()
    assert config["compatibilityLevel"] == "FULL_TRANSITIVE"
    assert config["steleCompatibility"] == (await show(client, "a"))["policy"]
