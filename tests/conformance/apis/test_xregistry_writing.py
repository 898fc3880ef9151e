"""xRegistry: creating, changing and deleting entities. Numbers of sentences: `xregistry/sentences.table`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.conformance.apis.xregistry_client import (
    A1,
    A2,
    A3,
    AVRO,
    DETAILS,
    GROUP,
    ROOT,
    SCHEMA,
    XregistryClient,
    avro,
    fill,
)
from tests.conformance.apis.xregistry_world import build_app, xr

__all__ = ["build_app", "xr"]
pytestmark = pytest.mark.asyncio(loop_scope="module")


# --- groups and the registry ------------------------------------------------------------------------------------------


async def test_put_and_patch_registry(xr: XregistryClient) -> None:
    """PUT replaces the attributes of the registry, PATCH changes the named ones; read-only members are ignored."""
    first = await xr.read("/")
    put = (await xr.ask("PUT", "/", {"name": "N", "labels": {"a": "1"}, "self": 7, "specversion": "9"})).json()
    assert put["name"] == "N"
    assert put["self"] == first["self"]
    assert put["epoch"] > first["epoch"]
    patched = (await xr.ask("PATCH", "/", {"description": "D", "labels": None})).json()
    assert (patched["name"], patched["description"], patched.get("labels")) == ("N", "D", None)
    assert "name" not in (await xr.ask("PUT", "/", {})).json()
    await xr.ask("PUT", "/", {"registryid": "other"}, code="mismatched_id")
    await xr.ask("PUT", "/", {"odd": 1}, code="unknown_attribute")
    await xr.ask("PUT", "/", "", code="missing_body")
    for wrong in ("[]", "{", "1", '{"a": 1} x'):
        await xr.ask("PUT", "/", wrong, code="parsing_data")


async def test_post_to_the_registry(xr: XregistryClient) -> None:
    """A POST to the root creates groups without changing the registry; other members are refused."""
    answer = await xr.ask("POST", "/", {"schemagroups": {"g": {"name": "x"}, "h": {}}})
    assert list(answer.json()) == ["schemagroups"]
    assert set(answer.json()["schemagroups"]) == {"g", "h"}
    await xr.ask("POST", "/", {"name": "x", "schemagroups": {}}, code="groups_only")
    await xr.ask("POST", "/", {"endpoints": {}}, code="unknown_group_type")
    await xr.ask("POST", "/", {"schemagroups": {"i": None}}, code="bad_request")
    assert set(await xr.read("/schemagroups")) == {"g", "h"}


async def test_group_lifecycle(xr: XregistryClient) -> None:
    """A group is created with all kinds of attributes (201, Location), replaced, changed and deleted."""
    body = {
        "schemagroupid": "g",
        "name": "N",
        "description": "",
        "documentation": "https://example.com/doc",
        "icon": "https://example.com/i.svg",
        "labels": {"a.b-c_d:e": "", "x": "y"},
        "deprecated": {"effective": "2024-01-01T00:00:00Z", "alternative": "https://example.com/x", "extra": 1},
        "anything": {"deep": [1, None, {"x": "y"}]},
        "other_2": 5,
    }
    answer = await xr.ask("PUT", GROUP, body, status=201)
    assert answer.headers["location"] == answer.json()["self"] == f"{ROOT}{GROUP}"
    group = answer.json()
    assert {name: group[name] for name in body} == body
    assert group["epoch"] == 1
    again = await xr.ask("PUT", GROUP, {"name": "M"})
    assert "location" not in again.headers
    left = again.json()
    assert left["name"] == "M"
    assert left["epoch"] == 2
    assert not {"labels", "anything", "deprecated", "icon"} & set(left)
    patched = (await xr.ask("PATCH", GROUP, {"labels": {"k": "v"}})).json()
    assert (patched["name"], patched["labels"]) == ("M", {"k": "v"})
    assert "name" not in (await xr.ask("PATCH", GROUP, {"name": None})).json()
    assert (await xr.ask("PATCH", "/schemagroups/new", {}, status=201)).json()["schemagroupid"] == "new"
    await xr.ask("DELETE", GROUP)
    await xr.ask("GET", GROUP, code="not_found")
    await xr.ask("DELETE", GROUP, code="not_found")


async def test_groups_by_map(xr: XregistryClient) -> None:
    """POST and PATCH of a collection create or change entities by id, and return only those."""
    await xr.ask("PUT", "/schemagroups/other", {}, status=201)
    answer = await xr.ask("POST", "/schemagroups", {"g": {"name": "G", "description": "d"}, "h": {}})
    assert set(answer.json()) == {"g", "h"}
    patched = (await xr.ask("PATCH", "/schemagroups", {"g": {"name": "X"}})).json()
    assert set(patched) == {"g"}
    assert patched["g"]["description"] == "d"
    replaced = (await xr.ask("POST", "/schemagroups", {"g": {"name": "X"}})).json()
    assert "description" not in replaced["g"]
    assert (await xr.ask("POST", "/schemagroups", {})).json() == {}
    await xr.ask("POST", "/schemagroups", {"g": {"schemagroupid": "x"}}, code="mismatched_id")
    await xr.ask("POST", "/schemagroups", {"g": 5}, code="bad_request")


@pytest.mark.parametrize(
    ("attribute", "value", "code"),
    [
        ("name", "", "invalid_attribute"),
        ("name", 5, "invalid_attribute"),
        ("description", "x" * 4096, "invalid_attribute"),
        ("documentation", "", "invalid_attribute"),
        ("documentation", "no url", "invalid_attribute"),
        ("labels", {"A": "x"}, "invalid_attribute"),
        ("labels", {"": "x"}, "invalid_attribute"),
        ("labels", {"a": 1}, "invalid_attribute"),
        ("labels", {"-a": "x"}, "invalid_attribute"),
        ("labels", ["a"], "invalid_attribute"),
        ("createdat", "yesterday", "invalid_attribute"),
        ("createdat", "2024-13-01T00:00:00Z", "invalid_attribute"),
        ("modifiedat", 5, "invalid_attribute"),
        ("deprecated", {"removal": "2024-01-01T00:00:00Z", "effective": "2025-01-01T00:00:00Z"}, "invalid_attribute"),
        ("deprecated", {"effective": "x"}, "invalid_attribute"),
        ("Upper", 1, "invalid_attribute"),
        ("1digit", 1, "invalid_attribute"),
        ("a" * 64, 1, "invalid_attribute"),
        ("epoch", -1, "invalid_attribute"),
        ("epoch", "1", "invalid_attribute"),
        ("epoch", 99, "mismatched_epoch"),
        ("constraints", {"schemas.nothing": {}}, "invalid_attribute"),
        ("constraints", {"schemas.format": {"equals": "name"}}, "invalid_attribute"),
        ("constraints", {"schemas.format": {"enum": ["a"], "default": "b"}}, "invalid_attribute"),
        ("schemas", {"s": None}, "bad_request"),
        ("schemas", 5, "bad_request"),
    ],
)
async def test_wrong_values(xr: XregistryClient, attribute: str, value: Any, code: str) -> None:
    """An invalid value is refused, the error names its attribute, and nothing of the request is applied."""
    await xr.ask("PUT", GROUP, {}, status=201)
    before = await xr.read("/export")
    await xr.ask("PUT", GROUP, {"icon": "http://example.com/i", attribute: value}, code=code)
    assert await xr.read("/export") == before


@pytest.mark.parametrize("identifier", ["-a", ".a", "~a", "a b", "a$b", "a*b", "ü", "a" * 129])
async def test_malformed_ids(xr: XregistryClient, identifier: str) -> None:
    """An invalid id is refused at every level."""
    await fill(xr)
    await xr.ask("POST", "/schemagroups", {identifier: {}}, code="malformed_id")
    await xr.ask("POST", f"{GROUP}/schemas", {identifier: avro()}, code="malformed_id")
    await xr.ask("POST", f"{SCHEMA}/versions", {identifier: avro()}, code="malformed_id")


async def test_ids(xr: XregistryClient) -> None:
    """Ids may have many characters, and must differ in more than case."""
    for identifier in ("a", "_", "9", "A.b_c~d:e@f-g", "a" * 128, "x~2Fy", "_~~2Ez", "a~b"):
        path = f"/schemagroups/{identifier}x/schemas/{identifier}/versions/{identifier}"[:400]
        if len(identifier) < 128:
            await xr.ask("PUT", f"{path}$details", avro(), status=201)
            assert (await xr.read(f"{path}$details"))["versionid"] == identifier
    await fill(xr)
    await xr.ask("PUT", "/schemagroups/G", {}, code="bad_request")
    await xr.ask("PUT", f"{GROUP}/schemas/S$details", avro(), code="bad_request")
    await xr.ask("PUT", f"{SCHEMA}/versions/v1$details", avro(), status=201)
    await xr.ask("PUT", f"{SCHEMA}/versions/V1$details", avro(), code="bad_request")
    for reserved in ("null", "request"):
        await xr.ask("PUT", f"{SCHEMA}/versions/{reserved}$details", avro(), code="malformed_id")


async def test_times(xr: XregistryClient) -> None:
    """Times are accepted in any zone and stored in UTC.

    null is now. An absent `createdat` stays. A `modifiedat` that is absent or equal to the stored one is now.
    """
    body = {"createdat": "2030-12-19T06:00:00.50+02:00", "modifiedat": "2031-01-01T00:00:00"}
    group = (await xr.ask("PUT", GROUP, body, status=201)).json()
    assert (group["createdat"], group["modifiedat"]) == ("2030-12-19T04:00:00.5Z", "2031-01-01T00:00:00Z")
    later = (await xr.ask("PUT", GROUP, {})).json()
    assert later["createdat"] == group["createdat"]
    assert later["modifiedat"] < "2030"
    same = (await xr.ask("PUT", GROUP, {"modifiedat": later["modifiedat"]})).json()
    assert same["modifiedat"] > later["modifiedat"]
    now = (await xr.ask("PATCH", GROUP, {"createdat": None, "modifiedat": None})).json()
    assert now["createdat"] == now["modifiedat"] < "2030"
    tree = (await xr.ask("PUT", "/schemagroups/h?inline", {"schemas": {"s": avro()}}, status=201)).json()
    schema = tree["schemas"]["s"]
    times = {each[name] for each in (tree, schema, schema["meta"]) for name in ("createdat", "modifiedat")}
    assert len(times) == 1


async def test_epochs_and_parents(xr: XregistryClient) -> None:
    """An epoch grows with every write of the entity, and when its collection gets or loses an entity."""

    async def epochs() -> tuple[int, ...]:
        tree = await xr.read("/?inline=*")
        group = tree["schemagroups"]["g"]
        schema = group["schemas"]["s"]
        return tree["epoch"], group["epoch"], schema["meta"]["epoch"], schema["versions"]["1"]["epoch"]

    await fill(xr)
    root, group, meta, version = await epochs()
    await xr.ask("PATCH", f"{SCHEMA}/versions/1$details", {})
    assert await epochs() == (root, group, meta, version + 1)
    await xr.ask("PATCH", f"{SCHEMA}/meta", {})
    assert await epochs() == (root, group, meta + 1, version + 1)
    await xr.ask("PUT", f"{SCHEMA}/versions/v2$details", avro(A2), status=201)
    assert await epochs() == (root, group, meta + 2, version + 1)
    await xr.ask("DELETE", f"{SCHEMA}/versions/v2")
    assert await epochs() == (root, group, meta + 3, version + 1)
    await fill(xr, schema=f"{GROUP}/schemas/t")
    assert await epochs() == (root, group + 1, meta + 3, version + 1)
    await xr.ask("PUT", "/schemagroups/h", {}, status=201)
    assert await epochs() == (root + 1, group + 1, meta + 3, version + 1)
    await xr.ask("PATCH", DETAILS, {"meta": {"labels": {"a": "b"}}})
    assert await epochs() == (root + 1, group + 1, meta + 4, version + 1)
    await xr.ask("DELETE", f"{GROUP}/schemas/t")
    assert (await epochs())[1] == group + 2


async def test_epoch_conditions(xr: XregistryClient) -> None:
    """An epoch in a request must be the present one, unless it is null, the entity is new, or the flag ignores it."""
    await xr.ask("PUT", GROUP, {"epoch": 77}, status=201)
    await xr.ask("PUT", GROUP, {"epoch": None})
    await fill(xr)
    for path, body in (
        (GROUP, {}),
        (DETAILS, avro()),
        (f"{SCHEMA}/versions/1$details", avro()),
        (f"{SCHEMA}/meta", {}),
        ("/", {}),
    ):
        current = (await xr.read(path))["epoch"]
        await xr.ask("PUT", path, {**body, "epoch": current})
        answer = await xr.ask("PUT", path, {**body, "epoch": current}, code="mismatched_epoch")
        assert answer.json()["args"] == {"bad_epoch": str(current), "epoch": str(current + 1)}
        await xr.ask("PUT", f"{path}?ignore=epoch", {**body, "epoch": current})
    for path in (f"{SCHEMA}/versions/1", SCHEMA, GROUP):
        await xr.ask("DELETE", f"{path}?epoch=99", code="mismatched_epoch")


# --- schemas ----------------------------------------------------------------------------------------------------------


async def test_put_a_document(xr: XregistryClient) -> None:
    """PUT of a document creates the group, the schema and its version; a second PUT replaces the document."""
    headers = {"content_type": "application/json", "xRegistry_format": AVRO, "xRegistry_description": "D"}
    answer = await xr.ask("PUT", SCHEMA, A1, status=201, **headers)
    assert answer.headers["location"] == f"{ROOT}{DETAILS}"
    assert answer.text == A1
    assert answer.headers["content-location"] == f"{ROOT}{SCHEMA}/versions/1$details"
    again = await xr.ask("PUT", SCHEMA, A2, xRegistry_name="N")
    assert again.text == A2
    assert "location" not in again.headers
    body = await xr.read(f"{DETAILS}?inline")
    assert (body["name"], body["description"], body["format"]) == ("N", "D", AVRO)
    assert "contenttype" not in body
    assert list(body["versions"]) == ["1"]
    assert body["epoch"] == 2
    await xr.ask("PUT", SCHEMA, A2, xRegistry_name="null", xRegistry_labels__a="b", content_type="application/json")
    body = await xr.read(DETAILS)
    assert "name" not in body
    assert body["labels"] == {"a": "b"}
    assert body["contenttype"] == "application/json"
    await xr.ask("PUT", SCHEMA, A2, xRegistry_labels__c="d")
    assert (await xr.read(DETAILS))["labels"] == {"c": "d"}
    await xr.ask("PUT", f"{GROUP}/schemas/x", A1, code="required_attribute_missing")
    await xr.ask("PUT", SCHEMA, A1, code="mismatched_id", xRegistry_schemaid="t")
    await xr.ask("PUT", SCHEMA, A1, code="mismatched_epoch", xRegistry_epoch="77")


async def test_headers(xr: XregistryClient) -> None:
    """Values in headers are percent-encoded, may be quoted, and must be UTF-8; metadata are in one place only."""
    await fill(xr)
    euro = "Euro \u20ac \U0001f600"
    await xr.ask("PUT", SCHEMA, A1, xRegistry_name="Euro%20%E2%82%AC%20%F0%9F%98%80")
    answer = await xr.ask("GET", SCHEMA)
    assert answer.headers["xregistry-name"] == "Euro%20%E2%82%AC%20%F0%9F%98%80"
    assert (await xr.read(DETAILS))["name"] == euro
    await xr.ask("PUT", SCHEMA, A1, xRegistry_name='"a \\"b\\" %e2%82%ac"', xRegistry_ext="5")
    body = await xr.read(DETAILS)
    assert body["name"] == 'a "b" \u20ac'
    assert body["ext"] == "5"
    assert (await xr.ask("GET", SCHEMA)).headers["xregistry-ext"] == "5"
    for wrong in ("%C0%A0", "%FF"):
        await xr.ask("PUT", SCHEMA, A1, code="header_error", xRegistry_name=wrong)
    await xr.ask("PUT", SCHEMA, A1, code="header_error", xRegistry_epoch="x")
    for name in ("xRegistry_schema", "xRegistry_schemabase64"):
        await xr.ask("PUT", SCHEMA, A1, code="extra_xregistry_header", **{name: "x"})
    await xr.ask("PUT", DETAILS, avro(), code="extra_xregistry_header", xRegistry_name="x")
    url = "http://example.com/x"
    await xr.ask("PUT", SCHEMA, A1, code="extra_xregistry_header", xRegistry_schemaurl=url)
    await xr.ask("PUT", SCHEMA, "", status=303, xRegistry_schemaurl=url)
    assert (await xr.ask("GET", SCHEMA, status=303)).headers["location"] == url


async def test_document_members(xr: XregistryClient) -> None:
    """A document is given as JSON, as text, in base64 or as a URL, by one member only; null is an empty document."""
    await xr.ask("PUT", DETAILS, avro(), status=201)
    assert (await xr.read(DETAILS))["contenttype"] == "application/json"
    odd = '{"type" : "record","name":"R",  "namespace":"n","fields":[ ]}'
    body = f'{{"format": "{AVRO}", "schema": {odd}}}'
    await xr.ask("PUT", DETAILS, body)
    assert (await xr.ask("GET", SCHEMA)).text == odd
    await xr.ask("PUT", DETAILS, {"format": AVRO, "name": "kept"})
    assert (await xr.ask("GET", SCHEMA)).text == odd
    assert "contenttype" not in await xr.read(DETAILS)
    await xr.ask("PUT", DETAILS, {"format": AVRO, "schemabase64": "InN0cmluZyI="})
    answer = await xr.ask("GET", SCHEMA)
    assert answer.text == '"string"'
    await xr.ask("PATCH", DETAILS, {"schema": "int"})
    assert (await xr.ask("GET", SCHEMA)).text == '"int"'
    await xr.ask("PATCH", DETAILS, {"schema": A1, "contenttype": "text/x"})
    answer = await xr.ask("GET", SCHEMA)
    assert (answer.text, answer.headers["content-type"]) == (A1, "text/x")
    await xr.ask("PATCH", DETAILS, {"schema": json.loads(A2)})
    assert (await xr.read(DETAILS))["contenttype"] == "text/x"
    await xr.ask("PATCH", DETAILS, {"schemaurl": "http://example.com/x"})
    await xr.ask("PATCH", DETAILS, {"name": "x"})
    assert (await xr.read(DETAILS))["schemaurl"] == "http://example.com/x"
    await xr.ask("PATCH", DETAILS, {"schema": json.loads(A1)})
    assert "schemaurl" not in await xr.read(DETAILS)
    await xr.ask("PATCH", DETAILS, {"schema": None})
    assert (await xr.ask("GET", SCHEMA)).content == b""
    both = {"schema": json.loads(A1), "schemabase64": "e30="}
    await xr.ask("PATCH", DETAILS, both, code="one_resource")
    await xr.ask("PATCH", DETAILS, {"schemabase64": "%"}, code="invalid_attribute")
    await xr.ask("PATCH", DETAILS, {"schemaurl": ""}, code="invalid_attribute")


async def test_put_and_patch_metadata(xr: XregistryClient) -> None:
    """PUT of metadata replaces those of the default version, PATCH changes them and requires `$details`."""
    answer = await xr.ask("PUT", DETAILS, avro(name="N", odd={"x": 1}), status=201)
    assert answer.headers["location"] == answer.json()["self"]
    assert answer.headers["content-location"] == f"{ROOT}{SCHEMA}/versions/1$details"
    assert answer.json()["odd"] == {"x": 1}
    assert "schema" not in answer.json()
    assert "odd" not in (await xr.ask("PUT", DETAILS, avro())).json()
    assert (await xr.ask("PATCH", DETAILS, {"icon": "http://x.example"})).json()["format"] == AVRO
    await xr.ask("PATCH", SCHEMA, {}, code="details_required")
    await xr.ask("PATCH", f"{SCHEMA}/versions/1", {}, code="details_required")
    await xr.ask("PUT", DETAILS, "", code="missing_body")
    await xr.ask("PATCH", DETAILS, {"format": None}, code="required_attribute_missing")
    await xr.ask("PATCH", DETAILS, {"format": ""}, code="invalid_attribute")
    await xr.ask("PUT", DETAILS, avro(versionid="9"), code="mismatched_id")
    await xr.ask("PUT", DETAILS, avro(schemaid="9"), code="mismatched_id")
    await xr.ask("PUT", f"{DETAILS}?ignore=id", avro(schemaid="9", versionid="9"))
    readonly = {"isdefault": False, "versionscount": 9, "xid": 5, "formatvalidated": "x", "metaurl": 1}
    body = (await xr.ask("PATCH", DETAILS, {**readonly, "$schema": "x"})).json()
    assert body["isdefault"] is True
    assert body["versionscount"] == 1
    assert "$schema" not in body
    with_slash = await xr.ask("PUT", f"{SCHEMA}/versions/1$details/", avro())
    assert with_slash.status_code == 200


async def test_post_adds_versions(xr: XregistryClient) -> None:
    """POST to a schema adds a version with a generated id, or writes the version that it names."""
    answer = await xr.ask("POST", SCHEMA, A1, status=201, xRegistry_format=AVRO)
    url = f"{ROOT}{SCHEMA}/versions/1$details"
    assert answer.headers["location"] == answer.headers["content-location"] == url
    assert answer.headers["xregistry-xid"] == f"{SCHEMA}/versions/1"
    second = await xr.ask("POST", DETAILS, avro(A2, versionscount=5, metaurl="x"), status=201)
    assert (second.json()["versionid"], second.json()["ancestorid"]) == ("2", "1")
    named = await xr.ask("POST", DETAILS, avro(A2, versionid="v3", ancestorid="1"), status=201)
    assert named.json()["ancestorid"] == "1"
    changed = await xr.ask("POST", DETAILS, avro(A2, versionid="v3", name="x"))
    assert changed.json()["epoch"] == 2
    assert "location" not in changed.headers
    assert set(await xr.read(f"{SCHEMA}/versions")) == {"1", "2", "v3"}


async def test_generated_version_ids(xr: XregistryClient) -> None:
    """Generated ids count from 1 and are never reused, even if clients use such ids themselves."""
    await fill(xr, A1, A2)
    await xr.ask("DELETE", f"{SCHEMA}/versions/2")
    await fill(xr, A2)
    assert set(await xr.read(f"{SCHEMA}/versions")) == {"1", "3"}
    await xr.ask("PUT", f"{SCHEMA}/versions/4$details", avro(), status=201)
    await fill(xr, A2)
    assert set(await xr.read(f"{SCHEMA}/versions")) == {"1", "3", "4", "5"}
    url = {"format": AVRO, "schemaurl": "http://example.com/x"}
    assert (await xr.ask("POST", DETAILS, url, status=201)).json()["versionid"] == "6"


async def test_schemas_by_map(xr: XregistryClient) -> None:
    """Maps of schemas can be written to a group, to its collection and to the registry; all or nothing."""
    answer = await xr.ask("POST", f"{GROUP}/schemas", {"s": avro(), "t": avro(versionid="v1")})
    assert {name: each["versionid"] for name, each in answer.json().items()} == {"s": "1", "t": "v1"}
    answer = await xr.ask("POST", GROUP, {"schemas": {"u": avro()}})
    assert list(answer.json()) == ["schemas"]
    assert list(answer.json()["schemas"]) == ["u"]
    await xr.ask("POST", GROUP, {"name": "x"}, code="resources_only")
    await xr.ask("POST", GROUP, {"messages": {}}, code="unknown_resource_type")
    patched = await xr.ask("PATCH", f"{GROUP}/schemas", {"s": {"name": "x"}})
    assert patched.json()["s"]["name"] == "x"
    assert list(patched.json()) == ["s"]
    before = await xr.read("/export")
    wrong = {
        "schemagroups": {
            "g": {"name": "changed"},
            "new": {"schemas": {"a": avro(), "b": {"format": AVRO, "schema": 5}}},
        }
    }
    answer = await xr.ask("PUT", "/", wrong, code="format_violation")
    assert answer.json()["subject"] == "/schemagroups/new/schemas/b/versions/1"
    assert await xr.read("/export") == before
    await xr.ask("POST", f"{GROUP}/schemas", {"s": avro(), "x": {}}, code="required_attribute_missing")
    assert await xr.read("/export") == before


async def test_versions_by_map(xr: XregistryClient) -> None:
    """Maps of versions can be written; new ones get the newest as their ancestor, in the order of their ids."""
    answer = await xr.ask("POST", f"{SCHEMA}/versions", {"b": avro(A2), "a": avro(A1), "C": avro(A2)})
    assert {name: each["ancestorid"] for name, each in answer.json().items()} == {"a": "a", "b": "a", "C": "b"}
    assert (await xr.read(DETAILS))["versionid"] == "C"
    await xr.ask("PATCH", f"{SCHEMA}/versions", {"a": {"labels": {"x": "y"}}, "b": {"labels": {}}})
    assert (await xr.read(f"{SCHEMA}/versions/a$details"))["labels"] == {"x": "y"}
    await xr.ask("POST", f"{GROUP}/schemas/none/versions", {}, code="missing_versions")
    await xr.ask("POST", f"{SCHEMA}/versions", {"a": avro(versionid="b")}, code="mismatched_id")


async def test_resource_algorithm(xr: XregistryClient) -> None:
    """Attributes beside `versions` belong to the default version, unless `versions` has it or none is named."""
    tree = {"versionid": "v1", "name": "outer", **avro(), "versions": {"v1": avro(name="inner")}}
    await xr.ask("PUT", f"{GROUP}/schemas/a$details", tree, status=201)
    assert (await xr.read(f"{GROUP}/schemas/a$details"))["name"] == "inner"
    tree = {"versionid": "v2", "name": "outer", **avro(A2), "versions": {"v1": avro()}}
    await xr.ask("PUT", f"{GROUP}/schemas/b$details", tree, status=201)
    assert set(await xr.read(f"{GROUP}/schemas/b/versions")) == {"v1", "v2"}
    tree = {"name": "outer", **avro(A2), "meta": {"defaultversionid": "v9"}, "versions": {"v1": avro()}}
    await xr.ask("PUT", f"{GROUP}/schemas/c$details", tree, status=201)
    assert set(await xr.read(f"{GROUP}/schemas/c/versions")) == {"v1", "v9"}
    tree = {"name": "outer", "versions": {"v1": avro(), "v2": avro(A2)}}
    await xr.ask("PUT", f"{GROUP}/schemas/d$details", tree, status=201)
    assert set(await xr.read(f"{GROUP}/schemas/d/versions")) == {"v1", "v2"}
    body = await xr.read(f"{GROUP}/schemas/d$details")
    assert body["versionid"] == "v2"
    assert "name" not in body
    await xr.ask(
        "PATCH", f"{GROUP}/schemas/d$details", {"name": "x", "versions": {"v1": {"name": "y"}}, "versionsurl": 5}
    )
    assert (await xr.read(f"{GROUP}/schemas/d$details"))["name"] == "x"
    await xr.ask("PATCH", f"{GROUP}/schemas/d$details", {"versions": {}})
    assert set(await xr.read(f"{GROUP}/schemas/d/versions")) == {"v1", "v2"}


# --- meta and the default version ---


async def test_meta_entity(xr: XregistryClient) -> None:
    """A meta entity is read and written by its own path, and cannot be deleted."""
    await fill(xr, A1, A2)
    meta = await xr.read(f"{SCHEMA}/meta")
    assert meta["xid"] == f"{SCHEMA}/meta"
    assert meta["readonly"] is False
    assert meta["defaultversionsticky"] is False
    assert meta["defaultversionurl"] == f"{ROOT}{SCHEMA}/versions/2$details"
    assert "compatibility" not in meta
    put = (await xr.ask("PUT", f"{SCHEMA}/meta", {"labels": {"a": "b"}, "deprecated": {}, "readonly": True})).json()
    assert put["labels"] == {"a": "b"}
    assert put["deprecated"] == {}
    assert put["readonly"] is False
    assert "labels" not in (await xr.ask("PUT", f"{SCHEMA}/meta", {})).json()
    assert (await xr.read(DETAILS))["epoch"] == 1
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"odd": 1}, code="unknown_attribute")
    await xr.ask("PUT", f"{GROUP}/schemas/none/meta", {}, code="not_found")
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"schemaid": "x"}, code="mismatched_id")


async def read_default(xr: XregistryClient) -> tuple[str, bool]:
    """Return the id of the default version, and whether it was chosen."""
    meta = await xr.read(f"{SCHEMA}/meta")
    versions = await xr.read(f"{SCHEMA}/versions")
    assert [name for name, each in versions.items() if each["isdefault"]] == [meta["defaultversionid"]]
    assert (await xr.read(DETAILS))["versionid"] == meta["defaultversionid"]
    return meta["defaultversionid"], meta["defaultversionsticky"]


async def test_default_version(xr: XregistryClient) -> None:
    """The newest version is the default one unless one is chosen; if the chosen one is deleted, the newest is again."""
    await fill(xr, A1, A2)
    assert await read_default(xr) == ("2", False)
    before = (await xr.read(f"{SCHEMA}/versions"), await xr.read(f"{SCHEMA}/meta"))
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"defaultversionid": "1"})
    assert await read_default(xr) == ("1", True)
    versions, meta = await xr.read(f"{SCHEMA}/versions"), await xr.read(f"{SCHEMA}/meta")
    assert [each["epoch"] for each in versions.values()] == [each["epoch"] for each in before[0].values()]
    assert meta["epoch"] == before[1]["epoch"] + 1
    assert meta["modifiedat"] > before[1]["modifiedat"]
    await fill(xr, A2)
    assert await read_default(xr) == ("1", True)
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"defaultversionid": None})
    assert await read_default(xr) == ("3", False)
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"defaultversionsticky": True})
    assert await read_default(xr) == ("3", True)
    await xr.ask("PUT", f"{SCHEMA}/meta", {"defaultversionid": "1"})
    assert await read_default(xr) == ("3", False)
    await xr.ask("PUT", f"{SCHEMA}/meta", {"defaultversionid": "1", "defaultversionsticky": True})
    assert await read_default(xr) == ("1", True)
    await xr.ask("PUT", f"{SCHEMA}/meta", {"defaultversionsticky": True})
    assert await read_default(xr) == ("3", True)
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"defaultversionsticky": None})
    assert await read_default(xr) == ("3", False)
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"defaultversionid": "9"}, code="unknown_id")
    ignored = "ignore=defaultversionid,defaultversionsticky"
    await xr.ask("PATCH", f"{SCHEMA}/meta?{ignored}", {"defaultversionid": "9", "defaultversionsticky": True})
    assert await read_default(xr) == ("3", False)
    await xr.ask("PATCH", f"{SCHEMA}/meta", {"defaultversionid": "1"})
    await xr.ask("DELETE", f"{SCHEMA}/versions/1")
    assert await read_default(xr) == ("3", False)


async def test_set_default_flag(xr: XregistryClient) -> None:
    """In requests about one schema, the flag sets the default version and overrides the request's own value."""
    await fill(xr, A1, A2)
    await xr.ask("PATCH", f"{SCHEMA}/meta?setdefaultversionid=1", {"defaultversionid": "2"})
    assert await read_default(xr) == ("1", True)
    await xr.ask("PATCH", f"{SCHEMA}/meta?setdefaultversionid=null", {})
    assert await read_default(xr) == ("2", False)
    await xr.ask("POST", f"{DETAILS}?setdefaultversionid=request", avro(A2), status=201)
    assert await read_default(xr) == ("3", True)
    await xr.ask("PUT", f"{SCHEMA}/versions/4?setdefaultversionid=2", A2, status=201, xRegistry_format=AVRO)
    assert await read_default(xr) == ("2", True)
    await xr.ask("DELETE", f"{SCHEMA}/versions/2?setdefaultversionid=1")
    assert await read_default(xr) == ("1", True)
    await xr.ask("PATCH", f"{SCHEMA}/versions?setdefaultversionid=3", {"1": {}})
    assert await read_default(xr) == ("3", True)
    await xr.ask("PATCH", f"{SCHEMA}/meta?setdefaultversionid=9", {}, code="unknown_id")
    await xr.ask("PATCH", f"{SCHEMA}/meta?setdefaultversionid", {}, code="bad_defaultversionid")
    await xr.ask("PATCH", f"{SCHEMA}/meta?setdefaultversionid=request", {}, code="bad_flag")
    two = {"8": avro(A2), "9": avro(A2)}
    await xr.ask("POST", f"{SCHEMA}/versions?setdefaultversionid=request", two, code="too_many_versions")
    for method, path in (("PUT", GROUP), ("POST", "/schemagroups"), ("PUT", "/"), ("POST", f"{GROUP}/schemas")):
        await xr.ask(method, f"{path}?setdefaultversionid=1", {}, code="bad_flag")


