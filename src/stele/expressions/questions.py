"""Questions about expressions and their answers: values that are sent between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

_UNSIGNED: Final = frozenset({4, 6, 7, 13})  # uint64, fixed64, fixed32, uint32


class CelQuestion(NamedTuple):
    """Request to evaluate an expression of the Common Expression Language.

    expression    `guard ; expression` evaluates the expression only if the guard holds
    names         variables; values are plain Python values or Protobuf messages
    is_condition  whether the result is converted to a bool
    """

    expression: str
    names: dict[str, Any]
    is_condition: bool = False


class JsonataQuestion(NamedTuple):
    """Request to evaluate a JSONata expression on a plain Python value."""

    expression: str
    value: Any


Question = CelQuestion | JsonataQuestion


class Answer(NamedTuple):
    """Result of a question: a plain Python value, or no value if the guard does not hold."""

    applies: bool
    value: Any = None


class UnsignedInt(int):
    """An integer that CEL treats as unsigned, from a Protobuf field of such a type."""


def tag_unsigned(value: Any, field: FieldDescriptor) -> Any:
    """Return the value of a Protobuf field, with unsigned numbers as `UnsignedInt`."""
    return UnsignedInt(value) if field.type in _UNSIGNED else value
