"""Commands and the native API print the same JSON, so that a script can use either."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.conformance.apis.in_process import client_of
from typer.testing import CliRunner

from stele.apis.native import application
from stele.cli.app import app
from stele.service.registry import Registry
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"c","type":"int","aliases":["z"]}]}'
NEW = '{"type":"record","name":"R","fields":[{"name":"b","type":"long"},{"name":"c","type":"string"}]}'


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of the native API of an empty registry."""
    node = await Registry.open(await open_log("memory:"))
    async with client_of(application(node)) as client:
        yield client
    await node.close()


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Files with the old and the new schema."""
    for name, text in (("old.avsc", OLD), ("new.avsc", NEW)):
        (tmp_path / name).write_text(text)
    return str(tmp_path / "old.avsc"), str(tmp_path / "new.avsc")


def command(*words: str) -> Any:
    """Return the JSON that a command prints."""
    return json.loads(CliRunner().invoke(app, [*words, "--output", "json"]).stdout)


def without_places(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return findings of a command without the members that only files have: positions, and compared files."""
    own = {"line", "column", "compared_with", "direction"}
    assert all(own <= finding.keys() for finding in findings)
    return [{name: value for name, value in finding.items() if name not in own} for finding in findings]


async def test_one_shape(client: httpx.AsyncClient, files: tuple[str, str]) -> None:
    """Verdicts, differences, advice, conversions, examples and fields have the same shape in both."""
    old, new = files

    async def route(name: str, **body: Any) -> Any:
        return (await client.post(f"/api/{name}", json={"format": "avro", **body})).json()

    (report,) = command("check", new, "--against", old)
    answer = await route("check", schema=NEW, against=[{"schema": OLD}])
    assert (report["ruleset"], without_places(report["findings"])) == (answer["ruleset"], answer["findings"])
    assert command("diff", old, new) == await route("diff", old={"schema": OLD}, new={"schema": NEW})
    assert without_places(command("lint", old)[0]["findings"]) == (await route("lint", schema=OLD))["findings"]
    assert command("convert", old, "--as", "json") == await route("convert", schema=OLD, to="json")
    assert command("example", old) == await route("example", schema=OLD)
    assert command("fields", old) == await route("fields", schema=OLD)


async def test_every_member_is_there(client: httpx.AsyncClient) -> None:
    """A finding always has all its members, including empty ones."""
    body = {"format": "avro", "schema": NEW, "against": [{"schema": OLD}]}
    findings = (await client.post("/api/check", json=body)).json()["findings"]
    members = {"rule", "path", "reader", "writer", "why", "fix", "witness", "against", "level"}
    assert [finding.keys() for finding in findings] == [members] * len(findings)
    assert {(finding["witness"], finding["level"]) for finding in findings} == {(None, "error")}