# --- versions ---------------------------------------------------------------------------------------------------------


async def test_version_lifecycle(xr: XregistryClient) -> None:
    """A version is created, replaced and changed under its id, as a document or as metadata."""
    answer = await xr.ask("PUT", f"{SCHEMA}/versions/v1", A1, status=201, xRegistry_format=AVRO)
    assert answer.headers["location"] == f"{ROOT}{SCHEMA}/versions/v1$details" == answer.headers["content-location"]
    answer = await xr.ask("PUT", f"{SCHEMA}/versions/v2$details", avro(A2), status=201)
    assert answer.headers["location"] == answer.json()["self"]
    await xr.ask("PUT", f"{SCHEMA}/versions/v1$details", avro(A1, name="x"))
    await xr.ask("PATCH", f"{SCHEMA}/versions/v1$details", {"description": "y"})
    body = await xr.read(f"{SCHEMA}/versions/v1$details")
    assert (body["name"], body["description"], body["isdefault"]) == ("x", "y", False)
    await xr.ask("PUT", f"{SCHEMA}/versions/v1$details?ignore=id", avro(schemaid="q", versionid="q"))
    await xr.ask("PUT", f"{SCHEMA}/versions/v1$details", avro(schemaid="q"), code="mismatched_id")


async def test_ancestors(xr: XregistryClient) -> None:
    """Ancestors must exist and form no circle; descendants of a deleted version become roots."""
    await fill(xr, A1, A2, A2)
    branch = await xr.ask("PUT", f"{SCHEMA}/versions/b$details", avro(A2, ancestorid="1"), status=201)
    assert branch.json()["ancestorid"] == "1"
    root = await xr.ask("POST", DETAILS, avro(A2, ancestorid="request"), status=201)
    assert root.json()["ancestorid"] == root.json()["versionid"]
    update = await xr.ask("PUT", f"{SCHEMA}/versions/b$details", avro(A2))
    assert update.json()["ancestorid"] == "1"
    await xr.ask("PATCH", f"{SCHEMA}/versions/b$details", {"ancestorid": "9"}, code="unknown_id")
    await xr.ask("PATCH", f"{SCHEMA}/versions/1$details", {"ancestorid": "3"}, code="ancestor_circular_reference")
    before = await xr.read(f"{SCHEMA}/versions/3$details")
    await xr.ask("DELETE", f"{SCHEMA}/versions/2")
    after = await xr.read(f"{SCHEMA}/versions/3$details")
    assert after["ancestorid"] == "3"
    assert after["epoch"] == before["epoch"] + 1
    assert after["modifiedat"] > before["modifiedat"]


