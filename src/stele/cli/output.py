"""How commands print: tables for people, JSON for programs, errors on standard error.

Names and texts from schemas go to the console as `Text`, never as markup: a schema may call a field `[/b]`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from stele.core.findings import Finding, Severity
from stele.errors import SteleError

console = Console()
errors = Console(stderr=True)

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.UNKNOWN: "magenta"}


class Output(StrEnum):
    """Shapes of what a command prints."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Shape of what is printed.")]
UrlOption = Annotated[
    list[str],
    typer.Option("--url", envvar="STELE_URL", help="Base URL of the registry; repeat it for several servers."),
]


def print_json(value: Any) -> None:
    """One JSON document, indented, on standard output."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8") + "\n")


def print_rows(output: Output, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as a table or as a JSON list of objects."""
    if output is Output.JSON:
        print_json(rows)
        return
    from rich.table import Table  # most commands print no table

    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(str(row[column])) for column in columns))
    console.print(table)


def print_finding(finding: Finding, where: str = "") -> None:
    """One finding, readable: rule and place, where on from there, why, and what to do."""
    rule, place = (finding.rule, _COLOURS[finding.level]), (finding.path or "/", "bold")
    console.print(Text.assemble("  ", rule, " at ", place, where), soft_wrap=True)
    for label, said in (("why", finding.why), ("fix", finding.fix), ("witness", finding.witness)):
        if said:
            console.print(Text(f"    {label}: {said}"), soft_wrap=True)


def print_error(label: str, said: object) -> None:
    """A sentence on standard error, behind a label such as `error:`."""
    errors.print(Text.assemble((label, "bold red"), f" {said}"), soft_wrap=True)


def print_warning(said: object) -> None:
    """A sentence on standard error about what was done all the same."""
    errors.print(Text.assemble(("warning:", "bold yellow"), f" {said}"), soft_wrap=True)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Turn a `SteleError` into its sentence on standard error and exit code 2."""
    try:
        yield
    except SteleError as error:
        print_error("error:", error)
        raise typer.Exit(2) from error
