"""Parameters, headers and documents of requests, declared for endpoints and the OpenAPI document; pages of lists."""

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

from stele.apis.cncf.errors import AZURE_ERROR_RESPONSES, ERROR_RESPONSES
from stele.apis.cncf.operations import DocumentAttributes, PostedDocument
from stele.apis.cncf.translate import decode_header
from stele.errors import InvalidRequest

_LIMIT = re.compile(r"[0-9]{1,20}\Z")
_INTEGER = {"type": "integer", "format": "int32"}
_UINT64 = 2**64

Group = Annotated[str, PathParameter(description="id of a group")]
SchemaName = Annotated[str, PathParameter(description="id of a schema in its group")]
SchemaId = Annotated[str, PathParameter(description="id of a version, 32 hexadecimal digits")]
VersionNumber = Annotated[str, PathParameter(schema_extra=_INTEGER, description="number of a version, from 1")]
Uri = Annotated[str | None, QueryParameter(description="URI of a version; required")]
Limit = Annotated[str | None, QueryParameter(schema_extra=_INTEGER, description="most items of a page")]
After = Annotated[str, QueryParameter(description="last item of the previous page")]

Options = dict[str, Any]
READ: Options = {"responses": ERROR_RESPONSES}
"""Options of endpoints that read."""
STATUS_200: Options = {**READ, "status_code": 200}
"""Options of POST and PUT endpoints that create nothing with a path of its own."""
DELETE: Options = {**READ, "status_code": 204}
"""Options of endpoints that delete."""
_ANYTHING = ResponseSpec(Any, description="The document", generate_examples=False, media_type="*/*")
DOCUMENT: Options = {"responses": {**ERROR_RESPONSES, 200: _ANYTHING}, "media_type": "*/*"}
"""Options of endpoints that answer with a document."""
AZURE_READ: Options = {"responses": AZURE_ERROR_RESPONSES}
AZURE_DELETE: Options = {**AZURE_READ, "status_code": 204}
AZURE_DOCUMENT: Options = {"responses": {**AZURE_ERROR_RESPONSES, 200: _ANYTHING}, "media_type": "*/*"}
"""Options of Azure endpoints that answer with a document."""
_IN_HEADERS = ResponseSpec(None, description="The version, described by headers", generate_examples=False)
AZURE_IDENTIFY: Options = {"responses": {**AZURE_ERROR_RESPONSES, 204: _IN_HEADERS}, "status_code": 204}
"""Options of Azure endpoints that answer in headers only."""

# --- attributes -----------------------------------------------------------------------------------------------------


def read_attributes(
    request: Request[Any, Any, Any],
    description: Annotated[str | None, QueryParameter(description="attribute of the schema")] = None,
    versiondescription: Annotated[str | None, QueryParameter(description="attribute of the version")] = None,
    format_: Annotated[str | None, QueryParameter(name="format", description="attribute of the schema")] = None,
    authority: Annotated[str | None, QueryParameter(description="URI of the authority of the schema")] = None,
    id_: Annotated[
        str | None, QueryParameter(name="id", description="attribute of the version, a URI reference")
    ] = None,
    schema_description: Annotated[str | None, HeaderParameter(name="Schema-Description")] = None,
    schema_version_description: Annotated[str | None, HeaderParameter(name="Schema-Version-Description")] = None,
    schema_format: Annotated[str | None, HeaderParameter(name="Schema-Format")] = None,
    schema_authority: Annotated[str | None, HeaderParameter(name="Schema-Authority")] = None,
    schema_version_id: Annotated[str | None, HeaderParameter(name="Schema-Version-Id")] = None,
) -> DocumentAttributes:
    """Return the attributes of a document: query parameters, else headers."""
    return DocumentAttributes(
        _query_or_header(description, schema_description),
        _query_or_header(versiondescription, schema_version_description),
        _query_or_header(format_, schema_format),
        authority if authority is not None else schema_authority,
        id_ if id_ is not None else schema_version_id,
    )


def _query_or_header(query: str | None, header: str | None) -> str | None:
    """Return a text of the query, else of a header. URIs are not decoded here, because they have their own encoding."""
    if query is not None and "\ufffd" in query:
        raise InvalidRequest("a query parameter is not UTF-8")
    return query if query is not None or header is None else decode_header(header)


WithAttributes = NamedDependency[DocumentAttributes]

# --- documents ------------------------------------------------------------------------------------------------------


@dataclass
class AnyDocument(Operation):
    """An OpenAPI operation whose request body is a document of any content type."""

    def __post_init__(self) -> None:
        """Describe the body."""
        content = OpenAPIMediaType(schema=Schema(content_media_type="*/*"))
        self.request_body = RequestBody(content={"*/*": content}, required=True)


async def read_document(request: Request[Any, Any, Any]) -> PostedDocument:
    """Return the document in a request. Raises `InvalidRequest` if there is none or the client leaves early."""
    try:
        body = await request.body()
    except InternalServerException:
        raise InvalidRequest("the request ended before its body did") from None
    if not body:
        raise InvalidRequest("the request has no document")
    return PostedDocument(body, request.headers.get("content-type", ""))


# --- pages ----------------------------------------------------------------------------------------------------------


def build_page(items: Sequence[Any], limit: str | None, after: str, place: str) -> Response[list[Any]]:
    """Return a page of a sorted list, with links to the first and the next page where there are several.

    Args:
        items: The whole list.
        limit: Length of a page; None is the whole list.
        after: Last item of the page before.
        place: URL of the list.

    Raises:
        InvalidRequest: The limit is no positive number.
    """
    if limit is None:
        return Response(list(items))
    if not _LIMIT.match(limit) or not 0 < int(limit) < _UINT64:
        raise InvalidRequest(f"limit must be a number from 1 to 2^64-1, not {limit[:40]!r}")
    rest = [item for item in items if not after or _comes_after(item, after)]
    page = rest[: int(limit)]
    links = [f"<{place}?limit={limit}>;rel=first"]
    if len(page) < len(rest):
        links.append(f"<{place}?limit={limit}&after={quote(str(page[-1]), safe='')}>;rel=next")
    return Response(page, headers={"Link": ", ".join(links)})


def _comes_after(item: Any, after: str) -> bool:
    if isinstance(item, int):
        return not _LIMIT.match(after) or item > int(after)
    return str(item) > after
