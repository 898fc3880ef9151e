"""Reading requests: the path, the body, the caller; and middleware that every dialect puts first.

ASGI routes on decoded paths, in which `%2F` and `/` are the same. The server therefore decodes the raw path itself,
with a private-use character in place of every encoded slash, and endpoints decode it. If a client sends such a
character itself, it is escaped, so that no name has two spellings.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import threading
from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast
from urllib.parse import unquote_to_bytes

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException, NotFoundException
from litestar.types import ASGIApp, Receive, Scope, Send

from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper
from stele.errors import InvalidRequest, SteleError, TimeLimitReached, TooLarge, Unauthenticated
from stele.service.progress import track_progress

ERROR = "stele.error"
"""Key of the ASGI scope that holds the error with which a request was refused."""
PRINCIPAL = "stele.principal"
"""Key of the ASGI scope that holds the authenticated caller (`service.access.Principal`), set by the server."""

MOUNTED_PREFIX = "stele.base"
"""Key of the ASGI scope that holds the prefix which the server removed from the path; absent: none."""

REFUSAL = "stele.refusal"
"""Key of the ASGI scope that holds the error with which the server refuses a request; absent: none."""

ANSWERS_ANYBODY = "stele_answers_anybody"
"""Option of an endpoint that does not require authentication, such as the login."""

REQUEST_SECONDS = "stele.request_seconds"
"""Key of the ASGI scope that holds the time limit of a request in seconds, set by the server; absent: no limit."""


SHORT_BODY = "stele.body"
"""Key of the ASGI scope that holds a body which the server has read already; absent: it has not."""


def mounted_prefix(request: Request[Any, Any, Any]) -> str:
    """Return the prefix of paths in links of a response: that under which the dialect was requested, or ''."""
    return str(cast("Mapping[str, Any]", request.scope).get(MOUNTED_PREFIX, ""))


_HOST = re.compile(r"[A-Za-z0-9._~:\[\]-]{1,300}\Z")
WAITING = "stele.waiting"
"""Key of the connection's state that marks a request which only waits for an event."""


def find_base_uri(request: Request[Any, Any, Any], public_url: str = "") -> str:
    """Return the base URI of this API as the caller knows it, without a final slash; public_url if it is set."""
    if public_url:
        return public_url.rstrip("/")
    host = request.headers.get("host", "")
    if not _HOST.match(host):
        server = request.scope.get("server") or ("localhost", None)
        host = f"{server[0]}:{server[1]}" if server[1] else server[0]
    return f"{request.scope['scheme']}://{host}{mounted_prefix(request)}"


def time_limit(request: Request[Any, Any, Any]) -> float:
    """Return how many seconds the request may take; 60 if there is no limit in the scope."""
    return float(cast("Mapping[str, Any]", request.scope).get(REQUEST_SECONDS) or 60)


def mark_waiting(request: Request[Any, Any, Any]) -> None:
    """Mark the request as waiting for an event, so that a server that stops does not wait for its response."""
    cast("dict[str, Any]", request.scope).setdefault("state", {})[WAITING] = True


