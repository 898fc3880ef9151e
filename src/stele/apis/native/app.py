"""Stele's own API as an application: typed, with one shape for every error and an OpenAPI document."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from litestar import Request
from litestar.di import Provide

from stele import __version__
from stele.apis.http.access import get_app_state
from stele.apis.http.application import DialectApplication, RegistryApplication, openapi_config
from stele.apis.http.requests import decode_segment
from stele.apis.native.errors import handle_error
from stele.apis.native.options import NativeOptions
from stele.apis.native.params import AppState
from stele.apis.native.routes import access, audit, events, history, journal, policies, replication, schema_texts, usage
from stele.core.access import Resource, level_resource
from stele.service.audit import AuditReader
from stele.service.policies import parse_level_name
from stele.service.registry import Registry
from stele.service.usage import Usage

_MODULES = (schema_texts, policies, journal, audit, usage, history, access, events, replication)


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the subject, namespace or registry that a path names. Raises `InvalidName`."""
    names = request.path_params
    return level_resource(parse_level_name(decode_segment(names.get("name") or names.get("subject") or "")))


def application(registry: Registry, options: NativeOptions | None = None) -> RegistryApplication:
    """Return the API as an application of its own."""
    options = options or NativeOptions()
    app_state = AppState(registry, options, Usage(registry), AuditReader(registry))
    return RegistryApplication(_build_application(options.max_request_bytes), app_state)


@lru_cache(maxsize=8)
def _build_application(max_request_bytes: int) -> DialectApplication:
    return DialectApplication(
        route_handlers=[handler for module in _MODULES for handler in module.ROUTES],
        dependencies={
            "registry": Provide(_provide_registry, sync_to_thread=False),
            "app_state": Provide(_provide_app_state, sync_to_thread=False),
        },
        find_resource=find_resource,
        exception_handlers={Exception: handle_error},
        openapi_config=openapi_config("native", "Stele", __version__),
        request_max_body_size=max_request_bytes,
        logging_config=None,
    )


def _provide_app_state(request: Request[Any, Any, Any]) -> AppState:
    return cast("AppState", get_app_state(request.scope))


def _provide_registry(request: Request[Any, Any, Any]) -> Registry:
    return _provide_app_state(request).registry
