"""The RocketMQ and OpenSchema dialects answer invalid requests with their own errors, and store nothing."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.apis.in_process import App, client_of
from tests.support.examples import scale_examples
from tests.support.time_limit import limit_time

from stele.apis import openschema, rocketmq
from stele.core.ports import Log
from stele.errors import StoreError, StoreTimeout
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECONDS = 20.0
JSON = {"content-type": "application/json"}
INT = '"int"'


class DialectUnderTest(NamedTuple):
    """A dialect: its application, members of its errors, its registration request, and paths with a body."""

    build: Any
    members: tuple[str, str]
    register: tuple[str, str]
    bodies: tuple[tuple[str, str], ...]
    reads: tuple[str, ...]
    writes: tuple[tuple[str, str], ...]

    def schema(self, text: str, kind: str) -> bytes:
        """Return the body that registers a schema."""
        if self.members[0] == "status":
            return json.dumps({"schemaIdl": text, "schemaType": kind}).encode()
        return json.dumps({"schemaDefinition": text, "serialization": kind}).encode()


ROOT = rocketmq.ROOT
DIALECTS = {
    "rocketmq": DialectUnderTest(
        rocketmq.application,
        ("status", "message"),
        ("POST", f"{ROOT}/subject/h/schema/h"),
        (("POST", f"{ROOT}/subject/h/schema/h"), ("PUT", f"{ROOT}/subject/there/schema/there")),
        (
            f"{ROOT}/subject/{{}}/schema",
            f"{ROOT}/subject/{{}}/schema/versions",
            f"{ROOT}/subject/there/schema/versions/{{}}",
            f"{ROOT}/subject/there/recordId/{{}}/schema",
            f"{ROOT}/cluster/{{}}/tenant/{{}}/subject/{{}}/schema",
            f"{ROOT}/cluster/{{}}/tenant/{{}}/subjects",
            f"{ROOT}/cluster/{{}}/tenants",
            f"{ROOT}/tenant/{{}}/schema/{{}}",
            f"{ROOT}/tenant/default/record/{{}}",
            f"{ROOT}/{{}}",
        ),
        (
            ("POST", f"{ROOT}/subject/{{}}/schema/{{}}"),
            ("POST", f"{ROOT}/cluster/{{}}/tenant/{{}}/subject/{{}}/schema/{{}}"),
            ("PUT", f"{ROOT}/subject/{{}}/schema/{{}}"),
            ("POST", f"{ROOT}/subject/{{}}/schema/schema"),
            ("PUT", f"{ROOT}/subject/{{}}/binding/{{}}"),
            ("PUT", f"{ROOT}/subject/{{}}/binding/16385"),
            ("DELETE", f"{ROOT}/subject/{{}}/binding/{{}}"),
            ("DELETE", f"{ROOT}/subject/{{}}/schema/versions/{{}}"),
            ("DELETE", f"{ROOT}/subject/{{}}/schema"),
            ("DELETE", f"{ROOT}/tenant/{{}}/schema/{{}}"),
        ),
    ),
    "openschema": DialectUnderTest(
        openschema.application,
        ("errorCode", "errorMessage"),
        ("POST", "/subjects/h/versions"),
        (
            ("POST", "/subjects/h/versions"),
            ("POST", "/subjects/h/"),
            ("PUT", "/config/there"),
            ("POST", "/compatibility/subjects/there/versions/latest"),
        ),
        (
            "/subjects/{}",
            "/subjects/{}/versions",
            "/subjects/{}/versions/{}/schema",
            "/subjects/there/versions/{}/schema",
            "/subjects?tenant={}&namespace={}",
            "/schemas/{}",
            "/schemas/{}/subject",
            "/schemas/{}:1",
            "/schemas/1?tenant={}",
            "/config/{}",
            "/{}",
        ),
        (
            ("POST", "/subjects/{}"),
            ("POST", "/subjects/{}/versions"),
            ("POST", "/subjects/{}/versions?tenant={}&namespace={}"),
            ("POST", "/compatibility/subjects/{}/versions/{}"),
            ("PUT", "/config/{}"),
            ("DELETE", "/subjects/{}/versions/{}"),
            ("DELETE", "/subjects/{}"),
        ),
    ),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def registry(brief_logging: None) -> AsyncIterator[Registry]:
    """One node."""
    node = await Registry.open(await open_log("memory:"))
    yield node
    await node.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=list(DIALECTS))
async def dialect_client(
    request: pytest.FixtureRequest, registry: Registry
) -> AsyncIterator[tuple[DialectUnderTest, httpx.AsyncClient]]:
    """A dialect and a client of it; `there` is a subject, and a schema."""
    await registry.reset(await open_log("memory:"))
    dialect = DIALECTS[request.param]
    app: App = dialect.build(registry)
    async with client_of(app) as client:
        method, path = dialect.register
        there = path.replace("/h", "/there")
        answer = await client.request(method, there, content=dialect.schema(INT, "AVRO"), headers=JSON)
        assert answer.status_code == 200, answer.text
        yield dialect, client


def own_error(dialect: DialectUnderTest, answer: httpx.Response) -> None:
    """Assert that a response is a client error in the dialect's own shape, and not a long one."""
    assert 400 <= answer.status_code < 500, (answer.request.method, answer.request.url, answer.text[:500])
    error = answer.json()
    assert set(error) == set(dialect.members)
    number, message = (error[name] for name in dialect.members)
    assert number // 100 == answer.status_code or number == 40401
    assert isinstance(message, str)
    assert len(answer.content) < 10_000


