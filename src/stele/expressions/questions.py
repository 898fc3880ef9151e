"""What is asked of an expression, and what comes back: values that travel between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

_UNSIGNED: Final = frozenset({4, 6, 7, 13})  # uint64, fixed64, fixed32, uint32


class CelQuestion(NamedTuple):
    """Evaluate an expression of the Common Expression Language.

    expression    `guard ; expression` evaluates the expression only where the guard holds
    names         variables; values are plain Python values or Protobuf messages
    is_condition  whether the answer is wanted as a bool
    """

    expression: str
    names: dict[str, Any]
    is_condition: bool = False


class JsonataQuestion(NamedTuple):
    """Evaluate a JSONata expression on a plain Python value."""

    expression: str
    value: Any


Question = CelQuestion | JsonataQuestion


class Answer(NamedTuple):
    """A plain Python value; without one if the guard does not hold."""

    applies: bool
    value: Any = None


class UnsignedInt(int):
    """An integer that CEL counts as unsigned, as a Protobuf field of such a type has it."""


def tag_unsigned(value: Any, field: FieldDescriptor) -> Any:
    """Return the value of a Protobuf field so that CEL can tell unsigned numbers from signed ones."""
    return UnsignedInt(value) if field.type in _UNSIGNED else value
