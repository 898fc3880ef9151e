"""What the server leaves in the ASGI scope for a dialect, and middleware every dialect puts first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from litestar import Request
from litestar.exceptions import NotFoundException
from litestar.types import ASGIApp, Receive, Scope, Send

from stele.service.access import ANONYMOUS, Principal

PRINCIPAL = "stele.principal"
"""Key of the ASGI scope under which the server leaves who is asking (`service.access.Principal`)."""

MOUNTED_PREFIX = "stele.base"
"""Key of the ASGI scope under which the server leaves what it took off the front of the path; absent: nothing."""


def caller_name(request: Request[Any, Any, Any]) -> str:
    """The name of the caller, '' for nobody in particular."""
    principal = cast("Mapping[str, Any]", request.scope).get(PRINCIPAL, ANONYMOUS)
    assert isinstance(principal, Principal)
    return principal.name


def mounted_prefix(request: Request[Any, Any, Any]) -> str:
    """What goes before the paths of links in an answer: '' or the prefix this dialect was asked below."""
    return str(cast("Mapping[str, Any]", request.scope).get(MOUNTED_PREFIX, ""))


def refuse_empty_segments(app: ASGIApp) -> ASGIApp:
    """Middleware: 404 for `//`, which the router would take for `/`, and act on something else than was named."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if b"//" in scope.get("raw_path", b"").partition(b"?")[0]:
            raise NotFoundException
        await app(scope, receive, send)

    return handle
