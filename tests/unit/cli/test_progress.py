"""The progress that commands print while Spark works, without Spark."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

from py4j.protocol import Py4JError
from rich.console import Console

from stele.cli.progress import TaskCounter, run_audit, show_job_progress


class Tracker:
    """A tracker of stages: each call returns the next of the given states."""

    def __init__(self, *looks: dict[int, tuple[int, int]]) -> None:
        self._looks = list(looks)
        self._now: dict[int, tuple[int, int]] = {}

    def getActiveStageIds(self) -> list[int]:  # noqa: N802 - PySpark's name
        if not self._looks:
            raise Py4JError("the JVM is gone")
        self._now = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        return list(self._now)

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802 - PySpark's name
        done, every = self._now[stage]
        return SimpleNamespace(numCompletedTasks=done, numTasks=every)


def session(*looks: dict[int, tuple[int, int]]) -> Any:
    """Return a session with these states of its stages."""
    tracker = Tracker(*looks)
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def test_tasks_of_all_stages_are_counted() -> None:
    """A stage that no longer runs counts as done, a later one adds its tasks, and a JVM that has ended is no error."""
    counter = TaskCounter(session({0: (3, 8)}, {1: (1, 4)}, {}))
    assert [counter.count_tasks() for _ in range(3)] == [(3, 8), (9, 12), (12, 12)]
    assert "12 of 12 tasks" in counter.describe()
    assert TaskCounter(session()).count_tasks() == (0, 0)


def test_lines_elsewhere_than_on_a_terminal() -> None:
    """A slow job prints what it does, its progress and its rate; a quick job prints nothing."""
    out = io.StringIO()
    with show_job_progress(session({0: (3, 8)}), "batch [b]0", console=Console(file=out), first=0.0, again=60):
        while not out.getvalue().endswith("\n"):
            pass
    (line,) = out.getvalue().splitlines()
    assert line.startswith("batch [b]0: 3 of 8 tasks, ")
    assert "tasks/s" in line
    with show_job_progress(session({}), "quick", console=Console(file=out), first=60):
        pass
    assert "quick" not in out.getvalue()


def test_a_bar_on_a_terminal() -> None:
    """A terminal shows a bar with the same text, which disappears at the end."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    with show_job_progress(session({0: (3, 8)}), "counting records", console=console):
        while "3 of 8 tasks" not in out.getvalue():
            pass
    assert "counting records" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")


def test_the_rate_of_a_job(capsys: Any) -> None:
    """At its end, a job prints the number of records that it read, and the rate."""
    answer = run_audit(session({}), "counting records", lambda: SimpleNamespace(records=61))
    assert answer.records == 61
    line = capsys.readouterr().err
    assert line.startswith("counting records: 61 records in 0.0 s, ")
    assert line.endswith(" records/s\n")
