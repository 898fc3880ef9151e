"""One registry, several dialects: changes through RocketMQ and OpenSchema apply in the others, and vice versa."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of

from stele.core.commands import ChangeSettings
from stele.core.model import SettingsLevel
from stele.core.policy import ALL_VERSIONS, DENY_ALL, LATEST_VERSION, Policy, RangeKind, VersionRange
from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = "/schema-registry/v1"
A1 = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int"}]}'
A2 = A1.replace("]}", ',{"name":"b","type":"string","default":""}]}')
A3 = A1.replace("]}", ',{"name":"b","type":"string"}]}')
SPACED = A1.replace(",", ",  ")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node() -> AsyncIterator[Registry]:
    """One node, which gets a new log for every test, because building the applications takes longer than a test."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def whole(node: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole server."""
    async with client_of(build_dispatcher(node, ServerSettings(), Metrics())) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module", params=["memory", "sqlite"])
async def registry(request: pytest.FixtureRequest, node: Registry, tmp_path: Path) -> AsyncIterator[Registry]:
    """The node, empty, over every kind of store."""
    log = await open_log("memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'stele.db'}")
    await node.reset(log)
    yield node
    await node.reset(await open_log("memory:"))
    await log.close()


@pytest.fixture
def client(registry: Registry, whole: httpx.AsyncClient) -> httpx.AsyncClient:
    """A client of the whole server over the empty node."""
    return whole


async def get(client: httpx.AsyncClient, path: str, status: int = 200) -> Any:
    """Send a GET and return the decoded response."""
    answer = await client.get(path)
    assert answer.status_code == status, answer.text
    return answer.json()


