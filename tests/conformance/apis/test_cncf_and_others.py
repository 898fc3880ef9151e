"""One registry, several dialects: changes through the CNCF dialect apply in the others, and vice versa."""

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

from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log

A1 = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int"}]}'
A2 = A1.replace("]}", ',{"name":"b","type":"string","default":""}]}')
A3 = A1.replace("]}", ',{"name":"b","type":"string"}]}')
PROTO = 'syntax = "proto3";\npackage p;\n\nmessage M {\n  int32 a = 1;\n}\n'


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole server over an empty registry."""
    store = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'stele.db'}"
    registry = await Registry.open(await open_log(store))
    async with client_of(build_dispatcher(registry, ServerSettings(), Metrics())) as client:
        yield client
    await registry.close()


async def send_request(
    client: httpx.AsyncClient, method: str, path: str, body: Any = None, status: int = 200, **headers: str
) -> httpx.Response:
    """Return the response to a request with a JSON body, or with plain text."""
    header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if isinstance(body, str) else None if body is None else json.dumps(body)
    if content is not None and not header_fields:
        header_fields = {"content-type": "application/json"}
    answer = await client.request(method, path, content=content, headers=header_fields)
    assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer


@pytest.mark.asyncio
async def test_schemas_of_other_dialects_are_documents(client: httpx.AsyncClient) -> None:
    """Schemas of other dialects are in the group of their namespace, byte for byte, with a suitable content type."""
    await send_request(client, "POST", "/subjects/s%2F1/versions", {"schema": A1})
    await send_request(client, "POST", "/subjects/p/versions", {"schema": PROTO, "schemaType": "PROTOBUF"})
    await send_request(client, "POST", "/contexts/.team/subjects/t/versions", {"schema": A1})
    group = {
        "groupName": "g",
        "groupProperties": {
            "serializationFormat": {"serializationFormat": "Custom", "fullTypeName": "mine"},
            "compatibility": {"policy": "AllowAny"},
            "allowMultipleTypes": True,
        },
    }
    await send_request(client, "POST", "/v1/namespace/plant/groups", group, 201)
    own = {"serializationFormat": "Custom", "fullTypeName": "mine"}
    data = base64.b64encode(b"\x00\xff").decode()
    info = {"type": "t", "serializationFormat": own, "schemaData": data}
    await send_request(client, "POST", "/v1/namespace/plant/groups/g/schemas", info, 201)
    assert (await send_request(client, "GET", "/schemagroups")).json() == ["default", "plant", "team"]
    assert (await send_request(client, "GET", "/schemagroups/default/schemas")).json() == ["p", "s/1"]
    for path, text, content_type, language in (
        ("default/schemas/s%2F1", A1.encode(), "application/json;format=avro", "avro"),
        ("default/schemas/p", PROTO.encode(), "text/plain;charset=utf-8;format=protobuf", "protobuf"),
        ("team/schemas/t", A1.encode(), "application/json;format=avro", "avro"),
        ("plant/schemas/g", b"\x00\xff", "application/octet-stream", "mine"),
    ):
        answer = await send_request(client, "GET", f"/schemagroups/{path}")
        assert (answer.content, answer.headers["content-type"]) == (text, content_type)
        assert answer.headers["schema-format"] == language
        uri = answer.headers["schema-version-uri"]
        assert (await client.get("/schema", params={"uri": uri})).content == text
    answer = await send_request(client, "GET", "/$schemaGroups/team/schemas/t")
    assert answer.headers["content-type"] == "application/json; serialization=Avro"


@pytest.mark.asyncio
async def test_documents_are_schemas_of_other_dialects(client: httpx.AsyncClient) -> None:
    """Clients of Confluent and Pravega can read posted documents, with their numbers and texts."""
    await send_request(client, "PUT", "/schemagroups/team", {"format": "avro"}, 201)
    for text in (A1, A2):
        await send_request(client, "POST", "/schemagroups/team/schemas/s", text, content_type="application/json")
    version = (await send_request(client, "GET", "/subjects/:.team:s/versions/2")).json()
    assert (json.loads(version["schema"]), version["version"]) == (json.loads(A2), 2)
    again = (await send_request(client, "POST", "/contexts/.team/subjects/s/versions", {"schema": A2})).json()
    assert again["id"] == version["id"]
    rows = (await send_request(client, "GET", "/v1/namespace/team/groups/s/schemas/versions")).json()["schemas"]
    assert [base64.b64decode(row["schemaInfo"]["schemaData"]).decode() for row in rows] == [A1, A2]
    await send_request(client, "PUT", "/schemagroups/default", {}, 201)
    await send_request(client, "POST", "/schemagroups/default/schemas/plain?format=avro", A1, content_type="text/plain")
    assert (await send_request(client, "GET", "/subjects")).json() == [":.team:s", "plain"]


@pytest.mark.asyncio
async def test_one_document_in_two_dialects_is_one_version(client: httpx.AsyncClient) -> None:
    """A posted document that another dialect registered before is the same version, and vice versa."""
    first = (await send_request(client, "POST", "/contexts/.team/subjects/s/versions", {"schema": A1})).json()
    headers = {"content_type": "application/json;format=avro"}
    assert (await send_request(client, "POST", "/schemagroups/team/schemas/s", A1, **headers)).headers[
        "schema-version"
    ] == "1"
    again = (await send_request(client, "POST", "/contexts/.team/subjects/s/versions", {"schema": A1})).json()
    assert again["id"] == first["id"]
    assert (await send_request(client, "GET", "/schemagroups/team/schemas/s/versions")).json() == [1]


@pytest.mark.asyncio
async def test_a_policy_holds_in_every_dialect(client: httpx.AsyncClient) -> None:
    """The policy of a group refuses schemas of other dialects, and a policy that they set refuses posted documents."""
    body = {"schemaType": "Avro", "schemaCompatibility": "Backward"}
    await send_request(client, "PUT", "/$schemaGroups/team", body, 201)
    await send_request(client, "PUT", "/$schemaGroups/team/schemas/s", A1, 204, content_type="application/json")
    await send_request(client, "POST", "/contexts/.team/subjects/s/versions", {"schema": A3}, 409)
    assert (await send_request(client, "GET", "/config/:.team:s?defaultToGlobal=true")).json()[
        "compatibilityLevel"
    ] == "BACKWARD"
    await send_request(client, "PUT", "/config/:.team:s", {"compatibility": "NONE"})
    await send_request(client, "POST", "/schemagroups/team/schemas/s", A3, content_type="application/json")
    await send_request(client, "PUT", "/config/:.team:", {"compatibility": "FULL_TRANSITIVE"})
    group = (await send_request(client, "GET", "/$schemaGroups/team")).json()
    assert group["SchemaCompatibility"] == "FullTransitive"
    await send_request(client, "PUT", "/$schemaGroups/team/schemas/t", A1, 204, content_type="application/json")
    refused = await send_request(
        client, "PUT", "/$schemaGroups/team/schemas/t", A3, 409, content_type="application/json"
    )
    assert refused.json()["error"]["code"] == "IncompatibleSchema"


@pytest.mark.asyncio
async def test_making_a_group_loosens_no_policy(client: httpx.AsyncClient) -> None:
    """A policy set for a context or the registry stays when its group is created; so does that of the default group."""
    await send_request(client, "PUT", "/config/:.team:", {"compatibility": "FULL"})
    assert (await send_request(client, "PUT", "/schemagroups/team", {}, 201)).json()["compatibility"] == "FULL"
    assert (await send_request(client, "PUT", "/schemagroups/free", {}, 201)).json()["compatibility"] == "NONE"
    await send_request(client, "POST", "/subjects/s/versions", {"schema": A1})
    await send_request(client, "PUT", "/schemagroups/default", {"description": "of old"})
    await send_request(client, "POST", "/subjects/s/versions", {"schema": A3}, 409)
    await send_request(client, "PUT", "/config/:.__GLOBAL:", {"compatibility": "FORWARD"})
    assert (await send_request(client, "PUT", "/schemagroups/late", {}, 201)).json()["compatibility"] == "FORWARD"
    await send_request(client, "PUT", "/schemagroups/late", {"compatibility": "NONE"})
    assert (await send_request(client, "GET", "/config/:.late:")).json()["compatibilityLevel"] == "NONE"


@pytest.mark.asyncio
async def test_what_is_deleted_is_gone_for_all(client: httpx.AsyncClient) -> None:
    """A deleted version is in no list of any dialect; its ids are still found; referenced versions are kept."""
    await send_request(client, "PUT", "/schemagroups/team", {}, 201)
    creation = await send_request(
        client, "POST", "/schemagroups/team/schemas/s", A1, content_type="application/json;format=avro"
    )
    version = (await send_request(client, "GET", "/subjects/:.team:s/versions/1")).json()
    reference = {"name": "n.R", "subject": ":.team:s", "version": 1}
    user = '{"type":"record","name":"U","fields":[{"name":"r","type":"n.R"}]}'
    await send_request(client, "POST", "/subjects/user/versions", {"schema": user, "references": [reference]})
    for path in ("/schemagroups/team/schemas/s", "/schemagroups/team/schemas", "/schemagroups/team"):
        await send_request(client, "DELETE", path, status=409)
    assert (await send_request(client, "GET", "/schemagroups/default/schemas/user")).text == user
    await send_request(client, "DELETE", "/subjects/user")
    await send_request(client, "DELETE", "/subjects/user?permanent=true")
    await send_request(client, "DELETE", "/schemagroups/team/schemas/s/versions/1", status=204)
    assert (await send_request(client, "GET", "/subjects?subjectPrefix=:*:")).json() == []
    assert json.loads(
        (await send_request(client, "GET", f"/schemas/ids/{version['id']}?subject=:.team:s")).json()["schema"]
    )
    assert (await send_request(client, "GET", f"/$schemaGroups/$schemas/{creation.headers['schema-id']}")).text == A1
    await send_request(client, "POST", "/contexts/.team/subjects/s/versions", {"schema": A2})
    await send_request(client, "DELETE", "/contexts/.team/subjects/s")
    assert (await send_request(client, "GET", "/schemagroups/team/schemas")).json() == []
    await send_request(client, "GET", "/schemagroups/team/schemas/s", status=404)


@pytest.mark.asyncio
async def test_below_its_prefix_links_have_it(client: httpx.AsyncClient) -> None:
    """All paths exist below /cncf, and URLs in responses begin with it; version URIs work with and without it."""
    answer = await send_request(client, "PUT", "/cncf/schemagroups/g", {"format": "avro"}, 201)
    assert answer.headers["location"] == "http://registry/cncf/schemagroups/g"
    creation = await send_request(client, "POST", "/cncf/schemagroups/g/schemas/s", A1, content_type="application/json")
    for name in ("location", "schema-id-location", "schema-version-uri"):
        assert creation.headers[name].startswith("http://registry/cncf/schema")
    for uri in (creation.headers["schema-version-uri"], creation.headers["schema-version-uri"].replace("/cncf", "")):
        for path in ("/cncf/schema", "/schema"):
            assert (await client.get(path, params={"uri": uri})).text == A1
    assert (await send_request(client, "GET", creation.headers["schema-id-location"])).text == A1
    assert (await send_request(client, "GET", "/cncf/$SchemagroupS")).json() == {"Value": ["g"]}
