"""The pages as an application, mounted like a dialect."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from litestar import Request
from litestar.types import ASGIApp, Receive, Scope, Send

from stele.apis.http.access import get_app_state
from stele.apis.http.application import DialectApplication, RegistryApplication
from stele.apis.http.requests import decode_segment
from stele.core.access import Resource, level_resource
from stele.errors import ReadOnly
from stele.service.policies import parse_level_name
from stele.service.registry import Registry
from stele.ui import assets
from stele.ui.errors import handle_error
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
)
"""Modules with pages, besides those of `stele.ui.work`: `list_pages()` returns them."""
_ROUTES: Final = (
    *definition.ROUTES,
    *transfer.ROUTES,
    *bulk.ROUTES,
    *journal_feed.ROUTES,
    *assets.ROUTES,
)
"""Endpoints that are not pages, except those for logging in and out."""


def find_resource(request: Request[Any, Any, Any]) -> Resource:
    """Return the subject, namespace or registry that a path names. Raises `InvalidName`."""
    return level_resource(parse_level_name(decode_segment(request.path_params.get("name") or "")))


def refuse_changes(app: ASGIApp) -> ASGIApp:
    """Wrap the application: if the pages are read-only, reject every request that may change something.

    The wrapped application raises `ReadOnly` for such a request.
    """

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        is_change = scope.get("method") not in {"GET", "HEAD", "OPTIONS"}
        if is_change and get_app_state(scope).options.read_only and CHANGES_NOTHING not in scope["route_handler"].opt:
            raise ReadOnly("These pages are read-only (setting ui_read_only).")
        await app(scope, receive, send)

    return handle


def application(registry: Registry, options: UiOptions | None = None) -> RegistryApplication:
    """Return the pages as an application of its own."""
    options = options or UiOptions()
    app = _build_application(options.max_request_bytes, can_log_in=options.log_in is not None)
    return RegistryApplication(app, Site(registry, options))


@lru_cache(maxsize=8)
def _build_application(max_request_bytes: int, *, can_log_in: bool) -> DialectApplication:
    pages = [page for module in _MODULES for page in module.list_pages()] + list_work_pages()
    handlers: list[Any] = [handler for page in pages for handler in create_handlers(page)]
    handlers += [handler for form in list_form_pages() for handler in create_form_handlers(form)]
    return DialectApplication(
        route_handlers=[*handlers, *_ROUTES, *(login.ROUTES if can_log_in else ())],
        find_resource=find_resource,
        middleware=[refuse_changes],
        exception_handlers={Exception: handle_error},
        openapi_config=None,
        request_max_body_size=max_request_bytes,
        logging_config=None,
    )