SCHEMAS = {
    "ten megabytes": ('"' + "x" * 10_000_000 + '"', "AVRO"),
    "arrays 1000 deep": ('{"type":"array","items":' * 1000 + '"int"' + "}" * 1000, "AVRO"),
    "properties 1000 deep": ('{"properties":{"a":' * 1000 + "{}" + "}}" * 1000, "JSON"),
    "messages 1000 deep": ('syntax="proto3";' + "message M{" * 1000 + "}" * 1000, "PROTOBUF"),
    "NUL": ("\0", "AVRO"),
    "a number without end": ('{"type":"fixed","name":"F","size":' + "9" * 5000 + "}", "AVRO"),
    "a lone surrogate": ('"\\ud800"', "AVRO"),
    "a lone surrogate in the body": ("\ud800", "AVRO"),
    "brackets only": ("[" * 100_000, "JSON"),
    "quotes only": ('"' * 100_000, "AVRO"),
    "a struct without end": ("struct S {" * 10_000, "THRIFT"),
}


@pytest.mark.parametrize("name", SCHEMAS)
async def test_schemas(
    name: str, dialect_client: tuple[DialectUnderTest, httpx.AsyncClient], registry: Registry
) -> None:
    """Huge, deeply nested and invalid schemas are refused in bounded time, and nothing is stored."""
    dialect, client = dialect_client
    seq = registry.state.seq
    with limit_time(SECONDS, time.monotonic):
        method, path = dialect.register
        own_error(dialect, await client.request(method, path, content=dialect.schema(*SCHEMAS[name]), headers=JSON))
    assert registry.state.seq == seq


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"\0",
        b"\xff\xfe{",
        b'{"schemaIdl":"\xff","schemaDefinition":"\xff"}',
        b'{"anything":"\xff"}',
        b"[" * 100_000,
        b'{"x":' + b"[" * 5000,
        b'{"schemaDefinition":' + b"[" * 100_000,
        b'{"schema":' + b"[" * 400 + b"]" * 400 + b',"schemaDefinition":' + b"[" * 400 + b"]" * 400 + b"}",
        b'{"schemaIdl":17,"compatibility":17,"subject":17}',
        b'{}"',
        b"{}{}",
        b"x" * 20_000_000,
        b"true",
        b"null",
    ],
    ids=lambda body: repr(body[:24]),
)
async def test_bodies(
    body: bytes, dialect_client: tuple[DialectUnderTest, httpx.AsyncClient], registry: Registry
) -> None:
    """Bodies that an endpoint does not accept are refused by all endpoints."""
    dialect, client = dialect_client
    seq = registry.state.seq
    for method, path in dialect.bodies:
        own_error(dialect, await client.request(method, path, content=body, headers=JSON))
    assert registry.state.seq == seq


