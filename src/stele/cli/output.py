"""How commands print: tables for people, JSON for programs, errors on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from stele.errors import SteleError

console = Console()
errors = Console(stderr=True)


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
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns))
    console.print(table)


@contextmanager
def failures() -> Iterator[None]:
    """Turn a `SteleError` into its sentence on standard error and exit code 2."""
    try:
        yield
    except SteleError as error:
        errors.print(f"[bold red]error:[/] {error}", highlight=False)
        raise typer.Exit(2) from error
