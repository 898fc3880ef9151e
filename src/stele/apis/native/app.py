"""Stele's own API as an application: typed, with one shape for every error and an OpenAPI document."""

from __future__ import annotations

from typing import Any, NamedTuple

from litestar import Request

from stele import __version__
from stele.apis.http.application import DialectApplication, RegistryApplication, openapi_config
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


class AppState(NamedTuple):
    """What all requests of an application share."""

    registry: Registry


def application(registry: Registry, options: NativeOptions | None = None) -> RegistryApplication:
    """Return the API as an application of its own."""
    options = options or NativeOptions()
    routes = [handler for module in _MODULES for handler in module.create_routes(registry)]
    for addressed in (events, replication):
        routes += addressed.create_routes(registry, options.public_url)
    app = DialectApplication(
        route_handlers=routes,
        find_resource=find_resource,
        exception_handlers={Exception: handle_error},
        openapi_config=openapi_config("native", "Stele", __version__),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
    )
    return RegistryApplication(app, AppState(registry))
