"""The Confluent dialect answers invalid requests with its own errors, in bounded time, and changes nothing."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.apis.in_process import client_of
from tests.conformance.apis.test_confluent import RULES
from tests.support.examples import scale_examples
from tests.support.time_limit import limit_time

from stele.apis.confluent import ConfluentOptions, application
from stele.apis.confluent.errors import ERROR_CODES
from stele.apis.http.requests import REQUEST_SECONDS
from stele.core.ports import Log
from stele.errors import StoreError, StoreTimeout
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"content-type": "application/json"}
INT = b'{"schema":"\\"int\\""}'
SECONDS = 20.0

WITH_BODY = [
    ("POST", "/subjects/h/versions"),
    ("POST", "/subjects/h"),
    ("PUT", "/config/h"),
    ("PUT", "/mode/h"),
    ("POST", "/compatibility/subjects/h/versions/latest"),
    ("POST", "/compatibility/subjects/h/versions"),
]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def registry(brief_logging: None) -> AsyncIterator[Registry]:
    """One node."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(registry: Registry) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the dialect over that node."""
    async with client_of(application(registry)) as client:
        yield client


async def expect_refusal(client: httpx.AsyncClient, method: str, path: str, body: bytes | None) -> httpx.Response:
    """Return the response, which must be an error of the dialect within bounded time."""
    with limit_time(SECONDS, time.monotonic):
        answer = await client.request(method, path, content=body, headers=JSON)
    assert 400 <= answer.status_code < 500, (method, path, answer.text[:500])
    error = answer.json()
    assert error["error_code"] in ERROR_CODES
    assert isinstance(error["message"], str)
    assert len(answer.content) < 10_000
    return answer


SCHEMAS = {
    "ten megabytes": ('"' + "x" * 10_000_000 + '"', "AVRO"),
    "a megabyte of nothing": (" " * 1_100_000 + '"int"', "AVRO"),
    "arrays 1000 deep": ('{"type":"array","items":' * 1000 + '"int"' + "}" * 1000, "AVRO"),
    "properties 1000 deep": ('{"properties":{"a":' * 1000 + "{}" + "}}" * 1000, "JSON"),
    "messages 1000 deep": ('syntax="proto3";' + "message M{" * 1000 + "}" * 1000, "PROTOBUF"),
    "NUL": ("\0", "AVRO"),
    "NUL inside": ('syntax = "proto3"; message M { string a\0 = 1; }', "PROTOBUF"),
    "a number without end": ('{"type":"fixed","name":"F","size":' + "9" * 5000 + "}", "AVRO"),
    "a lone surrogate": ('"\\ud800"', "AVRO"),
    "a byte order mark": ('\ufeff"int"', "AVRO"),
    "infinity": ('{"type":"record","name":"R","fields":[{"name":"a","type":"float","default":1e999}]}', "AVRO"),
    "brackets only": ("[" * 100_000, "JSON"),
    "quotes only": ('"' * 100_000, "AVRO"),
}


@pytest.mark.parametrize("name", SCHEMAS)
async def test_schemas(name: str, client: httpx.AsyncClient, registry: Registry) -> None:
    """Huge, deeply nested and invalid schemas are refused by every endpoint that takes a schema."""
    seq = registry.state.seq
    text, schema_type = SCHEMAS[name]
    body = json.dumps({"schema": text, "schemaType": schema_type}).encode()
    for path in ("/subjects/h/versions", "/subjects/h", "/compatibility/subjects/h/versions"):
        answer = await expect_refusal(client, "POST", path, body)
        assert answer.json()["error_code"] in {42201, 42209}
    assert registry.state.seq == seq


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"\0",
        b"\xff\xfe{",
        b'{"schema":"\xff"}',
        b'{"anything":"\xff"}',
        b"[" * 100_000,
        b'{"x":' + b"[" * 5000,
        b'{"references":' + b"[" * 100_000,
        b'{"schema":"\\ud800","compatibility":"\\ud800","mode":"\\ud800"}',
        b'{"schema":"\\"int\\"","compatibility":"NONE","mode":"READONLY"',
        b"x" * 20_000_000,
        b"true",
        b"17",
    ],
    ids=lambda body: repr(body[:20]),
)
async def test_bodies(body: bytes, client: httpx.AsyncClient, registry: Registry) -> None:
    """Bodies that are no JSON object are refused by all endpoints."""
    seq = registry.state.seq
    for method, path in WITH_BODY:
        await expect_refusal(client, method, path, body)
    assert registry.state.seq == seq


