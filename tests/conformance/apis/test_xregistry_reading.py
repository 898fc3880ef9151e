"""xRegistry: reading, and the flags of reading. Numbers of sentences: `xregistry/sentences.table`."""

from __future__ import annotations

import asyncio
import base64
from datetime import datetime
from typing import Any

import httpx
import pytest
from tests.conformance.apis.xregistry_client import (
    A1,
    A2,
    AVRO,
    DETAILS,
    DOCUMENT_SCHEMA,
    GROUP,
    ROOT,
    SCHEMA,
    XregistryClient,
    avro,
    fill,
    load_json,
)
from tests.conformance.apis.xregistry_world import build_app, xr

from stele.service.registry import Registry

__all__ = ["build_app", "xr"]
pytestmark = pytest.mark.asyncio(loop_scope="module")


async def build_tree(xr: XregistryClient) -> None:
    """Create two groups with three schemas: g/s has two versions, g/t has one, h/u has one of Protobuf."""
    await xr.ask("PUT", GROUP, {"name": "Group G", "labels": {"stage": "dev"}}, status=201)
    await fill(xr, A1, A2)
    await fill(xr, A1, schema=f"{GROUP}/schemas/t", name="Tea", labels={"env": "prod"})
    proto = 'syntax = "proto3";\nmessage M {}\n'
    body = {"format": "Protobuf/3", "schema": proto, "contenttype": "text/plain", "description": "A cool thing"}
    await xr.ask("PUT", "/schemagroups/h/schemas/u$details", body, status=201)


# --- the registry -----------------------------------------------------------------------------------------------------


async def test_registry_entity(xr: XregistryClient) -> None:
    """The root has its attributes and its collection, but not model and capabilities."""
    body = await xr.read("/")
    assert body["specversion"] == "1.0-rc4"
    assert body["registryid"]
    assert body["xid"] == "/"
    assert body["self"] == f"{ROOT}/"
    assert body["epoch"] >= 0
    assert not {"capabilities", "model", "modelsource", "schemagroups", "shortself"} & set(body)
    assert body["schemagroupsurl"] == f"{ROOT}/schemagroups"
    assert body["schemagroupscount"] == 0
    for name in ("createdat", "modifiedat"):
        assert datetime.fromisoformat(body[name]).utcoffset().total_seconds() == 0
    assert (await xr.ask("GET", "")).json() == body


async def test_root_stays_the_same(xr: XregistryClient) -> None:
    """Reading changes nothing, and the same request gets the same response."""
    await build_tree(xr)
    first = await xr.read("/?inline=*")
    await asyncio.sleep(0.002)
    assert await xr.read("/?inline=*") == first


async def test_configuration(xr: XregistryClient) -> None:
    """Capabilities and models are the same by themselves and inlined, and are inlined only by name."""
    inlined = await xr.read("/?inline=capabilities,model,modelsource")
    for name in ("capabilities", "model", "modelsource"):
        assert inlined[name] == await xr.read(f"/{name}")
    assert not {"capabilities", "model", "modelsource"} & set(await xr.read("/?inline=*"))
    assert "model" in await xr.read("/?inline=*,model")


async def test_capabilities(xr: XregistryClient) -> None:
    """All capabilities are listed, without wildcards, and the only possible value of each is the present one."""
    body = await xr.read("/capabilities")
    available = body["available"]
    assert {"capabilities", "entities", "model"} <= set(available)
    assert available["model"] == {"mutable": False}
    assert available["entities"] == {"mutable": True}
    assert "*" not in [*body["flags"], *body["ignores"], *body["formats"]]
    assert body["specversions"] == ["1.0-rc4"]
    assert body["versionmodes"] == ["manual"]
    assert set(body["compatibilities"]) <= set(body["formats"])
    offered = await xr.read("/capabilitiesoffered")
    assert set(offered) == set(body)
    assert offered["shortself"] == {"type": "boolean", "enum": [False]}
    assert offered["flags"] == {"type": "array", "item": {"type": "string"}, "enum": body["flags"]}
    for name in available:
        if name != "entities":
            await xr.ask("GET", f"/{name}")


