"""xRegistry: single sentences of the specification. Numbers of sentences: `xregistry/sentences.table`."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest
from tests.conformance.apis.in_process import client_of
from tests.conformance.apis.xregistry_client import A1, DETAILS, GROUP, SCHEMA, XregistryClient, avro, fill
from tests.conformance.apis.xregistry_world import build_app, xr

from stele.apis.xregistry.errors import CODES
from stele.errors import InvalidRequest
from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings, load_settings
from stele.service.registry import Registry

__all__ = ["build_app", "xr"]
pytestmark = pytest.mark.asyncio(loop_scope="module")
OTHERS = ("https://prod.example.org/xregistry", "http://other.example:9/")


async def test_known_registries(registry: Registry, xr: XregistryClient) -> None:
    """`/.xregistry` lists the registries of the setting; without any, the list is empty."""
    assert await xr.read("/.xregistry") == {"registries": []}
    settings = ServerSettings(known_registries=OTHERS)
    async with client_of(build_dispatcher(registry, settings, Metrics())) as client:
        assert await XregistryClient(client).read("/.xregistry") == {"registries": list(OTHERS)}
    for method in ("PUT", "POST", "DELETE"):
        await xr.ask(method, "/.xregistry", {}, code="action_not_supported")
    with pytest.raises(InvalidRequest, match="known_registries"):
        load_settings({"known_registries": ("prod.example.org",)}, environ={})


async def test_values_that_no_capability_has(xr: XregistryClient) -> None:
    """An impossible value of a capability is answered with `capability_value`, which lists the possible values."""
    for name, value in (("flags", ["doc", "odd"]), ("ignores", ["odd"]), ("versionmodes", ["semver"])):
        answer = await xr.ask("PATCH", "/", {"capabilities": {name: value}}, code="capability_value")
        arguments = answer.json()["args"]
        assert (arguments["field"], arguments["value"]) == (name, value[-1])
        assert arguments["list"]
    for name, invalid_value in (("flags", "doc"), ("pagination", "yes"), ("flags", [1])):
        await xr.ask("PATCH", "/", {"capabilities": {name: invalid_value}}, code="capability_value")


async def test_titles_say_something(xr: XregistryClient) -> None:
    """No error has an empty title, even if the title consists of an argument only."""
    assert all(entry.title.strip() for entry in CODES.values())
    answer = await xr.ask("POST", "/schemagroups", {"g": 5}, code="bad_request")
    assert answer.json()["title"].strip()


async def test_needless_percent_encoding(xr: XregistryClient) -> None:
    """Headers are decoded with lower-case digits, and with characters that need no encoding."""
    headers = {"xRegistry_format": "Avro%2f1%2E11", "xRegistry_description": "%41%c3%bc", "Content_Type": "text/plain"}
    await xr.ask("PUT", SCHEMA, A1, status=201, **headers)
    body = await xr.read(DETAILS)
    assert (body["format"], body["description"]) == ("Avro/1.11", "Aü")


async def test_a_reference_that_ends_has_its_old_time_of_creation(xr: XregistryClient) -> None:
    """A schema whose cross reference is removed keeps its time of creation, and is modified now."""
    await fill(xr, A1)
    await fill(xr, A1, schema=f"{GROUP}/schemas/t")
    before = await xr.read(f"{SCHEMA}/meta")
    await asyncio.sleep(0.002)
    await xr.ask("PUT", f"{SCHEMA}/meta", {"xref": f"{GROUP}/schemas/t"})
    await xr.ask("PUT", DETAILS, {"meta": {"xref": None}, **avro()})
    after = await xr.read(f"{SCHEMA}/meta")
    assert "xref" not in after
    assert after["createdat"] == before["createdat"]
    assert datetime.fromisoformat(after["modifiedat"]) > datetime.fromisoformat(before["modifiedat"])
    assert after["epoch"] > before["epoch"]
