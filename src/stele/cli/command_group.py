"""Groups of commands that import a command's module on its first use, and the names of parameters in the help."""

from __future__ import annotations

import inspect
from collections import UserDict
from collections.abc import Iterator, Mapping
from copy import copy
from importlib import import_module
from typing import Any, ClassVar, Final, NamedTuple

import typer
import typer.main
from typer.core import TyperArgument, TyperCommand, TyperGroup

_VALUE_NAMES: Final = {"str": "TEXT", "int": "NUMBER", "int range": "NUMBER", "float": "NUMBER", "path": "FILE"}
"""Names of values in the help, by the name of the parameter type."""


class CommandEntry(NamedTuple):
    """Location of a command, and its line in the list of commands."""

    target: str
    """`module:attribute` of a function, or of a `typer.Typer` with commands of its own."""
    summary: str


class LazyCommands(UserDict[str, Any]):
    """Commands by name. Looking one up imports its module."""

    def __getitem__(self, name: str) -> Any:
        command = self.data[name]
        if isinstance(command, CommandEntry):
            command = self.data[name] = load_command(name, command)
        return command


class LazyGroup(TyperGroup):
    """A group of commands whose modules are imported on first use. Listing the commands imports none."""

    entries: ClassVar[Mapping[str, Mapping[str, CommandEntry]]] = {}
    """Commands by name, under the panel of the help that lists them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        rows = (row for panel in self.entries.values() for row in panel.items())
        self.commands = LazyCommands(dict(rows))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help without importing a command."""
        super(LazyGroup, self._with_summaries()).format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete the name of a command without importing one."""
        return super(LazyGroup, self._with_summaries()).shell_complete(ctx, incomplete)

    def _with_summaries(self) -> LazyGroup:
        listing = copy(self)
        listing.commands = {
            name: TyperCommand(name, help=entry.summary, rich_help_panel=panel)
            for panel, entries in self.entries.items()
            for name, entry in entries.items()
        }
        return listing


class PlainArgument(TyperArgument):
    """An argument that the usage line shows as `FILE`, or as `[FILE]` if it is optional."""

    def make_metavar(self, ctx: Any, *, usage: bool = False) -> str:
        """Return the name of the argument's value."""
        name = self.metavar or (self.name or "").upper()
        many = "..." if self.nargs != 1 else ""
        return f"[{name}]{many}" if usage and not self.required else f"{name}{many}"


def load_command(name: str, entry: CommandEntry) -> Any:
    """Import the command of an entry and give it its name."""
    module, _, attribute = entry.target.partition(":")
    target = getattr(import_module(module), attribute)
    if isinstance(target, typer.Typer):
        command: Any = typer.main.get_group(target)
        command.name = name
    else:
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
        single.command(name)(target)
        command = typer.main.get_command(single)
    for each in _walk_commands(command):
        _name_values(each)
        each.help = _join_lines(each.help or "")
    return command


def _join_lines(text: str) -> str:
    """Return a help text with each paragraph on one line, so that it is wrapped at the width of the terminal."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))


def _no_type(*_: Any, **__: Any) -> str:
    return ""


def _walk_commands(command: Any) -> Iterator[Any]:
    yield command
    for child in getattr(command, "commands", {}).values():
        yield from _walk_commands(child)


def _name_values(command: Any) -> None:
    """Set the names of values that the help shows: FILE, NUMBER, text|json."""
    for parameter in command.params:
        if isinstance(parameter, TyperArgument):
            parameter.__class__ = PlainArgument  # Typer offers no way to set this class
            parameter.metavar = parameter.metavar or (parameter.name or "").upper()
            kind: Any = copy(parameter.type)
            kind.get_metavar = _no_type  # else help adds <path> to FILE
            parameter.type = kind
        elif parameter.metavar is None and not getattr(parameter, "is_flag", False):
            choices = getattr(parameter.type, "choices", None)
            parameter.metavar = "|".join(choices) if choices else _VALUE_NAMES.get(parameter.type.name)
