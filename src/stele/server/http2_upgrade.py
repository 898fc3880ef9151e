"""Requests that offer to go on in HTTP/2, as Java's own client makes every one it sends without TLS.

The offer may be declined by answering in HTTP/1.1 (RFC 7540, section 3.2). The parser beneath takes it for a change of
protocol, though: the body that follows would not be read. So it does not get to see the offer.
"""

from __future__ import annotations

import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_OFFER = re.compile(rb"^upgrade(?=:[ \t]*h2c[ \t]*\r\n)", re.IGNORECASE | re.MULTILINE)
_DECLINED = b"offered"
"""Name of the header instead, of the same length."""
_LONGEST_LINE = 1024
"""Bytes of a line that are kept back until it is complete; the offer is shorter."""


class Http1Protocol(HttpToolsProtocol):
    """HTTP/1.1 that stays what it is."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._line = b""

    def data_received(self, data: bytes) -> None:
        """Take the next bytes of a connection. A line of a head is passed on when all of it is there."""
        if not self._is_reading_body():
            data, self._line = split_whole_lines(self._line + data)
            data = remove_upgrade_offer(data)
        if data:
            super().data_received(data)

    def _is_reading_body(self) -> bool:
        return self.cycle is not None and self.cycle.more_body


def split_whole_lines(data: bytes) -> tuple[bytes, bytes]:
    """What can be passed on, and the beginning of a line of a head that has to wait for its end."""
    if b"\r\n\r\n" in data or data.startswith(b"\r\n"):
        return data, b""
    end = data.rfind(b"\n") + 1
    return (data[:end], data[end:]) if len(data) - end <= _LONGEST_LINE else (data, b"")


def remove_upgrade_offer(data: bytes) -> bytes:
    """Lines of a request's head, perhaps with what follows it, without the offer of another protocol."""
    if b"h2c" not in data or data.startswith(b"\r\n"):
        return data
    end = data.find(b"\r\n\r\n")
    head = data if end < 0 else data[: end + 2]
    return _OFFER.sub(_DECLINED, head) + data[len(head) :]