async def test_texts_beside_schemas_are_limited(
    dialect_client: tuple[DialectUnderTest, httpx.AsyncClient], registry: Registry
) -> None:
    """Descriptions of megabytes are refused as too large, like a schema of that size."""
    dialect, client = dialect_client
    seq = registry.state.seq
    long = "x" * 2_000_000
    body = {"schemaIdl": INT, "owner": long, "desc": long, "schemaDefinition": INT, "comment": long, "validator": long}
    subject = {"subject": "h", "tenant": "", "namespace": "", "status": "released", "app": long}
    for method, path in dialect.bodies:
        answer = await client.request(method, path, json={**body, **subject, "schema": 1, "compatibility": "x"})
        own_error(dialect, answer)
    assert registry.state.seq == seq


async def test_a_client_that_leaves_in_the_middle_of_a_body(registry: Registry) -> None:
    """A request that ends before its body is a client error and changes nothing."""
    seq = registry.state.seq
    for dialect in DIALECTS.values():
        for method, path in (*dialect.bodies, ("POST", f"{ROOT}/subject/there/schema/schema")):
            messages = iter([{"type": "http.request", "body": b'{"s', "more_body": True}, {"type": "http.disconnect"}])
            sent: list[Any] = []

            async def receive(messages: Any = messages) -> Any:
                return next(messages)

            async def send(message: Any, sent: list[Any] = sent) -> None:
                sent.append(message)

            scope: Any = {"type": "http", "http_version": "1.1", "method": method, "path": path}
            scope |= {"raw_path": path.encode(), "headers": [(b"content-type", b"application/json")]}
            scope |= {"query_string": b"", "root_path": "", "scheme": "http", "server": ("r", 80), "state": {}}
            await dialect.build(registry)(scope, receive, send)
            assert 400 <= sent[0]["status"] < 500, path
    assert registry.state.seq == seq


names = st.one_of(
    st.binary(min_size=1, max_size=12).map(lambda raw: "".join(f"%{byte:02X}" for byte in raw)),
    st.sampled_from(["%2F", "%00", "%EE%80%80", "default", "default~", "%7C", ":", "::1", "a%7Cb:1", "..", "%2E%2E"]),
    st.sampled_from(["0", "-1", "1", "16385", "9" * 25, "latest", "1e3", "%D9%A1", "schema", "versions", "there"]),
)


@settings(
    max_examples=scale_examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(name=names)
async def test_names(name: str, dialect_client: tuple[DialectUnderTest, httpx.AsyncClient]) -> None:
    """No name in a path or query causes a server error, and all lists can be read afterwards."""
    dialect, client = dialect_client
    for path in dialect.reads:
        answer = await client.get(path.replace("{}", name))
        assert answer.status_code < 500, (path, name, answer.text)
    body = json.loads(dialect.schema(INT, "AVRO")) | {"schema": INT, "compatibility": "NONE"}
    body |= {"subject": name, "tenant": name, "namespace": name, "status": name}
    for method, path in dialect.writes:
        answer = await client.request(method, path.replace("{}", name), json=body if method != "DELETE" else None)
        assert answer.status_code < 500, (method, path, name, answer.text)
        if answer.status_code >= 400:
            own_error(dialect, answer)
    for path in ("/subjects", f"{ROOT}/cluster/default/tenants"):
        assert (await client.get(path)).status_code in {200, 404}


async def test_a_store_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that cannot be written answers 50001; a timeout answers 50002 in OpenSchema."""
    for dialect in DIALECTS.values():
        log: Log = await open_log("memory:")
        node = await Registry.open(log)
        async with client_of(dialect.build(node)) as client:
            for error, number in ((StoreError("disk full"), 50001), (StoreTimeout("no answer"), 50002)):

                async def fail(*_: object, error: StoreError = error) -> bool:
                    raise error

                with monkeypatch.context() as patch:
                    patch.setattr(log, "append", fail)
                    method, path = dialect.register
                    answer = await client.request(method, path, content=dialect.schema(INT, "AVRO"), headers=JSON)
                assert answer.status_code == 500
                assert answer.json()[dialect.members[0]] == (50001 if dialect.members[0] == "status" else number)
        await node.close()
