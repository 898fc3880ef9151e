"""How commands print: tables for people, JSON for programs, errors on standard error.

Names and texts from schemas go to the console as `Text`, never as markup: a schema may call a field `[/b]`. Where
nobody looks at a terminal, no line is wrapped or cut.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console, ConsoleDimensions
from rich.text import Text

from stele.core.findings import Finding, Severity
from stele.errors import InvalidRequest, SteleError

_UNBOUNDED: Final = ConsoleDimensions(100_000, 25)


class PlainConsole(Console):
    """A console whose lines have any length where they do not go to a terminal."""

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        return super().size if self.is_terminal else _UNBOUNDED

    @size.setter
    def size(self, size: tuple[int, int]) -> None:
        Console.size.fset(self, size)  # type: ignore[attr-defined]  # a property is overridden with its setter


console = PlainConsole()
errors = PlainConsole(stderr=True)

FINDING_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.UNKNOWN: "magenta"}
MOST_FINDINGS: Final = 20
"""Findings that people are shown unless they ask for all."""


class Output(StrEnum):
    """Shapes of what a command prints."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Shape of what is printed.")]
AllOption = Annotated[bool, typer.Option("--all", help=f"Print all findings, not the first {MOST_FINDINGS} only.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def format_json(value: Any) -> str:
    """Return one JSON document, indented."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8")


def print_json(value: Any) -> None:
    """One JSON document, indented, on standard output."""
    sys.stdout.write(format_json(value) + "\n")


def print_rows(output: Output, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows as a table or as a JSON list of objects. Columns of numbers are flush right."""
    if output is Output.JSON:
        print_json(rows)
        return
    from rich.table import Table  # most commands print no table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        numeric = bool(rows) and all(isinstance(row[column], int) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(row[column])) for column in columns))
    print_table(table)


def print_table(table: Any) -> None:
    """Print a table; the lines of a file or pipe have no blanks at their ends."""
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def print_text(to: Console, text: Text, indent: int = 0, label: str = "") -> None:
    """Print a paragraph behind some blanks: wrapped between words on a terminal, as one line elsewhere.

    label stands before its first line; further lines begin under the text.
    """
    margin = Text(" " * indent + label)
    if not to.is_terminal:
        to.print(margin + text, soft_wrap=True)
        return
    for line in text.wrap(to, max(to.width - len(margin), 1)):
        line.rstrip()
        to.print(margin + line, soft_wrap=True)
        margin = Text(" " * len(margin))


def print_labelled(label: Text, text: Text, width: int) -> None:
    """Print a label, padded to a width, and a text behind it. On a terminal its lines stand below one another."""
    label.pad_right(width - len(label))
    if not console.is_terminal:
        print_text(console, label + text)
        return
    from rich.table import Table

    grid = Table.grid(padding=0)
    grid.add_column(width=width)
    grid.add_column(overflow="fold")
    grid.add_row(label, text)
    console.print(grid)


def print_finding(finding: Finding, where: str = "") -> None:
    """One finding, readable: rule and place, where on from there, why, and what to do."""
    rule, place = (finding.rule, FINDING_COLOURS[finding.level]), (finding.path or "/", "bold")
    print_text(console, Text.assemble(rule, " at ", place, where), indent=2)
    print_reasons(finding.why, finding.fix, finding.witness)


def print_reasons(why: str, fix: str, witness: str | None) -> None:
    """Print the lines below a finding's first: why it is one, what to do, and a value that shows it."""
    for label, text in (("why", why), ("fix", fix), ("witness", witness)):
        if text:
            print_text(console, Text(text), indent=4, label=f"{label}: ")


def print_findings(
    findings: Sequence[Finding], describe: Callable[[Finding], str] = lambda finding: "", *, everything: bool = False
) -> None:
    """Print the first findings, and how many more there are; everything prints them all."""
    for finding in take_first(findings, everything=everything):
        print_finding(finding, describe(finding))
    print_rest(len(findings), everything=everything)


def take_first(rows: Sequence[Any], *, everything: bool = False) -> Iterable[Any]:
    """Return the rows that people are shown."""
    return rows if everything else rows[:MOST_FINDINGS]


def print_rest(count: int, *, everything: bool = False) -> None:
    """Say how many of so many findings were not printed."""
    if count > MOST_FINDINGS and not everything:
        console.print(f"… {count - MOST_FINDINGS:,} more (--all prints them)", highlight=False)


def print_error(label: str, message: object) -> None:
    """A sentence on standard error, behind a label such as `error:`."""
    print_text(errors, Text.assemble((label, "bold red"), f" {message}"))


def print_warning(message: object) -> None:
    """A sentence on standard error about what was done all the same."""
    print_text(errors, Text.assemble(("warning:", "bold yellow"), f" {message}"))


def print_progress(message: object) -> None:
    """A line on standard error about what is being done."""
    print_text(errors, Text(str(message), "dim"))


def require_confirmation(question: str, *, yes: bool) -> None:
    """Ask whether to go on with what cannot be undone. Raises `InvalidRequest` where nobody can be asked.

    Args:
        question: What would be done, as a question.
        yes: The answer was given beforehand.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest(f"{question} This cannot be undone: add --yes to confirm it")
    typer.confirm(f"{question} This cannot be undone. Go on?", abort=True, err=True)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Turn a `SteleError` into its sentence on standard error and exit code 2."""
    try:
        yield
    except SteleError as error:
        print_error("error:", error)
        raise typer.Exit(2) from error
