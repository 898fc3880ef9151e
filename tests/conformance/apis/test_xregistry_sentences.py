"""xRegistry: requirements of single sentences of the specification, in tables."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from tests.conformance.apis.xregistry_client import (
    A1,
    A2,
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

VERSION = f"{SCHEMA}/versions/1"
META = f"{SCHEMA}/meta"
PATHS = {
    "/": "GET, OPTIONS, PATCH, POST, PUT",
    "/export": "GET, OPTIONS",
    "/capabilities": "GET, OPTIONS",
    "/capabilitiesoffered": "GET, OPTIONS",
    "/model": "GET, OPTIONS",
    "/modelsource": "GET, OPTIONS",
    "/.xregistry": "GET, OPTIONS",
    "/schemagroups": "DELETE, GET, OPTIONS, PATCH, POST",
    GROUP: "DELETE, GET, OPTIONS, PATCH, POST, PUT",
    f"{GROUP}/schemas": "DELETE, GET, OPTIONS, PATCH, POST",
    SCHEMA: "DELETE, GET, OPTIONS, PATCH, POST, PUT",
    DETAILS: "DELETE, GET, OPTIONS, PATCH, POST, PUT",
    META: "GET, OPTIONS, PATCH, PUT",
    f"{SCHEMA}/versions": "DELETE, GET, OPTIONS, PATCH, POST",
    VERSION: "DELETE, GET, OPTIONS, PATCH, PUT",
    f"{VERSION}$details": "DELETE, GET, OPTIONS, PATCH, PUT",
}
"""All paths, with the methods that they take."""
WRITES: list[tuple[str, str, Any]] = [
    ("PUT", "/", {}),
    ("PATCH", "/", {}),
    ("POST", "/", {"schemagroups": {"g": {}}}),
    ("POST", "/schemagroups", {"g": {}}),
    ("PATCH", "/schemagroups", {"g": {}}),
    ("PUT", GROUP, {}),
    ("PATCH", GROUP, {}),
    ("POST", GROUP, {"schemas": {"s": avro()}}),
    ("POST", f"{GROUP}/schemas", {"s": avro()}),
    ("PATCH", f"{GROUP}/schemas", {"s": {}}),
    ("PUT", DETAILS, avro()),
    ("PATCH", DETAILS, {}),
    ("POST", DETAILS, avro()),
    ("PUT", META, {}),
    ("PATCH", META, {}),
    ("POST", f"{SCHEMA}/versions", {"1": avro()}),
    ("PATCH", f"{SCHEMA}/versions", {"1": {}}),
    ("PUT", f"{VERSION}$details", avro()),
    ("PATCH", f"{VERSION}$details", {}),
]
"""All requests that write metadata, with a valid body."""
DOCUMENT_WRITES = [("PUT", SCHEMA), ("POST", SCHEMA), ("PUT", VERSION)]
COLLECTIONS = ("/schemagroups", f"{GROUP}/schemas", f"{SCHEMA}/versions")


async def read_tree(xr: XregistryClient) -> Any:
    """Return the whole registry with all entities."""
    return await xr.read("/?inline=*")


# --- requests as a whole ----------------------------------------------------------------------------------------------


async def test_a_refused_flag_leaves_all_as_it_was(xr: XregistryClient) -> None:
    """A flag that does not apply to the response is refused before anything is written, by all writing requests."""
    await fill(xr)
    before = await read_tree(xr)
    for method, path, body in WRITES:
        await xr.ask(method, f"{path}?inline=odd", body, code="bad_inline")
        is_collection = path in COLLECTIONS
        await xr.ask(method, f"{path}?sort=a..b", body, code="bad_sort" if is_collection else "sort_noncollection")
        if path not in {"/", GROUP}:
            await xr.ask(method, f"{path}?collections", body, code="bad_flag")
    for method, path in DOCUMENT_WRITES:
        await xr.ask(method, f"{path}?inline=odd", A2, code="bad_inline", xRegistry_format=AVRO)
        await xr.ask(method, f"{path}?sort=name", A2, code="sort_noncollection", xRegistry_format=AVRO)
    for path in (GROUP, SCHEMA, VERSION):
        await xr.ask("DELETE", f"{path}?sort=name", code="sort_noncollection")
    assert await read_tree(xr) == before


async def test_answers_of_writes_are_sorted(xr: XregistryClient) -> None:
    """The entities in the response to a write are in the requested order."""
    groups = {"a": {"name": "z"}, "b": {"name": "y"}}
    for flag, expected in (("", ["a", "b"]), ("?sort=name", ["b", "a"]), ("?sort=name=desc", ["a", "b"])):
        assert list((await xr.ask("POST", f"/schemagroups{flag}", groups)).json()) == expected
    schemas = {"s": avro(name="z"), "t": avro(name="y")}
    assert list((await xr.ask("POST", f"{GROUP}/schemas?sort=name", schemas)).json()) == ["t", "s"]
    versions = {"1": avro(name="z"), "2": avro(name="y")}
    assert list((await xr.ask("POST", f"{SCHEMA}/versions?sort=name", versions)).json()) == ["2", "1"]


async def test_options_names_all_methods(xr: XregistryClient) -> None:
    """OPTIONS returns the methods of the path in two headers; all other methods are refused as unknown."""
    await fill(xr)
    before = await read_tree(xr)
    for path, methods in PATHS.items():
        answer = await xr.ask("OPTIONS", path)
        assert answer.headers["allow"] == answer.headers["access-control-allow-methods"] == methods, path
        for method in ("PUT", "POST", "PATCH", "DELETE"):
            if method not in methods:
                refused = await xr.ask(method, path, {}, code="action_not_supported")
                assert refused.headers["allow"] == methods
    assert await read_tree(xr) == before


async def test_missing_bodies(xr: XregistryClient) -> None:
    """An absent body of metadata is `missing_body`, `null` is refused, and `{}` is an empty object."""
    await fill(xr)
    for method, path, _ in WRITES:
        await xr.ask(method, path, "", code="missing_body")
        await xr.ask(method, path, "null", code="parsing_data")
    for method, path in (("PATCH", "/"), ("PATCH", GROUP), ("PATCH", DETAILS), ("PATCH", META), ("POST", "/")):
        await xr.ask(method, path, {})


async def test_metadata_stand_in_one_place(xr: XregistryClient) -> None:
    """A header `xRegistry-` beside metadata in the body is an error, in every request that writes metadata."""
    await fill(xr)
    before = await read_tree(xr)
    for method, path, body in WRITES:
        await xr.ask(method, path, body, code="extra_xregistry_header", xRegistry_name="x")
    assert await read_tree(xr) == before


async def test_forms_of_answers(xr: XregistryClient) -> None:
    """The response to every write equals that of a GET; creations have a Location, and other responses do not."""
    await fill(xr)
    for method, path, body in WRITES:
        answer = await xr.ask(method, path, body, status=(200, 201))
        assert answer.headers["content-type"] == "application/json; charset=utf-8"
        if answer.status_code == 201:
            assert (method, path) == ("POST", DETAILS)
            assert answer.headers["location"] == answer.headers["content-location"] == answer.json()["self"]
            continue
        assert "location" not in answer.headers
        there = await xr.read(path)
        if path in COLLECTIONS:
            there = {name: there[name] for name in body}
        if method == "POST" and path in {"/", GROUP}:
            there = {name: await xr.read(f"{path.rstrip('/')}/{name}") for name in body}
        assert answer.json() == there, (method, path)
    for path, body in ((f"{GROUP}n", {}), (f"{SCHEMA}n$details", avro()), (f"{VERSION}n$details", avro())):
        for method, suffix in (("PUT", ""), ("PATCH", "p")):
            fresh = path.replace("n", f"n{suffix}", 1) if path == f"{GROUP}n" else path.replace("n$", f"n{suffix}$")
            answer = await xr.ask(method, fresh, body, status=201)
            assert answer.headers["location"] == answer.json()["self"]
            if path != f"{GROUP}n":
                version = answer.json()
                own = f"{ROOT}{GROUP}/schemas/{version['schemaid']}/versions/{version['versionid']}$details"
                assert answer.headers["content-location"] == own
            assert not {"schema", "schemabase64", "meta", "versions", "schemas"} & set(answer.json())


async def test_forms_of_document_answers(xr: XregistryClient) -> None:
    """Documents are returned unchanged with headers of the entity; external ones give 201 or 303 without a body."""
    creation = await xr.ask("PUT", SCHEMA, A1, status=201, content_type="application/json", xRegistry_format=AVRO)
    assert creation.headers["location"] == creation.headers["xregistry-self"] == f"{ROOT}{DETAILS}"
    assert creation.headers["content-location"] == f"{ROOT}{VERSION}$details"
    added = await xr.ask("POST", SCHEMA, A2, status=201, xRegistry_format=AVRO)
    assert added.text == A2
    assert added.headers["location"] == added.headers["content-location"] == added.headers["xregistry-self"]
    assert added.headers["xregistry-versionid"] == "2"
    again = await xr.ask("POST", SCHEMA, A1, xRegistry_format=AVRO, xRegistry_versionid="1")
    assert (again.text, again.headers["xregistry-versionid"], "location" in again.headers) == (A1, "1", False)
    for answer in (creation, added, again):
        assert answer.headers["content-disposition"] == "s"
        assert not {"xregistry-schema", "xregistry-schemabase64", "xregistry-contenttype"} & set(answer.headers)
    away, url = f"{GROUP}/schemas/away", "http://example.com/s.avsc"
    new = await xr.ask("PUT", away, "", status=201, xRegistry_format=AVRO, xRegistry_schemaurl=url)
    assert (new.headers["location"], new.headers["xregistry-schemaurl"]) == (f"{ROOT}{away}$details", url)
    for method, path in (("PUT", away), ("GET", away), ("GET", f"{away}/versions/1"), ("PUT", f"{away}/versions/1")):
        answer = await xr.ask(method, path, "" if method == "PUT" else None, status=(200, 303), xRegistry_schemaurl=url)
        assert (answer.status_code, answer.headers["location"], answer.content) == (303, url, b"")
    emptied = await xr.ask("PUT", away, "", xRegistry_schemaurl="null")
    assert (emptied.content, "xregistry-schemaurl" in emptied.headers) == (b"", False)
    body = await xr.ask("PUT", away, A1, code="extra_xregistry_header", xRegistry_schemaurl=url)
    assert body.json()["args"]["name"] == "xRegistry-schemaurl"


async def test_odd_paths(xr: XregistryClient) -> None:
    """Paths below existing ones are not found, and the error names the path."""
    await fill(xr)
    for path in (f"{VERSION}/x", f"{META}/x", "/model/x", "/capabilities/x", "/export/x", f"{SCHEMA}/x"):
        answer = await xr.ask("GET", path, code="api_not_found")
        assert answer.json()["subject"] == path
    for path in (f"{GROUP}$details", f"{GROUP}$details/schemas", f"{DETAILS}/versions", f"{DETAILS}/meta"):
        await xr.ask("GET", path, code="bad_details")


# --- attributes -------------------------------------------------------------------------------------------------------


async def test_read_only_attributes_are_not_even_looked_at(xr: XregistryClient) -> None:
    """Read-only attributes of any value are ignored, in bodies and in headers."""
    await fill(xr)
    links = {"self": 5, "xid": [], "shortself": 9}
    cases: dict[str, dict[str, Any]] = {
        "/": {**links, "specversion": 5, "model": 7, "schemagroupsurl": 4, "schemagroupscount": "a"},
        GROUP: {**links, "schemasurl": 4, "schemascount": "a"},
        DETAILS: {
            **links,
            "isdefault": "x",
            "formatvalidated": 7,
            "metaurl": {},
            "versionsurl": 4,
            "versionscount": "a",
        },
        META: {**links, "readonly": "x", "defaultversionurl": 5},
        f"{VERSION}$details": {**links, "isdefault": "x", "compatibilityvalidatedreason": 3},
    }
    changing = {"epoch", "modifiedat"}
    for path, body in cases.items():
        before = await xr.read(path)
        after = (await xr.ask("PATCH", path, body)).json()
        assert {k: v for k, v in after.items() if k not in changing} == {
            k: v for k, v in before.items() if k not in changing
        }
        assert after["epoch"] == before["epoch"] + 1
    await xr.ask(
        "POST", DETAILS, avro(A2, versionscount="a", versionsurl=5, metaurl=None, versions={}, meta={}), status=201
    )
    odd = {"xRegistry_versionscount": "a", "xRegistry_metaurl": "q", "xRegistry_self": "q", "xRegistry_isdefault": "q"}
    answer = await xr.ask("PUT", SCHEMA, A2, xRegistry_format=AVRO, **odd)
    assert answer.headers["xregistry-versionscount"] == "2"
    assert answer.headers["xregistry-self"] == f"{ROOT}{DETAILS}"


async def test_ids_and_epochs_in_headers(xr: XregistryClient) -> None:
    """Ids and epochs in headers are compared like those in bodies; `null` skips the epoch and removes attributes."""
    await xr.ask("PUT", SCHEMA, A1, status=201, xRegistry_format=AVRO, xRegistry_name="n", xRegistry_labels__a="b")
    await xr.ask("PUT", SCHEMA, A1, code="mismatched_id", xRegistry_schemaid="t")
    await xr.ask("PUT", SCHEMA, A1, code="mismatched_id", xRegistry_versionid="7")
    await xr.ask("PUT", VERSION, A1, code="mismatched_id", xRegistry_versionid="7")
    await xr.ask("PUT", SCHEMA, A1, code="mismatched_epoch", xRegistry_epoch="77")
    await xr.ask("PUT", SCHEMA, A1, code="header_error", xRegistry_epoch="x")
    update = await xr.ask("PUT", SCHEMA, A1, xRegistry_epoch="null", xRegistry_labels__c="d")
    assert (update.headers["xregistry-name"], update.headers["xregistry-labels.c"]) == ("n", "d")
    assert "xregistry-labels.a" not in update.headers
    removal = await xr.ask("PUT", SCHEMA, A1, xRegistry_name="null", xRegistry_labels="null")
    assert not {"xregistry-name", "xregistry-labels.c"} & set(removal.headers)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ('"quoted %41 \\" v"', 'quoted A " v'),
        ("%f0%9f%98%80", "\U0001f600"),
        ("%41%2d", "A-"),
        ("a b", "a b"),
        ("%2541", "%41"),
    ],
)
async def test_header_values(xr: XregistryClient, sent: str, stored: str) -> None:
    """Quotes around a header value are removed, then it is decoded once; responses are encoded as printable ASCII."""
    answer = await xr.ask("PUT", SCHEMA, A1, status=201, xRegistry_format=AVRO, xRegistry_name=sent)
    assert (await xr.read(DETAILS))["name"] == stored
    value = answer.headers["xregistry-name"]
    assert value.isascii()
    assert not set(value) & {" ", '"'}
    assert (
        value == value.upper()
        or "%" not in value
        or all(part[:2].isupper() or part[:2].isdigit() for part in value.split("%")[1:])
    )
    assert httpx.URL(f"http://h/?q={value}").params["q"] == stored


async def test_booleans_are_no_strings(xr: XregistryClient) -> None:
    """Only `true` and `false`, in this case, are booleans."""
    await fill(xr)
    for value in ("true", "True", 1, "FALSE"):
        await xr.ask("PATCH", META, {"defaultversionsticky": value}, code="invalid_attribute")
    assert (await xr.read(META))["defaultversionsticky"] is False
    assert (await xr.read(META))["readonly"] is False
    assert (await xr.read(DETAILS))["isdefault"] is True


async def test_put_names_all_capabilities(xr: XregistryClient) -> None:
    """PUT resets absent capabilities, which this server refuses; PATCH leaves them as they are."""
    whole = await xr.read("/capabilities")
    await xr.ask("PUT", "/", {"capabilities": whole})
    await xr.ask("PUT", "/", {"capabilities": {"flags": ["*"]}}, code="capability_error")
    await xr.ask("PUT", "/", {"capabilities": {}}, code="capability_error")
    await xr.ask("PUT", "/", {"capabilities": None})
    await xr.ask("PATCH", "/", {"capabilities": {}})
    await xr.ask("PATCH", "/", {"capabilities": {"formats": ["Odd"]}}, code="capability_error")
    await xr.ask("PATCH", "/", {"capabilities": {"compatibilities": {"Odd": ["full"]}}}, code="capability_error")
    await xr.ask("PATCH", "/", {"capabilities": {"compatibilities": {"Avro*": ["odd"]}}}, code="capability_error")
    for reset in (None, {}):
        await xr.ask("PATCH", "/", {"modelsource": reset}, code="model_error")
    assert await xr.read("/capabilities") == whole


# --- flags ------------------------------------------------------------------------------------------------------------


async def test_times_compare_as_times(xr: XregistryClient) -> None:
    """Times are compared and sorted as moments, in any zone and with any fraction; wildcards match their text."""
    for name, time in (
        ("s", "2024-01-01T00:00:00Z"),
        ("t", "2024-01-01T00:00:00.5Z"),
        ("u", "2023-12-31T23:00:00-02:00"),
    ):
        await xr.ask("PUT", f"{GROUP}/schemas/{name}$details", avro(createdat=time), status=201)
    for filters, expected in {
        "=2024-01-01T02:00:00%2B02:00": {"s"},
        "=2024-01-01T00:00:00.500Z": {"t"},
        ">2024-01-01T00:00:00Z": {"t", "u"},
        ">=2024-01-01T01:00:00Z": {"u"},
        "<2024-01-01T00:00:00.2Z": {"s"},
        "<=2024-01-01T01:00:00%2B01:00": {"s"},
        "!=2024-01-01T00:00:00Z": {"t", "u"},
        "=2024-01-01T00*": {"s", "t"},
        "=word": set(),
    }.items():
        assert set(await xr.read(f"{GROUP}/schemas?filter=createdat{filters}")) == expected, filters
    assert list(await xr.read(f"{GROUP}/schemas?sort=createdat")) == ["s", "t", "u"]
    assert list(await xr.read(f"{GROUP}/schemas?sort=createdat=desc")) == ["u", "t", "s"]


async def test_only_scalars_are_compared(xr: XregistryClient) -> None:
    """A filter on a map, an object or a collection can only test whether it exists, and none can be sorted by."""
    await fill(xr, labels={"a": "x", "e": ""}, num=10)
    at = f"{GROUP}/schemas?filter="
    for name in ("labels", "meta", "versions"):
        for operator in ("=", "!=", "<"):
            await xr.ask("GET", f"{at}{name}{operator}x", code="bad_filter")
        await xr.ask("GET", f"{GROUP}/schemas?sort={name}", code="bad_sort")
    for name in ("constraints", "deprecated", "schemas"):
        await xr.ask("GET", f"/schemagroups?sort={name}", code="bad_sort")
    for condition in ("labels", "labels=*", "labels!=null", "labels.e", "labels.e=", "labels.e=*", "num>9", "num=10.0"):
        assert await xr.read(at + condition), condition
    for missed in ("labels=null", "num=1*", "num<9", "num=ten", "meta.readonly=FALSE", "name=", "name=%5C*"):
        assert not await xr.read(at + missed), missed
    await xr.ask("GET", f"{at}num<null", code="bad_filter")
    await xr.ask("GET", f"{at}name>a*", code="bad_filter")


async def test_brackets(xr: XregistryClient) -> None:
    """Brackets with quotes name a member, those without an item."""
    await fill(xr, items=[1, {"k": "v"}], members={"0": "zero", "a.b": "dot"}, labels={"a.b": "dot"})
    at = f"{GROUP}/schemas?filter="
    for condition in ("items[0]=1", "items[1].k=v", "members['0']=zero", "labels['a.b']=dot", 'members["a.b"]=dot'):
        assert await xr.read(at + condition), condition
    for missed in ("items['0']=1", "members[0]=zero", "labels.a.b=dot", "items[2]"):
        assert not await xr.read(at + missed), missed


async def test_flags_of_what_is_no_entity(xr: XregistryClient) -> None:
    """The flags `sort`, `collections` and `inline` are refused for capabilities and models."""
    for path in ("/capabilities", "/capabilitiesoffered", "/model", "/modelsource"):
        await xr.ask("GET", f"{path}?sort=name", code="sort_noncollection")
        await xr.ask("GET", f"{path}?collections", code="bad_flag")
        await xr.ask("GET", f"{path}?inline=odd", code="bad_inline")


async def test_collections_of_what_is_written(xr: XregistryClient) -> None:
    """With the flag `collections`, a write to the registry or a group returns its collections in full."""
    inlined = (await xr.ask("POST", "/?collections", {"schemagroups": {"g": {"schemas": {"s": avro()}}}})).json()
    assert set(inlined) == {"schemagroups"}
    assert {"meta", "versions", "schema"} <= set(inlined["schemagroups"]["g"]["schemas"]["s"])
    inlined = (await xr.ask("POST", f"{GROUP}?collections", {"schemas": {"s": avro()}})).json()
    assert set(inlined) == {"schemas"}
    assert {"meta", "versions", "schema"} <= set(inlined["schemas"]["s"])
    assert set((await xr.ask("PUT", f"{GROUP}?collections", {})).json()) == {"schemas", "schemasurl", "schemascount"}


async def test_ignored_parts(xr: XregistryClient) -> None:
    """The parts that the flag names are ignored, in bodies and headers; ids of nested entities are not."""
    await fill(xr, A1, A2)
    for path in (DETAILS, f"{VERSION}$details", META):
        await xr.ask("PATCH", f"{path}?ignore=id", {"schemaid": "t", **({} if path == META else {"versionid": "9"})})
    await xr.ask("PATCH", f"{GROUP}?ignore=id", {"schemagroupid": "h"})
    await xr.ask("PATCH", f"{GROUP}?ignore=id", {"schemas": {"s": {"schemaid": "t"}}}, code="mismatched_id")
    await xr.ask("PATCH", f"{GROUP}/schemas?ignore=id", {"s": {"schemaid": "t"}}, code="mismatched_id")
    await xr.ask("PUT", f"{SCHEMA}?ignore=id", A2, xRegistry_schemaid="t", xRegistry_versionid="9")
    for value in (99, "odd"):
        await xr.ask("PATCH", f"{DETAILS}?ignore=epoch", {"epoch": value})
        await xr.ask("PATCH", f"{META}?ignore=epoch", {"epoch": value})
    for value in ("odd", True):
        await xr.ask("PATCH", f"{META}?ignore=defaultversionsticky", {"defaultversionsticky": value})
    for value in ("1", "odd", 5):
        await xr.ask("PATCH", f"{META}?ignore=defaultversionid", {"defaultversionid": value})
    meta = await xr.read(META)
    assert (meta["defaultversionid"], meta["defaultversionsticky"]) == ("2", False)
    await xr.ask("DELETE", f"{SCHEMA}/versions", {"1": {"epoch": 99}}, code="mismatched_epoch")
    await xr.ask("DELETE", f"{SCHEMA}/versions?ignore=epoch", {"1": {"epoch": 99}})
    await xr.ask("DELETE", f"{GROUP}/schemas?ignore=epoch", {"s": {"meta": {"epoch": 99}}})
    await xr.ask("DELETE", "/schemagroups?ignore=epoch", {"g": {"epoch": 99}})
    assert await xr.read("/schemagroups") == {}


async def test_request_stands_for_a_new_version(xr: XregistryClient) -> None:
    """`request` makes the new version the default one; if none is created, it is refused and nothing is written."""
    await fill(xr, A1, A2)
    before = await read_tree(xr)
    flag = "?setdefaultversionid=request"
    await xr.ask("POST", DETAILS + flag, avro(A1, versionid="1"), code="defaultversionid_request")
    await xr.ask("POST", SCHEMA + flag, A1, code="defaultversionid_request", xRegistry_versionid="1")
    assert await read_tree(xr) == before
    await xr.ask("POST", DETAILS + flag, avro(A2, versionid="own"), status=201)
    assert (await xr.read(META))["defaultversionid"] == "own"
    for method, path, body in WRITES:
        if (method, path) != ("POST", DETAILS):
            await xr.ask(method, path + flag, body, code="bad_flag")


async def test_document_view_of_a_written_document(xr: XregistryClient) -> None:
    """With `doc` the response has metadata without those of the default version, also after a document was sent."""
    answer = await xr.ask("PUT", f"{SCHEMA}?doc", A1, status=201, xRegistry_format=AVRO)
    assert set(answer.json()) == {"schemaid", "self", "xid", "metaurl", "versionsurl", "versionscount"}
    assert answer.headers["location"] == f"{ROOT}{DETAILS}"
    for method, path in (("PUT", VERSION), ("POST", SCHEMA)):
        metadata = (await xr.ask(method, f"{path}?doc", A1, status=(200, 201), xRegistry_format=AVRO)).json()
        assert "versionid" in metadata
        assert not {"formatvalidated", "compatibilityvalidated", "shortself"} & set(metadata)


async def test_odd_values_beside_a_deletion(xr: XregistryClient) -> None:
    """Deletions use only ids and epochs; the epoch of a schema is that in `meta`, and other members are ignored."""
    await fill(xr)
    await fill(xr, schema=f"{GROUP}/schemas/t")
    schemas = f"{GROUP}/schemas"
    await xr.ask("DELETE", schemas, {"s": {"meta": {"epoch": 77}, "epoch": 1}}, code="mismatched_epoch")
    await xr.ask("DELETE", schemas, {"t": {"schemaid": "s"}}, code="mismatched_id")
    await xr.ask("DELETE", schemas, {"s": {"epoch": 1}}, code="misplaced_epoch")
    await xr.ask(
        "DELETE", schemas, {"s": {"labels": 5, "createdat": 7, "meta": {"epoch": None, "labels": 6}}, "no": {}}
    )
    await xr.ask("DELETE", schemas, {"t": {"meta": 5, "versions": 6}})
    assert await xr.read(schemas) == {}
    await xr.ask("DELETE", "/schemagroups", {"g": {"labels": 5, "schemas": 7}})
    assert json.loads((await xr.ask("GET", "/schemagroups")).text) == {}


# --- what the other tables leave --------------------------------------------------------------------------------------


async def test_scalar_extensions_are_headers(xr: XregistryClient) -> None:
    """Scalar extensions of the default version are headers of its document; others are not."""
    more = {"num": 5, "flag": True, "word": "a b", "items": [1], "deep": {"a": {"b": 1}}}
    await xr.ask("PUT", DETAILS, avro(**more), status=201)
    for path in (SCHEMA, VERSION):
        headers = (await xr.ask("GET", path)).headers
        assert [headers[f"xregistry-{name}"] for name in ("num", "flag", "word")] == ["5", "true", "a%20b"]
        assert not [name for name in headers if name.startswith(("xregistry-items", "xregistry-deep"))]


async def test_default_version_is_named_twice(xr: XregistryClient) -> None:
    """`Content-Location` of a schema, with and without `$details`, is the URL of the default version in `meta`."""
    await fill(xr, A1, A2)
    for chosen in ("1", "2"):
        url = (await xr.ask("PATCH", META, {"defaultversionid": chosen})).json()["defaultversionurl"]
        assert url == f"{ROOT}{SCHEMA}/versions/{chosen}$details"
        for path in (SCHEMA, DETAILS):
            assert (await xr.ask("GET", path)).headers["content-location"] == url


async def test_references_are_not_written_through(xr: XregistryClient) -> None:
    """A write to a schema with a cross reference does not change its target."""
    await fill(xr)
    source = f"{GROUP}/schemas/x"
    await xr.ask("PUT", f"{source}$details", {"meta": {"xref": SCHEMA}}, status=201)
    target = await xr.read(f"{DETAILS}?inline=*")
    for method, path, body in (
        ("PATCH", f"{source}$details", {"name": "q"}),
        ("POST", f"{source}$details", avro(A2)),
        ("PUT", f"{source}/versions/1$details", avro(A2)),
        ("POST", f"{source}/versions", {"1": avro(A2)}),
        ("PATCH", f"{source}/meta", {"labels": {"a": "b"}}),
        ("DELETE", f"{source}/versions", None),
        ("DELETE", f"{source}/versions/1", None),
    ):
        await xr.ask(method, path, body, code="extra_xref_attribute")
    for method in ("PUT", "POST"):
        await xr.ask(method, source, A2, code="extra_xref_attribute", xRegistry_format=AVRO)
    await xr.ask("DELETE", source)
    assert await xr.read(f"{DETAILS}?inline=*") == target


async def test_what_is_not_validated_is_not_compared(xr: XregistryClient) -> None:
    """A version whose format was not validated is not compared either, and the response has the reason."""
    body = {"format": AVRO, "schemaurl": "http://example.com/s.avsc", "meta": {"compatibility": "backward"}}
    await xr.ask("PUT", DETAILS, body, status=201)
    version = await xr.read(DETAILS)
    assert (version["formatvalidated"], version["compatibilityvalidated"]) == (False, False)
    assert version["formatvalidatedreason"]
    assert version["compatibilityvalidatedreason"]
    assert (await xr.read(META))["compatibility"] == "backward"
