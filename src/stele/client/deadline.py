"""Time limit of a whole call: it covers all retries, and servers that send slowly.

httpx limits the time of each read, so a server that sends one byte now and then never exceeds that limit. asyncio can
cancel a waiting call. A blocking client instead limits each read to the time that is left of the call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore
import httpx


class Deadline:
    """The deadline of one call. One sending gets at most half of the time, so that another server can be tried."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Start now."""
        self.seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    def remaining(self) -> float:
        """Return the seconds left, at least 0."""
        return max(self._end - self._clock(), 0.0)

    def sending(self) -> float:
        """Return the seconds that one sending may take."""
        return min(self.remaining(), self.seconds / 2)

    def message(self) -> str:
        """Return the error message for a call that exceeded its deadline."""
        return f"no complete answer in time: the deadline of a call is {self.seconds:g} seconds"


_end_of_sending: ContextVar[float | None] = ContextVar("stele_end_of_sending", default=None)


@contextmanager
def limit_sending(seconds: float) -> Iterator[None]:
    """Stop every read and write on connections of this thread after this many seconds."""
    token = _end_of_sending.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _end_of_sending.reset(token)


def is_sending_over() -> bool:
    """Return whether the time of `limit_sending` is over."""
    end = _end_of_sending.get()
    return end is not None and time.monotonic() >= end


def bound_connections(client: httpx.Client) -> None:
    """Make the connections of a client observe `limit_sending`.

    httpx offers no public way: the connection pools of its transports are created without a network backend argument.
    """
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001 - see above
        if isinstance(transport, httpx.HTTPTransport):
            pool: Any = transport._pool  # noqa: SLF001 - see above
            pool._network_backend = _BoundedBackend(pool._network_backend)  # noqa: SLF001 - see above


def _bound(timeout: float | None, kind: type[Exception]) -> float | None:
    end = _end_of_sending.get()
    if end is None:
        return timeout
    left = end - time.monotonic()
    if left <= 0:
        raise kind("the time limit of the call has passed")
    return left if timeout is None else min(timeout, left)


class _BoundedBackend(httpcore.NetworkBackend):
    def __init__(self, backend: httpcore.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Open a connection (httpcore calls this)."""
        timeout = _bound(timeout, httpcore.ConnectTimeout)
        return _BoundedStream(self._backend.connect_tcp(host, port, timeout, local_address, socket_options))

    def sleep(self, seconds: float) -> None:
        """Wait between attempts to connect (httpcore calls this)."""
        self._backend.sleep(seconds)


class _BoundedStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read the available bytes (httpcore calls this)."""
        return self._stream.read(max_bytes, _bound(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all bytes of the buffer (httpcore calls this)."""
        self._stream.write(buffer, _bound(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        """Close the connection (httpcore calls this)."""
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Switch the connection to TLS (httpcore calls this)."""
        timeout = _bound(timeout, httpcore.ConnectTimeout)
        return _BoundedStream(self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return a property of the connection (httpcore calls this)."""
        return self._stream.get_extra_info(info)
