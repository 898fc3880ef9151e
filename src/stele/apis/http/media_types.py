"""Content negotiation, and middleware for dialects in which all bodies have one of a few media types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from litestar.datastructures import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Message, Middleware, Receive, Scope, Send

_WITH_BODY = {"POST", "PUT"}


class NotAcceptable(HTTPException):
    """The client accepts none of the media types of the response."""

    status_code = 406


class UnsupportedMediaType(HTTPException):
    """The media type of the request body is not accepted."""

    status_code = 415


def negotiate_media_types(offered: Mapping[str, float]) -> Middleware:
    """Middleware: negotiates media types, and adds the methods of a path to responses to OPTIONS.

    It raises errors 406 and 415 before the endpoint runs, and sets the negotiated type on responses with status 200.
    offered maps media types to the server's preference. Request bodies may have one of these types,
    `application/octet-stream`, or no type.
    """
    taken = {*offered, "application/octet-stream", ""}

    def middleware(app: ASGIApp) -> ASGIApp:
        async def handle(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != ScopeType.HTTP or scope["path"].startswith("/_docs/"):
                await app(scope, receive, send)
                return
            media_type = choose_media_type(_join_header(scope["headers"], b"accept"), offered)
            if media_type is None:
                raise NotAcceptable
            if (
                scope["method"] in _WITH_BODY
                and bare_media_type(_join_header(scope["headers"], b"content-type")) not in taken
            ):
                raise UnsupportedMediaType

            async def send_with_media_type(message: Message) -> None:
                if message["type"] == "http.response.start":
                    headers = MutableScopeHeaders.from_message(message)
                    if message["status"] == 200:
                        headers["content-type"] = media_type
                    elif scope["method"] == "OPTIONS":
                        headers["allow"] = list_path_methods(scope)
                await send(message)

            await app(scope, receive, send_with_media_type)

        return handle

    return middleware


def list_path_methods(scope: Scope) -> str:
    """Return all methods of the path of a request. Litestar names those of one endpoint only."""
    template = scope["path_template"]
    routes = scope["litestar_app"].routes
    methods = {method for row in routes if row.path_format == template for method in getattr(row, "methods", ())}
    return ", ".join(sorted(methods))


def _join_header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    """Return all values of a header, joined as a list."""
    return ", ".join(value.decode("latin-1") for key, value in headers if key == name)


def choose_media_type(accept: str, offered: Mapping[str, float]) -> str | None:
    """Return the media type to answer with, or None if none is acceptable (RFC 9110, 12.5.1).

    offered maps media types to the server's preference. Without an Accept header the first one is returned.
    """
    ranges = [_parse_range(part) for part in accept.split(",") if part.strip()]
    if not ranges:
        return next(iter(offered))
    best: tuple[float, float] = (0.0, 0.0)
    chosen = None
    for media_type, preference in offered.items():
        quality = _best_quality(media_type, ranges)
        if quality > 0 and (quality, preference) > best:
            best, chosen = (quality, preference), media_type
    return chosen


def _parse_range(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    if name == "*" or name.startswith("*/"):  # Java's own HTTP client writes `*`, and JAX-RS takes `*/x` for `*/*`.
        name = "*/*"
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                return name, min(max(float(value), 0.0), 1.0)
            except ValueError:
                return name, 0.0
    return name, 1.0


def _best_quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return the weight of the most specific range that matches."""
    for wanted in (media_type, media_type.split("/", maxsplit=1)[0] + "/*", "*/*"):
        qualities = [quality for name, quality in ranges if name == wanted]
        if qualities:
            return max(qualities)
    return 0.0


def is_preferred(accept: str, media_type: str) -> bool:
    """Return whether an Accept header names a media type literally and nothing else with a greater weight."""
    ranges = [_parse_range(part) for part in accept.split(",") if part.strip()]
    own = max((quality for name, quality in ranges if name == media_type), default=0.0)
    return own > 0 and own >= max(quality for _, quality in ranges)


def bare_media_type(header: str) -> str:
    """Return the bare media type of a Content-Type header, lower case; '' when there is none."""
    return header.partition(";")[0].strip().lower()
