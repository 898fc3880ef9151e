"""The registry for tests: real responses without a port, injected failures, and a fixture with a port."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from pathlib import Path

import httpx
import pytest

from stele.client import AsyncSchemaRegistryClient, Retry, Schema, SchemaRegistryClient
from stele.errors import InvalidRequest, RegistryUnreachable, SteleError, SubjectNotFound, Unavailable
from stele.testing import registry
from stele.testing.registry_box import RegistryBox

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; }'


def test_a_client_gets_real_answers() -> None:
    """Registered schemas have ids, and compatibility rules apply."""
    with registry({"a": ORDER, "b": Schema(PROTO, "PROTOBUF")}) as box:
        assert [row.id for row in box.registered] == [1, 2]
        assert box.client.subjects() == ["a", "b"]
        assert json.loads(box.client.version("a").text) == ORDER
        with pytest.raises(SubjectNotFound):
            box.client.versions("c")
        assert box.requests[-1] == "GET /subjects/c/versions"


async def test_a_client_that_is_awaited() -> None:
    """The same registry serves async clients of this event loop, and any ASGI transport."""
    async with registry([("s", '"int"'), ("s", '"long"')]) as box:
        assert await box.async_client.versions("s") == [1, 2]
        async with AsyncSchemaRegistryClient(box.url, transport=httpx.ASGITransport(box.app)) as client:
            versions = await asyncio.gather(*(client.version("s", number) for number in (1, 2)))
        assert [row.text for row in versions] == ['"int"', '"long"']


def test_schemas_come_from_a_folder(tmp_path: Path) -> None:
    """A file is a subject; a folder contains the versions of a subject in the order of their numbers."""
    (tmp_path / "one.proto").write_text(PROTO)
    (tmp_path / "many").mkdir()
    for number, kind in ((10, "double"), (2, "long"), (1, "int")):
        (tmp_path / "many" / f"{number}.avsc").write_text(json.dumps(kind))
    with registry(tmp_path) as box:
        assert [box.client.version("many", number).text for number in (1, 2, 3)] == ['"int"', '"long"', '"double"']
        assert box.client.version("one").schema_type == "PROTOBUF"


def test_other_clients_need_no_port_either() -> None:
    """A blocking httpx client can use any dialect of the registry."""
    with registry({"s": '"string"'}) as box, httpx.Client(transport=box.transport, base_url=box.url) as http:
        assert http.get("/subjects").json() == ["s"]
        assert http.get("/api/journal").status_code == 200


def test_a_body_may_come_in_pieces() -> None:
    """A client without a port may send bytes, or an iterator of them."""
    pieces = [b'{"schema": ', b'"\\"string\\""', b"}"]
    with registry() as box, httpx.Client(base_url=box.url, transport=box.transport) as client:
        for body in (b"".join(pieces), iter(pieces)):
            answer = client.post("/subjects/s/versions", content=body, headers={"content-type": "application/json"})
            assert answer.json()["id"] == 1


def test_settings_are_those_of_the_server() -> None:
    """Settings take effect, and unknown ones raise an error."""
    with registry(mode_mutable=False) as box, pytest.raises(SteleError):
        box.client.set_mode("READONLY")
    with pytest.raises(InvalidRequest, match="nonsense"):
        registry(nonsense=1)


def test_requests_fail_on_purpose() -> None:
    """Requests fail for the given paths and methods, the given number of times; a client with retries succeeds."""
    with registry({"s": '"string"'}) as box:
        box.fail("/subjects/*", method="GET", status=503, times=2)
        for _ in range(2):
            with pytest.raises(Unavailable, match="on purpose"):
                box.client.versions("s")
        assert box.client.versions("s") == [1]
        box.fail("/subjects*", status=500, times=-1)
        for _ in range(3):
            with pytest.raises(Unavailable):
                box.client.subjects()
        assert box.client.schema_by_id(1).text == '"string"'
        box.heal()
        assert box.client.subjects() == ["s"]
        box.fail(status=503)
        patient = SchemaRegistryClient(box.url, transport=box.transport, retry=Retry(base=0.0))
        assert patient.subjects() == ["s"]
        with pytest.raises(InvalidRequest):
            box.fail("/subjects")


def test_answers_come_late_on_purpose() -> None:
    """A failure with only a latency delays the request and lets it through."""
    with registry({"s": '"string"'}) as box:
        box.fail(latency=0.2)
        begin = time.monotonic()
        assert box.client.subjects() == ["s"]
        assert time.monotonic() - begin >= 0.2


@pytest.mark.parametrize("port", [None, 0])
def test_connections_drop_on_purpose(port: int | None) -> None:
    """In process and on a port, a client gets a connection error, and its next request succeeds."""
    with registry({"s": '"string"'}, port=port) as box:
        box.fail(drop=True)
        with pytest.raises(RegistryUnreachable):
            box.client.subjects()
        assert box.client.subjects() == ["s"]


async def test_connections_drop_for_awaited_clients() -> None:
    """An async client gets a connection error, and its next request succeeds."""
    async with registry({"s": '"string"'}) as box:
        box.fail(drop=True)
        with pytest.raises(RegistryUnreachable):
            await box.async_client.subjects()
        assert await box.async_client.subjects() == ["s"]


def test_a_box_can_be_emptied() -> None:
    """`reset` removes subjects, ids, settings and failures."""
    with registry({"s": '"string"'}) as box:
        box.client.set_config("NONE")
        box.fail(status=503, times=-1)
        box.reset({"t": '"int"'})
        assert box.client.subjects() == ["t"]
        assert box.client.version("t").id == 1
        assert box.client.config().compatibility_level == "BACKWARD"


@pytest.mark.stele_schemas({"s": '"string"'})
def test_the_fixture_is_on_a_port(stele_registry: RegistryBox) -> None:
    """Any HTTP client can reach the fixture."""
    with urllib.request.urlopen(f"{stele_registry.url}/subjects") as answer:
        assert json.load(answer) == ["s"]


def test_the_fixture_begins_empty(stele_registry: RegistryBox) -> None:
    """The fixture is empty, whatever the test before registered."""
    assert stele_registry.client.subjects() == []


def test_a_function_is_called_before_an_answer() -> None:
    """`call_before` runs the function once before the request is answered, and the request sees its effect."""
    with registry() as box:
        box.call_before("/schemas/ids/1", lambda: box.client.register("s", Schema('"int"')), method="GET")
        assert box.client.schema_by_id(1).text == '"int"'
        assert box.requests.count("POST /subjects/s/versions") == 1
        assert box.client.schema_by_id(1).text == '"int"'
        assert box.requests.count("POST /subjects/s/versions") == 1


def test_the_port_keeps_connections_longer_than_clients_do() -> None:
    """The server keeps idle connections longer than clients do, so no client sends on a closing connection."""
    with RegistryBox(port=0) as box:
        assert box._listener is not None
        expiry = httpx.Limits().keepalive_expiry
        assert expiry is not None
        assert box._listener._uvicorn.config.timeout_keep_alive > 2 * expiry


def test_the_port_obeys_the_setting_of_idle_connections() -> None:
    """The setting `idle_seconds` takes effect."""
    with RegistryBox(port=0, idle_seconds=7) as box:
        assert box._listener is not None
        assert box._listener._uvicorn.config.timeout_keep_alive == 7