async def test_newest_version(xr: XregistryClient) -> None:
    """The newest version has no descendants and was created last; of several, it has the highest id."""
    same = "2024-01-01T00:00:00Z"
    versions = {
        "a": avro(createdat="2025-01-01T00:00:00Z"),
        "b": avro(A2, ancestorid="a", createdat=same),
        "C": avro(A2, ancestorid="a", createdat=same),
    }
    await xr.ask("POST", f"{SCHEMA}/versions", versions)
    assert (await read_default(xr))[0] == "C"
    await xr.ask("PATCH", f"{SCHEMA}/versions/b$details", {"createdat": "2024-01-01T00:00:00.5Z"})
    assert (await read_default(xr))[0] == "b"


async def test_same_document_twice(xr: XregistryClient) -> None:
    """Two versions may have one document."""
    await fill(xr, A1, A1)
    assert set(await xr.read(f"{SCHEMA}/versions")) == {"1", "2"}


# --- deleting ---------------------------------------------------------------------------------------------------------


async def test_delete_collections(xr: XregistryClient) -> None:
    """A map deletes the named entities, with conditions; without a body all are deleted; missing ones are no error."""
    for name in "abcd":
        await fill(xr, A1, A2, schema=f"{GROUP}/schemas/{name}")
    schemas = f"{GROUP}/schemas"
    await xr.ask("DELETE", schemas, {})
    await xr.ask("DELETE", schemas, {"a": {"epoch": 1}}, code="misplaced_epoch")
    await xr.ask("DELETE", schemas, {"b": {}, "a": {"meta": {"epoch": 99}}}, code="mismatched_epoch")
    await xr.ask("DELETE", schemas, {"a": {"schemaid": "b"}}, code="mismatched_id")
    assert len(await xr.read(schemas)) == 4
    epoch = (await xr.read(f"{schemas}/a/meta"))["epoch"]
    await xr.ask("DELETE", schemas, {"a": {"epoch": 99, "meta": {"epoch": epoch}, "odd": []}, "none": {}})
    assert list(await xr.read(schemas)) == ["b", "c", "d"]
    versions = f"{schemas}/b/versions"
    await xr.ask("DELETE", versions, {"1": {"epoch": 5}}, code="mismatched_epoch")
    await xr.ask("DELETE", versions, {"1": {"epoch": 1}})
    assert list(await xr.read(versions)) == ["2"]
    await xr.ask("DELETE", f"{schemas}/c/versions")
    await xr.ask("GET", f"{schemas}/c", code="not_found")
    await xr.ask("DELETE", f"{schemas}/b/versions/2")
    assert list(await xr.read(schemas)) == ["d"]
    await xr.ask("DELETE", schemas)
    assert await xr.read(schemas) == {}
    for name in "hi":
        await fill(xr, schema=f"/schemagroups/{name}/schemas/s")
    await xr.ask("DELETE", "/schemagroups", {"g": {"epoch": 99}, "h": {}}, code="mismatched_epoch")
    await xr.ask("DELETE", "/schemagroups", {"h": {"schemagroupid": "h"}})
    assert list(await xr.read("/schemagroups")) == ["g", "i"]
    await xr.ask("DELETE", "/schemagroups")
    assert await xr.read("/schemagroups") == {}


