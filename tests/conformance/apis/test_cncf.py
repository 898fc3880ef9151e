"""The CNCF dialect answers as its transcripts require. Their rules have the numbers of its required behaviours."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.conformance.apis.cncf_copying import pull_everything, uris
from tests.conformance.apis.in_process import client_of
from tests.conformance.apis.transcripts import Rule, play, read_rules, says
from tests.support.authentication import HeaderAuthenticator

from stele.apis.cncf import CncfOptions, application
from stele.core.access import AccessRule, AccessRules, NamePattern, ResourceType
from stele.errors import Unauthenticated
from stele.server.asgi import App
from stele.server.dispatch import Dispatcher, MountedDialect
from stele.server.metrics import Metrics
from stele.service.access import AccessControl, Authenticator, Headers, Principal
from stele.service.registry import Registry
from stele.storage import open_log

RULES = read_rules(*sorted((Path(__file__).parent / "cncf").glob("*.txt")))
IN_PYTHON = {7, 8, 20}
ELSEWHERE = {15, 16, 17, 28}
"""Numbers of behaviours that are tested elsewhere.

Replication: test_cncf_replication.py; events: tests/system/test_cncf_statements.py, which has all from 10 to 20 with
live registries; the real client: tests/interop/test_azure_client.py. xRegistry's behaviours begin with 21.
"""

AVRO = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'


def build_app(
    registry: Registry, authenticator: Authenticator | None = None, options: CncfOptions | None = None
) -> App:
    """Return the dialect behind the server's dispatcher."""
    return Dispatcher(
        {}, MountedDialect("cncf", application(registry, options)), Metrics(), authenticator=authenticator
    )


def is_refusal(expected: str, answer: httpx.Response) -> bool:
    """Return whether a response is an error with that detail, or in the Azure flavour with that code and message."""
    body = answer.json()
    if str(answer.request.url.path).lower().startswith("/$schemagroups"):
        code, _, sentence = expected.partition(" ")
        return list(body) == ["error"] and body["error"]["code"] == code and says(sentence, body["error"]["message"])
    problem = answer.headers["content-type"] == "application/problem+json" and body["status"] == answer.status_code
    return problem and says(expected, body["detail"])


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("rule", RULES, ids=[rule.sentence for rule in RULES])
async def test_rule(rule: Rule, store: str, client: httpx.AsyncClient) -> None:
    """Every request of a transcript gets the response in it."""
    await play(client, rule, media_type="application/json", refused=is_refusal)


def test_every_must_have_behaviour_is_a_test() -> None:
    """Each numbered behaviour of this dialect has a rule, or a test if it needs more than requests and responses."""
    numbers = {int(match[1]) for rule in RULES if (match := re.match(r"(\d+)", rule.sentence))}
    assert numbers | IN_PYTHON | ELSEWHERE == {*range(1, 21), 28}


# --- what a transcript cannot say -----------------------------------------------------------------------------------


async def group(client: httpx.AsyncClient, name: str = "g", **attributes: Any) -> None:
    """Create a group."""
    answer = await client.put(f"/schemagroups/{name}", json=attributes)
    assert answer.status_code == 201, answer.text


