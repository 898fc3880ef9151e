"""A webhook: a real HTTP server that records the events it receives, and answers with statuses that a test chooses."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self
from urllib.parse import unquote

from tests.support.server_process import free_port


class Delivery(NamedTuple):
    """A received event, its headers (names in lower case), and its time (`time.monotonic`)."""

    event: dict[str, Any]
    headers: dict[str, str]
    at: float


def _read_attributes(headers: Message) -> dict[str, Any]:
    """Return the attributes of an event in the binary content mode."""
    return {name[3:].lower(): unquote(value) for name, value in headers.items() if name.lower().startswith("ce-")}


class Webhook:
    """Serves on a free port until its `with` block ends. `status` returns the HTTP status for each event.

    Args:
        allowed: Value of `WebHook-Allowed-Origin` in the answer to the validation request; '' refuses by omitting it.
        port: Port to serve on; 0 takes a free one, which stays reserved for a later webhook.
    """

    def __init__(self, allowed: str = "*", port: int = 0) -> None:
        self.deliveries: list[Delivery] = []
        self.asked = 0
        self.status: Callable[[dict[str, Any]], int] = lambda event: 204
        self.allowed = allowed
        self._came = threading.Condition()
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_OPTIONS(self) -> None:
                webhook.asked += 1
                self.send_response(200)
                if webhook.allowed:
                    self.send_header("WebHook-Allowed-Origin", webhook.allowed)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                event = json.loads(body) if body else _read_attributes(self.headers)
                status = webhook.status(event)
                if status < 300:
                    with webhook._came:
                        headers = {name.lower(): value for name, value in self.headers.items()}
                        webhook.deliveries.append(Delivery(event, headers, time.monotonic()))
                        webhook._came.notify_all()
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port or free_port()), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/events"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait_for(self, count: int, seconds: float = 120.0) -> list[str]:
        """Wait for `count` events and return their subjects. Raises `TimeoutError`."""
        with self._came:
            if not self._came.wait_for(lambda: len(self.deliveries) >= count, seconds):
                raise TimeoutError(f"{len(self.deliveries)} of {count} events came: {self.subjects()}")
            return self.subjects()

    def subjects(self) -> list[str]:
        """Return the schema names that the received events are about."""
        return [row.event["subject"].removeprefix("/schemagroups/default/schemas/") for row in self.deliveries]
