"""xRegistry: formats, constraints and compatibility. Numbers of sentences: `xregistry/sentences.table`."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.conformance.apis.xregistry_client import (
    A1,
    A2,
    A3,
    AVRO,
    DETAILS,
    GROUP,
    SCHEMA,
    XregistryClient,
    avro,
    fill,
)
from tests.conformance.apis.xregistry_world import build_app, xr

from stele.core.json_depth import MAX_JSON_DEPTH
from stele.service.registry import Registry

__all__ = ["build_app", "xr"]
pytestmark = pytest.mark.asyncio(loop_scope="module")

BACKWARD = {"compatibility": "backward"}
JSON_1 = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
JSON_2 = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
PROTO = 'syntax = "proto3";\nmessage M {{\n  {0} a = 1;\n}}\n'
XSD = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a" type="xs:{0}"/></xs:schema>'


# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("Avro/1.9", json.loads(A1), {"type": "record"}),
        ("avro/1.11.0", "string", {"type": "nothing"}),
        ("JsonSchema/draft-07", JSON_1, {"type": "nothing"}),
        ("JsonSchema/draft/2020-12", {"$schema": "https://json-schema.org/draft/2020-12/schema"}, {"minimum": "x"}),
        ("Protobuf/3", PROTO.format("int32"), "message"),
        ("Protobuf/2", "message M {}", "message M {"),
        ("XSD/1.1", XSD.format("string"), "<xs"),
    ],
)
async def test_formats(xr: XregistryClient, name: str, right: Any, wrong: Any) -> None:
    """A document that is invalid in its known format is refused by name; a valid one is shown as validated."""
    answer = await xr.ask("PUT", DETAILS, {"format": name, "schema": wrong}, code="format_violation")
    assert answer.json()["subject"] == f"{SCHEMA}/versions/1"
    assert answer.json()["args"] == {"format": name}
    body = (await xr.ask("PUT", DETAILS, {"format": name, "schema": right}, status=201)).json()
    assert body["formatvalidated"] is True
    assert "formatvalidatedreason" not in body
    assert body["format"] == name
    assert "compatibilityvalidated" not in body


@pytest.mark.parametrize("name", ["JsonStructure/draft-04", "JSONSchema/Unknown", "Custom", "Protobuf/7"])
async def test_unknown_formats(xr: XregistryClient, name: str) -> None:
    """A document of an unknown format is stored without being parsed, with the reason why it is not validated."""
    await xr.ask("PUT", SCHEMA, b"\x00\xff any", status=201, xRegistry_format=name)
    body = await xr.read(DETAILS)
    assert body["formatvalidated"] is False
    assert body["formatvalidatedreason"]
    assert (await xr.ask("GET", SCHEMA)).content == b"\x00\xff any"
    await xr.ask("PATCH", f"{SCHEMA}/meta", BACKWARD)
    body = await xr.read(DETAILS)
    assert body["compatibilityvalidated"] is False
    assert body["compatibilityvalidatedreason"]
    await xr.ask("POST", SCHEMA, b"other", status=201, xRegistry_format=name)


async def test_format_of_all_versions(xr: XregistryClient) -> None:
    """All versions of a schema have one format, in any case; a request can change that of all at once."""
    await fill(xr, A1, A2)
    await xr.ask("POST", DETAILS, {"format": "Avro/1.9", "schema": json.loads(A2)}, code="mismatched_version_attribute")
    await xr.ask("POST", DETAILS, {"format": AVRO.upper(), "schema": json.loads(A2)}, status=201)
    await xr.ask("PATCH", f"{SCHEMA}/versions", {each: {"format": "Avro/1.12"} for each in "123"})
    assert (await xr.read(DETAILS))["format"] == "Avro/1.12"
    proto = {"format": "Protobuf/3", "schema": PROTO.format("int32"), "contenttype": "text/plain"}
    await xr.ask("PUT", f"{GROUP}/schemas/t$details", avro(), status=201)
    await xr.ask("PUT", f"{GROUP}/schemas/t$details", proto)
    assert (await xr.ask("GET", f"{GROUP}/schemas/t")).text == proto["schema"]


# --- constraints ------------------------------------------------------------------------------------------------------


async def test_group_constraints(xr: XregistryClient) -> None:
    """A group's format and constraints apply to all its schemas; defaults are used for absent attributes."""
    constraints = {"schemas.format": {"default": AVRO}, "schemas.name": {"enum": ["a", "b"]}}
    await xr.ask("PUT", GROUP, {"format": AVRO, "constraints": constraints}, status=201)
    body = (await xr.ask("PUT", DETAILS, {"schema": json.loads(A1)}, status=201)).json()
    assert body["format"] == AVRO
    answer = await xr.ask("PATCH", DETAILS, {"name": "c"}, code="constraint_failure")
    assert answer.json()["args"] == {"path": "schemas.name", "kind": "enum"}
    await xr.ask("PATCH", DETAILS, {"name": "A"})
    answer = await xr.ask("PATCH", DETAILS, {"format": "Avro/1.9"}, code="constraint_failure")
    assert answer.json()["args"] == {"path": "schemas.format", "kind": "equals"}
    await xr.ask("PATCH", GROUP, {"format": "Avro/1.9"}, code="constraint_failure")
    await xr.ask("PUT", GROUP, {"format": "Avro/1.9", "schemas": {"s": {"format": "Avro/1.9"}}})
    await xr.ask("PATCH", GROUP, {"format": None})
    await xr.ask(
        "PUT", f"{GROUP}/schemas/p$details", {"format": "Protobuf/3", "schema": PROTO.format("int32")}, status=201
    )
    await xr.ask("PUT", GROUP, {"format": AVRO}, code="constraint_failure")


