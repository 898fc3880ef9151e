"""The application that every dialect is, and its OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import msgspec
from litestar import Litestar
from litestar.datastructures import ResponseHeader
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.types import Middleware
from litestar.types.internal_types import PathParameterDefinition

from stele.apis.http.requests import limit_time


class DialectApplication(Litestar):
    """A dialect's application, every request of which ends in time.

    It leaves out Litestar's plug-ins for Pydantic and attrs, which take long to load.
    """

    def __init__(self, *handlers: Any, middleware: Sequence[Middleware] = (), **options: Any) -> None:
        super().__init__(*handlers, middleware=[limit_time, *middleware], **options)

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


@cache
def openapi_body(shape: type, media_type: str = "application/json") -> type[Operation]:
    """Return an OpenAPI operation whose request body is of that shape.

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
    """Return a JSON Schema with its references replaced by what they name; no body here contains itself."""
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


def not_active(why: str) -> list[ResponseHeader]:
    """Return the header of answers about what is stored and has no effect yet: one ASCII sentence."""
    return [ResponseHeader(name="Stele-Not-Active", value=why, description="Why this has no effect yet")]


def openapi_config(name: str, title: str, release: str) -> OpenAPIConfig:
    """Return the settings of a dialect's OpenAPI document, which stands at `/_docs/<name>/openapi.json`."""
    return OpenAPIConfig(
        title=title,
        version=release,
        path=f"/_docs/{name}",
        operation_id_creator=create_operation_id,
        render_plugins=[JsonRenderPlugin(path="/openapi.json")],
    )
