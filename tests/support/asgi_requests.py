"""Requests to an application in this process, without a client: one costs what its answer does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from stele.server.asgi import App, Message


class AsgiAnswer(NamedTuple):
    """Status, headers by their names in lower case, and body of an answer."""

    status: int
    headers: dict[str, str]
    body: bytes


async def send_request(
    app: App, method: str, target: str, headers: Mapping[str, str], body: bytes = b"", host: str = "registry"
) -> AsgiAnswer:
    """Send a request to a path, perhaps with a query, and return the answer."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [
            *((name.encode(), value.encode()) for name, value in headers.items()),
            (b"content-length", b"%d" % len(body)),
        ],
        "server": (host, 80),
        "client": ("client", 1),
    }
    received: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])
    sent: list[Message] = []

    async def receive() -> Message:
        return next(received, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    found = {name.decode().lower(): value.decode() for name, value in sent[0].get("headers", ())}
    return AsgiAnswer(sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:]))
