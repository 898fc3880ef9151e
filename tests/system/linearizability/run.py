"""One run: a cluster over a store, clients, faults, and the check of the clients' history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.system.linearizability.faults import FaultInjector, FaultKind
from tests.system.linearizability.history import History, allow_lag
from tests.system.linearizability.invariants import find_violations
from tests.system.linearizability.network import open_network
from tests.system.linearizability.node import Node
from tests.system.linearizability.stores import Store
from tests.system.linearizability.workload import Workload

NODES: Final = 3
CLIENTS: Final = 6


class Report(NamedTuple):
    """Outcomes of the requests of a run, its faults, and the violations in its history."""

    outcomes: Mapping[str, int]
    faults: Mapping[FaultKind, int]
    subjects: int
    violations: list[str]

    def __str__(self) -> str:
        sent = sum(self.outcomes.values())
        shares = ", ".join(f"{count} {outcome} ({count / sent:.0%})" for outcome, count in self.outcomes.items())
        faults = ", ".join(f"{count} × {kind}" for kind, count in self.faults.items())
        return f"{sent} requests about {self.subjects} subjects: {shares}; faults: {faults}"


def run_with_faults(
    store: Store, folder: Path, seconds: float, seed: int, history: History, *, has_partitions: bool
) -> Report:
    """Run clients and faults for `seconds`, end all faults, read everything, and check the history.

    The operations are added to `history`. Raises AssertionError when a node ends by itself or does not get ready again.
    """
    with _run_cluster(store, folder, has_partitions=has_partitions) as nodes:
        workload = Workload([node.url for node in nodes], history, CLIENTS, seed)
        injector = FaultInjector(nodes, store.restart, seed)
        workload.start()
        try:
            injector.run(seconds)
        finally:
            workload.stop()
        for node in nodes:
            node.wait_ready()
        workload.read_everything()
    violations = find_violations(allow_lag(history.list_operations(), store.lag))
    return Report(workload.outcomes, injector.injected, len(workload.subjects), violations)


@contextmanager
def _run_cluster(store: Store, folder: Path, *, has_partitions: bool) -> Iterator[list[Node]]:
    with ExitStack() as stack:
        nodes = []
        for number in range(NODES):
            network = stack.enter_context(open_network(number, store.ports)) if has_partitions else None
            node = Node(number, store.url, folder, network)
            stack.callback(node.kill)
            node.start()
            nodes.append(node)
        for node in nodes:
            node.wait_ready()
        yield nodes
