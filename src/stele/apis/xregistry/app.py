"""Builds the application of the dialect."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from litestar import Request
from litestar.datastructures import MutableScopeHeaders
from litestar.di import Provide
from litestar.types import HTTPScope, Message, Send

from stele.apis.http.access import get_app_state
from stele.apis.http.application import DialectApplication, RegistryApplication, openapi_config
from stele.apis.http.media_types import list_path_methods
from stele.apis.http.requests import EMPTY_SEGMENT, decode_segment, find_base_uri, mounted_prefix
from stele.apis.xregistry.errors import handle_error
from stele.apis.xregistry.operations import AppState, Operations
from stele.apis.xregistry.options import XregistryOptions
from stele.apis.xregistry.params import DETAILS, parse_flags
from stele.apis.xregistry.routes import ROUTES
from stele.apis.xregistry.translate import decode_name, group_namespace
from stele.core.access import Resource, namespace_resource, subject_resource
from stele.core.model import SubjectKey
from stele.service.registry import Registry

NAME = "xregistry"
"""Name of the dialect: in its prefix, its documents and its port."""
SEGMENTS: tuple[str, ...] = ()
"""First segments of paths that only this dialect answers: there are none."""

_RELEASE = "1.0-rc4"
"""Release of the specification that the dialect follows."""


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the schema or group that a path names."""
    names = request.path_params
    namespace = group_namespace(decode_segment(names["group"]))
    if "schema" not in names:
        return namespace_resource(namespace)
    return subject_resource(SubjectKey(namespace, decode_name(decode_segment(names["schema"]).removesuffix(DETAILS))))


def find_root(request: Request[Any, Any, Any], base_url: str) -> str:
    """Return the URL of the registry's root, without a slash at its end."""
    return base_url.rstrip("/") + mounted_prefix(request) if base_url else find_base_uri(request)


def application(registry: Registry, options: XregistryOptions | None = None) -> RegistryApplication:
    """Return the dialect as an application of its own.

    Args:
        registry: What the application serves.
        options: Options of the dialect; None are the defaults.
    """
    chosen = options or XregistryOptions()
    return RegistryApplication(_build_application(chosen), AppState(registry, chosen))


@lru_cache(maxsize=8)
def _build_application(options: XregistryOptions) -> DialectApplication:
    def provide_operations(request: Request[Any, Any, Any]) -> Operations:
        return Operations(get_app_state(request.scope), find_root(request, options.base_url), parse_flags(request))

    class WithLinks(DialectApplication):
        """The application. Every response has a link to the registry's root."""

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            """Answer one request."""
            if scope["type"] == "http" and not scope["path"].startswith("/_docs/"):
                scope["path"] = normalize_path(scope["path"])
                root = find_root(Request(scope), options.base_url)
                await super().__call__(scope, receive, _add_headers(send, scope, root))
            else:
                await super().__call__(scope, receive, send)

    return WithLinks(
        route_handlers=ROUTES,
        dependencies={"operations": Provide(provide_operations, sync_to_thread=False)},
        find_resource=find_resource,
        exception_handlers={Exception: handle_error},
        openapi_config=openapi_config(NAME, "Stele: xRegistry dialect, with the schema extension", _RELEASE),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
    )


def normalize_path(path: str) -> str:
    """Return a path as routes spell it: without a slash at the end, and with `EMPTY_SEGMENT` for empty segments."""
    path = path.rstrip("/") or "/"
    while "//" in path:
        path = path.replace("//", f"/{EMPTY_SEGMENT}/")
    return path


def _add_headers(send: Send, scope: HTTPScope, root: str) -> Send:
    """Return a `send` that adds headers to responses.

    All responses get the link to the registry's root. Responses to OPTIONS get the methods of the path in two headers.
    """

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableScopeHeaders.from_message(message)
            headers.add("link", f"<{root}>;rel=xregistry-root")
            if scope["method"] == "OPTIONS" and message["status"] == 204:
                message["status"] = 200
                headers["allow"] = headers["access-control-allow-methods"] = list_path_methods(scope)
        await send(message)

    return send_with_headers
