"""Registries in this process, emptied at will."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx

from stele.cli.offline import StoreTransport
from stele.client import SchemaRegistryClient

_BASE = "http://store"


class Box(NamedTuple):
    """A registry: raw requests, our client, and a way to forget everything."""

    http: httpx.Client
    client: SchemaRegistryClient
    transport: StoreTransport

    def empty(self) -> None:
        """Begin anew, as SIGUSR1 makes a testing server do."""
        self.transport.server.empty_log()
        self.client.forget()


@contextmanager
def box(store: str = "memory:") -> Iterator[Box]:
    """A registry for a while."""
    transport = StoreTransport(store)
    # The clients share the transport, so only one of them may close it: none of them does.
    try:
        headers = {"Content-Type": "application/json"}
        yield Box(
            httpx.Client(transport=transport, base_url=_BASE, headers=headers),
            SchemaRegistryClient(_BASE, transport=transport),
            transport,
        )
    finally:
        transport.close()
