"""The RocketMQ dialect: schemas of tenants and the subjects bound to their records, below `/schema-registry/v1`.

Source: docs/protocols/rocketmq.md.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Litestar, Request, Router
from litestar.di import Provide
from litestar.params import PathParameter

from stele.apis.http.application import DialectApplication
from stele.apis.http.openapi import openapi_config
from stele.apis.http.requests import caller_name, refuse_empty_segments
from stele.apis.rocketmq import routes_bindings, routes_lists, routes_reading, routes_schemas
from stele.apis.rocketmq.desk import Desk, Office
from stele.apis.rocketmq.faults import answer
from stele.apis.rocketmq.options import RocketmqOptions
from stele.apis.rocketmq.translate import DEFAULT, place_of
from stele.service.registry import Registry

__all__ = ["NAME", "ROOT", "SEGMENTS", "RocketmqOptions", "application"]

NAME = "rocketmq"
"""Of the dialect: of its prefix, its documents and its port."""
ROOT = "/schema-registry/v1"
"""What the paths begin with."""
SEGMENTS = ("schema-registry",)
"""First segments of the paths that are answered here."""

_RELEASE = "0.1.0"
"""Of the API this dialect follows."""

Cluster = Annotated[str, PathParameter(description="name of a cluster; `default` where the path names none")]
Tenant = Annotated[str, PathParameter(description="name of a tenant; `default` where the path names none")]


def application(registry: Registry, options: RocketmqOptions | None = None, **settings: Any) -> Litestar:
    """The dialect as an application of its own. settings go to Litestar as they are."""
    options = options or RocketmqOptions()
    office = Office(registry, options)

    def desk(request: Request[Any, Any, Any], cluster: Cluster = DEFAULT, tenant: Tenant = DEFAULT) -> Desk:
        return Desk(office, caller_name(request), place_of(cluster, tenant))

    modules = (routes_schemas, routes_reading, routes_lists, routes_bindings)
    return DialectApplication(
        route_handlers=[Router(ROOT, route_handlers=[handler for module in modules for handler in module.ROUTES])],
        dependencies={"desk": Provide(desk, sync_to_thread=False)},
        exception_handlers={Exception: answer},
        middleware=[refuse_empty_segments],
        openapi_config=openapi_config("rocketmq", "Stele: RocketMQ dialect", _RELEASE),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
        **settings,
    )