async def post_schema(
    client: httpx.AsyncClient, schema: str, body: bytes | str, content_type: str, **attributes: str
) -> httpx.Response:
    """Register a document in the group g."""
    headers = {"content-type": content_type}
    answer = await client.post(f"/schemagroups/g/schemas/{schema}", content=body, headers=headers, params=attributes)
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.asyncio(loop_scope="module")
async def test_05_one_document_is_one_version_however_many_bring_it(store: str, client: httpx.AsyncClient) -> None:
    """5: concurrent posts of one document get one version and one Schema-Id, that of the response."""
    await group(client, format="avro")
    answers = await asyncio.gather(*(post_schema(client, "s", AVRO, "application/json") for _ in range(8)))
    assert {answer.headers["schema-version"] for answer in answers} == {"1"}
    assert len({answer.headers["schema-id"] for answer in answers}) == 1
    assert all(answer.json() == {"id": answer.headers["schema-id"]} for answer in answers)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "content_type",
    [
        "application/octet-stream",
        'Application/X-Thing ; version="1,2" ;q=ü',
        "text/html",
        "text/plain",
        "text/plain;charset=iso-8859-1",
        "image/png",
    ],
)
async def test_07_documents_come_back_byte_for_byte(store: str, client: httpx.AsyncClient, content_type: str) -> None:
    """7: any bytes with any content type are returned as they were posted, from every path."""
    await group(client)
    body = bytes(range(256)) + b"\r\n\xff\xfe \n"
    header = (b"content-type", content_type.encode("latin-1"))
    registration = await client.post("/schemagroups/g/schemas/s?format=thing", content=body, headers=[header])
    assert registration.status_code == 200, registration.text
    uri = quote(registration.headers["schema-version-uri"], safe="")
    for path in ("/schemagroups/g/schemas/s", "/schemagroups/g/schemas/s/versions/1", f"/schema?uri={uri}"):
        answer = await client.get(path)
        assert answer.content == body
        assert header in [(name.lower(), value) for name, value in answer.headers.raw]
        assert answer.headers["schema-format"] == "thing"
        assert "sandbox" in answer.headers["content-security-policy"], "a page somebody posted does not run"


@pytest.mark.asyncio(loop_scope="module")
async def test_07_known_formats_keep_their_text_and_type(store: str, client: httpx.AsyncClient) -> None:
    """7: a schema that is parsed keeps its blanks and the parameters of its type, but not its byte order mark."""
    await group(client, format="avro")
    text = ' {"type" :\t"record", "name":"R","doc":"ü","fields":[ ]}\r\n'.encode()
    await post_schema(client, "s", text, "application/json; charset=utf-8; format=avro")
    answer = await client.get("/schemagroups/g/schemas/s")
    assert answer.content == text
    assert answer.headers["content-type"] == "application/json; charset=utf-8; format=avro"


@pytest.mark.asyncio(loop_scope="module")
async def test_08_head_is_get_without_the_body(store: str, client: httpx.AsyncClient) -> None:
    """8: HEAD has the headers of GET, the length included, and no body."""
    await group(client, format="avro")
    registration = await post_schema(client, "s", AVRO, "application/json", description="d", id="x")
    uri = quote(registration.headers["schema-version-uri"], safe="")
    for path in ("/schemagroups/g/schemas/s", "/schemagroups/g/schemas/s/versions/1", f"/schema?uri={uri}"):
        got, head = await client.get(path), await client.head(path)
        headers = [{k: v for k, v in answer.headers.items() if k != "x-request-id"} for answer in (got, head)]
        assert headers[0] == headers[1]
        assert headers[0]["content-length"] == str(len(AVRO))
        assert head.status_code == 200
        assert not head.content
    assert (await client.head("/schemagroups/g/schemas/none")).status_code == 404


@pytest.mark.asyncio(loop_scope="module")
async def test_09_pages_cover_every_item(store: str, client: httpx.AsyncClient) -> None:
    """9: following the links from page to page returns every schema once; the last page has no next link."""
    await group(client, format="avro")
    names = sorted([f"schema {number}" for number in range(5)] + ["ö&=?"])
    for name in names:
        await post_schema(client, quote(name, safe=""), AVRO, "application/json")
    listed_names: list[str] = []
    url = "/schemagroups/g/schemas?limit=4"
    while url:
        answer = await client.get(url)
        listed_names += answer.json()
        assert answer.links["first"]["url"] == "http://registry/schemagroups/g/schemas?limit=4"
        url = answer.links.get("next", {}).get("url", "")
    assert listed_names == names
    assert "link" not in (await client.get("/schemagroups/g/schemas")).headers


@pytest.mark.asyncio(loop_scope="module")
async def test_14_a_copy_has_the_uris_of_its_source(store: str, client: httpx.AsyncClient) -> None:
    """14: a copy of a registry has its versions under the same URIs; a second copy changes nothing."""
    await group(client, format="avro")
    await group(client, "mixed", description="of everything")
    await post_schema(client, "s", AVRO, "application/json")
    await post_schema(client, "s", AVRO.replace("int", "long"), "application/json")
    await post_schema(client, "ruled", AVRO, "application/json;format=avro", authority="urn:a:b", id="x")
    await client.post("/schemagroups/mixed/schemas/%C3%B6?format=own", content=b"\x00\xff", headers={})
    target = await Registry.open(await open_log("memory:"))
    async with client_of(build_app(target)) as copy:
        copy.base_url = httpx.URL("http://copy")
        await pull_everything(client, copy, "copied.")
        first = await uris(copy)
        assert first == await uris(client)
        assert "urn:a:b:x" in first
        assert "http://registry/schemagroups/mixed/schemas/%C3%B6/versions/1" in first
        seq = target.state.seq
        await pull_everything(client, copy, "copied.")
        assert target.state.seq == seq, "nothing was written"
    await target.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_19_one_subscription_from_begin_to_end(store: str, client: httpx.AsyncClient) -> None:
    """19: a subscription is found at its Location, replaced without losing its secret, and deleted."""
    body = {
        "sink": "https://a/b",
        "protocol": "HTTP",
        "sinkCredential": {"credentialType": "PLAIN", "identifier": "i", "secret": "geheim"},
    }
    creation = await client.post("/subscriptions", json=body)
    place = creation.headers["location"]
    assert place == f"http://registry/subscriptions/{creation.json()['id']}"
    assert (await client.get(place)).json() == creation.json()
    assert (await client.get("/subscriptions")).json() == [creation.json()]
    changed = await client.put(place, json={**creation.json(), "sink": "https://c/d"})
    assert changed.status_code == 200, changed.text
    assert (await client.get(place)).json() == {**creation.json(), "sink": "https://c/d"}
    assert "geheim" not in changed.text + creation.text
    ended = await client.delete(place)
    assert (ended.status_code, ended.json()) == (200, changed.json())
    assert (await client.get(place)).status_code == 404


def _authenticate(headers: Headers) -> Principal:
    name = dict(headers).get(b"authorization", b"").decode()
    if not name:
        raise Unauthenticated("who are you?")
    return Principal(name)


RULES_OF_20 = (
    AccessRule("user:admin", ("admin",)),
    AccessRule("user:ann", ("list",)),
    AccessRule(
        "user:ann", ("owner",), resource_type=ResourceType.NAMESPACE, namespace="ann", pattern=NamePattern.PREFIX
    ),
    AccessRule("user:ann", ("reader",), resource_type=ResourceType.NAMESPACE, namespace="shared"),
)


@pytest.mark.asyncio(loop_scope="module")
async def test_20_ids_of_groups_are_seen_by_all(
    store: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20: a caller without the right to read a group sees only its id; a caller without credentials sees nothing."""
    monkeypatch.setattr(registry, "access", AccessControl(AccessRules(RULES_OF_20, default_allow=False)))
    app = build_app(registry, HeaderAuthenticator(_authenticate))
    admin, ann = {"authorization": "admin"}, {"authorization": "ann"}
    async with client_of(app) as client:
        assert (await client.get("/schemagroups")).status_code == 401
        for name in ("ann.one", "bob", "shared"):
            creation = await client.put(
                f"/schemagroups/{name}", json={"format": "avro", "description": name}, headers=admin
            )
            assert creation.status_code == 201
            path = f"/schemagroups/{name}/schemas/s"
            creation = await client.post(path, content=AVRO, headers=admin)
            assert creation.status_code == 200
        bobs = {"uri": creation.headers["schema-version-uri"].replace("shared", "bob")}
        schema_id = (await client.get("/schemagroups/bob/schemas/s", headers=admin)).headers["schema-id"]
        assert (await client.get("/schemagroups", headers=ann)).json() == ["ann.one", "bob", "shared"]
        assert (await client.get("/$schemaGroups", headers=ann)).json() == {"Value": ["ann.one", "bob", "shared"]}
        assert (await client.get("/schemagroups/bob", headers=ann)).json() == {"id": "bob"}
        assert (await client.get("/schemagroups/shared", headers=ann)).json()["description"] == "shared"
        for method, path, status in (
            ("GET", "/schemagroups/none", 404),
            ("GET", "/schemagroups/bob/schemas", 403),
            ("GET", "/schemagroups/bob/schemas/s", 403),
            ("GET", "/schemagroups/bob/schemas/s/versions/1", 403),
            ("GET", f"/schema?uri={quote(bobs['uri'])}", 403),
            ("GET", f"/$schemaGroups/$schemas/{schema_id}", 403),
            ("GET", "/$schemaGroups/bob", 403),
            ("PUT", "/schemagroups/bob", 403),
            ("PUT", "/schemagroups/carl", 403),
            ("DELETE", "/schemagroups/shared/schemas/s", 403),
            ("DELETE", "/schemagroups/shared", 403),
            ("POST", "/schemagroups/shared/schemas/s", 403),
            ("GET", "/schemagroups/shared/schemas/s", 200),
            ("DELETE", "/schemagroups/ann.one", 204),
        ):
            answer = await client.request(method, path, headers=ann)
            assert answer.status_code == status, (method, path, answer.text)


@pytest.mark.asyncio(loop_scope="module")
async def test_data_of_a_deleted_schema_can_still_be_read(store: str, client: httpx.AsyncClient) -> None:
    """Azure's data have a schema's id in their content type, so the id is found after the schema was deleted."""
    await client.put("/$schemaGroups/g", json={"schemaType": "Avro"})
    headers = {"content-type": "application/json; serialization=Avro"}
    registration = await client.put("/$schemaGroups/g/schemas/s", content=AVRO, headers=headers)
    place = registration.headers["schema-id-location"]
    assert place == f"http://registry/$schemaGroups/$schemas/{registration.headers['schema-id']}"
    assert re.fullmatch("[0-9a-f]{32}", registration.headers["schema-id"])
    assert (await client.delete("/$schemaGroups/g")).status_code == 204
    answer = await client.get(place)
    assert (answer.status_code, answer.text) == (200, AVRO)
    assert answer.headers["schema-version"] == "1"


@pytest.mark.asyncio(loop_scope="module")
async def test_an_etag_guards_a_group(store: str, client: httpx.AsyncClient) -> None:
    """If-Match with the ETag of a group changes the group; the ETag is another one afterwards."""
    creation = await client.put("/$schemaGroups/g", json={"schemaType": "Avro"})
    tag = {"if-match": creation.headers["etag"]}
    body = {"schemaType": "Avro", "groupProperties": {"a": "b"}}
    assert (await client.put("/$schemaGroups/g", json=body, headers=tag)).status_code == 200
    assert (await client.put("/$schemaGroups/g", json=body, headers=tag)).status_code == 412


@pytest.mark.asyncio(loop_scope="module")
async def test_every_operation_is_documented(store: str, client: httpx.AsyncClient) -> None:
    """The OpenAPI document has every path of both flavours, with request bodies."""
    paths = (await client.get("/_docs/cncf/openapi.json")).json()["paths"]
    assert {"get", "put", "delete"} == set(paths["/schemagroups/{group}"])
    assert {"get", "post", "delete"} == set(paths["/schemagroups/{group}/schemas/{schema}"])
    assert paths["/schemagroups/{group}/schemas/{schema}"]["post"]["requestBody"]["content"].keys() == {"*/*"}
    names = {row["name"] for row in paths["/schemagroups/{group}/schemas/{schema}"]["post"]["parameters"]}
    assert {"description", "format", "authority", "id", "Schema-Description", "Schema-Version-Id"} <= names
    assert {"get", "put", "delete"} == set(paths["/subscriptions/{subscription}"])
    assert {"get"} == set(paths["/schema"])
    assert {"get", "put", "post", "delete"} == set(paths["/$schemaGroups/{group}/schemas/{schema}"])
