"""The contract of `stele.core.ports.Format` as tests, for every format, built in or plugged in.

    class TestMyFormat(FormatConformance):
        material = FormatMaterial.read_files(MY_FORMAT, [Path(__file__).parent / "cases"])

Under pytest each method is a test. Without pytest, for a format that is installed:

    python -m stele.testing.format_suite NAME [CASES.jsonl …] [--judge THEIRS=OURS …] [--all]

prints one line per test. The exit code is 1 when a test fails, 2 when the tests could not start. The case lines are
described in `stele.testing.format_cases`. All tested schemas come from them, so good lines make a good test.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from stele.errors import SteleError
from stele.formats.registry import get_format
from stele.testing.format_capability_checks import CapabilityChecks
from stele.testing.format_cases import FormatCase, compared_pairs, read_cases
from stele.testing.format_data_checks import DataChecks, HostileChecks
from stele.testing.format_material import FormatMaterial, FormatSample
from stele.testing.format_text_checks import TextChecks, VerdictChecks

__all__ = [
    "FormatCase",
    "FormatConformance",
    "FormatMaterial",
    "FormatSample",
    "SuiteOutcome",
    "compared_pairs",
    "main",
    "read_cases",
    "run_tests",
]


class FormatConformance(TextChecks, VerdictChecks, DataChecks, HostileChecks, CapabilityChecks):
    """All tests of a format; `material` has the format and its case lines."""


class SuiteOutcome(NamedTuple):
    """The result of one test: what it proves, its duration in seconds, and why it failed ('' when it passed)."""

    proves: str
    seconds: float
    failure: str


def run_tests(material: FormatMaterial) -> Iterator[SuiteOutcome]:
    """Run the suite without pytest, test by test."""
    suite = type("Suite", (FormatConformance,), {"material": material})()
    for name in dir(suite):
        if name.startswith("test_"):
            test: Callable[[], None] = getattr(suite, name)
            started = time.perf_counter()
            failure = _failure_text(test)
            yield SuiteOutcome(" ".join((test.__doc__ or name).split()), time.perf_counter() - started, failure)


def _failure_text(test: Callable[[], None]) -> str:
    """Return the error of a test as text. A plug-in may raise anything, and the other tests must still run."""
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(test).exception()
    if error is None or isinstance(error, AssertionError):
        return str(error or "")
    return "".join(traceback.format_exception(error, limit=-3))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (see the module) and return the exit code.

    It is 0 if all tests passed, 1 if some failed, and 2 if no test could start.
    """
    options = _parse_options(arguments)
    console = Console()
    try:
        schema_format = get_format(options.name)
        judged_by = dict(judge.split("=", 1) for judge in options.judge)
        material = FormatMaterial.read_files(
            schema_format, options.cases, judged_by=judged_by, **({"at_most": 10**9} if options.all else {})
        )
    except (SteleError, OSError, ValueError) as error:
        console.print(f"[red]{error}[/red]")
        return 2
    table = Table("", "what is promised", "s", title=f"{schema_format.name}: {len(material.cases)} lines")
    failed = 0
    for outcome in run_tests(material):
        failed += bool(outcome.failure)
        text = f"{outcome.proves}\n[red]{outcome.failure}[/red]" if outcome.failure else outcome.proves
        table.add_row("[red]✗[/red]" if outcome.failure else "[green]✓[/green]", text, f"{outcome.seconds:.2f}")
    console.print(table)
    console.print(f"[red]{failed} failed[/red]" if failed else "[green]all passed[/green]")
    return 1 if failed else 0


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m stele.testing.format_suite", description="Try a format.")
    parser.add_argument("name", help="name of an installed format")
    parser.add_argument("cases", nargs="*", type=Path, help="case files, or folders of them")
    parser.add_argument("--judge", action="append", default=[], metavar="THEIRS=OURS", help="ruleset for foreign lines")
    parser.add_argument("--all", action="store_true", help="use every schema of the lines, not a sample")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