async def test_deleted_things_come_back_new(xr: XregistryClient) -> None:
    """An entity that is created again under an id has nothing of the deleted one."""
    await xr.ask("PUT", "/schemagroups/default/schemas/s$details", avro(name="old"), status=201)
    await xr.ask("PATCH", "/schemagroups/default", {"labels": {"a": "b"}})
    await xr.ask("DELETE", "/schemagroups/default")
    await xr.ask("GET", "/schemagroups/default", code="not_found")
    await xr.ask("PUT", "/schemagroups/default/schemas/s$details", avro(), status=201)
    group = await xr.read("/schemagroups/default?inline=schemas")
    assert "labels" not in group
    assert "name" not in group["schemas"]["s"]
    assert group["schemas"]["s"]["epoch"] == 1


# --- references to other schemas --------------------------------------------------------------------------------------


async def test_cross_references(xr: XregistryClient) -> None:
    """A schema with a cross reference is read as its target under its own ids, and cannot be written otherwise."""
    await fill(xr, A1, A2, name="target")
    link = "/schemagroups/h/schemas/link"
    await xr.ask("PUT", f"{link}$details", {"meta": {"xref": SCHEMA}}, status=201)
    body = await xr.read(f"{link}$details?inline")
    assert (body["schemaid"], body["name"], body["xid"]) == ("link", "target", link)
    assert body["meta"]["xref"] == SCHEMA
    assert set(body["versions"]) == {"1", "2"}
    assert body["versions"]["1"]["xid"] == f"{link}/versions/1"
    assert (await xr.ask("GET", link)).text == (await xr.ask("GET", SCHEMA)).text
    document = await xr.read("/export")
    exported = document["schemagroups"]["h"]["schemas"]["link"]
    assert set(exported) == {"schemaid", "self", "xid", "metaurl", "meta"}
    assert set(exported["meta"]) == {"schemaid", "self", "xid", "xref"}
    await xr.ask("GET", f"{link}/versions?doc", code="cannot_doc_xref")
    await xr.ask("PATCH", f"{link}$details", {"name": "x"}, code="extra_xref_attribute")
    await xr.ask("PUT", f"{link}$details", {"name": "x", "meta": {"xref": SCHEMA}}, code="extra_xref_attribute")
    for wrong in ("x", "/schemagroups/g", "/other/g/schemas/s", 5):
        await xr.ask("PATCH", f"{link}/meta", {"xref": wrong}, code="malformed_xref")
    await xr.ask("PATCH", f"{link}/meta", {"xref": "/schemagroups/g/schemas/none"})
    dangling = await xr.read(f"{link}$details?inline=meta")
    assert set(dangling) == {"schemaid", "self", "xid", "metaurl", "meta"}
    await xr.ask("PATCH", f"{link}/meta", {"xref": SCHEMA})
    target = (await xr.read(f"{SCHEMA}/meta"))["epoch"]
    await xr.ask("PUT", f"{link}$details", {"meta": {"xref": None}, **avro(A3)})
    own = await xr.read(f"{link}$details?inline=meta")
    assert "xref" not in own["meta"]
    assert own["meta"]["epoch"] > target
    assert own["versionscount"] == 1
    await xr.ask("PUT", f"{link}$details", {"meta": {"xref": SCHEMA}})
    assert set(await xr.read(f"{link}/versions")) == {"1", "2"}


# --- concurrency ------------------------------------------------------------------------------------------------------


async def test_concurrent_writes_are_all_done(xr: XregistryClient) -> None:
    """Concurrent writes are repeated on the changes of the others: no version is lost or duplicated."""
    await fill(xr)
    await asyncio.gather(*(xr.ask("POST", DETAILS, avro(A2, name=f"n{number}"), status=201) for number in range(12)))
    versions = await xr.read(f"{SCHEMA}/versions")
    assert len(versions) == 13
    assert {each.get("name") for each in versions.values()} == {
        None,
        *(f"n{i}" for i in range(12)),
    }
    chain = {each["ancestorid"] for each in versions.values()}
    assert len(chain) == 12
