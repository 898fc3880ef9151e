"""Leases: each says which node does a piece of work. A lease is taken from a node that stands still at it."""

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
"""A lease that stands still for so long, while there is something to send, is taken by another node."""
RENEWAL_SECONDS: Final = 2.0
"""How often a node at work renews it."""
_SHARE_SECONDS: Final = 1.0
_LONGEST_SHARE: Final = 3.0
"""For each lease that a node holds it leaves the next free one to others so much longer, but no longer than this."""


class LeaseHolder:
    """This node's side of a lease.

    Args:
        registry: The node.
        name: Of the lease.
        node: Name of the node; '' makes one up. Nodes of one name share out leases among them evenly with the others.
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
        """One task of this node renews the lease at a time: to another one it would look like somebody else's."""

    def is_held(self) -> bool:
        """Whether the lease names this node, as far as this node has read the log."""
        lease = store.find_lease(self._registry.state, self._name)
        return lease is not None and lease.node == self._node

    async def hold(self, *, takes_over: bool = True) -> bool:
        """Return whether this node has the lease, after renewing or taking it where that is due.

        Args:
            takes_over: Whether it may be taken from a node that stands still.
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
        """Count from now for how long the lease stands still: nobody had to renew it while there was nothing to do.

        A lease that nobody has goes on being free: who seldom asks for it gets it in the end, too.
        """
        self._seen_at = time.monotonic()
        self._free_since = self._free_since or self._seen_at

    async def release(self) -> None:
        """Let another node send at once, if it is this one that does."""
        lease = store.find_lease(self._registry.state, self._name)
        if lease is not None and lease.node == self._node:
            await store.take_lease(self._registry, lease, "", self._name)

    @contextmanager
    def wait_for_other(self) -> Iterator[None]:
        """Note that another node has something to send: the time the lease stands still counts from the first wait."""
        if not self._waiting:
            self.begin_to_wait()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
