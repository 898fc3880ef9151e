"""The OpenSchema dialect: subjects of tenants and namespaces, their schemas and compatibility.

Its paths are those of the Confluent dialect with other bodies, so it is found below `/openschema`, on a port of its
own, and at the root by clients that name its media type.

Source: docs/protocols/openschema.md.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Litestar, Request
from litestar.di import Provide
from litestar.params import QueryParameter

from stele.apis.http.application import DialectApplication
from stele.apis.http.openapi import openapi_config
from stele.apis.http.requests import caller_name, refuse_empty_segments
from stele.apis.openschema import routes_compatibility, routes_schemas, routes_subjects
from stele.apis.openschema.conventions import MEDIA_TYPE, conventions
from stele.apis.openschema.desk import Desk, Office
from stele.apis.openschema.faults import answer
from stele.apis.openschema.options import OpenSchemaOptions
from stele.apis.openschema.places import asked_space
from stele.service.registry import Registry

__all__ = ["MEDIA_TYPE", "NAME", "SEGMENTS", "OpenSchemaOptions", "application"]

NAME = "openschema"
"""Of the dialect: of its prefix, its documents and its port."""
SEGMENTS: tuple[str, ...] = ()
"""First segments of the paths that are answered here and nowhere else: there are none."""

_RELEASE = "1"
"""Of the API this dialect follows."""

Tenant = Annotated[str, QueryParameter(description="tenant; without tenant and namespace, wherever the name is found")]
Namespace = Annotated[str, QueryParameter(description="namespace of the tenant")]


def application(registry: Registry, options: OpenSchemaOptions | None = None, **settings: Any) -> Litestar:
    """The dialect as an application of its own. settings go to Litestar as they are."""
    options = options or OpenSchemaOptions()
    office = Office(registry, options)

    def desk(request: Request[Any, Any, Any], tenant: Tenant = "", namespace: Namespace = "") -> Desk:
        return Desk(office, caller_name(request), asked_space(tenant, namespace))

    modules = (routes_subjects, routes_schemas, routes_compatibility)
    return DialectApplication(
        route_handlers=[handler for module in modules for handler in module.ROUTES],
        dependencies={"desk": Provide(desk, sync_to_thread=False)},
        exception_handlers={Exception: answer},
        middleware=[refuse_empty_segments, conventions],
        openapi_config=openapi_config("openschema", "Stele: OpenSchema dialect", _RELEASE),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
        **settings,
    )