@pytest.mark.parametrize("rest", [b'"', b"{}", b"]", b'{"compatibility":"NONE","mode":"READONLY"}'])
async def test_what_follows_the_first_value(rest: bytes, client: httpx.AsyncClient, registry: Registry) -> None:
    """Text after the first JSON object of a body is ignored."""
    for method, path in WITH_BODY:
        expected = await client.request(method, path, content=b"{}", headers=JSON)
        seq = registry.state.seq
        answer = await client.request(method, path, content=b"{}" + rest, headers=JSON)
        assert (answer.status_code, answer.text) == (expected.status_code, expected.text)
        assert registry.state.seq == seq


async def test_too_many_references(client: httpx.AsyncClient, registry: Registry) -> None:
    """A schema with more references than the limit is refused as too large, before they are resolved."""
    await client.post("/subjects/target/versions", content=INT, headers=JSON)
    references = [{"name": f"n{n}", "subject": "target", "version": 1} for n in range(3000)]
    body = json.dumps({"schema": '"int"', "references": references}).encode()
    answer = await expect_refusal(client, "POST", "/subjects/h/versions", body)
    assert answer.json()["error_code"] == 42209


LONG_RULE = {"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "doc": "x" * 2_000_000}
BULK = {f"k{n}": "v" * 100 for n in range(20_000)}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/subjects/h/versions", {"schema": '"int"', "metadata": {"properties": BULK}}),
        ("POST", "/subjects/h/versions", {"schema": '"int"', "metadata": {"tags": {k: [v] for k, v in BULK.items()}}}),
        ("POST", "/subjects/h/versions", {"schema": '"int"', "ruleSet": {"domainRules": [LONG_RULE]}}),
        ("POST", "/subjects/target/versions/1/tags", {"metadata": {"properties": BULK}}),
        ("PUT", "/config/h", {"defaultMetadata": {"properties": BULK}}),
        ("PUT", "/config", {"alias": "x" * 2_000_000}),
    ],
)
async def test_what_surrounds_a_schema_is_limited_too(
    method: str, path: str, body: object, client: httpx.AsyncClient, registry: Registry
) -> None:
    """Metadata, rules and settings of megabytes are refused as too large, like a schema of that size."""
    await client.post("/subjects/target/versions", content=INT, headers=JSON)
    seq = registry.state.seq
    answer = await expect_refusal(client, method, path, json.dumps(body).encode())
    assert answer.json()["error_code"] in {42209, 42210}
    assert registry.state.seq == seq


