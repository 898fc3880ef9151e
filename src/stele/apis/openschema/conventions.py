"""The media type of the API: which requests are taken, and which type an answer has."""

from __future__ import annotations

from collections.abc import Iterable

from litestar.datastructures import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from stele.apis.web import media_type_of, negotiated

MEDIA_TYPE = "application/vnd.openschema.v1+json"
"""Of bodies in this dialect; who names it at the root means this dialect."""

_OFFERED = {MEDIA_TYPE: 1.0, "application/json": 0.5}
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
        media_type = negotiated(_header(scope["headers"], b"accept"), _OFFERED)
        if media_type is None:
            raise NotAcceptable
        taken = media_type_of(_header(scope["headers"], b"content-type"))
        if scope["method"] in _WITH_BODY and taken not in _TAKEN:
            raise UnsupportedMediaType

        async def labelled(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                MutableScopeHeaders.from_message(message)["content-type"] = media_type
            await send(message)

        await app(scope, receive, labelled)

    return handle


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    """All values of a header, joined as a list."""
    return ", ".join(value.decode("latin-1") for key, value in headers if key == name)
