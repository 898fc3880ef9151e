"""What every dialect needs of HTTP and its framework leaves to it: bodies, media types, documents, callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException, NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.types import ASGIApp, Receive, Scope, Send
from litestar.types.internal_types import PathParameterDefinition

from stele.errors import InvalidRequest
from stele.service.access import ANONYMOUS, Principal

PRINCIPAL = "stele.principal"
"""Key of the ASGI scope under which the server leaves who is asking (`service.access.Principal`)."""

BASE = "stele.base"
"""Key of the ASGI scope under which the server leaves what it took off the front of the path; absent: nothing."""

T = TypeVar("T")


class NotJson(InvalidRequest):
    """The body is no JSON document at all."""


class WrongShape(InvalidRequest):
    """The body is JSON, but not of the shape the endpoint takes."""


def actor_of(request: Request[Any, Any, Any]) -> str:
    """The name of the caller, '' for nobody in particular."""
    principal = cast("Mapping[str, Any]", request.scope).get(PRINCIPAL, ANONYMOUS)
    assert isinstance(principal, Principal)
    return principal.name


def base_of(request: Request[Any, Any, Any]) -> str:
    """What goes before the paths of links in an answer: '' or the prefix this dialect was asked below."""
    return str(cast("Mapping[str, Any]", request.scope).get(BASE, ""))


def without_empty_segments(app: ASGIApp) -> ASGIApp:
    """Middleware: 404 for `//`, which the router would take for `/`, and act on something else than was named."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if b"//" in scope.get("raw_path", b"").partition(b"?")[0]:
            raise NotFoundException
        await app(scope, receive, send)

    return handle


# --- bodies ---------------------------------------------------------------------------------------------------------


async def read_body(request: Request[Any, Any, Any], shape: type[T]) -> T:
    """The body as a value of a type, numbers in strings taken as numbers. Raises `NotJson`, `WrongShape`.

    The framework's own decoding is not used: it fails with a server error on bad UTF-8 and on deep nesting.
    """
    return decode_body(await read_bytes(request), shape)


async def read_bytes(request: Request[Any, Any, Any]) -> bytes:
    """The body as it is. Raises `NotJson` when the client leaves in the middle of it: a defect to the framework."""
    try:
        return await request.body()
    except InternalServerException:
        raise NotJson("the request ended before its body did") from None


def decode_body(body: bytes, shape: type[T]) -> T:
    """See `read_body`."""
    if not body.strip():
        raise WrongShape("the request has no body")
    try:
        # The decoder looks into strings it needs only; a body is one text, so all of it must be.
        value: T = _decoder(shape).decode(body.decode("utf-8"))
    except msgspec.ValidationError as error:
        raise WrongShape(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotJson(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise NotJson("the body is nested too deeply") from None
    return value


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def _decoder(shape: type) -> msgspec.json.Decoder[Any]:
    known = _decoders.get(shape)
    if known is None:
        known = _decoders[shape] = msgspec.json.Decoder(shape, strict=False)
    return known


# --- documents ------------------------------------------------------------------------------------------------------


@cache
def documented(shape: type, media_type: str = "application/json") -> type[Operation]:
    """An OpenAPI operation whose request body is of that shape; for endpoints that read their body themselves."""
    schema, parts = msgspec.json.schema_components([shape], ref_template="{name}")
    content = OpenAPIMediaType(schema=cast("Schema", _inlined(schema[0], parts)))

    @dataclass
    class WithBody(Operation):
        def __post_init__(self) -> None:
            self.request_body = RequestBody(content={media_type: content}, required=True)

    return WithBody


def _inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    """A JSON Schema with its references replaced by what they name; no body here contains itself."""
    if isinstance(schema, list):
        return [_inlined(item, parts) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(parts[schema["$ref"]], parts)
    return {name: _inlined(value, parts) for name, value in schema.items()}


def operation_id(handler: HTTPRouteHandler, method: str, path: Sequence[str | PathParameterDefinition]) -> str:
    """A unique name of an operation: its method and path."""
    names = [part if isinstance(part, str) else part.name for part in path]
    return "_".join([method.lower(), *names]).replace("-", "_")


def allowed(error: Exception) -> dict[str, str]:
    """The Allow header an answer to an error must have: of a 405, the methods the path takes (RFC 9110, 15.5.6)."""
    headers = dict(getattr(error, "headers", None) or {})
    return {name: ", ".join(sorted(value.split(", "))) for name, value in headers.items() if name.lower() == "allow"}


# --- media types ----------------------------------------------------------------------------------------------------


def negotiated(accept: str, offered: Mapping[str, float]) -> str | None:
    """The media type to answer with, or None when none is acceptable (RFC 9110, 12.5.1).

    offered maps what can be sent to the server's own preference; the first one answers an absent header.
    """
    ranges = [_weighted(part) for part in accept.split(",") if part.strip()]
    if not ranges:
        return next(iter(offered))
    best: tuple[float, float] = (0.0, 0.0)
    chosen = None
    for media_type, preference in offered.items():
        quality = _quality(media_type, ranges)
        if quality > 0 and (quality, preference) > best:
            best, chosen = (quality, preference), media_type
    return chosen


def _weighted(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    if name == "*":  # Java's own HTTP client writes it so.
        name = "*/*"
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                return name, min(max(float(value), 0.0), 1.0)
            except ValueError:
                return name, 0.0
    return name, 1.0


def _quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """The weight of the most specific range that matches."""
    for wanted in (media_type, media_type.split("/", maxsplit=1)[0] + "/*", "*/*"):
        found = [quality for name, quality in ranges if name == wanted]
        if found:
            return max(found)
    return 0.0


def names_first(accept: str, media_type: str) -> bool:
    """Whether an Accept header names a media type itself and nothing else with a greater weight."""
    ranges = [_weighted(part) for part in accept.split(",") if part.strip()]
    own = max((quality for name, quality in ranges if name == media_type), default=0.0)
    return own > 0 and own >= max(quality for _, quality in ranges)


def media_type_of(header: str) -> str:
    """The bare media type of a Content-Type header, lower case; '' when there is none."""
    return header.partition(";")[0].strip().lower()
