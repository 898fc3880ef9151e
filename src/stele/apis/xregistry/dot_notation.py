"""Paths into entities: `labels.env`, `info['my.name']`, `stack[3]`, with `*` for any member or item in filters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

_STEP = re.compile(
    r"""\.?(?P<name>[A-Za-z0-9_:@~$*-]+)|\[(?P<index>\d{1,9}|\*)\]|\[(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)")\]"""
)
_MOST_STEPS: Final = 32


class Step(NamedTuple):
    """One step of a path: a name, an index, or any member or item."""

    name: str = ""
    position: int = -1
    is_any: bool = False


def parse_path(text: str) -> tuple[Step, ...]:
    """Return the steps of a path. Raises `ValueError` for a text that is none."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None or len(steps) == _MOST_STEPS or (position and text[position] not in ".["):
            raise ValueError(f"{text[:80]!r} is no path")
        if found["index"] is not None:
            steps.append(Step(is_any=True) if found["index"] == "*" else Step(position=int(found["index"])))
        elif found["name"] is not None:
            steps.append(Step(is_any=True) if found["name"] == "*" else Step(found["name"]))
        else:
            steps.append(Step(found["single"] if found["single"] is not None else found["double"]))
        position = found.end()
    if not steps:
        raise ValueError("the path is empty")
    return tuple(steps)


def find_values(value: Any, path: Sequence[Step]) -> Iterator[Any]:
    """Yield the values that a path leads to, none of them None."""
    if not path:
        if value is not None:
            yield value
        return
    step, rest = path[0], path[1:]
    if step.is_any:
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for member in members:
            yield from find_values(member, rest)
    elif step.position >= 0:
        if isinstance(value, list) and step.position < len(value):
            yield from find_values(value[step.position], rest)
    elif isinstance(value, dict) and step.name in value:
        yield from find_values(value[step.name], rest)
