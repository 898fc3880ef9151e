"""`stele help` and `stele version`."""

from __future__ import annotations

from typing import Annotated

import typer

from stele import __version__


def show_help(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(help="Command, such as schema get. Default: all commands.")
    ] = None,
) -> None:
    """Show the help of a command."""
    ctx.find_root().command.main([*(command or ()), "--help"], prog_name="stele")


def show_version() -> None:
    """Print the version of Stele."""
    typer.echo(f"stele {__version__}")
