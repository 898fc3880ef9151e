"""Base class of the applications of all dialects, and their OpenAPI documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Protocol, cast

import msgspec
from litestar import Litestar, Response
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.routes import BaseRoute
from litestar.types import Middleware
from litestar.types.internal_types import PathParameterDefinition

from stele.apis.http.access import APP_STATE, FindResource, check_access
from stele.apis.http.requests import ERROR, limit_time, raise_refusal
from stele.service.registry import Registry

INERT_HEADERS: Final[Mapping[str, str]] = MappingProxyType({"Content-Security-Policy": "sandbox; default-src 'none'"})
"""Headers of a response with a document that a user uploaded. They keep browsers from running it as a page."""


class AppState(Protocol):
    """State that all requests to one registry share. Each dialect has its own."""

    @property
    def registry(self) -> Registry:
        """The registry."""


class RegistryApplication:
    """A dialect of one registry, as an ASGI application. It adds the state of the registry to every request.

    Building the application that it calls takes a tenth of a second, so registries with the same options share it.
    """

    def __init__(self, app: Litestar, app_state: AppState) -> None:
        self._app = app
        self._app_state = app_state

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """The routes of the dialect."""
        return self._app.routes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        scope[APP_STATE] = self._app_state
        await self._app(scope, receive, send)


class DialectApplication(Litestar):
    """A dialect's application. It applies refusals of the server, access rules and the time limit to every request.

    find_resource returns the resource that a path names. Litestar's plug-ins for Pydantic and attrs are left out,
    because they take long to load. Requests come through a `RegistryApplication`.
    """

    def __init__(
        self,
        *handlers: Any,
        find_resource: FindResource,
        middleware: Sequence[Middleware] = (),
        exception_handlers: Mapping[type[Exception], Callable[[Any, Any], Response[Any]]],
        **options: Any,
    ) -> None:
        noting: dict[int | type[Exception], Any] = {
            kind: _note_error(handle) for kind, handle in exception_handlers.items()
        }
        super().__init__(
            *handlers,
            middleware=[raise_refusal, limit_time, check_access(find_resource), *middleware],
            exception_handlers=noting,
            **options,
        )

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


def _note_error(handle: Callable[[Any, Any], Response[Any]]) -> Callable[[Any, Any], Response[Any]]:
    """Return an error handler that also stores the error in the scope, for the request log."""

    def handle_and_note(request: Any, error: Exception) -> Response[Any]:
        request.scope[ERROR] = error
        return handle(request, error)

    return handle_and_note


@cache
def openapi_body(shape: type, media_type: str = "application/json") -> type[Operation]:
    """Return an OpenAPI operation whose request body has this shape.

    It is for endpoints that read their body themselves.
    """
    schema, parts = msgspec.json.schema_components([shape], ref_template="{name}")
    content = OpenAPIMediaType(schema=cast("Schema", _inline_references(schema[0], parts)))

    @dataclass
    class WithBody(Operation):
        def __post_init__(self) -> None:
            self.request_body = RequestBody(content={media_type: content}, required=True)

    return WithBody


def _inline_references(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Return a JSON Schema with its references replaced by their targets. No body here is recursive."""
    if isinstance(schema, list):
        return [_inline_references(item, parts) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inline_references(parts[schema["$ref"]], parts)
    return {name: _inline_references(value, parts) for name, value in schema.items()}


def create_operation_id(handler: HTTPRouteHandler, method: str, path: Sequence[str | PathParameterDefinition]) -> str:
    """Return a unique name of an operation: its method and path."""
    names = [part if isinstance(part, str) else part.name for part in path]
    return "_".join([method.lower(), *names]).replace("-", "_")


def openapi_config(name: str, title: str, release: str) -> OpenAPIConfig:
    """Return the settings of a dialect's OpenAPI document, which is served at `/_docs/<name>/openapi.json`."""
    return OpenAPIConfig(
        title=title,
        version=release,
        path=f"/_docs/{name}",
        operation_id_creator=create_operation_id,
        render_plugins=[JsonRenderPlugin(path="/openapi.json")],
    )
