"""Request bodies that are read before the dialect is called, and passed to it afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stele.server.asgi import Message, Receive

_SHORT_BYTES: Final = 64 * 1024
"""Longest body in bytes that is read here. Longer ones are read by the dialect, which has its own limit."""


def is_short_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether the headers of a request announce a short body."""
    length = next((value for name, value in headers if name == b"content-length"), b"")
    return length.isdigit() and len(length) <= len(str(_SHORT_BYTES)) and int(length) <= _SHORT_BYTES


async def read_short_body(headers: Iterable[tuple[bytes, bytes]], receive: Receive) -> tuple[bytes | None, Receive]:
    """Return the body of a request, and a `receive` that yields it once more.

    The body is None when it is long, when its length is not known, or when the client disconnected in the middle of it.
    """
    if not is_short_body(headers):
        return None, receive
    messages: list[Message] = []
    while not messages or messages[-1].get("more_body", False):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)
    is_whole = messages[-1]["type"] == "http.request"

    async def receive_again() -> Message:
        return messages.pop(0) if messages else await receive()

    return body if is_whole else None, receive_again
