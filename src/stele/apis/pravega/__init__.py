"""The Pravega dialect: groups, schemas, codecs and encodings, below `/v1`, as Pravega's schema registry has them.

Source: docs/protocols/pravega.md.
"""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Litestar, Request
from litestar.di import Provide
from litestar.params import QueryParameter

from stele.apis.http.application import DialectApplication
from stele.apis.http.openapi import openapi_config
from stele.apis.http.paths import decode_segment
from stele.apis.http.requests import caller_name
from stele.apis.pravega import routes_encodings, routes_groups, routes_schemas
from stele.apis.pravega.desk import Desk, Office
from stele.apis.pravega.faults import answer
from stele.apis.pravega.options import PravegaOptions
from stele.service.registry import Registry

__all__ = ["SEGMENTS", "PravegaOptions", "application"]

SEGMENTS = ("v1", "ping")
"""First segments of the paths that are answered here."""

_RELEASE = "0.6.0"
"""Of the API this dialect follows."""

Namespace = Annotated[str, QueryParameter(description="namespace of the groups; the default one has no name")]


def application(registry: Registry, options: PravegaOptions | None = None, **settings: Any) -> Litestar:
    """The dialect as an application of its own. settings go to Litestar as they are."""
    options = options or PravegaOptions()
    office = Office(registry, options)

    def desk(request: Request[Any, Any, Any], namespace: Namespace = "") -> Desk:
        return Desk(office, caller_name(request), decode_segment(str(request.path_params.get("ns", namespace))))

    modules = (routes_groups, routes_schemas, routes_encodings)
    return DialectApplication(
        route_handlers=[handler for module in modules for handler in module.ROUTES],
        dependencies={"desk": Provide(desk, sync_to_thread=False)},
        exception_handlers={Exception: answer},
        openapi_config=openapi_config("pravega", "Stele: Pravega dialect", _RELEASE),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
        **settings,
    )