async def test_model(xr: XregistryClient) -> None:
    """The model contains the published schema extension, and every attribute of a response."""
    model, source = await xr.read("/model"), await xr.read("/modelsource")
    published = load_json("model.json")["groups"]["schemagroups"]
    ours = source["groups"]["schemagroups"]
    for name in ("singular", "modelversion", "modelcompatiblewith", "attributes", "constraints"):
        assert ours[name] == published[name]
    resource, wanted = ours["resources"]["schemas"], dict(published["resources"]["schemas"])
    wanted["attributes"]["*"].pop("name")
    for name, value in wanted.items():
        assert resource[name] == value
    whole = model["groups"]["schemagroups"]
    assert whole["plural"] == "schemagroups"
    schema = whole["resources"]["schemas"]
    assert (schema["hasdocument"], schema["versionmode"], schema["setversionid"]) == (True, "manual", True)
    await build_tree(xr)
    tree = await xr.read("/?inline=*,model,capabilities,modelsource")
    group = tree["schemagroups"]["g"]
    entity = group["schemas"]["s"]
    assert set(tree) <= set(model["attributes"])
    assert set(group) <= set(whole["attributes"])
    assert set(entity) <= set(schema["attributes"]) | set(schema["resourceattributes"])
    assert set(entity["meta"]) <= set(schema["metaattributes"])
    assert set(entity["versions"]["1"]) <= set(schema["attributes"])
    for definitions in (model["attributes"], schema["attributes"], schema["metaattributes"]):
        assert all(each["name"] == name for name, each in definitions.items())


async def test_model_and_capabilities_are_fixed(xr: XregistryClient) -> None:
    """Parts that are reported as not mutable cannot be changed, by their own path or with the registry."""
    for path in ("/model", "/modelsource", "/capabilities", "/capabilitiesoffered", "/export"):
        for method in ("PUT", "PATCH", "POST", "DELETE"):
            answer = await xr.ask(method, path, {}, code="action_not_supported")
            assert "GET" in answer.headers["allow"]
    same = await xr.read("/?inline=capabilities,modelsource")
    await xr.ask("PUT", "/", {"capabilities": same["capabilities"], "modelsource": same["modelsource"]})
    await xr.ask("PATCH", "/", {"capabilities": None})
    await xr.ask("PATCH", "/", {"capabilities": {"flags": ["*"]}})
    await xr.ask("PATCH", "/", {"capabilities": {"shortself": True}}, code="capability_error")
    await xr.ask("PATCH", "/", {"capabilities": {"odd": True}}, code="capability_unknown")
    await xr.ask("PATCH", "/", {"capabilities": {"flags": ["*", "doc"]}}, code="capability_wildcard")
    await xr.ask("PATCH", "/", {"capabilities": {"specversions": ["9"]}}, code="capability_missing_value")
    await xr.ask("PATCH", "/", {"modelsource": {}}, code="model_error")
    await xr.ask("PATCH", "/?ignore=capabilities,modelsource", {"capabilities": {"odd": 1}, "modelsource": {}})


async def test_methods_and_paths(xr: XregistryClient) -> None:
    """Unknown paths and methods get their errors; OPTIONS lists the methods."""
    await build_tree(xr)
    await xr.ask("GET", "/endpoints", code="unknown_group_type")
    await xr.ask("GET", f"{GROUP}/messages", code="unknown_resource_type")
    await xr.ask("GET", f"{SCHEMA}/more", code="api_not_found")
    await xr.ask("DELETE", f"{SCHEMA}/meta", code="action_not_supported")
    await xr.ask("PUT", "/schemagroups", {}, code="action_not_supported")
    await xr.ask("PUT", f"{SCHEMA}/versions", {}, code="action_not_supported")
    answer = await xr.ask("OPTIONS", f"{SCHEMA}/versions")
    methods = answer.headers["allow"]
    assert methods == answer.headers["access-control-allow-methods"]
    assert "OPTIONS" in methods


