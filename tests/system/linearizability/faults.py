"""Faults in a cluster, one after another, each kind equally often."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Final

from tests.system.linearizability.network import Link
from tests.system.linearizability.node import Node

_PAUSES: Final = (0.2, 2.5)
"""Shortest and longest duration of a pause or partition, in seconds. Client timeouts are in between."""
_CLOCK_JUMPS: Final = (-315_360_000.0, -3600.0, -1.0, 0.0, 1.0, 3600.0, 315_360_000.0)
"""Offsets of a clock in seconds, up to ten years."""


class FaultKind(StrEnum):
    """A fault of a node or of the shared store."""

    KILL = "node killed"
    PAUSE = "node paused"
    CLOCK = "clock set"
    CUT_CLIENTS = "node cut off from clients"
    CUT_STORE = "node cut off from store"
    RESTART_STORE = "store restarted"


class FaultInjector:
    """Injects faults for a given time.

    Args:
        nodes: The cluster.
        restart_store: Kills the store and starts it again; None if the store is no process.
        seed: Seed of the random choice of faults.
    """

    def __init__(self, nodes: Sequence[Node], restart_store: Callable[[], None] | None, seed: int) -> None:
        self._nodes = nodes
        self._restart_store = restart_store
        self._random = Random(seed)
        self.injected: Counter[FaultKind] = Counter()

    @property
    def kinds(self) -> list[FaultKind]:
        """The kinds of faults that are possible in this cluster."""
        kinds = [FaultKind.KILL, FaultKind.PAUSE, FaultKind.CLOCK]
        if all(node.network for node in self._nodes):
            kinds += [FaultKind.CUT_CLIENTS, FaultKind.CUT_STORE]
        if self._restart_store:
            kinds.append(FaultKind.RESTART_STORE)
        return kinds

    def run(self, seconds: float) -> None:
        """Inject faults for `seconds`, at least one of each kind.

        Raises AssertionError when a node ends by itself.
        """
        until = time.monotonic() + seconds
        waiting: list[FaultKind] = []
        while time.monotonic() < until or len(self.injected) < len(self.kinds):
            for node in self._nodes:
                node.require_running()
            if not waiting:
                waiting = self._random.sample(self.kinds, len(self.kinds))
            self._inject(waiting.pop())
            time.sleep(self._random.uniform(0.1, 0.6))

    def _inject(self, kind: FaultKind) -> None:
        ready = [node for node in self._nodes if node.is_ready()]
        if not ready:
            time.sleep(0.2)
            return
        _FAULTS[kind](self, self._random.choice(ready))
        self.injected[kind] += 1

    def _kill(self, node: Node) -> None:
        node.kill()
        self._wait()
        node.start()

    def _pause(self, node: Node) -> None:
        node.pause()
        self._wait()
        node.resume()

    def _set_clock(self, node: Node) -> None:
        node.shift_clock(self._random.choice(_CLOCK_JUMPS))

    def _cut_clients(self, node: Node) -> None:
        self._cut(node, Link.CLIENTS)

    def _cut_store(self, node: Node) -> None:
        self._cut(node, Link.STORE)

    def _cut(self, node: Node, link: Link) -> None:
        assert node.network is not None
        node.network.cut(link)
        self._wait()
        node.network.heal(link)

    def _stop_store(self, _: Node) -> None:
        assert self._restart_store is not None
        self._restart_store()

    def _wait(self) -> None:
        time.sleep(self._random.uniform(*_PAUSES))


_FAULTS: Final[Mapping[FaultKind, Callable[[FaultInjector, Node], None]]] = {
    FaultKind.KILL: FaultInjector._kill,
    FaultKind.PAUSE: FaultInjector._pause,
    FaultKind.CLOCK: FaultInjector._set_clock,
    FaultKind.CUT_CLIENTS: FaultInjector._cut_clients,
    FaultKind.CUT_STORE: FaultInjector._cut_store,
    FaultKind.RESTART_STORE: FaultInjector._stop_store,
}
