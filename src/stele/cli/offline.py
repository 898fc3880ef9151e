"""A registry without a server process: the same API over a store, for as long as a command runs, on no port."""

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
    """Yield the transport for the length of a command, which logs nothing but trouble."""
    configure_logs("warning", "console")
    transport = StoreTransport(store)
    try:
        yield transport
    finally:
        transport.close()