def refuse_empty_segments(app: ASGIApp) -> ASGIApp:
    """Middleware: answers 404 for a path with `//`, which the router would treat as `/` and so as another path."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        if b"//" in scope.get("raw_path", b"").partition(b"?")[0]:
            raise NotFoundException
        await app(scope, receive, send)

    return handle


def raise_refusal(app: ASGIApp) -> ASGIApp:
    """Middleware: raises the error under `REFUSAL`, so that the dialect's error handler answers it.

    An endpoint with the option `ANSWERS_ANYBODY` ignores `Unauthenticated`.
    """

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        refusal: SteleError | None = cast("Mapping[str, Any]", scope).get(REFUSAL)
        if refusal is not None and not (
            isinstance(refusal, Unauthenticated) and ANSWERS_ANYBODY in scope["route_handler"].opt
        ):
            raise refusal
        await app(scope, receive, send)

    return handle


def limit_time(app: ASGIApp) -> ASGIApp:
    """Middleware: cancels requests that exceed the time limit.

    Raises `TimeLimitReached`, which has the progress of comparisons and their findings so far.
    """

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        seconds: float | None = cast("Mapping[str, Any]", scope).get(REQUEST_SECONDS)
        with track_progress() as progress:
            try:
                async with asyncio.timeout(seconds):
                    await app(scope, receive, send)
            except TimeoutError:
                why = f"the request took longer than {seconds:g} seconds, which is the limit (request_seconds)"
                raise TimeLimitReached("; ".join(filter(None, (why, str(progress)))), progress.findings) from None

    return handle


SLASH: Final = "\ue000"
"""Replaces an encoded slash inside one segment of a routed path (first character of Unicode's private use area)."""
EMPTY_SEGMENT: Final = "\ue001"
"""Replaces an empty path segment, which the router would skip."""
_ESCAPE: Final = "\ue002"

_ENCODED_SLASH = re.compile(rb"%2[fF]")
_ESCAPES = {ord(mark): _ESCAPE + digit for mark, digit in ((SLASH, "0"), (EMPTY_SEGMENT, "1"), (_ESCAPE, "2"))}
_MARKS = {SLASH: "/"} | {escape: chr(mark) for mark, escape in _ESCAPES.items()}
_MARK = re.compile("|".join(_MARKS))


def decode_path(raw_path: bytes) -> str:
    """Return the path to route on: percent-decoded UTF-8, encoded slashes as `SLASH`.

    Bytes that are not UTF-8 become U+FFFD.
    """
    parts = (unquote_to_bytes(part).decode("utf-8", "replace") for part in _ENCODED_SLASH.split(raw_path))
    return SLASH.join(part.translate(_ESCAPES) for part in parts)


def decode_segment(segment: str) -> str:
    """Return the name in a segment of a routed path."""
    return _MARK.sub(lambda match: _MARKS[match[0]], segment)


T = TypeVar("T")


class NotJson(InvalidRequest):
    """The body is not JSON."""


class WrongShape(InvalidRequest):
    """The body is JSON, but not of the shape that the endpoint accepts."""


async def read_body(request: Request[Any, Any, Any], shape: type[T], *, only_first: bool = False) -> T:
    """Return the body as a value of a type; numbers may be given as strings. Raises `NotJson`, `WrongShape`.

    The framework's own decoding is not used: it fails with a server error on bad UTF-8 and on deep nesting. A long body
    is decoded in a thread. With only_first, anything after the first JSON value is ignored.
    """
    body = await read_bytes(request)
    if len(body) <= _DECODED_IN_LOOP:
        return decode_body(body, shape, only_first=only_first)
    return await asyncio.to_thread(_decode, body, shape, only_first)


async def read_bytes(request: Request[Any, Any, Any]) -> bytes:
    """Return the body as it is.

    Raises `NotJson` if the client disconnects before the end of the body. Litestar would report a server error.
    """
    scope = cast("Mapping[str, Any]", request.scope)
    body: bytes | None = scope.get(SHORT_BODY)
    if body is not None and len(body) <= (scope["route_handler"].resolve_request_max_body_size() or len(body)):
        return body
    try:
        return await request.body()
    except InternalServerException:
        raise NotJson("the request ended before its body did") from None


def decode_body(body: bytes, shape: type[T], *, only_first: bool = False) -> T:
    """Return a body as a value of a type; see `read_body`. Raises `TooLarge` for more than `MAX_VALUES` values."""
    if not body.strip():
        raise WrongShape("the request has no body")
    try:
        # The decoder checks only the strings it needs, but the whole body must be valid text.
        text = body.decode(json.detect_encoding(body))
    except UnicodeDecodeError as error:
        raise NotJson(f"the body is not JSON: {error}") from None
    values = _count_values(text) if len(text) > MAX_VALUES else 0
    if values > MAX_VALUES:
        raise TooLarge(f"the body has {values} values; the limit for one request is {MAX_VALUES}")
    if is_nested_deeper(text.encode()):
        raise NotJson(f"the body is nested deeper than {MAX_JSON_DEPTH} levels")
    was_collecting = gc.isenabled()
    try:
        gc.disable()  # The collector would scan the decoded values again and again, and free nothing.
        value: T = _get_decoder(shape).decode(text)
    except msgspec.ValidationError as error:
        raise WrongShape(str(error)) from None
    except msgspec.DecodeError as error:
        first = _cut_first_value(text) if only_first else ""
        if not first:
            raise NotJson(f"the body is not JSON: {error}") from None
        return decode_body(first.encode(), shape)
    finally:
        if was_collecting:
            gc.enable()
    return value


def _cut_first_value(text: str) -> str:
    """Return the first JSON value of a text; '' if there is none, or nothing follows it."""
    start = len(text) - len(text.lstrip(_JSON_SPACE))
    try:
        _, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return ""
    return text[start:end] if text[end:].strip(_JSON_SPACE) else ""


_JSON_SPACE: Final = " \t\n\r"

MAX_VALUES: Final = 100_000
"""Largest number of commas, objects and arrays in a body, outside its strings.

The decoder holds the interpreter lock, even in a thread. It takes 0.06 seconds for this many values.
"""

_DECODED_IN_LOOP: Final = 64 * 1024
"""Longest body, in bytes, that is decoded in the event loop."""

_decoding = threading.Lock()


def _decode(body: bytes, shape: type[T], only_first: bool) -> T:
    """Decode one body at a time, so that the event loop runs between two of them."""
    with _decoding:
        return decode_body(body, shape, only_first=only_first)


def _count_values(text: str) -> int:
    """Return a number that exceeds `MAX_VALUES` if and only if a JSON text has more values than that."""
    most = _count_marks(text)
    if most <= MAX_VALUES:
        return most
    without_escapes = text.replace(r"\\", "").replace(r"\"", "")
    least = without_escapes.count('"') // 4  # A value has two strings at most: its name and itself.
    return least if least > MAX_VALUES else sum(map(_count_marks, without_escapes.split('"')[::2]))


def _count_marks(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def _get_decoder(shape: type) -> msgspec.json.Decoder[Any]:
    known = _decoders.get(shape)
    if known is None:
        known = _decoders[shape] = msgspec.json.Decoder(shape, strict=False)
    return known


# --- query parameters -------------------------------------------------------------------------------------------------


def parse_whole_number(name: str, text: str, least: int, most: int) -> int:
    """Return a number of a query. Raises `InvalidRequest` if it is no whole number or out of bounds."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most))) or not least <= int(text) <= most:
        raise InvalidRequest(f"{name} must be a whole number from {least} to {most}")
    return int(text)
