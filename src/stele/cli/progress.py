"""Progress of Spark jobs on standard error: a bar on a terminal, elsewhere a line from time to time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from rich.console import Console

from stele.cli.output import errors, print_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_LINE: Final = 1.0
"""Seconds before the first line is printed; a shorter job prints none."""
NEXT_LINE: Final = 10.0
"""Seconds between lines."""
_REDRAW: Final = 0.2
_LEAVE: Final = 2.0


class HasRecords(Protocol):
    """Result of a job over records."""

    @property
    def records(self) -> int:
        """Number of records that were read."""
        ...


A = TypeVar("A", bound=HasRecords)


def run_audit(spark: SparkSession, what: str, audit: Callable[[], A]) -> A:
    """Run a job over records and return its result. Prints its progress, and at the end its duration and rate."""
    begun = monotonic()
    with show_job_progress(spark, what):
        answer = audit()
    seconds = max(monotonic() - begun, 0.001)
    print_progress(f"{what}: {answer.records:,} records in {seconds:.1f} s, {answer.records / seconds:,.0f} records/s")
    return answer


@contextmanager
def show_job_progress(
    spark: SparkSession, what: str, *, console: Console = errors, first: float = FIRST_LINE, again: float = NEXT_LINE
) -> Iterator[None]:
    """Show the progress of Spark jobs until the block ends: finished tasks, known tasks, and tasks per second.

    Args:
        spark: The session whose jobs run.
        what: What the command does, such as `reading orders.parquet`.
        console: The console to print on.
        first: Seconds before the first line, if the console is no terminal.
        again: Seconds between lines.
    """
    counter, ended = TaskCounter(spark), Event()
    show = _draw_bar if console.is_terminal else _print_lines
    thread = Thread(target=show, args=(counter, what, ended, console, first, again), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_LEAVE)  # the counter may wait for a JVM that has ended


class TaskCounter:
    """Counts the tasks of all stages that were seen to run."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._stages: dict[int, tuple[int, int]] = {}
        self._begun = monotonic()

    def count_tasks(self) -> tuple[int, int]:
        """Return the number of finished tasks and the number of all tasks."""
        from py4j.protocol import Py4JError

        try:
            running = set(self._tracker.getActiveStageIds())
            for stage in running:
                info = self._tracker.getStageInfo(stage)
                if info is not None:
                    self._stages[stage] = (info.numCompletedTasks, info.numTasks)
        except (Py4JError, OSError):  # Spark may end meanwhile
            running = set(self._stages)
        for stage in self._stages.keys() - running:
            self._stages[stage] = (self._stages[stage][1], self._stages[stage][1])
        return sum(done for done, _ in self._stages.values()), sum(every for _, every in self._stages.values())

    def describe(self) -> str:
        """Return tasks, rate and elapsed seconds as text: `12 of 40 tasks, 3.1 tasks/s, 4 s`."""
        (done, every), seconds = self.count_tasks(), monotonic() - self._begun
        tasks = f"{done:,} of {every:,} tasks, {done / max(seconds, 0.001):.1f} tasks/s, " if every else ""
        return f"{tasks}{seconds:.0f} s"


def _print_lines(counter: TaskCounter, what: str, ended: Event, console: Console, first: float, again: float) -> None:
    wait = first
    while not ended.wait(wait):
        console.print(f"{what}: {counter.describe()}", soft_wrap=True, markup=False, highlight=False)
        wait = again


def _draw_bar(counter: TaskCounter, what: str, ended: Event, console: Console, *_: float) -> None:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(24),
        TextColumn("{task.fields[counts]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, counts="")
        while not ended.wait(_REDRAW):
            done, every = counter.count_tasks()
            bar.update(task, completed=done, total=every or None, counts=counter.describe())
