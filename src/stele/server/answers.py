"""Finishes every response: adds an entity tag and caching headers, and compresses the body.

A schema that is read by its id or GUID never changes, so caches may keep it without revalidation. Permanent deletion is
the one exception: a cache may return the text for `cache_seconds` more, as every client that has read it does. All
other responses to GET may be kept, but caches revalidate each time (`no-cache`), and 304 means that nothing has
changed.

Source: docs/protocols/http.md#entity-tags-and-caches
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Collection, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import msgspec

from stele.apis.http.dependencies import depend_on_nothing
from stele.apis.http.requests import PRINCIPAL
from stele.core import zstd
from stele.server.asgi import App, AsgiScope, HeaderPairs, Message, Receive, Send
from stele.service.access import ANONYMOUS

_VARY: Final = (b"vary", b"accept, accept-encoding")
_ENCODINGS: Final = ("zstd", "gzip")
"""Content codings the server has, the preferred one first."""
_COMPRESSED_IN_LOOP: Final = 32 * 1024
"""Bodies of up to this many bytes are compressed and digested in the event loop; larger ones in a thread."""
_KEPT_OF_304: Final = frozenset({b"etag", b"cache-control", b"vary", b"x-request-id"})


class AnswerOptions(msgspec.Struct, frozen=True):
    """Options for caching and compressing responses.

    cache_seconds       how long caches keep what never changes without revalidation; 0: they always revalidate
    compression_bytes   length from which bodies are compressed; 0: never
    """

    cache_seconds: int = 86_400
    compression_bytes: int = 1024

    def caching_headers(self, body: bytes, *, immutable: bool, private: bool = False) -> list[tuple[bytes, bytes]]:
        """Return the caching headers of a response with this body.

        Caches keep a private response for its caller only.
        """
        lasting = immutable and self.cache_seconds > 0
        control = b"max-age=%d, immutable" % self.cache_seconds if lasting else b"no-cache"
        control = b"private, " + control if private else control
        # Weak, since a compressed body has the tag of the plain one.
        tag = b'W/"%s"' % blake2b(body, digest_size=16).hexdigest().encode("ascii")
        return [(b"etag", tag), (b"cache-control", control), _VARY]

    def choose_encoding(self, accepted: bytes, length: int) -> str:
        """Return the coding for a body of this length and this Accept-Encoding header; '' for none."""
        return _choose_encoding(accepted) if accepted and 0 < self.compression_bytes <= length else ""


class AnswerFinisher:
    """An ASGI application that wraps the application of a dialect.

    Args:
        app: The dialect.
        options: Options for caching and compressing responses.
        immutable: Templates of paths whose responses never change, as long as the request has no query.
    """

    def __init__(self, app: App, options: AnswerOptions, immutable: Collection[str] = ()) -> None:
        self._app = app
        self._options = options
        self._immutable = frozenset(immutable)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request. A response in several parts is passed on unchanged, part by part."""
        head: Message | None = None

        async def finish(message: Message) -> None:
            nonlocal head
            if message["type"] == "http.response.start":
                head = message
                return
            if head is not None:
                start, head = head, None
                if message["type"] == "http.response.body" and not message.get("more_body", False):
                    start, message = await self._finish_answer(scope, start, message)
                await send(start)
            await send(message)

        await self._app(scope, receive, finish)

    async def _finish_answer(self, scope: AsgiScope, head: Message, body: Message) -> tuple[Message, Message]:
        content: bytes = body.get("body", b"")
        if len(content) <= _COMPRESSED_IN_LOOP:
            return self._finish_content(scope, head, content)
        return await asyncio.to_thread(self._finish_content, scope, head, content)

    def _finish_content(self, scope: AsgiScope, head: Message, content: bytes) -> tuple[Message, Message]:
        headers = list(head.get("headers", ()))
        if scope["method"] == "GET":
            headers = self._add_caching(scope, head["status"], headers, content)
            if_none_match = _join_header(scope["headers"], b"if-none-match")
            if head["status"] == 200 and if_none_match and matches_tag(if_none_match, headers):
                return not_modified(headers)
        names = {name.lower() for name, _ in headers}
        encoding = self._options.choose_encoding(_join_header(scope["headers"], b"accept-encoding"), len(content))
        if encoding and b"content-encoding" not in names:
            return encode_answer({**head, "headers": headers}, content, encoding)
        return {**head, "headers": headers}, {"type": "http.response.body", "body": content}

    def _add_caching(
        self, scope: AsgiScope, status: int, headers: list[tuple[bytes, bytes]], content: bytes
    ) -> list[tuple[bytes, bytes]]:
        """Return the headers with the caching headers added, where the dialect has not set them itself."""
        names = {name.lower() for name, _ in headers}
        if status != 200:
            return headers if b"cache-control" in names else [*headers, (b"cache-control", b"no-cache")]
        immutable = not scope["query_string"] and scope.get("path_template") in self._immutable
        if immutable:
            depend_on_nothing(scope)
        is_private = bool(scope.get(PRINCIPAL, ANONYMOUS).name)
        own = self._options.caching_headers(content, immutable=immutable, private=is_private)
        return [*headers, *(pair for pair in own if pair[0] not in names)]


def encode_answer(head: Message, content: bytes, encoding: str) -> tuple[Message, Message]:
    """Return the two messages of a response with its body compressed; unchanged where that saves nothing."""
    packed = zstd.compress(content) if encoding == "zstd" else gzip.compress(content, 6, mtime=0)
    if len(packed) >= len(content):
        return head, {"type": "http.response.body", "body": content}
    kept = [pair for pair in head["headers"] if pair[0].lower() != b"content-length"]
    added = [(b"content-encoding", encoding.encode("ascii")), (b"content-length", b"%d" % len(packed))]
    return {**head, "headers": [*kept, *added]}, {"type": "http.response.body", "body": packed}


def not_modified(headers: HeaderPairs) -> tuple[Message, Message]:
    """Return the 304 that replaces a response with these headers."""
    kept_headers = [pair for pair in headers if pair[0].lower() in _KEPT_OF_304]
    return (
        {"type": "http.response.start", "status": 304, "headers": kept_headers},
        {"type": "http.response.body", "body": b""},
    )


def matches_tag(if_none_match: bytes, headers: HeaderPairs) -> bool:
    """Return whether an If-None-Match contains the entity tag among the headers of a response."""
    own = next((value.removeprefix(b"W/") for name, value in headers if name.lower() == b"etag"), None)
    tags = [tag.strip() for tag in if_none_match.split(b",")]
    return own is not None and (b"*" in tags or any(tag.removeprefix(b"W/") == own for tag in tags))


def _join_header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    return b",".join(value for key, value in headers if key == name)


@lru_cache(256)
def _choose_encoding(accepted: bytes) -> str:
    """Return the best coding for an Accept-Encoding, '' for none; a weight that is no number counts as 0."""
    weights: dict[str, float] = {}
    for part in accepted.decode("latin-1").lower().split(","):
        coding, _, weight = part.partition(";")
        value = weight.strip().removeprefix("q=") or "1"
        weights[coding.strip()] = float(value) if value.replace(".", "", 1).isdecimal() else 0.0
    weight_of = {coding: weights.get(coding, weights.get("*", 0.0)) for coding in _ENCODINGS}
    best = max(weight_of, key=weight_of.__getitem__)
    return best if weight_of[best] > 0 else ""
