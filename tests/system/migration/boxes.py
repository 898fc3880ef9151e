"""Registries in this process that tests can empty."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx

from stele.cli.offline import StoreTransport
from stele.client import SchemaRegistryClient

_BASE = "http://store"


class Box(NamedTuple):
    """A registry: an HTTP client, Stele's client, and its transport."""

    http: httpx.Client
    client: SchemaRegistryClient
    transport: StoreTransport

    def empty(self) -> None:
        """Empty the registry, as SIGUSR1 does with a server in test mode, and clear the client's caches."""
        self.transport.server.empty_log()
        self.client.forget()


@contextmanager
def box(store: str = "memory:") -> Iterator[Box]:
    """Open a registry and yield it."""
    transport = StoreTransport(store)
    # The clients share the transport, so none of them closes it.
    try:
        headers = {"Content-Type": "application/json"}
        yield Box(
            httpx.Client(transport=transport, base_url=_BASE, headers=headers),
            SchemaRegistryClient(_BASE, transport=transport),
            transport,
        )
    finally:
        transport.close()
