"""Loads the profile of generated examples, saves time, runs long files first, names tests, ends what hangs."""

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
# The default colors the source of a traceback, for a second of processor time.
structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback
gc.set_threshold(20_000, 20, 100)  # with Python's own, tests spend a tenth of their time on looking for garbage


@pytest.fixture(scope="module", autouse=True)
def default_logging() -> Iterator[None]:
    """Undo what the tests of a file do to the logging of their process, which files after it share."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def java_machine() -> Iterator[JavaMachine]:
    """A Java machine for Spark programs that a test starts one after the other."""
    machine = JavaMachine()
    yield machine
    machine.close()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Let Python look for no garbage while it collects tests: all that it makes then stays to the end."""
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
    """Put the files that take longest in front: workers take files in this order, and so end together."""
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
"""Files whose tests share a Java machine, by the beginnings of their names; the first group that fits holds.

A machine is warm after 15 seconds of processor time, so a group stays with one process. Groups take about equally long.
"""


class SharedJavaScheduling(LoadFileScheduling):
    """Gives a process whole files, and all files of a group of `SHARED_JAVA` to one process."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        name = file.removeprefix("tests/")
        return next((group for group, names in SHARED_JAVA.items() if name.startswith(names)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedJavaScheduling | None:
    """Have `--dist loadfile` keep together what shares a Java machine."""
    return SharedJavaScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a test of binary data after its argument.

    Workers must find tests of the same names, and what a library packed may hold the second in which it was packed.
    """
    return argname if isinstance(val, bytes) and not val.isascii() else None


END_SECONDS: Final = 300.0
"""How long a process may take to stop servers and sessions and to shut down, from its last test on."""
_standard_error = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep standard error, which pytest captures while tests run."""
    config.stash[_standard_error] = os.dup(2)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Have a process that does not end after its last test print where its threads stand, and exit with an error."""
    if nextitem is None:
        faulthandler.dump_traceback_later(END_SECONDS, exit=True, file=item.config.stash[_standard_error])
    return (yield)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let a process that runs tests beside others wait for them: who started it ends it."""
    if hasattr(config, "workerinput"):
        faulthandler.cancel_dump_traceback_later()
