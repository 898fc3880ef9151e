"""The media types of the API: which requests are taken, and which type an answer has."""

from __future__ import annotations

from collections.abc import Iterable

from litestar.datastructures import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException, NotFoundException
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from stele.apis.confluent.faults import MEDIA_TYPE
from stele.apis.web import media_type_of, negotiated

_OFFERED = {MEDIA_TYPE: 1.0, "application/vnd.schemaregistry+json": 0.9, "application/json": 0.5}
_TAKEN = {*_OFFERED, "application/octet-stream", ""}
_WITH_BODY = {"POST", "PUT"}


class NotAcceptable(HTTPException):
    """No media type the client takes can be given."""

    status_code = 406


class UnsupportedMediaType(HTTPException):
    """The body is not said to be JSON."""

    status_code = 415


def conventions(app: ASGIApp) -> ASGIApp:
    """Middleware: 406 and 415 before the endpoint, the negotiated type on the answer."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or scope["path"].startswith("/_docs/"):
            await app(scope, receive, send)
            return
        if b"//" in scope.get("raw_path", b"").partition(b"?")[0]:
            # The router has dropped the empty segment, and would act on something else than what was named.
            raise NotFoundException
        media_type = negotiated(_header(scope["headers"], b"accept"), _OFFERED)
        if media_type is None:
            raise NotAcceptable
        taken = media_type_of(_header(scope["headers"], b"content-type"))
        if scope["method"] in _WITH_BODY and taken not in _TAKEN:
            raise UnsupportedMediaType

        async def labelled(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableScopeHeaders.from_message(message)
                if message["status"] == 200:
                    headers["content-type"] = media_type
                elif scope["method"] == "OPTIONS":
                    headers["allow"] = _methods(scope)
            await send(message)

        await app(scope, receive, labelled)

    return handle


def _methods(scope: Scope) -> str:
    """The methods a path takes. The framework names those of one endpoint of the path only."""
    template = scope["path_template"]
    routes = scope["litestar_app"].routes
    found = {method for row in routes if row.path_format == template for method in getattr(row, "methods", ())}
    return ", ".join(sorted(found))


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    """All values of a header, joined as a list."""
    return ", ".join(value.decode("latin-1") for key, value in headers if key == name)