async def test_head_is_get_without_a_body(xr: XregistryClient) -> None:
    """HEAD has the headers of GET."""
    await build_tree(xr)
    for path in ("/", GROUP, SCHEMA, DETAILS, f"{SCHEMA}/versions/1"):
        whole, head = await xr.ask("GET", path), await xr.ask("HEAD", path)
        assert head.content == b""
        assert head.headers["content-type"] == whole.headers["content-type"]


# --- links ------------------------------------------------------------------------------------------------------------


def walk(body: Any) -> list[dict[str, Any]]:
    """Return all objects in a value."""
    if isinstance(body, dict):
        return [body, *(each for value in body.values() for each in walk(value))]
    return []


async def test_links_lead_to_entities(xr: XregistryClient) -> None:
    """Every `self`, and every URL of a collection or meta entity, leads to its target; XIDs are paths."""
    await build_tree(xr)
    seen: set[str] = set()
    for entity in walk(await xr.read("/?inline=*")):
        if "xid" not in entity:
            continue
        assert entity["xid"] not in seen
        seen.add(entity["xid"])
        path = entity["self"].removeprefix(ROOT)
        assert path.removesuffix("$details") == entity["xid"]
        is_document = "versionid" in entity
        assert path.endswith("$details") == is_document
        there = await xr.read(path)
        assert there == {name: value for name, value in entity.items() if name in there}
        for name, value in entity.items():
            if name in {"metaurl", "versionsurl", "schemasurl", "schemagroupsurl", "defaultversionurl"}:
                await xr.ask("GET", value.removeprefix(ROOT))
    assert {"/", "/schemagroups/g/schemas/s/versions/2", "/schemagroups/g/schemas/s/meta"} <= seen


async def test_collections(xr: XregistryClient) -> None:
    """A collection is a map by id with a count, and is empty if it has no entities."""
    assert await xr.read("/schemagroups") == {}
    assert (await xr.read("/?inline=schemagroups"))["schemagroups"] == {}
    await build_tree(xr)
    groups = await xr.read("/schemagroups")
    assert list(groups) == ["g", "h"]
    assert groups["g"]["schemagroupid"] == "g"
    assert groups["g"]["schemascount"] == 2
    schemas = await xr.read(f"{GROUP}/schemas")
    assert list(schemas) == ["s", "t"]
    assert schemas["s"]["versionscount"] == 2
    versions = await xr.read(f"{SCHEMA}/versions")
    assert list(versions) == ["1", "2"]
    assert versions["1"]["versionid"] == "1"
    assert "schema" not in versions["1"]


async def test_not_found(xr: XregistryClient) -> None:
    """A missing entity is not found, also under an id in another case; the error names it."""
    await build_tree(xr)
    for path in ("/schemagroups/x", "/schemagroups/G", f"{GROUP}/schemas/S", f"{SCHEMA}/versions/9"):
        answer = await xr.ask("GET", path, code="not_found")
        assert answer.json()["subject"] == path
    await xr.ask("GET", "/schemagroups/x/schemas", code="not_found")
    await xr.ask("GET", f"{GROUP}/schemas/x/meta", code="not_found")
    await xr.ask("GET", f"{GROUP}$details", code="bad_details")
    await xr.ask("GET", f"{DETAILS}/meta", code="bad_details")


# --- documents --------------------------------------------------------------------------------------------------------


