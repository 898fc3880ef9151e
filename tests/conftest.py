"""Hooks for all tests: example profile, faster runs, order of files, names of tests, end of hanging processes."""

from __future__ import annotations

import faulthandler
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import structlog
from tests.support.examples import load_profile
from tests.support.java_machine import JavaMachine
from tests.support.spark_jvm import start_machines_fast
from xdist.scheduler import LoadFileScheduling

load_profile()
start_machines_fast()
# The default formatter colours the source in a traceback, which takes a second of processor time.
structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback
gc.set_threshold(20_000, 20, 100)  # with the defaults, garbage collection takes a tenth of the time of tests


@pytest.fixture(scope="module", autouse=True)
def default_logging() -> Iterator[None]:
    """Restore the default logging after each file, because later files run in the same process."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def java_machine() -> Iterator[JavaMachine]:
    """Return a Java machine for the Spark programs that tests start one after the other."""
    machine = JavaMachine()
    yield machine
    machine.close()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Disable garbage collection while tests are collected, because all objects made then live to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


LONGEST_FIRST: Final = (
    "test_docs.py",
    "test_walkthrough.py",
    "spark",
    "interop",
    "system",
    "unit/spark",
    "property",
    "conformance",
)
"""Files and folders by the time of their tests; the rest, seconds each, comes last and fills the gaps."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the files by `LONGEST_FIRST`. Workers take files in this order, and so end at about the same time."""
    here = Path(__file__).parent
    ranks: dict[Path, int] = {}
    for path in {item.path for item in items}:
        name = f"{path.relative_to(here).as_posix()}/"
        matching_ranks = (rank for rank, each in enumerate(LONGEST_FIRST) if name.startswith(f"{each}/"))
        ranks[path] = next(matching_ranks, len(LONGEST_FIRST))
    items.sort(key=lambda item: ranks[item.path])


SHARED_JAVA: Final = {
    "pages": ("test_docs.py", "test_walkthrough.py"),
    "statements and tables": (
        "spark/test_declarative.py",
        "spark/test_jvm",
        "spark/test_sinks.py",
        "spark/test_stream_sql",
        "spark/test_wires.py",
    ),
    "columns and pipelines": ("spark/test_",),
}
"""Groups of files whose tests share a Java machine, as prefixes of file names. The first matching group applies.

A Java machine is warm after 15 seconds of processor time, so one process runs the whole group. The groups take about
equally long.
"""


class SharedJavaScheduling(LoadFileScheduling):
    """Gives a process whole files, and all files of a group of `SHARED_JAVA` to one process."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        name = file.removeprefix("tests/")
        return next((group for group, names in SHARED_JAVA.items() if name.startswith(names)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedJavaScheduling | None:
    """Return the scheduler for `--dist loadfile` that keeps groups of `SHARED_JAVA` together."""
    return SharedJavaScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Return the name of the argument as the id of a test with binary data.

    All workers must find the same test names, and compressed data may hold the second in which they were compressed.
    """
    return argname if isinstance(val, bytes) and not val.isascii() else None


END_SECONDS: Final = 300.0
"""Longest time in which a process stops servers and sessions and exits after its last test, in seconds."""
_standard_error = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep standard error, which pytest captures while tests run."""
    config.stash[_standard_error] = os.dup(2)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Make a process that hangs after its last test print the stacks of its threads and exit with an error."""
    if nextitem is None:
        faulthandler.dump_traceback_later(END_SECONDS, exit=True, file=item.config.stash[_standard_error])
    return (yield)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Cancel the timer in a worker process: it waits for other workers, and its parent process ends it."""
    if hasattr(config, "workerinput"):
        faulthandler.cancel_dump_traceback_later()
