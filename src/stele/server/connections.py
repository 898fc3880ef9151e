"""Connections with limits: on their number, on the time they wait for their client, and on the length of a head.

uvicorn's parser has none of these limits. A connection waits while its client has not sent the whole of a request, or
nothing since the last response. When there are too many connections, the one that has waited longest is closed. So a
client that sends its request at once is served, however many others send nothing.

Source: docs/protocols/http.md#connections
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from http import HTTPStatus
from itertools import chain
from typing import Any, Final

from stele.apis.http.requests import SHORT_BODY, WAITING
from stele.protocol.http_statuses import STATUS_PHRASES
from stele.server.asgi import AsgiScope, Receive, ReceivedRequest, Send
from stele.server.connection_limits import ConnectionLimits
from stele.server.dispatch import PEER_CERTIFICATE
from stele.server.http2_upgrade import Http1Protocol
from stele.server.joined_writes import JoinedWriteTransport
from stele.server.peer_certificates import read_peer_certificate
from stele.server.request_bodies import is_short_body
from stele.server.tls import has_outlived_authorities
from stele.service.access import PeerCertificate

CONNECTIONS: Final = "stele.connections"
"""Key of the lifespan's state under which the application stores its `ConnectionTable`."""

_SWEEP_SECONDS: Final = 0.5
_FLUSH_SECONDS: Final = 5.0
"""Seconds that a connection may stay beyond the idle limit when its client does not read the end of a response."""
_MOST_PIPELINED: Final = 100
"""Requests of one connection that may wait for the response to an earlier one."""
_KEPT_FILES: Final = 64
"""File descriptors that are reserved for everything but connections."""


class CloseReason(StrEnum):
    """Why the server closed a connection; the labels of a metric."""

    HEADER_TIME = "header_time"
    BODY_TIME = "body_time"
    IDLE_TIME = "idle_time"
    HEADER_SIZE = "header_size"
    MADE_ROOM = "made_room"
    NO_ROOM = "no_room"
    PIPELINED = "pipelined"


FindAnswer = Callable[[ReceivedRequest], tuple[bytes, bytes, bytes] | None]
"""Finds the cached response to a request, in the form of HTTP/1.1; see `Dispatcher.find_answer_at_once`."""


