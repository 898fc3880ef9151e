"""How commands print: tables for people, JSON for programs, errors on standard error.

Names and texts from schemas go to the console as `Text`, never as markup: a schema may call a field `[/b]`. Output that
does not go to a terminal is neither wrapped nor cut.
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
    """A console that does not limit the length of lines, unless they go to a terminal."""

    @property
    def size(self) -> ConsoleDimensions:
        """Width and height in characters; outside a terminal the width is 100,000."""
        return super().size if self.is_terminal else _UNBOUNDED

    @size.setter
    def size(self, size: tuple[int, int]) -> None:
        Console.size.fset(self, size)  # type: ignore[attr-defined]  # a property is overridden with its setter


console = PlainConsole()
errors = PlainConsole(stderr=True)

FINDING_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.UNKNOWN: "magenta"}
MOST_FINDINGS: Final = 20
"""Maximum number of findings that are printed without --all."""


class Output(StrEnum):
    """Output formats of commands."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]
AllOption = Annotated[bool, typer.Option("--all", help=f"Print all findings, not the first {MOST_FINDINGS} only.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def format_json(value: Any) -> str:
    """Return one JSON document, indented."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8")


def print_json(value: Any) -> None:
    """Print a value as one indented JSON document on standard output."""
    sys.stdout.write(format_json(value) + "\n")


def print_rows(output: Output, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a table or as a JSON list of objects. Columns of integers are right-aligned."""
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
    """Print an indented paragraph: wrapped between words on a terminal, as one line elsewhere.

    The label precedes the first line; further lines are aligned with the text.
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
    """Print a label, padded to a width, and a text behind it. On a terminal, the lines of the text are aligned."""
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
    """Print a finding: its rule and path, the text `where`, the reason, the fix and the witness."""
    rule, place = (finding.rule, FINDING_COLOURS[finding.level]), (finding.path or "/", "bold")
    print_text(console, Text.assemble(rule, " at ", place, where), indent=2)
    print_reasons(finding.why, finding.fix, finding.witness)


def print_reasons(why: str, fix: str, witness: str | None) -> None:
    """Print the lines below the first line of a finding: its reason, its fix and its witness."""
    for label, text in (("why", why), ("fix", fix), ("witness", witness)):
        if text:
            print_text(console, Text(text), indent=4, label=f"{label}: ")


def print_findings(
    findings: Sequence[Finding], describe: Callable[[Finding], str] = lambda finding: "", *, everything: bool = False
) -> None:
    """Print the first findings and the number of the others; `everything` prints them all."""
    for finding in take_first(findings, everything=everything):
        print_finding(finding, describe(finding))
    print_rest(len(findings), everything=everything)


def take_first(rows: Sequence[Any], *, everything: bool = False) -> Iterable[Any]:
    """Return the first `MOST_FINDINGS` rows, or all with `everything`."""
    return rows if everything else rows[:MOST_FINDINGS]


def print_rest(count: int, *, everything: bool = False) -> None:
    """Print how many of `count` findings were left out."""
    if count > MOST_FINDINGS and not everything:
        console.print(f"… {count - MOST_FINDINGS:,} more (--all prints them)", highlight=False)


def print_error(label: str, message: object) -> None:
    """Print a sentence on standard error, behind a label such as `error:`."""
    print_text(errors, Text.assemble((label, "bold red"), f" {message}"))


def print_warning(message: object) -> None:
    """Print a sentence on standard error, behind the label `warning:`."""
    print_text(errors, Text.assemble(("warning:", "bold yellow"), f" {message}"))


def print_progress(message: object) -> None:
    """Print a line on standard error about the current step."""
    print_text(errors, Text(str(message), "dim"))


def require_confirmation(question: str, *, yes: bool) -> None:
    """Ask the user to confirm an action that cannot be undone. Raises `InvalidRequest` without a terminal.

    Args:
        question: The action, as a question.
        yes: Whether the command line already confirms it; nothing is asked then.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest(f"{question} This cannot be undone: add --yes to confirm it")
    typer.confirm(f"{question} This cannot be undone. Go on?", abort=True, err=True)


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Print a `SteleError` on standard error, and exit with code 2."""
    try:
        yield
    except SteleError as error:
        print_error("error:", error)
        raise typer.Exit(2) from error
