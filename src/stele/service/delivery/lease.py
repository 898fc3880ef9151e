"""The lease of the node that sends: held while there is something to send, and taken from a node that stands still."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from stele.service.delivery import status as store
from stele.service.delivery.status import Lease
from stele.service.registry import Registry

TAKEOVER_SECONDS: Final = 6.0
"""A lease that stands still for so long, while there is something to send, is taken by another node."""
RENEWAL_SECONDS: Final = 2.0
"""How often a node at work renews it."""


class LeaseHolder:
    """This node's side of a lease.

    Args:
        registry: The node.
        name: Of the lease.
    """

    def __init__(self, registry: Registry, name: str = store.DELIVERY_LEASE) -> None:
        self._registry = registry
        self._name = name
        self._node = os.urandom(8).hex()
        self._renewed_at = 0.0
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._waiting = 0

    async def hold(self) -> bool:
        """Return whether this node sends, after renewing or taking the lease where that is due."""
        lease, now = store.find_lease(self._registry.state, self._name), time.monotonic()
        if lease is not None and lease.node == self._node:
            if now - self._renewed_at < RENEWAL_SECONDS:
                return True
        elif lease is not None and lease.node:
            if lease != self._seen:
                self._seen, self._seen_at = lease, now
            if now - self._seen_at < TAKEOVER_SECONDS:
                return False
        is_held = await store.take_lease(self._registry, lease, self._node, self._name)
        if is_held:
            self._renewed_at = time.monotonic()
        return is_held

    async def release(self) -> None:
        """Let another node send at once, if it is this one that does."""
        lease = store.find_lease(self._registry.state, self._name)
        if lease is not None and lease.node == self._node:
            await store.take_lease(self._registry, lease, "", self._name)

    @contextmanager
    def wait_for_other(self) -> Iterator[None]:
        """Note that another node has something to send: the time the lease stands still counts from the first wait."""
        if not self._waiting:
            self._seen_at = time.monotonic()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
