"""Stele's own API as an application: typed, with one shape for every error and an OpenAPI document."""

from __future__ import annotations

from typing import Any

from litestar import Litestar, Request

from stele import __version__
from stele.apis.http.application import DialectApplication, openapi_config
from stele.apis.http.requests import decode_segment
from stele.apis.native.errors import handle_error
from stele.apis.native.options import NativeOptions
from stele.apis.native.routes import access, audit, events, history, journal, policies, replication, schema_texts, usage
from stele.core.access import Resource, level_resource
from stele.service.policies import parse_level_name
from stele.service.registry import Registry

_MODULES = (schema_texts, policies, journal, audit, usage, history, access)


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the subject, namespace or registry that a path names. Raises `InvalidName`."""
    names = request.path_params
    return level_resource(parse_level_name(decode_segment(names.get("name") or names.get("subject") or "")))


def application(registry: Registry, options: NativeOptions | None = None, **litestar_options: Any) -> Litestar:
    """Return the API as an application of its own. Keyword arguments go to Litestar as they are."""
    options = options or NativeOptions()
    routes = [handler for module in _MODULES for handler in module.create_routes(registry)]
    for addressed in (events, replication):
        routes += addressed.create_routes(registry, options.public_url)
    return DialectApplication(
        route_handlers=routes,
        registry=registry,
        find_resource=find_resource,
        exception_handlers={Exception: handle_error},
        openapi_config=openapi_config("native", "Stele", __version__),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
        **litestar_options,
    )