async def test_document_view(xr: XregistryClient) -> None:
    """Without `$details` the response is the document byte for byte, with its attributes in headers."""
    headers = {"xRegistry_name": "N%C3%BC", "xRegistry_labels__env": "a%20b", "xRegistry_format": AVRO}
    odd = A1.replace(",", ",\n  ")
    await xr.ask("PUT", SCHEMA, odd, status=201, content_type="application/json; x=1", **headers)
    for path, xid in ((SCHEMA, SCHEMA), (f"{SCHEMA}/versions/1", f"{SCHEMA}/versions/1")):
        answer = await xr.ask("GET", path)
        assert answer.text == odd
        assert answer.headers["content-type"] == "application/json; x=1"
        attributes = {name: value for name, value in answer.headers.items() if name.startswith("xregistry-")}
        assert attributes["xregistry-name"] == "N%C3%BC"
        assert attributes["xregistry-labels.env"] == "a%20b"
        assert attributes["xregistry-xid"] == xid
        assert attributes["xregistry-self"] == f"{ROOT}{xid}$details"
        assert attributes["xregistry-versionid"] == "1"
        assert attributes["xregistry-schemaid"] == "s"
        assert attributes["xregistry-isdefault"] == "true"
        assert attributes["xregistry-formatvalidated"] == "true"
        assert not {"xregistry-contenttype", "xregistry-schema", "xregistry-schemabase64", "xregistry-meta"} & set(
            attributes
        )
        assert answer.headers["content-disposition"] == "s"
        assert ("xregistry-versionscount" in attributes) == (path == SCHEMA)
        assert answer.headers["content-location"] == f"{ROOT}{SCHEMA}/versions/1$details"
    body = await xr.read(DETAILS)
    assert body["name"] == "Nü"
    assert body["labels"] == {"env": "a b"}


async def test_external_document(xr: XregistryClient) -> None:
    """A document at another URL is answered by a redirect, and its URL is an attribute that is always shown."""
    body = {"format": AVRO, "schemaurl": "http://example.com/s.avsc"}
    await xr.ask("PUT", DETAILS, body, status=201)
    answer = await xr.ask("GET", SCHEMA, status=303)
    assert answer.headers["location"] == body["schemaurl"] == answer.headers["xregistry-schemaurl"]
    assert answer.content == b""
    entity = await xr.read(f"{DETAILS}?inline=schema")
    assert entity["schemaurl"] == body["schemaurl"]
    assert not {"schema", "schemabase64"} & set(entity)
    assert (entity["formatvalidated"], bool(entity["formatvalidatedreason"])) == (False, True)


async def test_inlined_documents(xr: XregistryClient) -> None:
    """A document is inlined as JSON, as text or in base64, depending on its type; an empty one as empty base64."""
    text = 'syntax = "proto3";\nmessage M {}\n'
    documents = {
        "json": ("application/json", A1, AVRO, {"schema"}),
        "suffix": ("application/x+json", A1, AVRO, {"schema"}),
        "text": ("text/plain", text, "Protobuf/3", {"schema"}),
        "broken": ("application/json", text, "Protobuf/3", {"schemabase64"}),
        "other": ("application/protobuf", text, "Protobuf/3", {"schemabase64"}),
        "empty": ("application/json", "", AVRO, {"schemabase64"}),
    }
    for name, (content_type, document, kind, members) in documents.items():
        path = f"{GROUP}/schemas/{name}"
        await xr.ask("PUT", path, document, status=201, content_type=content_type, xRegistry_format=kind)
        entity = await xr.read(f"{path}$details?inline=schema")
        assert {"schema", "schemabase64"} & set(entity) == members, name
        if "schemabase64" in members:
            assert base64.b64decode(entity["schemabase64"]).decode() == document
        binary = await xr.read(f"{path}/versions/1$details?inline=schema&binary")
        assert base64.b64decode(binary["schemabase64"]).decode() == document
        assert "schema" not in binary
        assert not {"schema", "schemabase64"} & set(await xr.read(f"{path}$details"))


# --- inline -----------------------------------------------------------------------------------------------------------


async def test_inline(xr: XregistryClient) -> None:
    """Paths of members to inline begin at the requested entity, and include their parents."""
    await build_tree(xr)
    one = await xr.read("/?inline=schemagroups.schemas")
    schema = one["schemagroups"]["g"]["schemas"]["s"]
    assert not {"meta", "versions", "schema"} & set(schema)
    deep = await xr.read("/?inline=schemagroups.schemas.versions.schema,schemagroups.schemas.meta")
    schema = deep["schemagroups"]["g"]["schemas"]["s"]
    assert "schema" not in schema
    assert "meta" in schema
    assert "schema" in schema["versions"]["1"]
    assert "schemas" in (await xr.read(f"{GROUP}?inline=schemas"))
    assert "meta" in (await xr.read(f"{GROUP}/schemas?inline=meta"))["s"]
    whole = await xr.read(f"{DETAILS}?inline")
    assert {"meta", "versions", "schema"} <= set(whole)
    assert (
        whole
        == await xr.read(f"{DETAILS}?inline=*")
        == await xr.read(f"{DETAILS}?inline=meta&inline=schema,versions.*")
    )
    written = await xr.ask("PATCH", f"{DETAILS}?inline=meta", {"name": "x"})
    assert "meta" in written.json()
    for wrong in ("endpoints", "schemagroups.x", "x*", "*.schemas", "schemagroups.schemas.schemabase64"):
        await xr.ask("GET", f"/?inline={wrong}", code="bad_inline")
    await xr.ask("GET", f"{GROUP}?inline=schemagroups", code="bad_inline")
    await xr.ask("GET", "/?inline=name", code="inline_noninlineable")
    await xr.ask("PUT", f"{DETAILS}?inline=odd", avro(A1), code="bad_inline")


