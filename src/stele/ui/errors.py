"""Responses to errors: an HTML page for pages, and for a JSON twin the shape of the native API's errors."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import structlog
from litestar import Request, Response

from stele.apis.http.errors import error_headers, error_message, log_failure
from stele.apis.http.requests import mounted_prefix
from stele.apis.native.errors import NativeError, describe_error, http_status
from stele.errors import Forbidden
from stele.protocol.http_statuses import STATUS_PHRASES
from stele.ui.pages import PageFrame, PageRequest, render_page
from stele.ui.routes.login import login_path

_logger = structlog.get_logger("stele.ui")

_ADVICE: Final = {
    400: "Go back and correct what was sent.",
    401: "Say who you are: with a user and password, an API key, a token or a certificate, as this server is set up.",
    403: "Ask an administrator of this registry for the right.",
    404: "It may have been deleted, or its name may be spelled differently. Search for it.",
    405: "Follow a link or use a form of these pages.",
    413: "Send less at once.",
    422: "Correct the address, or what was sent.",
    429: "Wait a moment, then load the page again.",
    500: "This is a defect. The log of the server says how it came about.",
    503: "The registry is busy or cannot reach its store. Load the page again in a moment.",
}
"""Advice to the user, by HTTP status."""


class ErrorPage(msgspec.Struct, frozen=True):
    """A page that reports an error.

    status     HTTP status
    title      its common name
    message    what went wrong
    advice     what to do
    operation  the missing right; '' if the error is not about a right
    """

    status: int
    title: str
    message: str
    advice: str
    operation: str = ""


def handle_error(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Return the response to an error. This is the exception handler of the pages."""
    status = http_status(error)
    if status >= 500:
        log_failure(_logger, request.scope["path"], error)
    headers = error_headers(error)
    if request.scope["path"].endswith(".json"):
        body = msgspec.json.encode(NativeError(describe_error(error)))
        return Response(body, status_code=status, media_type="application/json", headers=headers)
    page = PageRequest(request)
    if status == 401 and page.options.log_in is not None:
        return _lead_to_login(page)
    operation = str(error.operation or "") if isinstance(error, Forbidden) else ""
    content = ErrorPage(
        status, STATUS_PHRASES[status], error_message(error), _ADVICE.get(status, _ADVICE[500]), operation
    )
    answer = render_page(page, "error.html.j2", content, status=status)
    answer.headers.update(headers)
    return answer


def _lead_to_login(page: PageRequest) -> Response[bytes]:
    """Return a redirect to the login page, which leads back to the requested page after the login."""
    scope = page.request.scope
    path, query = "", ""
    if scope["method"] in {"GET", "HEAD"}:
        path = scope["raw_path"].partition(b"?")[0].decode("ascii", "replace")
        path = path.removeprefix(mounted_prefix(page.request)).removeprefix("/ui")
        query = scope["query_string"].decode("ascii", "replace")
    frame = PageFrame(page, "", None)
    target = frame.root + login_path(path, query)
    if page.request.headers.get("hx-request"):
        return Response(b"", status_code=200, headers={"hx-redirect": target, "cache-control": "no-store"})
    return Response(b"", status_code=303, headers={"location": target, "cache-control": "no-store"})
