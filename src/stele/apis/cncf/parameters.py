"""Paths, queries, headers and bodies as endpoints take them: how they read in code and in the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from litestar import Request, Response
from litestar.di import NamedDependency
from litestar.exceptions import InternalServerException
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from stele.apis.cncf.faults import AZURE_ERRORS, ERRORS
from stele.apis.cncf.registering import Attributes, Document
from stele.apis.cncf.translate import header_in
from stele.errors import InvalidRequest

_LIMIT = re.compile(r"[0-9]{1,20}\Z")
_INTEGER = {"type": "integer", "format": "int32"}
_UINT64 = 2**64

Group = Annotated[str, PathParameter(description="id of a group")]
SchemaName = Annotated[str, PathParameter(description="id of a schema in its group")]
SchemaId = Annotated[str, PathParameter(description="id of a version, 32 hexadecimal digits")]
VersionNumber = Annotated[str, PathParameter(schema_extra=_INTEGER, description="number of a version, from 1")]
Uri = Annotated[str | None, QueryParameter(description="URI of a version; required")]
Limit = Annotated[str | None, QueryParameter(schema_extra=_INTEGER, description="how many items a page has, at most")]
After = Annotated[str, QueryParameter(description="the item the page before ended with")]

Options = dict[str, Any]
READ: Options = {"responses": ERRORS}
"""What endpoints that read have in common."""
ASK: Options = {**READ, "status_code": 200}
"""What endpoints have in common that change what is there, or make what has no path of its own."""
DELETE: Options = {**READ, "status_code": 204}
"""What endpoints that delete have in common."""
_ANYTHING = ResponseSpec(Any, description="The document", generate_examples=False, media_type="*/*")
DOCUMENT: Options = {"responses": {**ERRORS, 200: _ANYTHING}, "media_type": "*/*"}
"""What endpoints have in common that answer a document."""
AZURE_READ: Options = {"responses": AZURE_ERRORS}
AZURE_DELETE: Options = {**AZURE_READ, "status_code": 204}
AZURE_DOCUMENT: Options = {"responses": {**AZURE_ERRORS, 200: _ANYTHING}, "media_type": "*/*"}
"""The same in the Azure flavour."""
_IN_HEADERS = ResponseSpec(None, description="Which version it is, in headers", generate_examples=False)
AZURE_IDENTIFY: Options = {"responses": {**AZURE_ERRORS, 204: _IN_HEADERS}, "status_code": 204}
"""What endpoints of that flavour have in common that answer in headers alone."""

# --- attributes -----------------------------------------------------------------------------------------------------


def attributes(
    request: Request[Any, Any, Any],
    description: Annotated[str | None, QueryParameter(description="of the schema")] = None,
    versiondescription: Annotated[str | None, QueryParameter(description="of the version")] = None,
    format_: Annotated[str | None, QueryParameter(name="format", description="of the schema")] = None,
    authority: Annotated[str | None, QueryParameter(description="URI of whoever controls the schema")] = None,
    id_: Annotated[str | None, QueryParameter(name="id", description="of the version, a URI reference")] = None,
    schema_description: Annotated[str | None, HeaderParameter(name="Schema-Description")] = None,
    schema_version_description: Annotated[str | None, HeaderParameter(name="Schema-Version-Description")] = None,
    schema_format: Annotated[str | None, HeaderParameter(name="Schema-Format")] = None,
    schema_authority: Annotated[str | None, HeaderParameter(name="Schema-Authority")] = None,
    schema_version_id: Annotated[str | None, HeaderParameter(name="Schema-Version-Id")] = None,
) -> Attributes:
    """What a request says beside its document: in the query, else in headers."""
    return Attributes(
        _either(description, schema_description),
        _either(versiondescription, schema_version_description),
        _either(format_, schema_format),
        authority if authority is not None else schema_authority,
        id_ if id_ is not None else schema_version_id,
    )


def _either(query: str | None, header: str | None) -> str | None:
    """A text of the query, else of a header; URIs need none of this, since they have an encoding of their own."""
    if query is not None and "\ufffd" in query:
        raise InvalidRequest("a query parameter is not UTF-8")
    return query if query is not None or header is None else header_in(header)


WithAttributes = NamedDependency[Attributes]

# --- documents ------------------------------------------------------------------------------------------------------


@dataclass
class AnyDocument(Operation):
    """An OpenAPI operation whose request body is a document of any content type."""

    def __post_init__(self) -> None:
        """Say so."""
        content = OpenAPIMediaType(schema=Schema(content_media_type="*/*"))
        self.request_body = RequestBody(content={"*/*": content}, required=True)


async def read_document(request: Request[Any, Any, Any]) -> Document:
    """The document a request brings. Raises `InvalidRequest` for none at all, and when the client leaves."""
    try:
        body = await request.body()
    except InternalServerException:
        raise InvalidRequest("the request ended before its body did") from None
    if not body:
        raise InvalidRequest("the request has no document")
    return Document(body, request.headers.get("content-type", ""))


# --- pages ----------------------------------------------------------------------------------------------------------


def page_of(items: Sequence[Any], limit: str | None, after: str, place: str) -> Response[list[Any]]:
    """A page of a sorted list, with links to the first and the next one when it is one of several.

    after is the item the page before ended with. Raises `InvalidRequest` for a limit that is none.
    """
    if limit is None:
        return Response(list(items))
    if not _LIMIT.match(limit) or not 0 < int(limit) < _UINT64:
        raise InvalidRequest(f"limit is a number from 1 to 2^64-1, not {limit[:40]!r}")
    rest = [item for item in items if not after or _follows(item, after)]
    page = rest[: int(limit)]
    links = [f"<{place}?limit={limit}>;rel=first"]
    if len(page) < len(rest):
        links.append(f"<{place}?limit={limit}&after={quote(str(page[-1]), safe='')}>;rel=next")
    return Response(page, headers={"Link": ", ".join(links)})


def _follows(item: Any, after: str) -> bool:
    if isinstance(item, int):
        return not _LIMIT.match(after) or item > int(after)
    return str(item) > after
