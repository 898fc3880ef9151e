"""The body of an answer, read in pieces and never beyond a limit, whatever the server sends."""

from __future__ import annotations

import zlib
from typing import Final

import httpx

from stele.client.exchange import Reply

MAX_REFUSAL: Final = 1 << 20
"""Most bytes that are read from the body of an error response."""
ENCODING: Final = "gzip"
"""The only compression that the client requests: it can be decompressed in pieces within a limit."""
_OK: Final = range(200, 300)


class BodyReader:
    """Collects the body of one response. Feed the pieces as they arrive, and stop when `feed` returns False."""

    def __init__(self, response: httpx.Response, limit: int) -> None:
        """Start with an empty body.

        `limit` is in bytes after decompression. For error responses it is at most `MAX_REFUSAL`.
        """
        self._response = response
        self._limit = limit if response.status_code in _OK else min(limit, MAX_REFUSAL)
        self._body = bytearray()
        self._fault = ""
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if response.is_stream_consumed:  # a transport that returns whole responses
            encoding, self._body = "", bytearray(response.content)
        self._inflate = zlib.decompressobj(wbits=31) if encoding in {"gzip", "x-gzip"} else None
        if encoding not in {"", "identity", "gzip", "x-gzip"}:
            self._fault = f"its compression {encoding[:40]!r} was not requested"

    def feed(self, data: bytes) -> bool:
        """Add a piece. Return whether more pieces are needed."""
        if self._fault:
            return False
        room = self._limit - len(self._body) + 1
        if self._inflate is None:
            self._body += data[:room]
        else:
            try:
                self._body += self._inflate.decompress(data, room)
            except zlib.error:
                self._fault = "its compression is broken"
                return False
        return len(self._body) <= self._limit

    def to_reply(self) -> Reply:
        """Return the response. Its `fault` is the reason why the body is unusable, if it is."""
        if len(self._body) > self._limit:
            self._fault = f"it is longer than {self._limit} bytes, which is the limit (max_response_bytes)"
        elif self._inflate is not None and self._body and not self._inflate.eof:
            self._fault = self._fault or "its compression is cut off"
        body = b"" if self._fault else bytes(self._body)
        return Reply(self._response.status_code, self._response.headers, body, self._fault)
