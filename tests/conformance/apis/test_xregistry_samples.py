"""xRegistry: the specification's own samples are imported, exported and imported elsewhere without a difference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conformance.apis.in_process import client_of
from tests.conformance.apis.xregistry_client import DOCUMENT_SCHEMA, FOLDER, XregistryClient
from tests.conformance.apis.xregistry_world import build_app, xr

from stele.service.registry import Registry
from stele.storage import open_log

__all__ = ["build_app", "xr"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLES = sorted((FOLDER / "samples").glob("*.xreg.json"))


def load_groups(path: Path) -> dict[str, Any]:
    """Return the schema groups in a sample. The server has no model for other groups.

    Fourteen schemas of one sample have versions of different formats, which the published model forbids.
    """
    groups: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["schemagroups"]
    for group in groups.values():
        mixed = [name for name, each in group["schemas"].items() if len(list_formats(each)) > 1]
        for name in mixed:
            del group["schemas"][name]
    return groups


def list_formats(schema: Mapping[str, Any]) -> set[str]:
    """Return the formats of the versions of a schema."""
    return {version["format"].casefold() for version in schema["versions"].values()}


async def open_other(registries: list[Registry]) -> XregistryClient:
    """Return a client of another, empty registry."""
    node = await Registry.open(await open_log("memory:"))
    registries.append(node)
    return XregistryClient(client_of(build_app(node)))


def without_bookkeeping(value: Any) -> Any:
    """Return a document without epochs and times, which differ in a new registry."""
    if not isinstance(value, dict):
        return value
    left = {"epoch", "createdat", "modifiedat"}
    return {name: without_bookkeeping(each) for name, each in value.items() if name not in left}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name.removesuffix(".xreg.json"))
async def test_samples_come_back(xr: XregistryClient, path: Path) -> None:
    """A sample can be read after its import, and its export, imported elsewhere, gives the same export."""
    groups = load_groups(path)
    await xr.ask("POST", "/", {"schemagroups": groups})
    export = await xr.read("/export")
    assert not list(DOCUMENT_SCHEMA.iter_errors(export))
    for group_id, group in groups.items():
        exported_group = export["schemagroups"][group_id]
        assert group.get("description") == exported_group.get("description")
        for name, schema in group["schemas"].items():
            for version_id, version in schema["versions"].items():
                there = exported_group["schemas"][name]["versions"][version_id]
                for member, value in version.items():
                    if member == "schema" and isinstance(value, str):
                        document = await xr.ask("GET", f"/schemagroups/{group_id}/schemas/{name}/versions/{version_id}")
                        assert document.text == value
                    else:
                        assert there[member] == value
    others: list[Registry] = []
    try:
        by_put, by_post = await open_other(others), await open_other(others)
        await by_put.ask("PUT", "/?ignore=epoch", export)
        assert without_bookkeeping(await by_put.read("/export")) == without_bookkeeping(export)
        collections = await xr.read("/?collections&doc")
        await by_post.ask("POST", "/", {"schemagroups": collections["schemagroups"]})
        copied = await by_post.read("/export")
        assert without_bookkeeping(copied["schemagroups"]) == without_bookkeeping(export["schemagroups"])
        times = [
            (version["createdat"], version["modifiedat"])
            for group in copied["schemagroups"].values()
            for schema in group["schemas"].values()
            for version in schema["versions"].values()
        ]
        original = {export["schemagroups"][group]["modifiedat"] for group in groups}
        assert {each for pair in times for each in pair} == original, "times come along"
        await by_put.ask("PUT", "/?ignore=epoch", export)
        assert without_bookkeeping(await by_put.read("/export")) == without_bookkeeping(export)
        for node, client in zip(others, (by_put, by_post), strict=True):
            await client.http.aclose()
            await node.close()
    finally:
        pass


async def test_mixed_formats_are_refused(xr: XregistryClient) -> None:
    """The sample whose schemas have versions of several formats breaks the published model, and nothing is imported."""
    sample = json.loads((FOLDER / "samples" / "schemastore_org.xreg.json").read_text(encoding="utf-8"))
    before = await xr.read("/export")
    await xr.ask("POST", "/", {"schemagroups": sample["schemagroups"]}, code="mismatched_version_attribute")
    assert await xr.read("/export") == before


async def test_other_groups_are_refused(xr: XregistryClient) -> None:
    """Groups that the model does not have are refused."""
    sample = json.loads((FOLDER / "samples" / "contoso-erp-jsons07.xreg.json").read_text(encoding="utf-8"))
    await xr.ask("POST", "/", sample, code="unknown_group_type")


async def test_everything_comes_back(xr: XregistryClient, client: httpx.AsyncClient) -> None:
    """An export contains all attributes: policies, chosen versions, branches, references, unusual documents."""
    version = {
        "format": "Custom",
        "name": "N",
        "labels": {"a": "b"},
        "odd": {"x": [1, None]},
        "icon": "http://x.example",
    }
    tree = {
        "description": "D",
        "deprecated": {"removal": "2030-01-01T00:00:00Z"},
        "constraints": {"schemas.name": {"enum": ["N", "M"]}},
        "schemas": {
            "s": {
                "meta": {"defaultversionid": "b", "defaultversionsticky": True, "labels": {"m": "n"}, "deprecated": {}},
                "versions": {
                    "a": {**version, "schemabase64": "AP8="},
                    "b": {**version, "ancestorid": "a", "schemaurl": "http://example.com/x"},
                    "c": {**version, "ancestorid": "c", "schema": "text", "contenttype": "text/plain"},
                    "d": {**version, "ancestorid": "a"},
                    "e": {**version, "schema": "quoted", "contenttype": "application/json"},
                },
            },
            "t": {"format": "Avro/1.9", "schema": {"type": "string"}, "meta": {"compatibility": "full_transitive"}},
            "x": {"meta": {"xref": "/schemagroups/g/schemas/s"}},
        },
    }
    await xr.ask("PUT", "/schemagroups/g", tree, status=201)
    await client.post("/subjects/b%2Fc/versions", json={"schema": '{"type":"string"}'})
    export = await xr.read("/export")
    whole = json.loads(json.dumps(export))
    del whole["schemagroups"]["g"]["schemas"]["x"]  # The JSON Schema has no cross references.
    assert not list(DOCUMENT_SCHEMA.iter_errors(whole))
    others: list[Registry] = []
    other = await open_other(others)
    await other.ask("PUT", "/?ignore=epoch", export)
    assert without_bookkeeping(await other.read("/export")) == without_bookkeeping(export)
    for name in "acde":
        path = f"/schemagroups/g/schemas/s/versions/{name}"
        assert (await other.ask("GET", path)).content == (await xr.ask("GET", path)).content
    await other.http.aclose()
    await others[0].close()