# --- compatibility ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "second", "third", "refused"),
    [
        ("backward", A3, A3, "2"),
        ("backward", A2, A3, ""),
        ("forward", A3, A3, ""),
        ("full", A3, A2, "2"),
        ("full", A2, A1, ""),
        ("BACKWARD_TRANSITIVE", A2, A3, "3"),
        ("forward_transitive", A3, A1, "3"),
        ("full_transitive", A2, A2, ""),
        ("none", A3, A1, ""),
    ],
)
async def test_compatibility_words(xr: XregistryClient, word: str, second: str, third: str, refused: str) -> None:
    """Each word is enforced for new versions, and for all versions when it is set."""
    await fill(xr)
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"compatibility": word})
    for number, text in (("2", second), ("3", third)):
        if number == refused:
            answer = await xr.ask("POST", DETAILS, avro(text), code="compatibility_violation")
            assert answer.json()["args"] == {"compat": word.lower()}
            assert answer.json()["subject"] == SCHEMA
            assert number in answer.json()["detail"]
            return
        await xr.ask("POST", DETAILS, avro(text), status=201)
    versions = await xr.read(f"{SCHEMA}/versions")
    for version in versions.values():
        assert version.get("compatibilityvalidated") is (True if word != "none" else None)


async def test_setting_compatibility_checks_all_versions(xr: XregistryClient) -> None:
    """A rule that the versions violate cannot be set, alone or by an import with them; null removes a rule."""
    await fill(xr, A1, A3)
    before = await xr.read("/export")
    await xr.ask("PATCH", f"{SCHEMA}/meta", BACKWARD, code="compatibility_violation")
    await xr.ask("PUT", f"{SCHEMA}/meta", {"compatibility": "sideways"}, code="invalid_attribute")
    tree = {"meta": BACKWARD, "versions": {"1": avro(A1), "2": avro(A3)}}
    await xr.ask("PUT", f"{GROUP}/schemas/t$details", tree, code="compatibility_violation")
    assert await xr.read("/export") == before
    assert (await xr.ask("PATCH", f"{SCHEMA}/meta", {"compatibility": "forward"})).json()["compatibility"] == "forward"
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"compatibility": None})
    await xr.ask("POST", DETAILS, {"format": AVRO, "schema": "string"}, status=201)
    assert "compatibility" not in await xr.read(f"{SCHEMA}/meta")


