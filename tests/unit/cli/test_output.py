"""How commands print, on a terminal and elsewhere."""

from __future__ import annotations

import io
import sys

import pytest
import typer
from rich.text import Text

from stele.cli import output
from stele.cli.output import (
    Output,
    PlainConsole,
    print_findings,
    print_reasons,
    print_rows,
    print_text,
    require_confirmation,
)
from stele.core.findings import Finding, Severity
from stele.errors import InvalidRequest

LONG = "a-name-that-is-much-longer-than-any-terminal-is-wide-" * 4


def finding(number: int) -> Finding:
    """Return one of many findings."""
    return Finding(
        rule="FIELD_REMOVED",
        path=f"field{number}",
        reader="-",
        writer="int",
        why="The field has no default.",
        fix="Give it one.",
        level=Severity.ERROR,
    )


def test_nothing_is_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Tables in a pipe have lines of any length without trailing blanks; numbers are right-aligned."""
    print_rows(Output.TEXT, ("id", "name"), [{"id": 7, "name": LONG}, {"id": 12, "name": "b"}])
    assert capsys.readouterr().out == f"id  name\n 7  {LONG}\n12  b\n"


def test_a_terminal_has_its_width() -> None:
    """On a terminal, tables have the width of the terminal."""
    assert PlainConsole(file=io.StringIO(), force_terminal=True, width=80).size.width == 80
    assert PlainConsole(file=io.StringIO(), width=80).size.width > 10_000


def test_paragraphs_are_wrapped_between_words_on_a_terminal() -> None:
    """Continued lines keep their indentation, and no word is cut in two; a pipe gets one line."""
    terminal, pipe = io.StringIO(), io.StringIO()
    text = Text("fix: " + "word " * 30)
    print_text(PlainConsole(file=terminal, force_terminal=True, width=40, color_system=None), text, indent=4)
    lines = terminal.getvalue().splitlines()
    assert len(lines) > 3
    assert all(line.startswith("    ") and len(line) <= 40 for line in lines)
    assert set(terminal.getvalue().split()) == {"fix:", "word"}
    print_text(PlainConsole(file=pipe), text, indent=4)
    assert pipe.getvalue() == f"    {text.plain}\n"


def test_reasons_stand_under_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal further lines of a reason begin under its text, and no line has blanks at its end."""
    terminal = io.StringIO()
    console = PlainConsole(file=terminal, force_terminal=True, width=40, color_system=None)
    monkeypatch.setattr(output, "console", console)
    print_reasons("The field has no default, so old records cannot be read.", "Give it one.", None)
    assert terminal.getvalue().splitlines() == [
        "    why: The field has no default, so",
        "         old records cannot be read.",
        "    fix: Give it one.",
    ]


def test_findings_are_counted_beyond_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    """The output has 20 findings and the number of the others; on request it has all."""
    many = [finding(number) for number in range(1600)]
    print_findings(many)
    printed = capsys.readouterr().out
    assert printed.count("FIELD_REMOVED") == 20
    assert printed.endswith("… 1,580 more (--all prints them)\n")
    print_findings(many, everything=True)
    printed = capsys.readouterr().out
    assert printed.count("FIELD_REMOVED") == 1600
    assert "more" not in printed


def test_what_cannot_be_undone_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An action that cannot be undone asks on a terminal; without one it needs --yes."""
    require_confirmation("Remove it?", yes=True)
    with pytest.raises(InvalidRequest, match="add --yes"):
        require_confirmation("Remove it?", yes=False)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda *words, **options: _answer(options))
    with pytest.raises(typer.Abort):
        require_confirmation("Remove it?", yes=False)


def _answer(options: dict[str, object]) -> None:
    assert options["abort"]
    raise typer.Abort
