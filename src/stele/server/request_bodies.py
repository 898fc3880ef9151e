"""Bodies that are read before a dialect is asked, and given to it afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stele.server.asgi import Message, Receive

_SHORT_BYTES: Final = 64 * 1024
"""Longer bodies are left to the dialect, which has its own bound."""


def is_short_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request says that it has a short body."""
    length = next((value for name, value in headers if name == b"content-length"), b"")
    return length.isdigit() and len(length) <= len(str(_SHORT_BYTES)) and int(length) <= _SHORT_BYTES


async def read_short_body(headers: Iterable[tuple[bytes, bytes]], receive: Receive) -> tuple[bytes | None, Receive]:
    """Return the body of a request, and a `receive` that gives it once more.

    The body is None when it is long, when its length is not known, or when the client left in the middle of it.
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
