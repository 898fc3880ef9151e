"""Options that several commands have in common, declared once as a dataclass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def expand_dataclass(command: Callable[..., T]) -> Callable[..., T]:
    """Return a command that has the members of its dataclass parameters as options of its own.

    Members are annotated like options of a command. The default of a member is the default of its option.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    flat: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        if parameter.name in groups:
            flat += _member_parameters(groups[parameter.name])
        else:
            flat.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))

    @wraps(command)
    def run(**arguments: Any) -> T:
        for name, group in groups.items():
            arguments[name] = group(**{member.name: arguments.pop(member.name) for member in fields(group)})
        return command(**arguments)

    run.__signature__ = Signature(flat)  # type: ignore[attr-defined]  # what `inspect` and the command line look at
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return run


def _member_parameters(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            member.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if member.default is MISSING else member.default,
            annotation=hints[member.name],
        )
        for member in fields(group)
    ]
