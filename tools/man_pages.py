"""Makes the manual pages of the command line, one for each command, from its own help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import typer.main

from stele.cli.app import app

_ROOT: Final = "stele"
_EXIT_STATUS: Final = (
    ("0", "The command did what was asked and found nothing to object to."),
    ("1", "It has findings, such as an incompatible schema. Or a part could not be done."),
    ("2", "Wrong use, an unknown subject or file, or an error."),
)


def build_man_pages() -> dict[str, str]:
    """Return the pages by file name, such as `stele-schema-get.1`, in the language of man(7)."""
    commands = dict(_walk_commands(typer.main.get_command(app), _ROOT))
    return {f"{name.replace(' ', '-')}.1": _build_page(name, command) for name, command in commands.items()}


def _walk_commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield groups as well as commands, each with its full name."""
    yield name, command
    for child, each in getattr(command, "commands", {}).items():
        yield from _walk_commands(each, f"{name} {child}")


def _build_page(name: str, command: Any) -> str:
    children = getattr(command, "commands", {})
    about = (command.help or "").strip().split("\n\n")
    summary = about[0].split(". ")[0].rstrip(".").replace("\n", " ")
    lines = [
        f'.TH "{name.replace(" ", "-").upper()}" 1 "" "Stele" "Manual of Stele"',
        ".ad l",
        ".SH NAME",
        f"{_escape(name.replace(' ', '-'))} \\- {_format_text(summary)}",
        ".SH SYNOPSIS",
        f".B {_escape(name)}",
        _format_synopsis(command, has_children=bool(children)),
        ".SH DESCRIPTION",
    ]
    for paragraph in about:
        lines += [".PP", _format_text(paragraph.replace("\n", " "))]
    if children:
        lines.append(".SH COMMANDS")
        for child, each in children.items():
            lines += _format_item(f"{name} {child}", (each.help or "").strip().split("\n\n")[0].replace("\n", " "))
    rows = [(_format_names(parameter), getattr(parameter, "help", "") or "") for parameter in command.params]
    if rows:
        lines.append(".SH ARGUMENTS AND OPTIONS")
        for names, meaning in rows:
            lines += _format_item(names, meaning)
    lines.append(".SH EXIT STATUS")
    for code, meaning in _EXIT_STATUS:
        lines += _format_item(code, meaning)
    parent = name.rpartition(" ")[0]
    related = [parent] if parent else []
    related += [f"{name} {child}" for child in children]
    if related:
        lines += [".SH SEE ALSO", ",\n".join(f".BR {_escape(each.replace(' ', '-'))} (1)" for each in related)]
        lines[-1] = lines[-1].replace("(1),\n", "(1) ,\n")
    return "\n".join(lines) + "\n"


def _format_synopsis(command: Any, *, has_children: bool) -> str:
    if has_children:
        return "COMMAND [OPTIONS]"
    words = ["[OPTIONS]"]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            value = parameter.metavar + ("..." if parameter.nargs != 1 else "")
            words.append(value if parameter.required else f"[{value}]")
    return _escape(" ".join(words))


def _format_names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    names = ", ".join((*parameter.opts, *parameter.secondary_opts))
    return names if getattr(parameter, "is_flag", False) or parameter.name == "help" else f"{names} {parameter.metavar}"


def _format_item(head: str, text: str) -> list[str]:
    return [".TP", f".B {_escape(head)}", _format_text(text) or "\\&"]


def _format_text(text: str) -> str:
    """Return a paragraph with words in backticks in bold, and without the backslashes that escape brackets for Rich."""
    parts = text.replace("\\[", "[").split("`")
    paragraph = "".join(
        f"\\fB{_escape(part)}\\fR" if number % 2 else _escape(part) for number, part in enumerate(parts)
    )
    return re.sub(r"^([.'])", r"\\&\1", paragraph)


def _escape(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")
