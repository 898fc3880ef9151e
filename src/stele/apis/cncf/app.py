"""Builds the application of the dialect."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from litestar import Request
from litestar.di import Provide

from stele.apis.cncf.errors import handle_error
from stele.apis.cncf.operations import AppState, Operations
from stele.apis.cncf.options import CncfOptions
from stele.apis.cncf.params import read_attributes
from stele.apis.cncf.routes import ROUTES
from stele.apis.cncf.translate import decode_id
from stele.apis.http.access import get_app_state
from stele.apis.http.application import DialectApplication, RegistryApplication, openapi_config
from stele.apis.http.requests import EMPTY_SEGMENT, find_base_uri
from stele.core.access import Resource, namespace_resource, subject_resource
from stele.core.model import SubjectKey
from stele.protocol.cncf import namespace_of
from stele.service.registry import Registry

NAME = "cncf"
"""Name of the dialect: in its prefix, its documents and its port."""
SEGMENTS = ("schemagroups", "schema", "subscriptions", "$schemaGroups", "$schemagroups", "$SchemaGroups")
"""First segments of the paths that the dialect answers."""

_RELEASE = "0.2"
"""Release of the API that the dialect follows."""
_AZURE = re.compile(r"\A/\$schemagroups(?=/|\Z)(/\$schemas(?=/|\Z))?", re.IGNORECASE)


class _Application(DialectApplication):
    """The application, which normalizes paths before it routes."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            scope["path"] = normalize_path(scope["path"], scope["method"])
        await super().__call__(scope, receive, send)


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the schema or group that a path names. Raises `InvalidName`."""
    names = request.path_params
    namespace = namespace_of(decode_id(names["group"]))
    return (
        subject_resource(SubjectKey(namespace, decode_id(names["schema"])))
        if "schema" in names
        else namespace_resource(namespace)
    )


def application(registry: Registry, options: CncfOptions | None = None) -> RegistryApplication:
    """Return the dialect as an application of its own.

    Args:
        registry: What the application serves.
        options: Options of the dialect; None are the defaults.
    """
    options = options or CncfOptions()
    return RegistryApplication(_build_application(options), AppState(registry, options))


@lru_cache(maxsize=8)
def _build_application(options: CncfOptions) -> DialectApplication:
    def provide_operations(request: Request[Any, Any, Any]) -> Operations:
        return Operations(get_app_state(request.scope), find_base_uri(request, options.base_url))

    return _Application(
        route_handlers=ROUTES,
        dependencies={
            "operations": Provide(provide_operations, sync_to_thread=False),
            "attributes": Provide(read_attributes, sync_to_thread=False),
        },
        find_resource=find_resource,
        exception_handlers={Exception: handle_error},
        openapi_config=openapi_config("cncf", "Stele: CNCF Schema Registry dialect, with Azure's flavour", _RELEASE),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
    )


def normalize_path(path: str, method: str) -> str:
    """Return a path as routes spell it: Azure's first segments in one case, empty segments as `EMPTY_SEGMENT`.

    A slash at the end means nothing in a read, and an empty id in a write.
    """
    path = _AZURE.sub(lambda match: "/$schemaGroups" + ("/$schemas" if match[1] else ""), path, count=1)
    if path.endswith("/") and method not in {"GET", "HEAD", "OPTIONS"}:
        path += EMPTY_SEGMENT
    while "//" in path:
        path = path.replace("//", f"/{EMPTY_SEGMENT}/")
    return path
