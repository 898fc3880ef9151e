"""Builds the application of the dialect."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from litestar import Request
from litestar.di import Provide
from litestar.params import QueryParameter

from stele.apis.http.access import get_app_state, parse_single
from stele.apis.http.application import DialectApplication, RegistryApplication, openapi_config
from stele.apis.http.requests import decode_segment
from stele.apis.pravega.errors import handle_error
from stele.apis.pravega.operations import AppState, Operations
from stele.apis.pravega.options import PravegaOptions
from stele.apis.pravega.routes import ROUTES
from stele.core.access import Resource, namespace_resource, subject_resource
from stele.core.model import SubjectKey
from stele.service.registry import Registry

SEGMENTS = ("v1", "ping")
"""First segments of the paths that the dialect answers."""

_RELEASE = "0.6.0"
"""Release of the API that the dialect follows."""

Namespace = Annotated[str, QueryParameter(description="namespace of the groups; the default one has no name")]


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the group or namespace that a path and the parameter `namespace` name."""
    names = request.path_params
    namespace = decode_segment(str(names["ns"] if "ns" in names else parse_single(request, "namespace")))
    group = names.get("group")
    return (
        namespace_resource(namespace)
        if group is None
        else subject_resource(SubjectKey(namespace, decode_segment(group)))
    )


def application(registry: Registry, options: PravegaOptions | None = None) -> RegistryApplication:
    """Return the dialect as an application of its own.

    Args:
        registry: What the application serves.
        options: Options of the dialect; None are the defaults.
    """
    options = options or PravegaOptions()
    return RegistryApplication(_build_application(options), AppState(registry, options))


@lru_cache(maxsize=8)
def _build_application(options: PravegaOptions) -> DialectApplication:
    def provide_operations(request: Request[Any, Any, Any], namespace: Namespace = "") -> Operations:
        return Operations(get_app_state(request.scope), decode_segment(str(request.path_params.get("ns", namespace))))

    return DialectApplication(
        route_handlers=ROUTES,
        dependencies={"operations": Provide(provide_operations, sync_to_thread=False)},
        find_resource=find_resource,
        exception_handlers={Exception: handle_error},
        openapi_config=openapi_config("pravega", "Stele: Pravega dialect", _RELEASE),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
    )