async def send(client: httpx.AsyncClient, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    """Send a request with a body and return the decoded response."""
    answer = await client.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


async def test_what_rocketmq_registers_is_read_by_all(client: httpx.AsyncClient) -> None:
    """A record has the right numbers and the same bytes in every dialect, including white space."""
    await send(client, "POST", f"{ROOT}/subject/topic/schema/orders", {"schemaIdl": SPACED})
    await send(client, "PUT", f"{ROOT}/subject/topic/schema/orders", {"schemaIdl": A2})
    assert await get(client, "/subjects") == ["orders"]
    confluent = await get(client, "/subjects/orders/versions/1")
    assert (confluent["version"], confluent["id"], confluent["schema"]) == (1, 1, SPACED)
    schemas = (await get(client, "/v1/groups/orders/schemas/versions"))["schemas"]
    assert [(row["versionInfo"]["id"], base64.b64decode(row["schemaInfo"]["schemaData"])) for row in schemas] == [
        (0, SPACED.encode()),
        (1, A2.encode()),
    ]
    answer = await client.get("/schema-repo/orders/id/1")
    assert answer.content == A2.encode()
    latest = await get(client, "/openschema/subjects/orders/versions/latest/schema")
    assert (latest["schema"]["id"], latest["schema"]["version"], latest["schema"]["schemaDefinition"]) == ("2", 2, A2)
    assert await get(client, "/openschema/schemas/1/subject") == {"subject": "orders", "version": 1}


async def test_what_others_register_is_read_by_rocketmq(client: httpx.AsyncClient) -> None:
    """A subject of another dialect is found under its own name, in every cluster, bound to its newest version."""
    for text in (A1, A2):
        await send(client, "POST", "/subjects/orders/versions", {"schema": text})
    for cluster in ("default", "c1"):
        place = f"{ROOT}/cluster/{cluster}/tenant/default"
        assert await get(client, f"{place}/subjects") == ["orders"]
        bound = await get(client, f"{place}/subject/orders/schema")
        assert (bound["version"], bound["idl"], bound["type"]) == (2, A2, "AVRO")
        assert bound["recordId"] & 0x3FFF == 2
        assert await get(client, f"{ROOT}/cluster/{cluster}/tenants") == ["default"]
    first = await get(client, f"{ROOT}/subject/orders/recordId/{bound['recordId'] - 1}/schema")
    assert (first["version"], first["idl"]) == (1, A1)
    await send(client, "POST", f"{ROOT}/subject/orders/schema/orders", {"schemaIdl": A1}, 409)
    written = await send(client, "PUT", f"{ROOT}/subject/topic/schema/orders", {"schemaIdl": '"int"'}, 409)
    assert written["status"] == 40901
    await send(client, "PUT", "/config/orders", {"compatibility": "NONE"})
    await send(client, "PUT", f"{ROOT}/subject/topic/schema/orders", {"schemaIdl": '"int"'})
    assert (await get(client, "/subjects/orders/versions/latest"))["schema"] == '"int"'
    assert await get(client, f"{ROOT}/cluster/default/tenant/default/subjects") == ["orders", "topic"]
    await client.delete("/subjects/orders/versions/3")
    assert (await get(client, f"{ROOT}/subject/topic/schema"))["version"] == 2, "bound to the newest that is left"
    deleted_schema = await get(client, f"{ROOT}/subject/topic/recordId/{bound['recordId'] + 1}/schema")
    assert deleted_schema["idl"] == '"int"', "data written with it stay readable"


async def test_languages_rocketmq_has_no_word_for(client: httpx.AsyncClient) -> None:
    """A schema of another type is TEXT in RocketMQ; a custom format of Pravega has its own name in OpenSchema."""
    properties = {
        "serializationFormat": {"serializationFormat": "Custom", "fullTypeName": "mine"},
        "compatibility": {"policy": "AllowAny"},
        "allowMultipleTypes": True,
    }
    await send(client, "POST", "/v1/groups", {"groupName": "g", "groupProperties": properties}, 201)
    data = base64.b64encode(b"\x00\xffbinary").decode()
    schema = {"type": "t", "serializationFormat": properties["serializationFormat"], "schemaData": data}
    await send(client, "POST", "/v1/groups/g/schemas", schema, 201)
    version = await get(client, f"{ROOT}/subject/g/schema")
    assert (version["type"], version["idl"]) == ("TEXT", "\x00\ufffdbinary")
    version = await get(client, "/openschema/subjects/g/versions/1/schema")
    assert (version["format"], version["schema"]["name"], version["compatibility"]) == ("mine", "t", "NONE")


async def test_places(client: httpx.AsyncClient) -> None:
    """Tenants, namespaces and contexts are the same; a namespace called `default` is not the default one."""
    await send(client, "POST", f"{ROOT}/cluster/c/tenant/shop/subject/t/schema/s", {"schemaIdl": A1})
    await send(client, "POST", f"{ROOT}/cluster/c/tenant/default~/subject/t/schema/s", {"schemaIdl": A1})
    assert await get(client, "/contexts") == [".", ".default", ".shop"]
    assert await get(client, "/subjects?subjectPrefix=:.shop:") == [":.shop:s"]
    assert (await get(client, "/v1/groups?namespace=shop"))["groups"].keys() == {"s"}
    assert (await get(client, "/openschema/subjects/s?tenant=shop"))["tenant"] == "shop"
    assert (await get(client, "/openschema/subjects/s?tenant=default~"))["tenant"] == "default~"
    await get(client, "/openschema/subjects/s?tenant=default", 404)
    assert await get(client, f"{ROOT}/cluster/c/tenants") == ["default~", "shop"]
    body = {"subject": "o", "tenant": "shop", "namespace": "eu", "status": "released"}
    await send(client, "POST", "/openschema/subjects/o", body)
    await send(client, "POST", "/openschema/subjects/o/versions", {"schemaDefinition": A1})
    assert await get(client, "/subjects?subjectPrefix=:.shop%7Ceu:") == [":.shop|eu:o"]
    assert (await get(client, f"{ROOT}/cluster/any/tenant/shop%7Ceu/subject/o/schema"))["version"] == 1


async def test_policies_hold_everywhere(client: httpx.AsyncClient) -> None:
    """A policy set in one dialect is enforced on writes through the others, and shown in their terms."""
    await send(client, "POST", f"{ROOT}/subject/t/schema/s", {"schemaIdl": A1, "compatibility": "FULL_TRANSITIVE"})
    assert (await get(client, "/config/s?defaultToGlobal=true"))["compatibilityLevel"] == "FULL_TRANSITIVE"
    assert (await get(client, "/config/s"))["compatibilityLevel"] == "FULL_TRANSITIVE"
    await send(client, "POST", "/subjects/s/versions", {"schema": A3}, 409)
    await send(client, "POST", "/openschema/subjects/s/versions", {"schemaDefinition": A3}, 409)
    await send(client, "PUT", "/config/s", {"compatibility": "NONE"})
    assert await get(client, "/openschema/config/s") == {"compatibility": "NONE"}
    schema = await get(client, f"{ROOT}/tenant/default/schema/s")
    assert schema["meta"]["compatibility"] == "NONE"
    await send(client, "PUT", f"{ROOT}/subject/t/schema/s", {"schemaIdl": A3})
    await send(client, "PUT", "/openschema/config/s", {"compatibility": "FORWARD"})
    group = await get(client, "/v1/groups/s")
    assert group["compatibility"] == {"policy": "Forward"}


@pytest.mark.parametrize(
    ("policy", "level", "exact"),
    [
        (DENY_ALL, "FULL_TRANSITIVE", {"kind": "deny_all", "backward": "none", "forward": "none", "checkers": []}),
        (
            Policy(backward=VersionRange(RangeKind.SINCE, 2)),
            "BACKWARD_TRANSITIVE",
            {"kind": "directional", "backward": "since:2", "forward": "none", "checkers": []},
        ),
        (
            Policy(backward=LATEST_VERSION, forward=ALL_VERSIONS),
            "FULL_TRANSITIVE",
            {"kind": "directional", "backward": "latest", "forward": "all", "checkers": []},
        ),
        (
            Policy(backward=LATEST_VERSION, validators=("lint",)),
            "BACKWARD",
            {"kind": "directional", "backward": "latest", "forward": "none", "checkers": ["lint"]},
        ),
    ],
)
async def test_policies_without_a_name(
    policy: Policy, level: str, exact: Any, registry: Registry, client: httpx.AsyncClient
) -> None:
    """A policy without a level is shown as the nearest stricter one, with the policy in full; a level replaces it."""
    await send(client, "POST", f"{ROOT}/subject/t/schema/s", {"schemaIdl": A1})
    await registry.execute(ChangeSettings(SettingsLevel("", "s"), {"policy": policy}))
    config = {"compatibility": level, "steleCompatibility": exact}
    assert await get(client, "/openschema/config/s") == config
    assert config.items() <= (await get(client, "/openschema/subjects/s")).items()
    assert config.items() <= (await get(client, f"{ROOT}/tenant/default/schema/s"))["meta"].items()
    assert set(await get(client, f"{ROOT}/subject/t/schema")) == {
        "subjectFullName",
        "schemaFullName",
        "version",
        "recordId",
        "idl",
        "dependency",
        "type",
    }, "clients of the original refuse members they do not know"
    groups = (await get(client, "/v1/groups"))["groups"]
    assert set(groups["s"]["compatibility"]) <= {"policy", "advanced"}, "Pravega's client refuses others, too"


async def test_pravega_replaces_a_policy_with_validators(registry: Registry, client: httpx.AsyncClient) -> None:
    """A Pravega client that expects the policy it saw replaces it, including validators that it cannot see."""
    await send(client, "POST", "/subjects/s/versions", {"schema": A1})
    policy = Policy(backward=LATEST_VERSION, validators=("lint",))
    await registry.execute(ChangeSettings(SettingsLevel("", "s"), {"policy": policy}))
    compatibility = (await get(client, "/v1/groups/s"))["compatibility"]
    body = {"compatibility": {"policy": "Full"}, "previousCompatibility": {"policy": "Forward"}}
    path = "/v1/groups/s/compatibility"
    assert (await client.put(path, json=body)).status_code == 409
    assert (await client.put(path, json=body | {"previousCompatibility": compatibility})).status_code == 200
    assert (await get(client, "/api/policies/s"))["policy"]["checkers"] == []
    assert await send(client, "PUT", "/openschema/config/s", {"compatibility": "BACKWARD"}) == {
        "compatibility": "BACKWARD"
    }
    assert await get(client, "/openschema/config/s") == {"compatibility": "BACKWARD"}


async def test_references_of_others_are_followed(client: httpx.AsyncClient) -> None:
    """A schema with references, registered through another dialect, can be updated, found and checked here."""
    await send(client, "POST", "/subjects/part/versions", {"schema": A1})
    outer = '{"type":"record","name":"O","fields":[{"name":"r","type":"n.R"}]}'
    references = [{"name": "n.R", "subject": "part", "version": 1}]
    await send(client, "POST", "/subjects/whole/versions", {"schema": outer, "references": references})
    registration = await send(client, "POST", f"{ROOT}/subject/whole/schema/schema", json.loads(outer))
    assert registration["version"] == 1
    longer = outer.replace("]}", ',{"name":"x","type":"int","default":0}]}')
    tried = await send(
        client, "POST", "/openschema/compatibility/subjects/whole/versions/latest", {"schema": json.loads(longer)}
    )
    assert tried == {"isCompatible": True}
    await send(client, "PUT", f"{ROOT}/subject/whole/schema/whole", {"schemaIdl": longer})
    version = await get(client, "/subjects/whole/versions/2")
    assert (version["schema"], version["references"]) == (longer, references)
    longest = longer.replace("]}", ',{"name":"y","type":"int","default":0}]}')
    await send(client, "POST", "/openschema/subjects/whole/versions", {"schemaDefinition": longest})
    assert (await get(client, "/subjects/whole/versions/3"))["references"] == references


async def test_closing_a_schema_is_a_deletion_everywhere(client: httpx.AsyncClient) -> None:
    """A schema that RocketMQ or OpenSchema deletes is deleted in all dialects; the next one of its name starts at 1."""
    for path in (f"{ROOT}/subject/t/schema", "/openschema/subjects/s"):
        await send(client, "POST", f"{ROOT}/subject/t/schema/s", {"schemaIdl": A1})
        await send(client, "PUT", f"{ROOT}/subject/t/schema/s", {"schemaIdl": A2})
        await send(client, "DELETE", path)
        assert await get(client, "/subjects?deleted=true") == []
        assert (await get(client, "/openschema/subjects"))["name"] == []
        assert (await get(client, "/v1/groups"))["groups"] == {}
        assert await get(client, f"{ROOT}/cluster/default/tenants") == []
