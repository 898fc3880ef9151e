"""Replication through the CNCF API itself: pulled and pushed versions keep the URIs of their source."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.cncf_copying import pull_everything, uris
from tests.conformance.apis.in_process import client_of

from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log

AVRO = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WIDER = AVRO.replace("int", "long")


async def server(host: str, store: str) -> tuple[Registry, httpx.AsyncClient]:
    """Return a node and a client of the whole server with a host name of its own."""
    registry = await Registry.open(await open_log(store))
    client = client_of(build_dispatcher(registry, ServerSettings(), Metrics()))
    client.base_url = httpx.URL(f"http://{host}")
    return registry, client


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def pair(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Two empty registries, the source and the target."""
    stores = ["memory:"] * 2 if request.param == "memory" else [f"sqlite:///{tmp_path / name}" for name in "ab"]
    servers = [await server(host, store) for host, store in zip(("source", "target"), stores, strict=True)]
    async with servers[0][1] as source, servers[1][1] as target:
        yield source, target
    for registry, _ in servers:
        await registry.close()


async def send_request(
    client: httpx.AsyncClient, method: str, path: str, body: str | dict[str, Any] | None = None
) -> None:
    """Send a request and require success."""
    content = {"content": body} if isinstance(body, str) else {"json": body} if body is not None else {}
    answer = await client.request(method, path, **content)  # type: ignore[arg-type]  # one member or none
    assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"


async def change(source: httpx.AsyncClient) -> None:
    """Create a first history: two groups, several versions."""
    await send_request(source, "PUT", "/schemagroups/g", {"format": "avro"})
    await send_request(source, "PUT", "/schemagroups/h", {"format": "avro", "description": "other"})
    for path, text in (("g/schemas/s", AVRO), ("g/schemas/s", WIDER), ("h/schemas/s", AVRO), ("h/schemas/t", WIDER)):
        await send_request(source, "POST", f"/schemagroups/{path}", text)


async def test_15_a_pull_reaches_the_same_uris(pair: tuple[httpx.AsyncClient, httpx.AsyncClient]) -> None:
    """15: groups of the target have other names, versions the URIs of the source; the next pull copies new versions."""
    source, target = pair
    await send_request(target, "PUT", "/schemagroups/own", {"format": "avro"})
    await send_request(target, "POST", "/schemagroups/own/schemas/s", AVRO)
    own = await uris(target)
    await change(source)
    await pull_everything(source, target, "from.")
    assert await uris(target) == own | await uris(source)
    assert sorted((await target.get("/schemagroups")).json()) == ["from.g", "from.h", "own"]
    await send_request(source, "POST", "/schemagroups/h/schemas/u", AVRO)
    await pull_everything(source, target, "from.")
    assert await uris(target) == own | await uris(source)


class Pusher:
    """Replays the changes of a source at a target, in the order of its journal."""

    def __init__(self, source: httpx.AsyncClient, target: httpx.AsyncClient) -> None:
        self._source = source
        self._target = target
        self._after = 0

    async def push(self) -> None:
        """Push all changes since the last call."""
        page = (await self._source.get("/api/journal", params={"after": self._after})).json()
        self._after = page["next"]
        for entry in page["entries"]:
            await self._replay(entry)

    async def _replay(self, entry: dict[str, Any]) -> None:
        group = f"/schemagroups/{quote(entry['namespace'] or '')}"
        schema = f"{group}/schemas/{quote(entry['subject'] or '')}"
        match entry["kind"]:
            case "namespace_created":
                await send_request(self._target, "PUT", group, {"format": entry["details"]["format"]})
            case "registered":
                await self._copy(schema, entry["version"])
            case "soft_deleted":
                await send_request(self._target, "DELETE", f"{schema}/versions/{entry['version']}")
            case "subject_closed":
                await send_request(self._target, "DELETE", schema)
            case "namespace_deleted":
                await send_request(self._target, "DELETE", group)

    async def _copy(self, schema: str, number: int) -> None:
        version = await self._source.get(f"{schema}/versions/{number}")
        headers = {
            "content-type": version.headers["content-type"],
            "schema-version-id": version.headers["schema-version-uri"],
            "schema-authority": str(self._source.base_url),
        }
        answer = await self._target.post(schema, content=version.content, headers=headers)
        assert answer.status_code == 200, answer.text


async def test_16_a_push_replays_creates_and_deletes(pair: tuple[httpx.AsyncClient, httpx.AsyncClient]) -> None:
    """16: after every push the target has the URIs, documents and groups of the source, and no deleted ones."""
    source, target = pair
    pusher = Pusher(source, target)
    await change(source)
    await pusher.push()
    assert len(await uris(target)) == 4
    for method, path, body in (
        ("DELETE", "g/schemas/s/versions/1", None),
        ("POST", "g/schemas/new", AVRO),
        ("DELETE", "h/schemas/t", None),
        ("DELETE", "g/schemas", None),
        ("DELETE", "g", None),
    ):
        await send_request(source, method, f"/schemagroups/{path}", body)
        await pusher.push()
        assert await uris(target) == await uris(source)
        assert (await target.get("/schemagroups")).json() == (await source.get("/schemagroups")).json()
    assert list(await uris(target)) == ["http://source/schemagroups/h/schemas/s/versions/1"]