class ConnectionTable:
    """The open connections of a process.

    Args:
        limits: The limits.
        count_closed: Called with the reason when the server closes a connection.
    """

    def __init__(self, limits: ConnectionLimits, count_closed: Callable[[CloseReason], None]) -> None:
        self.limits = limits
        self.count_closed = count_closed
        self._capacity = min(limits.connections, max(_KEPT_FILES, _count_file_descriptors() - _KEPT_FILES))
        self._addresses: Counter[str] = Counter()
        self._waiting: dict[BoundedProtocol, float] = {}
        self.open = 0
        self.find_answer: FindAnswer | None = None
        """Called before the application; None until the server has started."""

    def admit(self, connection: BoundedProtocol) -> bool:
        """Add a new connection. Return False when there is no room for it and no waiting one could be closed."""
        address = connection.address
        self.open += 1
        self._addresses[address] += 1
        is_address_full = self._addresses[address] > self.limits.address_connections
        if not is_address_full and self.open <= self._capacity:
            return True
        oldest = next((row for row in self._waiting if not is_address_full or row.address == address), None)
        if oldest is not None:
            oldest.abort(CloseReason.MADE_ROOM)
        return oldest is not None

    def remove(self, connection: BoundedProtocol) -> None:
        """Remove a connection that is closed."""
        self.open -= 1
        self._addresses[connection.address] -= 1
        if not self._addresses[connection.address]:
            del self._addresses[connection.address]
        self.end_wait(connection)

    def begin_wait(self, connection: BoundedProtocol, until: float) -> None:
        """Note that a connection waits for its client, until a time of the event loop's clock."""
        self._waiting[connection] = until

    def end_wait(self, connection: BoundedProtocol) -> None:
        """Note that a connection no longer waits."""
        self._waiting.pop(connection, None)

    async def close_overdue(self) -> None:
        """Close connections that have waited too long, for as long as the server runs."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await asyncio.sleep(_SWEEP_SECONDS)
            now = loop.time()
            if (held_up := now - began - _SWEEP_SECONDS) > _SWEEP_SECONDS:
                # The event loop was blocked: nothing was read meanwhile, even if clients sent data.
                for connection in self._waiting:
                    self._waiting[connection] += held_up
            for connection in [row for row, until in self._waiting.items() if until <= now]:
                connection.give_up()


class BoundedProtocol(Http1Protocol):
    """One connection. The work for a request is cancelled when its client disconnects."""

    transport: JoinedWriteTransport

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.address = self._own_address = ""
        self._place = "", 0
        self._certificate: PeerCertificate | None = None
        self._table: ConnectionTable = self.app_state[CONNECTIONS]
        self._limits = self._table.limits
        self._overdue = CloseReason.HEADER_TIME
        self._unparsed = 0
        self._is_closed = False
        self._is_answered = False
        self._held_body: bytearray | None = None
        self._default_headers: tuple[object, bytes] = (None, b"")
        self._task: asyncio.Task[Any] | None = None
        self._app = self.app
        self.app = self._run_app

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Accept a new connection, or refuse it when there is no room."""
        super().connection_made(JoinedWriteTransport(transport, self.loop))
        self.address = self.client[0] if self.client else ""
        self._own_address, port = self.server or ("", None)
        self._place = self.scheme or "", port or 0
        self._certificate = read_peer_certificate(transport.get_extra_info("peercert"))
        if self._certificate is not None and has_outlived_authorities(transport.get_extra_info("ssl_object")):
            transport.abort()  # The client may connect again with a full handshake, which checks its certificate.
        if self._table.admit(self):
            self._wait(CloseReason.HEADER_TIME, self._limits.header_seconds)
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, CloseReason.NO_ROOM)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection, and cancel the work for its client."""
        self._is_closed = True
        super().connection_lost(exc)
        self._table.remove(self)
        if self._task is not None:
            self._task.cancel()

    async def _run_app(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        self._task = asyncio.current_task()
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            # uvicorn notes the disconnect for the newest request of a connection only; there may be older ones.
            cycle: Any = getattr(send, "__self__", None)
            if cycle is not None:
                cycle.disconnected = True
        finally:
            self._task = None

    def data_received(self, data: bytes) -> None:
        """Parse the next bytes. A head that is too long is refused."""
        if self._is_closed:
            return
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > self._limits.header_bytes:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, CloseReason.HEADER_SIZE)

    def on_message_begin(self) -> None:
        """Handle the first byte of a request."""
        super().on_message_begin()
        if self._certificate is not None:
            self.scope[PEER_CERTIFICATE] = self._certificate  # type: ignore[typeddict-unknown-key]  # ours
        if self._is_between_requests():
            self._wait(CloseReason.HEADER_TIME, self._limits.header_seconds)

    def on_headers_complete(self) -> None:
        """Handle the complete head of a request.

        Raises ValueError, which ends the parsing, when it is too long, or when too many requests wait.
        """
        self._unparsed = 0
        length = len(self.url) + sum(map(len, chain.from_iterable(self.headers))) + 4 * len(self.headers)
        if length > self._limits.header_bytes or len(self.headers) > self._limits.headers:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, CloseReason.HEADER_SIZE)
            raise ValueError("the head of the request is too long")
        if len(self.pipeline) >= _MOST_PIPELINED:
            if not self._is_closed:
                self.abort(CloseReason.PIPELINED)
            raise ValueError("too many requests are waiting on this connection")
        if self._is_between_requests():
            method = self.parser.get_method()
            if method == b"GET" and self._answer_at_once("GET"):
                self._is_answered = True
                return
            self._wait(CloseReason.BODY_TIME, self._limits.body_seconds)
            if method == b"POST" and self._expects_short_body():
                self._held_body = bytearray()
                return
        super().on_headers_complete()

    def _expects_short_body(self) -> bool:
        """Return whether the body is short enough to be read before the cache or the application is asked."""
        if self._table.find_answer is None:
            return False
        return not (self.expect_100_continue or self.parser.should_upgrade()) and is_short_body(self.headers)

    def _is_reading_body(self) -> bool:
        return self._held_body is not None or super()._is_reading_body()

    def _begin_held_request(self) -> None:
        """Pass a request whose body was waited for to the application."""
        body, self._held_body = self._held_body, None
        if body is not None:
            super().on_headers_complete()
            if body:
                super().on_body(bytes(body))

    def _answer_at_once(self, method: str, body: bytes = b"") -> bool:
        """Write the cached response to a request, if there is one and nothing is left to be sent before it.

        Returns whether it was written.
        """
        parser, transport = self.parser, self.transport
        find_answer = self._table.find_answer
        if find_answer is None or parser.get_http_version() != "1.1":
            return False
        if self._is_closed or not parser.should_keep_alive() or transport.get_write_buffer_size():
            return False
        answer = find_answer(
            ReceivedRequest(
                method, self.url, self.headers, body, self._place, self._own_address, self.address, self._certificate
            )
        )
        if answer is None:
            return False
        line, headers, content = answer
        transport.write_now(b"%b%b%b\r\n%b" % (line, self._render_default_headers(), headers, content))
        self.server_state.total_requests += 1
        self._table.end_wait(self)
        self._wait(CloseReason.IDLE_TIME, self._limits.idle_seconds)
        return True

    def _render_default_headers(self) -> bytes:
        """Return the headers of every response, such as the date, which the server renews every second."""
        known, rendered = self._default_headers
        if known is not self.server_state.default_headers:
            rendered = b"".join([b"%b: %b\r\n" % pair for pair in self.server_state.default_headers])
            self._default_headers = self.server_state.default_headers, rendered
        return rendered

    def on_body(self, body: bytes) -> None:
        """Handle the next part of a body."""
        self._unparsed = 0
        if self._held_body is None:
            super().on_body(body)
        else:
            self._held_body += body

    def on_message_complete(self) -> None:
        """Handle the end of a request."""
        self._unparsed = 0
        if self._is_answered:
            self._is_answered = False
            return
        if self._held_body is not None:
            body = bytes(self._held_body)
            if self._answer_at_once("POST", body):
                self._held_body = None
                return
            self.scope[SHORT_BODY] = body  # type: ignore[literal-required]  # ours
            self._begin_held_request()
        super().on_message_complete()
        self._table.end_wait(self)
        # A long body has paused reading. Without reading, the disconnect of the client is not detected.
        self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """Start to wait for the next request after a response is sent, or is in the buffers of the connection."""
        super().on_response_complete()
        if self._is_between_requests() and not self._is_closed:
            self._wait(CloseReason.IDLE_TIME, self._limits.idle_seconds + _FLUSH_SECONDS)

    def send_400_response(self, msg: str) -> None:
        """Answer 400 to malformed data, unless it was refused for another reason already."""
        if not self._is_closed:
            super().send_400_response(msg)

    def shutdown(self) -> None:
        """Let a running request finish. A request that only waits for an event is ended at once."""
        self._begin_held_request()
        super().shutdown()
        if not self._is_between_requests() and self.cycle.scope["state"].get(WAITING):
            self.transport.close()

    def give_up(self) -> None:
        """Close a connection that has waited too long. A request that has begun gets 408."""
        if self._overdue is CloseReason.IDLE_TIME or (self._overdue is CloseReason.HEADER_TIME and not self._unparsed):
            self.abort(self._overdue)
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, self._overdue)

    def abort(self, reason: CloseReason) -> None:
        """Close the connection at once, without sending anything."""
        self._is_closed = True
        self._table.end_wait(self)
        self._table.count_closed(reason)
        self.transport.abort()

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self, overdue: CloseReason, seconds: float) -> None:
        self._overdue = overdue
        self._table.begin_wait(self, self.loop.time() + seconds)

    def _refuse(self, status: HTTPStatus, reason: CloseReason) -> None:
        """Send an error in plain text, since no dialect has seen the request, and close the connection."""
        if self._is_closed:
            return
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.abort(reason)
            return
        self._is_closed = True
        self._table.end_wait(self)
        self._table.count_closed(reason)
        phrase = STATUS_PHRASES[status]
        retry = "retry-after: 1\r\n" if status is HTTPStatus.SERVICE_UNAVAILABLE else ""
        head = (
            f"HTTP/1.1 {status.value} {phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"x-content-type-options: nosniff\r\ncontent-length: {len(phrase)}\r\n{retry}connection: close\r\n"
        )
        self.transport.write(f"{head}\r\n{phrase}".encode("ascii"))
        self.transport.close()


def _count_file_descriptors() -> int:
    """Return how many files this process may open, after raising the limit to the system's maximum."""
    try:
        import resource  # POSIX only
    except ImportError:
        return 1 << 20
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    granted = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if granted == resource.RLIM_INFINITY else granted
