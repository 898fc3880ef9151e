"""Bodies of requests (schemas as plain text, forms), and the media type of an answer."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

from litestar import Request
from litestar.exceptions import InternalServerException

from stele.apis.http.media_types import NotAcceptable, UnsupportedMediaType, bare_media_type
from stele.errors import InvalidRequest

TEXT = "text/plain"
JSON = "application/json"
HTML = "text/html"
FORM = "application/x-www-form-urlencoded"

_MAX_FIELDS = 1000
_CHARSETS = {"utf-8", "utf8", "us-ascii", "iso-8859-1"}
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([\w.:+-]+)', re.IGNORECASE)


def choose_media_type(request: Request[Any, Any, Any], *offered: str) -> str:
    """Return the first media type of the Accept header that is offered; `*`, `*/*` or no header means the first one.

    Weights are ignored, as in the original. Raises `NotAcceptable`.
    """
    ranges = [bare_media_type(part) for part in request.headers.get("accept", "").split(",")]
    for wanted in [part for part in ranges if part] or ["*/*"]:
        if wanted in offered:
            return wanted
        if wanted in {"*", "*/*"}:
            return offered[0]
    raise NotAcceptable(f"Only {', '.join(offered)} can be given.")


async def read_text(request: Request[Any, Any, Any]) -> bytes:
    """Return the schema in a request as UTF-8. Raises `UnsupportedMediaType`, `InvalidRequest`."""
    text = _decode_body(await _read_body(request, TEXT), request.headers.get("content-type", ""))
    if not text.strip():
        raise InvalidRequest("the request has no schema")
    return text.encode()


async def read_form(request: Request[Any, Any, Any]) -> dict[str, str]:
    """Return the fields of a form, the first value of each. Raises `UnsupportedMediaType`, `InvalidRequest`."""
    text = _decode_body(await _read_body(request, FORM), "")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError as error:  # UnicodeDecodeError is one
        raise InvalidRequest(f"the form cannot be read: {error}") from None
    return dict(reversed(pairs))


async def _read_body(request: Request[Any, Any, Any], *taken: str) -> bytes:
    media_type = bare_media_type(request.headers.get("content-type", ""))
    if media_type and media_type not in taken:
        raise UnsupportedMediaType(f"The body is {media_type}; {' or '.join(taken)} is taken.")
    try:
        return await request.body()
    except InternalServerException:
        raise InvalidRequest("the request ended before its body did") from None


def _decode_body(body: bytes, content_type: str) -> str:
    match = _CHARSET.search(content_type)
    charset = match[1].lower() if match else "utf-8"
    if charset not in _CHARSETS:
        raise UnsupportedMediaType(f"The charset {charset} is not taken.")
    try:
        return body.decode(charset)
    except UnicodeError as error:
        raise InvalidRequest(f"the body is not text of its charset: {error}") from None
