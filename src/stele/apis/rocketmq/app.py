"""Builds the application of the dialect."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from litestar import Request, Router
from litestar.di import Provide
from litestar.params import PathParameter

from stele.apis.http.access import get_app_state
from stele.apis.http.application import DialectApplication, RegistryApplication, openapi_config
from stele.apis.http.requests import decode_segment, refuse_empty_segments
from stele.apis.rocketmq.errors import handle_error
from stele.apis.rocketmq.operations import AppState, Operations
from stele.apis.rocketmq.options import RocketmqOptions
from stele.apis.rocketmq.routes import ROUTES
from stele.apis.rocketmq.translate import DEFAULT, namespace_of, parse_address
from stele.core.access import Resource, subject_resource
from stele.core.model import SubjectKey
from stele.service.registry import Registry

NAME = "rocketmq"
"""Name of the dialect: in its prefix, its documents and its port."""
ROOT = "/schema-registry/v1"
"""Beginning of all paths."""
SEGMENTS = ("schema-registry",)
"""First segments of the paths that the dialect answers."""

_RELEASE = "0.1.0"
"""Release of the API that the dialect follows."""

Cluster = Annotated[str, PathParameter(description="name of a cluster; `default` where the path names none")]
Tenant = Annotated[str, PathParameter(description="name of a tenant; `default` where the path names none")]


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the schema of a tenant that a path names."""
    names = request.path_params
    namespace = namespace_of(decode_segment(names["tenant"]))
    return subject_resource(SubjectKey(namespace, decode_segment(names["schema_name"])))


def application(registry: Registry, options: RocketmqOptions | None = None) -> RegistryApplication:
    """Return the dialect as an application of its own.

    Args:
        registry: What the application serves.
        options: Options of the dialect; None are the defaults.
    """
    options = options or RocketmqOptions()
    return RegistryApplication(_build_application(options), AppState(registry, options))


@lru_cache(maxsize=8)
def _build_application(options: RocketmqOptions) -> DialectApplication:
    def provide_operations(
        request: Request[Any, Any, Any], cluster: Cluster = DEFAULT, tenant: Tenant = DEFAULT
    ) -> Operations:
        return Operations(get_app_state(request.scope), parse_address(cluster, tenant))

    return DialectApplication(
        route_handlers=[Router(ROOT, route_handlers=ROUTES)],
        dependencies={"operations": Provide(provide_operations, sync_to_thread=False)},
        find_resource=find_resource,
        exception_handlers={Exception: handle_error},
        middleware=[refuse_empty_segments],
        openapi_config=openapi_config("rocketmq", "Stele: RocketMQ dialect", _RELEASE),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
    )
