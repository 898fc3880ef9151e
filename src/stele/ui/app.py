"""The pages as an application, mounted like a dialect."""

from __future__ import annotations

from typing import Any

from litestar import Request
from litestar.types import ASGIApp, Middleware, Receive, Scope, Send

from stele.apis.http.application import DialectApplication, RegistryApplication
from stele.apis.http.requests import decode_segment
from stele.core.access import Resource, level_resource
from stele.errors import ReadOnly
from stele.service.policies import parse_level_name
from stele.service.registry import Registry
from stele.ui import assets
from stele.ui.errors import make_error_handler
from stele.ui.forms import CHANGES_NOTHING, create_form_handlers
from stele.ui.options import UiOptions
from stele.ui.pages import Site, create_handlers
from stele.ui.routes import (
    clients,
    compare,
    definition,
    fields,
    history,
    home,
    login,
    operation,
    references,
    rules,
    server,
    subjects,
    usage,
    versions,
)
from stele.ui.work import bulk, journal_feed, list_form_pages, list_work_pages, transfer

_MODULES = (
    home,
    subjects,
    definition,
    fields,
    versions,
    history,
    compare,
    references,
    rules,
    usage,
    clients,
    server,
    operation,
    login,
)
"""Modules with pages: `list_pages()` returns them, and `create_routes(site)`, if there is one, more endpoints."""


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the subject, namespace or registry that a path names. Raises `InvalidName`."""
    return level_resource(parse_level_name(decode_segment(request.path_params.get("name") or "")))


def refuse_changes(options: UiOptions) -> Middleware:
    """Middleware: pages that are read-only refuse every request that may change something.

    Raises `ReadOnly`.
    """

    def middleware(app: ASGIApp) -> ASGIApp:
        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            is_change = scope.get("method") not in {"GET", "HEAD", "OPTIONS"}
            if options.read_only and is_change and CHANGES_NOTHING not in scope["route_handler"].opt:
                raise ReadOnly("These pages are read-only (setting ui_read_only).")
            await app(scope, receive, send)

        return handle

    return middleware


def application(registry: Registry, options: UiOptions | None = None) -> RegistryApplication:
    """Return the pages as an application of its own."""
    site = Site(registry, options or UiOptions())
    pages = [page for module in _MODULES for page in module.list_pages()] + list_work_pages()
    handlers: list[Any] = [handler for page in pages for handler in create_handlers(site, page)]
    handlers += [handler for form in list_form_pages() for handler in create_form_handlers(site, form)]
    for module in _MODULES:
        create_routes = getattr(module, "create_routes", None)
        if create_routes is not None:
            handlers += create_routes(site)
    handlers += transfer.create_routes(site) + bulk.create_routes(site) + journal_feed.create_routes(site)
    app = DialectApplication(
        route_handlers=[*handlers, *assets.create_routes()],
        find_resource=find_resource,
        middleware=[refuse_changes(site.options)],
        exception_handlers={Exception: make_error_handler(site)},
        openapi_config=None,
        request_max_body_size=site.options.max_request_bytes,
        logging_config=None,
    )
    return RegistryApplication(app, site)
