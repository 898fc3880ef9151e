"""The `stele` command: which commands there are, and where each is. A command's module is imported when it is used."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Annotated, Any, Final

import typer
import typer.core
import typer.main

from stele import __version__

COMMANDS: Final = {
    "serve": "stele.cli.serve:serve",
    "check": "stele.cli.check:check",
    "diff": "stele.cli.diff:diff",
    "lint": "stele.cli.lint:lint",
    "convert": "stele.cli.convert:convert",
    "infer": "stele.cli.convert:infer",
    "example": "stele.cli.convert:example",
    "fields": "stele.cli.convert:fields",
    "census": "stele.cli.data_audit:census",
    "backtest": "stele.cli.data_audit:backtest",
    "drift": "stele.cli.data_audit:drift",
    "sql": "stele.cli.sql:sql",
    "infer-data": "stele.cli.infer_data:infer_data",
    "reencode": "stele.cli.reencode:reencode",
    "schema": "stele.cli.schema:app",
    "subject": "stele.cli.subject:app",
    "policy": "stele.cli.policy:app",
    "ruleset": "stele.cli.ruleset:app",
    "pipeline": "stele.cli.pipeline:app",
    "import": "stele.cli.migrate:imports",
    "export": "stele.cli.migrate:exports",
    "backup": "stele.cli.log:back_up",
    "log": "stele.cli.log:app",
}
"""Module and attribute of every command: a function, or a `typer.Typer` with commands of its own."""


class LazyCommands(UserDict[str, Any]):
    """Commands by name. Looking one up imports its module."""

    def __getitem__(self, name: str) -> Any:
        command = self.data[name]
        if isinstance(command, str):
            command = self.data[name] = load_command(name, command)
        return command


class LazyGroup(typer.core.TyperGroup):
    """A group of commands that are imported when they are used; help, completion and the docs see all of them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = LazyCommands(COMMANDS)


def load_command(name: str, target: str) -> Any:
    """Import `module:attribute` and make it the command of that name."""
    module, _, attribute = target.partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        command: Any = typer.main.get_group(found)
        command.name = name
        return command
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    single.command(name)(found)
    return typer.main.get_command(single)


app = typer.Typer(
    name="stele",
    cls=LazyGroup,
    help="A schema registry that keeps every version, answers in every dialect, and feeds Spark tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stele {__version__}")
        raise typer.Exit


@app.callback()
def _accept_root_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Do nothing: the options of the command itself act in their callbacks."""
