"""Requests to an application in this process without an HTTP client. A request costs no more than its answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    encoded.append((b"content-length", b"%d" % len(body)))
    sent = await exchange_messages(app, method, target, encoded, body, host)
    response_headers = {name.decode().lower(): value.decode() for name, value in sent[0].get("headers", ())}
    return AsgiAnswer(sent[0]["status"], response_headers, b"".join(message.get("body", b"") for message in sent[1:]))


async def exchange_messages(
    app: App, method: str, target: str, headers: Iterable[tuple[bytes, bytes]], body: bytes, host: str = "registry"
) -> list[Message]:
    """Send an application the messages that httpx sends for a request, and return those of the answer."""
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
        "headers": list(headers),
        "server": (host, None),
        "client": ("127.0.0.1", 123),
        "root_path": "",
    }
    waiting: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]
    if body:
        waiting.append({"type": "http.request", "body": body, "more_body": True})
    sent: list[Message] = []

    async def receive() -> Message:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent
