"""What every dialect needs of HTTP and its framework leaves to it: bodies, documents, errors, callers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, TypeVar, cast

import msgspec
from litestar import Litestar, Request
from litestar.exceptions import HTTPException, InternalServerException, NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.types import ASGIApp, Receive, Scope, Send
from litestar.types.internal_types import PathParameterDefinition

from stele.errors import Incompatible, InvalidRequest, SteleError
from stele.service.access import ANONYMOUS, Principal

PRINCIPAL = "stele.principal"
"""Key of the ASGI scope under which the server leaves who is asking (`service.access.Principal`)."""

BASE = "stele.base"
"""Key of the ASGI scope under which the server leaves what it took off the front of the path; absent: nothing."""

T = TypeVar("T")


class Application(Litestar):
    """A dialect's application. It leaves out Litestar's plug-ins for Pydantic and attrs, which take long to load."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


_MOST_FINDINGS = 20


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


def described(name: str, title: str, release: str) -> OpenAPIConfig:
    """The settings of a dialect's OpenAPI document, which stands at `/_docs/<name>/openapi.json`."""
    return OpenAPIConfig(
        title=title,
        version=release,
        path=f"/_docs/{name}",
        operation_id_creator=operation_id,
        render_plugins=[JsonRenderPlugin(path="/openapi.json")],
    )


# --- errors ---------------------------------------------------------------------------------------------------------


def sentence_of(error: Exception) -> str:
    """What a client is told: of a refusal all reasons, of defects nothing."""
    if isinstance(error, Incompatible):
        reasons = [f"{row.path or '/'}: {row.why}" for row in error.findings[:_MOST_FINDINGS]]
        return "; ".join([str(error), *reasons])
    if isinstance(error, SteleError):
        return str(error)
    if isinstance(error, HTTPException):
        return HTTPStatus(error.status_code).phrase
    return "the registry failed; its log says how"


def allowed(error: Exception) -> dict[str, str]:
    """The Allow header an answer to an error must have: of a 405, the methods the path takes (RFC 9110, 15.5.6)."""
    headers = dict(getattr(error, "headers", None) or {})
    return {name: ", ".join(sorted(value.split(", "))) for name, value in headers.items() if name.lower() == "allow"}
