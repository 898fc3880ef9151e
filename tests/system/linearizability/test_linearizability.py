"""Three nodes over one store stay linearizable, lose nothing and repeat nothing under faults.

`STELE_LINEARIZABILITY_SECONDS` is the duration of the faults in seconds: 600 in `make test-long`.
`STELE_LINEARIZABILITY_SEED` chooses requests and faults. Runs of one seed still differ, because of threads and
processes. A run that fails leaves its history in `build/linearizability`.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import pytest
from tests.system.linearizability.history import History, keep_history_of_failure
from tests.system.linearizability.run import run_with_faults
from tests.system.linearizability.stores import STORES

_SEED: Final = int(os.environ.get("STELE_LINEARIZABILITY_SEED", "15"))

_KEPT: Final = Path(__file__).parents[3] / "build" / "linearizability"


def _seconds(usual: float) -> float:
    return float(os.environ.get("STELE_LINEARIZABILITY_SECONDS", usual))


def _run(name: str, folder: Path, seconds: float, *, has_partitions: bool) -> None:
    history = History()
    with keep_history_of_failure(history, _KEPT / f"{name}-{time.time_ns()}.jsonl"):
        with STORES[name](folder) as store:
            report = run_with_faults(store, folder, seconds, _SEED, history, has_partitions=has_partitions)
        print(f"{name}: {report}")  # noqa: T201 - the figures a person wants to see
        assert not report.violations, "\n".join(report.violations)
        assert report.outcomes["reads"] > 50
        assert report.outcomes["writes"] > 50


@pytest.mark.timeout(1200)
def test_nodes_of_one_file_stay_linearizable(tmp_path: Path) -> None:
    """Processes that share a SQLite file stay linearizable under kills, pauses and clock jumps."""
    _run("sqlite", tmp_path, _seconds(7), has_partitions=False)


@pytest.mark.servers
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", STORES)
def test_nodes_stay_linearizable_with_partitions(name: str, tmp_path: Path) -> None:
    """Nodes over every store stay linearizable under network partitions and restarts of the store, too."""
    _run(name, tmp_path, _seconds(25), has_partitions=True)
