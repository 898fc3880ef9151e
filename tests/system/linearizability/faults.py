"""Faults that befall a cluster one after another, each of a kind as often as the others."""

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
"""Seconds that a pause or a partition lasts: some shorter, some longer than clients wait."""
_CLOCK_JUMPS: Final = (-315_360_000.0, -3600.0, -1.0, 0.0, 1.0, 3600.0, 315_360_000.0)
"""Seconds, up to ten years."""


class FaultKind(StrEnum):
    """What happens to a node, or to the store of all."""

    KILL = "node killed"
    PAUSE = "node paused"
    CLOCK = "clock set"
    CUT_CLIENTS = "node cut off from clients"
    CUT_STORE = "node cut off from store"
    RESTART_STORE = "store restarted"


class FaultInjector:
    """Makes faults until told to stop.

    Args:
        nodes: The cluster.
        restart_store: Ends the store without warning and starts it again; None where there is nothing to restart.
        seed: Chooses the faults.
    """

    def __init__(self, nodes: Sequence[Node], restart_store: Callable[[], None] | None, seed: int) -> None:
        self._nodes = nodes
        self._restart_store = restart_store
        self._random = Random(seed)
        self.injected: Counter[FaultKind] = Counter()

    @property
    def kinds(self) -> list[FaultKind]:
        """The faults that are possible here."""
        kinds = [FaultKind.KILL, FaultKind.PAUSE, FaultKind.CLOCK]
        if all(node.network for node in self._nodes):
            kinds += [FaultKind.CUT_CLIENTS, FaultKind.CUT_STORE]
        if self._restart_store:
            kinds.append(FaultKind.RESTART_STORE)
        return kinds

    def run(self, seconds: float) -> None:
        """Make faults for so long, at least one of each kind. Raises AssertionError when a node ends by itself."""
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
