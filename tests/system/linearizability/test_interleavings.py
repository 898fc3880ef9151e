"""Nodes of one log stay linearizable under every order of their steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.system.linearizability.history import History, allow_lag, keep_history_of_failure
from tests.system.linearizability.interleaving import run_interleaved
from tests.system.linearizability.invariants import find_violations


@pytest.fixture(autouse=True)
def _no_newer_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no node record the adoption of rulesets, so that they need not be loaded."""
    monkeypatch.setattr("stele.service.rulesets.newest_versions", dict)


@pytest.mark.parametrize("notices_at_once", [True, False])
@pytest.mark.parametrize("seed", range(22, 27))
async def test_whatever_comes_between_two_steps_of_a_node(seed: int, notices_at_once: bool, tmp_path: Path) -> None:
    """Nodes stay linearizable if appends, reads of the log and answers are delayed while other nodes write."""
    history = History()
    with keep_history_of_failure(history, tmp_path / "history.jsonl"):
        for operation in await run_interleaved(seed, notices_at_once=notices_at_once):
            history.add(operation)
        # With late notices, answers that only a deletion can change may lag for as long as the notices.
        operations = allow_lag(history.list_operations(), 0 if notices_at_once else 1)
        assert not find_violations(operations)
