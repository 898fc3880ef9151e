"""Options declared once for several commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from stele.cli.options import expand_dataclass


@dataclass(frozen=True)
class Place:
    """A group of options."""

    data: Annotated[str, typer.Option("--data", help="Where.")]
    size: Annotated[int, typer.Option("--size", help="How much.")] = 3


@expand_dataclass
def command(
    file: Annotated[str, typer.Argument()],
    place: Place,
    flag: Annotated[bool, typer.Option("--flag/--no-flag")] = True,
) -> None:
    """Say what was given."""
    typer.echo(f"{file} {place} {flag}")


app = typer.Typer()
app.command()(command)


def test_members_are_options() -> None:
    """The members of a group become options with their names, types and defaults; the command receives the group."""
    done = CliRunner().invoke(app, ["f", "--data", "d", "--size", "7", "--no-flag"])
    assert (done.exit_code, done.stdout) == (0, "f Place(data='d', size=7) False\n")
    assert CliRunner().invoke(app, ["f", "--data", "d"]).stdout == "f Place(data='d', size=3) True\n"


def test_what_has_no_default_is_required() -> None:
    """A member without a default is required, and a value of a wrong type is rejected."""
    for arguments, why in (
        (["f"], "--data"),
        (["f", "--data", "d", "--size", "x"], "--size"),
        (["--data", "d"], "{file}"),
    ):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 2
        assert why.strip("{}").lower() in done.stderr.lower()


def test_help_tells_of_them() -> None:
    """The help shows the docstring of the command and the options of the group."""
    help_text = CliRunner().invoke(app, ["--help"]).stdout
    assert all(text in help_text for text in ("Say what was given", "--data", "How much"))