async def test_collections_flag(xr: XregistryClient) -> None:
    """The flag shows only the collections of the registry or a group, in full; for other entities it is refused."""
    await build_tree(xr)
    body = await xr.read("/?collections")
    assert set(body) <= {"schemagroups", "schemagroupsurl", "schemagroupscount"}
    assert "schema" in body["schemagroups"]["g"]["schemas"]["s"]["versions"]["1"]
    group = await xr.read(f"{GROUP}?collections")
    assert set(group) <= {"schemas", "schemasurl", "schemascount"}
    assert set(group["schemas"]) == {"s", "t"}
    for path in ("/schemagroups", f"{GROUP}/schemas", DETAILS, f"{SCHEMA}/meta", f"{SCHEMA}/versions"):
        await xr.ask("GET", f"{path}?collections", code="bad_flag")


# --- the document view ------------------------------------------------------------------------------------------------


def find_pointer(document: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer."""
    assert pointer.startswith("#")
    for part in pointer[1:].split("/")[1:]:
        if part:
            document = document[part.replace("~1", "/").replace("~0", "~")]
    return document


async def test_document_of_the_registry(xr: XregistryClient) -> None:
    """In the document view nothing is repeated, and links point into the document."""
    await build_tree(xr)
    export = await xr.read("/export")
    assert export == await xr.read("/?doc&inline=*,capabilities,modelsource")
    assert not list(DOCUMENT_SCHEMA.iter_errors(export))
    for entity in walk(export):
        if "xid" in entity:
            assert find_pointer(export, entity["self"])["xid"] == entity["xid"]
            assert "$details" not in entity["self"]
            assert not {"formatvalidated", "compatibilityvalidated", "shortself"} & set(entity)
        if "metaurl" in entity:
            assert find_pointer(export, entity["metaurl"]) == entity["meta"]
            assert not {"versionid", "epoch", "format", "isdefault"} & set(entity)
        if "defaultversionurl" in entity:
            assert find_pointer(export, entity["defaultversionurl"])["isdefault"] is True
        if "schemasurl" in entity:
            assert find_pointer(export, entity["schemasurl"]) == entity["schemas"]
    assert "schemas" not in (await xr.read("/export?inline=schemagroups"))["schemagroups"]["g"]


async def test_document_of_parts(xr: XregistryClient) -> None:
    """The document view begins at the requested entity; links to entities outside of it stay absolute."""
    await build_tree(xr)
    for path, pointer in (
        ("/schemagroups", "#/g/schemas/s"),
        (GROUP, "#/schemas/s"),
        (f"{GROUP}/schemas", "#/s"),
        (SCHEMA, "#/"),
    ):
        body = await xr.read(f"{path}?doc&inline")
        assert pointer in [each.get("self") for each in walk(body)], path
    bare = await xr.read(f"{DETAILS}?doc")
    assert bare["metaurl"] == f"{ROOT}{SCHEMA}/meta"
    assert bare["versionsurl"] == f"{ROOT}{SCHEMA}/versions"
    assert "format" not in bare
    meta = await xr.read(f"{DETAILS}?doc&inline=meta")
    assert meta["meta"]["defaultversionurl"] == f"{ROOT}{SCHEMA}/versions/2$details"
    version = await xr.read(f"{SCHEMA}/versions/1?doc")
    assert version["versionid"] == "1"
    assert "formatvalidated" not in version


# --- filter -----------------------------------------------------------------------------------------------------------


async def find_ids(xr: XregistryClient, filters: str) -> set[str]:
    """Return the schemas that pass filters, as `group/schema`."""
    body = await xr.read(f"/?inline=schemagroups.schemas&{filters}")
    return {f"{group}/{name}" for group, each in body["schemagroups"].items() for name in each.get("schemas", {})}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("filter=schemagroups.schemas.schemaid=s", {"g/s"}),
        ("filter=schemagroups.schemas.name=tea", {"g/t"}),
        ("filter=schemagroups.schemas.name", {"g/t"}),
        ("filter=schemagroups.schemas.name=*", {"g/t"}),
        ("filter=schemagroups.schemas.name=null", {"g/s", "h/u"}),
        ("filter=schemagroups.schemas.name!=null", {"g/t"}),
        ("filter=schemagroups.schemas.name<>Tea", {"g/s", "h/u"}),
        ("filter=schemagroups.schemas.description=*COOL*", {"h/u"}),
        ("filter=schemagroups.schemas.labels.env=prod", {"g/t"}),
        ("filter=schemagroups.schemas.labels['env']=prod", {"g/t"}),
        ("filter=schemagroups.schemas.labels.*=prod", {"g/t"}),
        ("filter=schemagroups.schemas.versionscount>1", {"g/s"}),
        ("filter=schemagroups.schemas.versionscount<=1", {"g/t", "h/u"}),
        ("filter=schemagroups.schemas.meta.readonly=false", {"g/s", "g/t", "h/u"}),
        ("filter=schemagroups.schemas.versions.versionid=2", {"g/s"}),
        ("filter=schemagroups.schemas.format=avro/*,schemagroups.schemas.schemaid>s", {"g/t"}),
        ("filter=schemagroups.schemagroupid=h&filter=schemagroups.schemas.schemaid=s", {"g/s", "h/u"}),
        ("filter=schemagroups.schemagroupid=g,schemagroups.schemas.schemaid=s", {"g/s"}),
        ("filter=schemagroups.name=group g", {"g/s", "g/t"}),
        ("filter=schemagroups.schemas.name=\\*", set()),
    ],
)
async def test_filters(xr: XregistryClient, filters: str, expected: set[str]) -> None:
    """An entity passes if all expressions of one filter match; strings match in any case, with wildcards."""
    await build_tree(xr)
    if not expected:
        await xr.ask("GET", f"/?{filters}", code="not_found")
        return
    assert await find_ids(xr, filters) == expected


async def test_filtered_collections(xr: XregistryClient) -> None:
    """Counts and URLs of collections follow the filter; the URL of an empty one excludes all."""
    await build_tree(xr)
    body = await xr.read("/?filter=schemagroups.schemas.versions.versionid=2")
    assert body["schemagroupscount"] == 1
    at = body["schemagroupsurl"].removeprefix(ROOT)
    groups = await xr.read(at)
    assert set(groups) == {"g"}
    assert groups["g"]["schemascount"] == 1
    schemas = await xr.read(groups["g"]["schemasurl"].removeprefix(ROOT))
    assert set(schemas) == {"s"}
    assert schemas["s"]["versionscount"] == 1
    assert set(await xr.read(schemas["s"]["versionsurl"].removeprefix(ROOT))) == {"2"}
    await xr.ask("PUT", "/schemagroups/empty", {"name": "nothing"}, status=201)
    groups = await xr.read("/schemagroups?filter=name=nothing")
    assert groups["empty"]["schemasurl"].endswith("?filter=excludeall")
    assert await xr.read(groups["empty"]["schemasurl"].removeprefix(ROOT)) == {}
    await xr.ask("GET", f"{GROUP}?filter=excludeall", code="not_found")
    await xr.ask("GET", "/schemagroups?filter=excludeall,name=x", code="bad_filter")
    assert await xr.read("/schemagroups?filter=name=no-match") == {}
    await xr.ask("GET", "/?filter=description=no-match", code="not_found")
    await xr.ask("GET", f"{DETAILS}?filter=name=x", code="not_found")
    for wrong in ("", "a<null", "a<b*", "=x", "a[", "a..b"):
        await xr.ask("GET", f"/schemagroups?filter={wrong}", code="bad_filter")


# --- order and pages --------------------------------------------------------------------------------------------------


async def test_sort(xr: XregistryClient) -> None:
    """A collection is sorted by a scalar attribute and then by id, in both directions; other sorts are refused."""
    for name, title in (("b", "x"), ("a", "x"), ("C", None), ("d", "A")):
        await xr.ask("PUT", f"/schemagroups/{name}", {"name": title}, status=201)
    assert list(await xr.read("/schemagroups")) == ["a", "b", "C", "d"]
    assert list(await xr.read("/schemagroups?sort=name")) == ["C", "d", "a", "b"]
    assert list(await xr.read("/schemagroups?sort=name=desc")) == ["b", "a", "d", "C"]
    assert list(await xr.read("/schemagroups?sort=schemagroupid=desc")) == ["d", "C", "b", "a"]
    for wrong in ("name=up", "", "schemas.name", "labels.*"):
        await xr.ask("GET", f"/schemagroups?sort={wrong}", code="bad_sort")
    for path in ("/", "/schemagroups/a"):
        await xr.ask("GET", f"{path}?sort=name", code="sort_noncollection")


@pytest.mark.parametrize("more", ["", "&sort=name=desc", "&inline=schemas"])
async def test_pages(xr: XregistryClient, more: str) -> None:
    """A page has the requested number of entities, the total count, and, except the last, a link to the next."""
    for name in "abcde":
        await xr.ask("PUT", f"/schemagroups/{name}", {"name": name.upper()}, status=201)
    listed_names: list[str] = []
    path = f"/schemagroups?limit=2{more}"
    for _ in range(3):
        answer = await xr.ask("GET", path)
        listed_names += answer.json()
        assert len(answer.json()) <= 2
        links = [link for link in answer.headers.get_list("link", split_commas=True) if "rel=next" in link]
        if not links:
            break
        assert links[0].endswith(";rel=next;count=5")
        path = links[0].partition(">")[0][1:].removeprefix(ROOT)
    assert listed_names == (list("edcba") if "desc" in more else list("abcde"))
    for wrong in ("0", "-1", "x", str(2**64)):
        await xr.ask("GET", f"/schemagroups?limit={wrong}", code="bad_request")


# --- other flags ------------------------------------------------------------------------------------------------------


async def test_flags(xr: XregistryClient) -> None:
    """Unknown parameters are ignored; known ones with invalid values, given twice, or in the wrong place are errors."""
    await build_tree(xr)
    assert await xr.read("/?odd=1") == await xr.read("/")
    for right in ("1.0-rc4", "1.0-RC4", "1.0.7-rc4"):
        await xr.ask("GET", f"/?specversion={right}")
    for wrong in ("1.0", "0.5", "1.0-rc3", ""):
        await xr.ask("GET", f"/?specversion={wrong}", code="unsupported_specversion")
    await xr.ask("GET", "/?specversion=1.0-rc4&specversion=1.0-rc4", code="bad_flag")
    await xr.ask("PATCH", "/?ignore=odd", {}, code="bad_ignore")
    await xr.ask("PATCH", "/?ignore", {"epoch": 99})
    await xr.ask("PATCH", "/?ignore=epoch&ignore=id", {"epoch": 99, "registryid": "x"})
    await xr.ask("DELETE", "/schemagroups?epoch=1", code="bad_flag")
    await xr.ask("DELETE", f"{GROUP}?epoch=x", code="bad_flag")
    await xr.ask("PUT", f"{GROUP}?filter=name=x", {}, code="bad_flag")


async def test_host_and_public_address(registry: Registry, client: httpx.AsyncClient, xr: XregistryClient) -> None:
    """URLs begin with the address that the client used."""
    answer = await client.get("/xregistry/", headers={"host": "other.example:99"})
    assert answer.json()["self"] == "http://other.example:99/xregistry/"
