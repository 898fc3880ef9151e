"""Stele's own API as an application: typed, with one shape for every error and an OpenAPI document."""

from __future__ import annotations

from typing import Any

from litestar import Litestar

from stele import __version__
from stele.apis.http.application import DialectApplication, openapi_config
from stele.apis.native.errors import handle_error
from stele.apis.native.routes import api_keys, journal, policies, schema_texts, usage
from stele.service.registry import Registry

_MODULES = (schema_texts, policies, journal, usage, api_keys)


def application(registry: Registry, *, max_request_bytes: int = 16 * 1024 * 1024, **litestar_options: Any) -> Litestar:
    """Return the API as an application of its own. Keyword arguments go to Litestar as they are."""
    return DialectApplication(
        route_handlers=[handler for module in _MODULES for handler in module.create_routes(registry)],
        exception_handlers={Exception: handle_error},
        openapi_config=openapi_config("native", "Stele", __version__),
        request_max_body_size=max_request_bytes,
        logging_config=None,
        **litestar_options,
    )
