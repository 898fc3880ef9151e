"""A client of the xRegistry dialect that validates every response: shape, links, errors, the published schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs

FOLDER = Path(__file__).parent / "xregistry"
ROOT = "http://registry/xregistry"
OTHER_STATUSES = {
    "action_not_supported": 405,
    "details_required": 405,
    "not_found": 404,
    "api_not_found": 404,
    "too_large": 406,
    "server_busy": 503,
    "conflict": 409,
    "request_too_large": 413,
    "forbidden": 403,
    "unauthorized": 401,
}
"""Statuses of the errors that are not 400."""

_HTTP_CODES = {
    "api_not_found",
    "details_required",
    "extra_xregistry_header",
    "header_error",
    "missing_body",
    "missing_versions",
}
_OWN_CODES = {"conflict", "request_too_large", "forbidden", "unauthorized"}


def load_json(name: str) -> Any:
    """Return the content of a file of the specification."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def _load_openapi() -> dict[str, Any]:
    """Return the OpenAPI document, corrected where it contradicts its specification.

    `schema` requires either `versions` or `versionsurl`; the API view has both when the versions are inlined, a
    dangling reference neither. `versions` returns a map, as every collection. A document is shown on request only. An
    `xref` is an XID, no URI.
    """
    document = load_json("openapi.json")
    schemas = document["components"]["schemas"]
    schemas["schema"]["anyOf"] = [*schemas["schema"].pop("oneOf"), {"required": ["metaurl"]}]
    del schemas["schemaVersion"]["oneOf"]
    del schemas["Meta"]["properties"]["xref"]["format"]
    versions = document["paths"]["/schemagroups/{groupid}/schemas/{resourceid}/versions"]
    version_map = {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/schemaVersion"}}
    for method in ("get", "post"):
        versions[method]["responses"]["200"]["content"]["application/json"]["schema"] = version_map
    details = document["paths"]["/schemagroups/{groupid}/schemas/{resourceid}$details"]
    details["put"] = details["patch"] = details["get"]
    return document


OPENAPI = _load_openapi()
_COMPONENTS = {"components": OPENAPI["components"]}


def _validators(schema: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return validators of the API view and of the document view.

    URLs of the document view are relative, although the files have the format `uri`.
    """
    whole = {**_COMPONENTS, **schema}
    return jsonschema_rs.Draft7Validator(whole), jsonschema_rs.Draft7Validator(whole, validate_formats=False)


def _list_operations() -> list[tuple[re.Pattern[str], str, str, tuple[Any, Any]]]:
    """Return path, method, status and validators of every JSON response in the OpenAPI document."""
    responses = []
    for path, operations in OPENAPI["paths"].items():
        pattern = re.compile(re.sub(r"\\\{\w+\\\}", r"[^/$]+", re.escape(path)) + r"\Z")
        for method, operation in operations.items():
            if not isinstance(operation, dict):
                continue
            for status, response in operation.get("responses", {}).items():
                schema = response.get("content", {}).get("application/json", {}).get("schema")
                if schema is not None:
                    responses.append((pattern, method.upper(), status, _validators(schema)))
    return responses


_OPERATIONS = _list_operations()
_PROBLEM = _validators({"$ref": "#/components/schemas/ProblemDetails"})[0]
DOCUMENT_SCHEMA = jsonschema_rs.Draft7Validator(load_json("document-schema.json"), validate_formats=False)
"""The JSON Schema of documents."""


class XregistryClient:
    """Sends requests to the dialect below `/xregistry` and validates every response."""

    def __init__(self, http: httpx.AsyncClient, headers: Mapping[str, str] | None = None) -> None:
        self.http = http
        self._headers = dict(headers or {})
        self.validated = 0

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        status: int | tuple[int, ...] | None = None,
        code: str = "",
        **headers: str,
    ) -> httpx.Response:
        """Return the response to a request; a body that is neither text nor bytes is sent as JSON.

        status is the expected one, by default 200; code is that of the expected error. Names of headers have `_` for
        `-`, and `xRegistry_labels__a` for `xRegistry-labels.a`.
        """
        content = body if isinstance(body, str | bytes) or body is None else json.dumps(body)
        sent = {name.replace("__", ".").replace("_", "-"): value for name, value in headers.items()}
        answer = await self.http.request(
            method, f"/xregistry{path}", content=content, headers={**self._headers, **sent}
        )
        expected = OTHER_STATUSES.get(code, 400) if code else (status or (204 if method == "DELETE" else 200))
        wanted = expected if isinstance(expected, tuple) else (expected,)
        assert answer.status_code in wanted, f"{method} {path}: {answer.status_code} {answer.text[:1000]}"
        self._check(method, path, answer, code)
        return answer

    async def read(self, path: str) -> Any:
        """Return the JSON at a path."""
        return (await self.ask("GET", path)).json()

    def _check(self, method: str, path: str, answer: httpx.Response, code: str) -> None:
        links = answer.headers.get_list("link", split_commas=True)
        assert f"<{ROOT}>;rel=xregistry-root" in links
        if answer.status_code >= 400:
            check_error(answer, code)
            return
        bare = path.partition("?")[0]
        if method == "HEAD" or answer.headers.get("content-type") != "application/json; charset=utf-8":
            return
        if "xref" in answer.json() and "epoch" not in answer.json():
            return  # A dangling reference has no other members.
        is_document = bare == "/export" or re.search(r"[?&]doc(&|\Z)", path) is not None
        for pattern, operation_method, status, validators in _OPERATIONS:
            if operation_method == method and status in {str(answer.status_code), "200"} and pattern.match(bare or "/"):
                if "collections" in path or (
                    "/schemas/" in bare and not bare.endswith(("$details", "meta", "versions"))
                ):
                    continue
                problems = [
                    f"{error.instance_path}: {error.message}"
                    for error in validators[is_document].iter_errors(answer.json())
                ]
                assert not problems, f"{method} {path}: {problems[:3]}"
                self.validated += 1


def check_error(answer: httpx.Response, code: str) -> None:
    """Check the shape of an error, and its code if one is expected."""
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    body = answer.json()
    base, _, actual_code = body["type"].rpartition("#")
    if not base:
        actual_code = body["type"].rpartition(":")[2]
        assert actual_code in _OWN_CODES | {"too_many_requests", "not_installed"}
    else:
        file = "http" if actual_code in _HTTP_CODES else "spec"
        assert base == f"https://github.com/xregistry/spec/blob/main/core/{file}.md"
    if code:
        assert actual_code == code, f"{actual_code} instead of {code}: {answer.text}"
    assert not list(_PROBLEM.iter_errors(body)), body
    assert not re.search(r"<[a-z_]+>", body["title"]), body["title"]
    assert body.get("subject", "/").startswith("/")
    assert all(value in body["title"] for value in body.get("args", {}).values())
    assert "subject" not in body.get("args", {})
    assert set(body) <= {"type", "title", "detail", "subject", "args", "instance"}


# --- what tests are made of -------------------------------------------------------------------------------------------

A1 = '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int"}]}'
A2 = A1.replace("]}", ',{"name":"b","type":"string","default":""}]}')
"""Schema that can read data of `A1`."""
A3 = A1.replace("]}", ',{"name":"b","type":"string"}]}')
"""Schema that cannot read data of `A1`."""
AVRO = "Avro/1.11"
GROUP = "/schemagroups/g"
SCHEMA = f"{GROUP}/schemas/s"
DETAILS = f"{SCHEMA}$details"


def avro(text: str = A1, **more: Any) -> dict[str, Any]:
    """Return members of a version with an Avro document."""
    return {"format": AVRO, "schema": json.loads(text), **more}


async def fill(xr: XregistryClient, *versions: str, schema: str = SCHEMA, **more: Any) -> None:
    """Create a schema with versions of these documents, with generated ids."""
    for text in versions or (A1,):
        await xr.ask("POST", f"{schema}$details", avro(text, **more), status=201)