async def test_a_client_that_leaves_in_the_middle_of_a_body(registry: Registry) -> None:
    """A request that ends before its body is a client error and changes nothing."""
    seq, sent = registry.state.seq, []
    messages = iter([{"type": "http.request", "body": INT[:5], "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    path = "/subjects/h/versions"
    scope: Any = {"type": "http", "http_version": "1.1", "method": "POST", "path": path, "raw_path": path.encode()}
    scope |= {"headers": [(b"content-type", b"application/json")], "query_string": b"", "root_path": ""}
    await application(registry)(scope | {"scheme": "http", "server": ("registry", 80), "state": {}}, receive, send)
    assert sent[0]["status"] == 400
    assert registry.state.seq == seq


@pytest.mark.parametrize("hint", ["9" * 5000, "\u0661", "-" * 100, "1e9", " 1", "00"])
async def test_version_hints(hint: str, client: httpx.AsyncClient) -> None:
    """A version hint that is no number is accepted as any text."""
    schema = {"schema": '"long"', "metadata": {"properties": {"confluent:version": hint}}}
    for path in ("/subjects/hint/versions", "/subjects/hint/versions", "/subjects/hint"):
        answer = await client.post(path, content=json.dumps(schema).encode(), headers=JSON)
        assert answer.status_code in {200, 404}, answer.text[:500]


async def test_verbose_checks_repeat_what_is_no_schema(client: httpx.AsyncClient) -> None:
    """A verbose check of an invalid schema has the message that a registration would have."""
    body = json.dumps({"schema": "{"}).encode()
    refusal = await client.post("/subjects/h/versions", content=body, headers=JSON)
    check = await client.post("/compatibility/subjects/h/versions?verbose=true", content=body, headers=JSON)
    assert check.json() == {"is_compatible": False, "messages": [refusal.json()["message"]]}
    assert refusal.json()["message"].startswith("Invalid schema { with refs [] of type AVRO, details: ")


names = st.one_of(
    st.binary(min_size=1, max_size=12).map(lambda raw: "".join(f"%{byte:02X}" for byte in raw)),
    st.sampled_from(
        ["%2F", "%00", "%EE%80%80", "*", ":", ":.", ":.:", "::", ":.__GLOBAL:", ":*:", "%25", ";a=b", "%0d%0a"]
    ),
)
READS = [
    "/subjects/{}/versions",
    "/subjects/{}/versions/{}",
    "/subjects/a/versions/{}/referencedby",
    "/subjects/{}/metadata?key={}&value={}",
    "/subjects?subjectPrefix={}&offset={}",
    "/schemas?subjectPrefix={}&ruleType={}&limit=1",
    "/schemas/ids/{}",
    "/schemas/ids/1?subject={}&format={}",
    "/schemas/guids/{}",
    "/config/{}?defaultToGlobal={}",
    "/mode/{}",
    "/contexts/{}/subjects",
    "/contexts/{}/config/{}",
    "/contexts?contextPrefix={}",
    "/schemas?lifecycle={}&associationType={}&resourceType={}",
    "/dek-registry/v1/keks/{}?context={}",
    "/dek-registry/v1/keks?subjectPrefix={}&context={}",
    "/dek-registry/v1/keks/k/deks/{}/versions/{}?algorithm={}",
    "/associations/subjects/{}?lifecycle={}",
    "/associations/resources/{}/{}?associationType={}",
    "/exporters/{}/status",
    "/security/acls?principal={}",
    "/{}",
]
WRITES = [
    ("POST", "/subjects/{}/versions", INT),
    ("POST", "/subjects/{}", INT),
    ("POST", "/contexts/{}/subjects/{}/versions", INT),
    ("DELETE", "/subjects/{}", None),
    ("DELETE", "/subjects/{}/versions/{}", None),
    ("PUT", "/config/{}", b'{"compatibility":"NONE"}'),
    ("DELETE", "/config/{}", None),
    ("PUT", "/mode/{}", b'{"mode":"READWRITE"}'),
    ("DELETE", "/mode/{}", None),
    ("DELETE", "/contexts/{}", None),
    ("POST", "/dek-registry/v1/keks?context={}", b'{"name":"k","kmsType":"x","kmsKeyId":"1"}'),
    ("POST", "/dek-registry/v1/keks/k/deks/{}", b'{"encryptedKeyMaterial":"AA=="}'),
    ("DELETE", "/dek-registry/v1/keks/k/deks/{}", None),
    ("PUT", "/associations/resources/{}", b'{"resourceName":"t","resourceNamespace":"n","associations":[{}]}'),
    ("DELETE", "/associations/resources/{}", None),
    ("PUT", "/exporters/{}/config", b"{}"),
    ("DELETE", "/exporters/{}", None),
]


@settings(
    max_examples=scale_examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(name=names)
async def test_names(name: str, client: httpx.AsyncClient) -> None:
    """No name in a path or query causes a server error, and all registered subjects can be listed."""
    for path in READS:
        answer = await client.get(path.replace("{}", name))
        assert answer.status_code < 500, (path, name, answer.text)
    for method, path, body in WRITES:
        answer = await client.request(method, path.replace("{}", name), content=body, headers=JSON if body else {})
        assert answer.status_code < 500, (method, path, name, answer.text)
    assert (await client.get("/subjects?deleted=true")).status_code == 200


async def test_racing_registrations_agree() -> None:
    """Concurrent registrations of the same schemas get one id and one version each, with numbers without gaps."""
    node = await Registry.open(await open_log("memory:"))
    schemas = [
        f'{{"type":"record","name":"R","fields":[{{"name":"f{n}","type":"int","default":0}}]}}' for n in range(5)
    ]
    async with client_of(application(node)) as client:
        bodies = [json.dumps({"schema": text}).encode() for text in schemas * 20]
        answers = await asyncio.gather(*(client.post("/subjects/r/versions", content=b, headers=JSON) for b in bodies))
        assert {answer.status_code for answer in answers} == {200}
        registrations = {(answer.json()["schema"], answer.json()["id"], answer.json()["version"]) for answer in answers}
        assert len(registrations) == 5
        assert sorted(version for _, _, version in registrations) == [1, 2, 3, 4, 5]
        assert (await client.get("/subjects/r/versions")).json() == [1, 2, 3, 4, 5]
    await node.close()


async def test_store_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that cannot be read or written answers 50001, one that times out 50002."""
    log: Log = await open_log("memory:")
    node = await Registry.open(log)
    async with client_of(application(node)) as client:
        for error, code in ((StoreError("disk full"), 50001), (StoreTimeout("no answer"), 50002)):

            async def fail(*_: object, error: StoreError = error) -> bool:
                raise error

            with monkeypatch.context() as patch:
                patch.setattr(log, "append", fail)
                answer = await client.post("/subjects/s/versions", content=INT, headers=JSON)
            assert answer.status_code == 500
            assert answer.json()["error_code"] == code
            assert (await client.get("/subjects")).json() == []
    await node.close()


async def test_settings_of_the_dialect() -> None:
    """Profile, code of refusals, page sizes, and whether modes can change are options."""
    node = await Registry.open(await open_log("memory:"))
    options = ConfluentOptions(profile="7.9", incompatible_code=40901, mode_mutable=False, max_schemas=1, max_items=2)
    async with client_of(application(node, options)) as client:
        first = await client.post("/subjects/s/versions", content=INT, headers=JSON)
        assert first.json() == {"id": 1}
        assert (await client.get("/schemas/ids/1")).json() == {"schema": '"int"'}
        assert (await client.get("/subjects/s/versions/1")).json() == {
            "subject": "s",
            "version": 1,
            "id": 1,
            "schema": '"int"',
        }
        reused = await client.post("/subjects/s/versions", content=b"{}", headers=JSON)
        assert reused.json() == {"id": 1, "version": 1, "schema": '"int"'}
        refusal = await client.post("/subjects/s/versions", content=b'{"schema":"\\"null\\""}', headers=JSON)
        assert (refusal.status_code, refusal.json()["error_code"]) == (409, 40901)
        for method, body in (("PUT", b'{"mode":"READONLY"}'), ("DELETE", None)):
            answer = await client.request(method, "/mode", content=body, headers=JSON if body else {})
            assert answer.json() == {"error_code": 42205, "message": "Mode changes are not allowed"}
        for name in ("t", "u"):
            await client.post(f"/subjects/{name}/versions", content=INT, headers=JSON)
        assert (await client.get("/subjects?limit=100")).json() == ["s", "t"]
        assert len((await client.get("/schemas?limit=100")).json()) == 1
    await node.close()


async def test_description_of_the_api(client: httpx.AsyncClient) -> None:
    """Every method of a path in the OpenAPI document is served."""
    document = (await client.get("/_docs/confluent/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    for path, item in document["paths"].items():
        for method in item:
            answer = await client.request(
                method.upper(), path.replace("{", "").replace("}", ""), content=b"!", headers=JSON
            )
            assert answer.status_code != 405, (method, path)


async def test_a_request_that_takes_too_long(registry: Registry) -> None:
    """A request that exceeds the time limit is answered with status and code 503."""
    dialect = application(registry)

    async def answer_hurriedly(scope: Any, receive: Any, send: Any) -> None:
        await dialect({**scope, REQUEST_SECONDS: 0}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(answer_hurriedly), base_url="http://registry") as client:
        answer = await client.post("/subjects/s/versions", content=INT, headers=JSON)
    assert (answer.status_code, answer.json()["error_code"]) == (503, 503)
    assert "request_seconds" in answer.json()["message"]


async def test_transcripts_meet_every_error_code() -> None:
    """Each error code of the dialect is covered by a transcript, or by a test here, of access or of rates."""
    met = {
        int(exchange.expected.split(" ", 1)[0])
        for rule in RULES
        for exchange in rule.exchanges
        if exchange.status >= 400 and exchange.expected
    }
    elsewhere = {401, 403, 40301, 409, 429, 500, 501, 503, 50001, 50002, 42209, 40370, 40902, 40964, 40972, 42213}
    assert set(ERROR_CODES) <= met | elsewhere
