"""Responses with JSON and with documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from litestar import Response

from stele.apis.http.application import INERT_HEADERS
from stele.apis.xregistry.bodies import write_headers
from stele.apis.xregistry.errors import JSON, RegistryError
from stele.apis.xregistry.models import ResourceEntity, VersionEntity
from stele.apis.xregistry.operations import Operations
from stele.apis.xregistry.params import DETAILS
from stele.apis.xregistry.serialize import View
from stele.apis.xregistry.translate import EntityLoader

_UNKNOWN_TYPE: Final = "application/octet-stream"


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response[Any]:
    """Return a response with a JSON body."""
    return Response(msgspec.json.encode(body), status_code=status, media_type=JSON, headers=dict(headers or {}))


def document_response(
    loader: EntityLoader,
    view: View,
    schema: ResourceEntity,
    version: VersionEntity,
    body: Mapping[str, Any],
    *,
    status: int = 200,
    location: str = "",
) -> Response[Any]:
    """Return a response with the document of a version, and its attributes in headers.

    Args:
        loader: Loads the document.
        view: Builds URLs.
        schema: Schema of the version.
        version: The version.
        body: Attributes of the version or of its schema, as JSON has them.
        status: Status of the response if the registry has the document.
        location: URL of the created entity; '' if none was created.
    """
    headers = {
        **write_headers(body),
        **INERT_HEADERS,
        "Content-Disposition": schema.id,
        "Content-Location": version_url(view, schema, version.id),
    }
    if location:
        headers["Location"] = location
    elsewhere = version.attributes.get("schemaurl")
    if elsewhere is not None and not location:
        headers["Location"] = str(elsewhere)
        status = 303
    row = version.registered
    text = b"" if row is None else loader.state.get_text(row.content)
    headers["Content-Type"] = str(version.attributes.get("contenttype", _UNKNOWN_TYPE))
    return Response(text, status_code=status, headers=headers)


def version_url(view: View, schema: ResourceEntity, version_id: str) -> str:
    """Return the URL of the metadata of a version."""
    return view.link(f"{schema.xid}/versions/{version_id}") + DETAILS


async def schema_document(
    operations: Operations, group: str, identifier: str, *, status: int = 200, is_new: bool = False
) -> Response[Any]:
    """Return the document of the default version of a schema. Raises `RegistryError` (`not_found`)."""
    body = await operations.describe_schema(group, identifier)
    loader, view, schema = await operations.get_schema(group, identifier)
    target = view.resolve_reference(schema)
    if target is None:
        raise RegistryError("not_found", schema.xid)
    location = view.link(schema.xid) + DETAILS if is_new else ""
    version = target.versions[target.default_id]
    return document_response(loader, view, target, version, body, status=status, location=location)


async def version_document(
    operations: Operations, group: str, identifier: str, version_id: str, *, status: int = 200, is_new: bool = False
) -> Response[Any]:
    """Return the document of a version. Raises `RegistryError` (`not_found`)."""
    body = await operations.describe_version(group, identifier, version_id)
    loader, view, schema, version = await operations.get_version(group, identifier, version_id)
    location = version_url(view, schema, version_id) if is_new else ""
    return document_response(loader, view, schema, version, body, status=status, location=location)
