"""Leases: each names the node that does one piece of work. Another node takes a lease that is not renewed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from stele.service.delivery import status as store
from stele.service.delivery.status import Lease
from stele.service.registry import Registry

TAKEOVER_SECONDS: Final = 6.0
"""Seconds without renewal after which another node takes a lease, while there is something to send."""
RENEWAL_SECONDS: Final = 2.0
"""Interval in seconds at which the holder renews a lease."""
_SHARE_SECONDS: Final = 1.0
_LONGEST_SHARE: Final = 3.0
"""Longest time in seconds that a node leaves a free lease to others. It waits longer for each lease that it holds."""


class LeaseHolder:
    """This node's side of a lease.

    Args:
        registry: The node.
        name: Name of the lease.
        node: Name of the node; '' generates one. Holders with one node name count their leases together, so that leases
            are spread evenly over the nodes.
    """

    def __init__(self, registry: Registry, name: str = store.DELIVERY_LEASE, node: str = "") -> None:
        self._registry = registry
        self._name = name
        self._node = node or os.urandom(8).hex()
        self._renewed_at = 0.0
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._free_since = 0.0
        self._waiting = 0
        self._holding = asyncio.Lock()
        """Lets one task of this node renew the lease at a time. A second one would take it for another node's lease."""

    def is_held(self) -> bool:
        """Return whether the lease names this node, as far as this node has read the log."""
        lease = store.find_lease(self._registry.state, self._name)
        return lease is not None and lease.node == self._node

    async def hold(self, *, takes_over: bool = True) -> bool:
        """Return whether this node has the lease. Renews or takes the lease if that is due.

        Args:
            takes_over: Whether it may be taken from a node that does not renew it.
        """
        async with self._holding:
            return await self._hold(takes_over=takes_over)

    async def _hold(self, *, takes_over: bool) -> bool:
        lease, now = store.find_lease(self._registry.state, self._name), time.monotonic()
        if lease is not None and lease.node == self._node:
            if now - self._renewed_at < RENEWAL_SECONDS:
                return True
        else:
            if lease != self._seen:
                self._seen, self._seen_at, self._free_since = lease, now, now
            is_free = lease is None or not lease.node
            if not is_free and not takes_over:
                return False
            others_first = min(_SHARE_SECONDS * self._count_leases(), _LONGEST_SHARE)
            if (now - self._free_since < others_first) if is_free else (now - self._seen_at < TAKEOVER_SECONDS):
                return False
        is_held = await store.take_lease(self._registry, lease, self._node, self._name)
        if is_held:
            self._renewed_at = time.monotonic()
        return is_held

    def _count_leases(self) -> int:
        """Return how many leases name this node."""
        return sum(lease.node == self._node for lease in store.list_leases(self._registry.state).values())

    def begin_to_wait(self) -> None:
        """Measure the time without renewal from now on: no renewal was needed while there was nothing to do.

        A free lease stays free meanwhile, so that a node that seldom tries to take it gets it in the end, too.
        """
        self._seen_at = time.monotonic()
        self._free_since = self._free_since or self._seen_at

    async def release(self) -> None:
        """Release the lease if this node holds it, so that another node can send at once."""
        lease = store.find_lease(self._registry.state, self._name)
        if lease is not None and lease.node == self._node:
            await store.take_lease(self._registry, lease, "", self._name)

    @contextmanager
    def wait_for_other(self) -> Iterator[None]:
        """Wait for another node to send. The time without renewal counts from the first of several waits."""
        if not self._waiting:
            self.begin_to_wait()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
