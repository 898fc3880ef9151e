"""A registry without a server process: the HTTP API over a store, inside a command, without a port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.log_config import configure_logs
from stele.server.settings import load_settings


class StoreTransport(InProcessTransport):
    """Answers requests of a blocking client from a store. Raises what `Server.start` raises."""

    def __init__(self, store: str) -> None:
        super().__init__(InProcessServer(load_settings({"store": store, "event_delivery": False})))

    def close(self) -> None:
        """Finish writes and close the store."""
        self.server.stop()


@contextmanager
def open_offline(store: str) -> Iterator[StoreTransport]:
    """Yield a transport to a store, and close the store at the end. Only warnings and errors are logged."""
    configure_logs("warning", "console")
    transport = StoreTransport(store)
    try:
        yield transport
    finally:
        transport.close()
