"""The contract of `stele.core.ports.Log` as tests over several processes, some of which are killed.

    class TestMyLogProcesses(LogProcessConformance):
        @pytest.fixture
        def url(self, tmp_path): ...    # URL of a new, empty log, for stele.storage.open_log in any process

Set `STELE_KILL_SECONDS` to kill for longer than five seconds; pytest's `--log-cli-level=INFO` shows the count.
"""

from __future__ import annotations

import asyncio
import logging
import os
import statistics
from pathlib import Path
from typing import ClassVar

import pytest

from stele.storage import open_log
from stele.testing.log_crew import Crew, CrewVerdict, examine

__all__ = ["LogProcessConformance"]

_LOGGER = logging.getLogger(__name__)


class LogProcessConformance:
    """Tests of a log with several processes, some of which are killed."""

    fair: ClassVar[float] = 0.7
    """The smallest share that a writer may get with turns, as a fraction of the mean share."""

    contention_seconds: ClassVar[float] = 3.0
    """Seconds for which writers compete."""

    @pytest.mark.parametrize("turn", [True, False], ids=["turn", "no turn"])
    def test_contending_writers(self, url: str, tmp_path: Path, turn: bool) -> None:
        """Eight processes at once lose no record, double none and leave no gap; with turns each gets its share.

        A busy machine may delay one of them for a while, so the test is repeated with more time if the shares are
        unfair.
        """
        with Crew(url, tmp_path, turn=turn) as crew:
            for times in (1, 4, 16):
                workers = [crew.hire(times * self.contention_seconds) for _ in range(8)]
                crew.go(workers)
                shares = [report.acknowledged for report in crew.reports(members=workers)]
                is_fair = min(shares) >= self.fair * statistics.mean(shares)
                if is_fair or not turn:
                    break
            total = sum(report.acknowledged for report in crew.reports())
            verdict = self._examine(url, crew)
        assert verdict == (total, total, [], [], [])
        assert total > 0
        assert is_fair or not turn, shares

    def test_killed_writers(self, url: str, tmp_path: Path) -> None:
        """When writers are killed during appends, every acknowledged record is in the log, once and unchanged."""
        seconds = float(os.environ.get("STELE_KILL_SECONDS", "5"))
        seed = int.from_bytes(os.urandom(4))
        with Crew(url, tmp_path, batch=3) as crew:
            kills = crew.rampage(seconds, workers=3, seed=seed)
            verdict = self._examine(url, crew)
        _LOGGER.info("%d kills, %d records acknowledged, %d written", kills, verdict.acknowledged, verdict.records)
        assert (verdict.lost, verdict.doubled, verdict.spoilt) == ([], [], []), f"seed {seed}"
        assert verdict.records % 3 == 0, "a batch was torn"
        assert verdict.records >= verdict.acknowledged > 0
        assert kills > 1, "the writers were hardly disturbed"

    @staticmethod
    def _examine(url: str, crew: Crew) -> CrewVerdict:
        async def look() -> CrewVerdict:
            log = await open_log(url)
            try:
                return await examine(log, crew.members)
            finally:
                await log.close()

        return asyncio.run(look())
