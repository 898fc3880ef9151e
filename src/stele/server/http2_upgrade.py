"""Declines offers to upgrade to HTTP/2, which Java's HTTP client makes in every request without TLS.

A server may decline the offer by answering in HTTP/1.1 (RFC 7540, section 3.2). But the parser of uvicorn takes it as a
change of protocol and does not read the body that follows. So the offer is hidden from the parser.
"""

from __future__ import annotations

import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_OFFER = re.compile(rb"^upgrade(?=:[ \t]*h2c[ \t]*\r\n)", re.IGNORECASE | re.MULTILINE)
_DECLINED = b"offered"
"""Name that replaces the header `upgrade`; it has the same length."""
_LONGEST_LINE = 1024
"""Highest number of bytes of a line that are held back until it is complete; the offer is shorter."""


class Http1Protocol(HttpToolsProtocol):
    """HTTP/1.1 without upgrades to HTTP/2."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._line = b""

    def data_received(self, data: bytes) -> None:
        """Parse the next bytes of a connection. A line of a head is passed on when it is complete."""
        if not self._is_reading_body():
            data, self._line = split_whole_lines(self._line + data)
            data = remove_upgrade_offer(data)
        if data:
            super().data_received(data)

    def _is_reading_body(self) -> bool:
        return self.cycle is not None and self.cycle.more_body


def split_whole_lines(data: bytes) -> tuple[bytes, bytes]:
    """Return the bytes that can be passed on, and an incomplete line of a head that has to wait for its end."""
    if b"\r\n\r\n" in data or data.startswith(b"\r\n"):
        return data, b""
    end = data.rfind(b"\n") + 1
    return (data[:end], data[end:]) if len(data) - end <= _LONGEST_LINE else (data, b"")


def remove_upgrade_offer(data: bytes) -> bytes:
    """Return the given bytes without the offer of another protocol in the head at their start."""
    if b"h2c" not in data or data.startswith(b"\r\n"):
        return data
    end = data.find(b"\r\n\r\n")
    head = data if end < 0 else data[: end + 2]
    return _OFFER.sub(_DECLINED, head) + data[len(head) :]