async def test_compatibility_follows_ancestors(xr: XregistryClient) -> None:
    """A branch is compared with its own ancestors, a root with none, a replaced version in both directions."""
    await fill(xr, A1)
    await xr.ask("PATCH", f"{SCHEMA}/meta", BACKWARD)
    await fill(xr, A2)
    await xr.ask("PUT", f"{SCHEMA}/versions/branch$details", avro(A1, ancestorid="1"), status=201)
    other = {"format": AVRO, "schema": "int", "ancestorid": "request"}
    root = (await xr.ask("POST", DETAILS, other, status=201)).json()["versionid"]
    await xr.ask("PATCH", f"{SCHEMA}/versions/{root}$details", {"ancestorid": "1"}, code="compatibility_violation")
    await xr.ask("PATCH", f"{SCHEMA}/versions/2$details", {"schema": json.loads(A3)}, code="compatibility_violation")
    await xr.ask("PATCH", f"{SCHEMA}/versions/1$details", {"schema": "long"}, code="compatibility_violation")
    await xr.ask("PATCH", f"{SCHEMA}/versions/1$details", {"description": "no document"})
    await xr.ask("DELETE", f"{SCHEMA}/versions/1")
    versions = await xr.read(f"{SCHEMA}/versions")
    assert {name: each["ancestorid"] for name, each in versions.items()} == {name: name for name in versions}


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("JsonSchema/draft-07", JSON_1, JSON_2),
        ("Protobuf/3", PROTO.format("int32"), PROTO.format("string")),
        ("XSD/1.0", XSD.format("string"), XSD.format("date")),
    ],
)
async def test_compatibility_of_other_formats(xr: XregistryClient, name: str, first: Any, second: Any) -> None:
    """Each format is compared by its own rules."""
    await xr.ask("PUT", f"{DETAILS}", {"format": name, "schema": first, "meta": BACKWARD}, status=201)
    await xr.ask("POST", DETAILS, {"format": name, "schema": second}, code="compatibility_violation")


async def test_replacing_a_document_keeps_old_ids(xr: XregistryClient, client: httpx.AsyncClient) -> None:
    """A replaced document can still be read by the id in stored data; the version keeps its own id."""
    await fill(xr)
    before = (await client.get("/contexts/.g/subjects/s/versions/latest")).json()
    await xr.ask("PUT", DETAILS, avro(A2))
    after = (await client.get("/contexts/.g/subjects/s/versions/latest")).json()
    assert (before["version"], after["version"]) == (1, 2)
    assert before["id"] != after["id"]
    assert (await client.get(f"/contexts/.g/schemas/ids/{before['id']}")).json()["schema"] == before["schema"]
    assert list(await xr.read(f"{SCHEMA}/versions")) == ["1"]


async def test_read_only_schemas(xr: XregistryClient, client: httpx.AsyncClient, registry: Registry) -> None:
    """A read-only schema is shown as such and cannot be changed; a request about several schemas can skip it."""
    await fill(xr)
    await client.put("/contexts/.g/mode/s", json={"mode": "READONLY"})
    assert (await xr.read(f"{SCHEMA}/meta"))["readonly"] is True
    for method, path, body in (
        ("PUT", DETAILS, avro()),
        ("PATCH", f"{SCHEMA}/meta", {}),
        ("DELETE", SCHEMA, None),
        ("DELETE", f"{SCHEMA}/versions/1", None),
        ("POST", f"{GROUP}/schemas", {"s": avro()}),
    ):
        await xr.ask(method, path, body, code="readonly")
    await xr.ask("PUT", f"{DETAILS}?ignore=readonly", avro(), code="bad_flag")
    answer = await xr.ask("POST", f"{GROUP}/schemas?ignore=readonly", {"s": avro(name="x"), "t": avro()})
    assert list(answer.json()) == ["t"]
    await xr.ask("DELETE", f"{GROUP}/schemas?ignore=readonly", {"s": {}, "t": {}})
    assert list(await xr.read(f"{GROUP}/schemas")) == ["s"]


def nest_arrays(levels: int) -> str:
    """Return metadata of a schema with nested arrays, one level below the top."""
    return '{"format": "Custom", "odd": ' + "[" * levels + "]" * levels + "}"


async def test_limits(xr: XregistryClient) -> None:
    """Requests beyond a limit of the server get an error of the dialect."""
    huge = {"format": "Custom", "schema": "x" * (1024 * 1024 + 1)}
    await xr.ask("PUT", DETAILS, huge, code="request_too_large")
    await xr.ask("PUT", DETAILS, nest_arrays(MAX_JSON_DEPTH - 1), status=201)
    await xr.ask("PUT", DETAILS, nest_arrays(MAX_JSON_DEPTH), code="parsing_data")
    await xr.ask("GET", "/schemagroups?filter=" + ",".join(["a=b"] * 101), code="bad_filter")
