"""The CNCF Schema Registry dialect (0.2): groups of schemas, documents of any content type, version URIs,
subscriptions; and the flavour of it that Azure's clients speak, below `/$schemaGroups`.

Source: docs/protocols/cncf.md, docs/protocols/azure.md.
"""

from __future__ import annotations

import re
from typing import Any

from litestar import Litestar, Request
from litestar.di import Provide

from stele.apis.cncf import routes_azure, routes_groups, routes_schemas, routes_subscriptions
from stele.apis.cncf.desk import Desk, Office
from stele.apis.cncf.faults import answer
from stele.apis.cncf.names import spelled
from stele.apis.cncf.options import CncfOptions
from stele.apis.cncf.parameters import attributes
from stele.apis.http.application import DialectApplication
from stele.apis.http.openapi import openapi_config
from stele.apis.http.requests import caller_name, mounted_prefix
from stele.service.registry import Registry

__all__ = ["NAME", "SEGMENTS", "CncfOptions", "application"]

NAME = "cncf"
"""Of the dialect: of its prefix, its documents and its port."""
SEGMENTS = ("schemagroups", "schema", "subscriptions", "$schemaGroups", "$schemagroups", "$SchemaGroups")
"""First segments of the paths that are answered here."""

_RELEASE = "0.2"
"""Of the API this dialect follows."""
_HOST = re.compile(r"[A-Za-z0-9._~:\[\]-]{1,300}\Z")


class _Application(DialectApplication):
    """The application, with paths as its routes spell them."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            scope["path"] = spelled(scope["path"], scope["method"])
        await super().__call__(scope, receive, send)


def application(registry: Registry, options: CncfOptions | None = None, **settings: Any) -> Litestar:
    """The dialect as an application of its own. settings go to Litestar as they are."""
    options = options or CncfOptions()
    office = Office(registry, options)

    def desk(request: Request[Any, Any, Any]) -> Desk:
        return Desk(office, caller_name(request), _base(request, options))

    modules = (routes_groups, routes_schemas, routes_subscriptions, routes_azure)
    return _Application(
        route_handlers=[handler for module in modules for handler in module.ROUTES],
        dependencies={
            "desk": Provide(desk, sync_to_thread=False),
            "attributes": Provide(attributes, sync_to_thread=False),
        },
        exception_handlers={Exception: answer},
        openapi_config=openapi_config("cncf", "Stele: CNCF Schema Registry dialect, with Azure's flavour", _RELEASE),
        request_max_body_size=options.max_request_bytes,
        logging_config=None,
        **settings,
    )


def _base(request: Request[Any, Any, Any], options: CncfOptions) -> str:
    """The base URI the caller knows this API by, without a slash at its end."""
    if options.base_url:
        return options.base_url.rstrip("/")
    host = request.headers.get("host", "")
    if not _HOST.match(host):
        server = request.scope.get("server") or ("localhost", None)
        host = f"{server[0]}:{server[1]}" if server[1] else server[0]
    return f"{request.scope['scheme']}://{host}{mounted_prefix(request)}"
