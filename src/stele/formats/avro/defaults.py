"""Whether a default value fits the type of its field (Avro 1.12, table of field default values)."""

from __future__ import annotations

from typing import Any, Final

from stele.formats.avro.model import NO_DEFAULT, Array, EnumType, Fixed, Map, Primitive, Record, Type, Union, short
from stele.formats.avro.scalars import converter

_RANGES: Final = {"int": range(-(2**31), 2**31), "long": range(-(2**63), 2**63)}
_NOT_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})


def default_fault(node: Type, value: Any, incomplete: Record | None = None) -> str | None:
    """Why value is no default for node, as the end of a sentence; None when it is one.

    A union takes a default of any branch (since Avro 1.12; before, of the first). incomplete is the record the field is
    in: it has no fields yet, so it can have no default values inside itself.
    """
    return _Defaults(incomplete).fault(node, value)


def default_datum(node: Type, value: Any) -> Any:
    """The Python value a default stands for, newly made: bytes from their characters, logical types, inner defaults.

    A default that does not fit (read leniently) stays the JSON value it is.
    """
    match node:
        case Union():
            branch = next((branch for branch in node.branches if default_fault(branch, value) is None), None)
            return value if branch is None else default_datum(branch, value)
        case Array() if isinstance(value, list):
            return [default_datum(node.items, item) for item in value]
        case Map() if isinstance(value, dict):
            return {key: default_datum(node.values, item) for key, item in value.items()}
        case Record() if isinstance(value, dict):
            given = {field.name: value.get(field.name, field.default) for field in node.fields}
            return {field.name: default_datum(field.type, given[field.name]) for field in node.fields}
        case Primitive() | Fixed() if default_fault(node, value) is None:
            return _scalar(node, value)
    return value


def _scalar(node: Primitive | Fixed, value: Any) -> Any:
    raw = value
    if node.kind in ("bytes", "fixed"):
        raw = value.encode("latin-1")
    elif node.kind in ("float", "double"):
        raw = float(value)
    convert = converter(node.logical)
    try:
        return raw if convert is None else convert(raw)
    except (ValueError, OverflowError):
        return raw


class _Defaults:
    """Remembers what it refuted: else nested unions would be tried again and again, exponentially."""

    def __init__(self, incomplete: Record | None) -> None:
        self.incomplete = incomplete
        self.refuted: dict[tuple[int, int], str] = {}

    def fault(self, node: Type, value: Any) -> str | None:
        match node:
            case Primitive():
                return _primitive_fault(node.kind, value)
            case Union():
                return self._union(node, value)
            case EnumType():
                return None if type(value) is str and value in node.symbols else f"it is no symbol of {node.name}"
            case Fixed():
                return _bytes_fault(value, node.size)
            case Array():
                if type(value) is not list:
                    return "an array is needed"
                return next((why for item in value if (why := self.fault(node.items, item))), None)
            case Map():
                if type(value) is not dict:
                    return "an object is needed"
                return next((why for item in value.values() if (why := self.fault(node.values, item))), None)
            case Record():
                return self._record(node, value)

    def _union(self, node: Union, value: Any) -> str | None:
        key = (id(node), id(value))
        if key in self.refuted:
            return self.refuted[key]
        for branch in node.branches:
            if self.fault(branch, value) is None:
                return None
        self.refuted[key] = f"it fits no branch of {short(node)}"
        return self.refuted[key]

    def _record(self, node: Record, value: Any) -> str | None:
        if type(value) is not dict:
            return "an object is needed"
        if node is self.incomplete:
            return f"{node.name} is still being defined here"
        for field in node.fields:
            if field.name in value:
                why = self.fault(field.type, value[field.name])
                if why:
                    return f"{field.name}: {why}"
            elif field.default is NO_DEFAULT:
                return f"the field {field.name!r} of {node.name} is missing and has no default"
        return None


def _primitive_fault(kind: str, value: Any) -> str | None:
    match kind:
        case "null":
            return None if value is None else "null is needed"
        case "boolean":
            return None if type(value) is bool else "true or false is needed"
        case "int" | "long":
            return (
                None
                if type(value) is int and value in _RANGES[kind]
                else f"an integer in the range of {kind} is needed"
            )
        case "float" | "double":
            fits = type(value) in (int, float) or (type(value) is str and value in _NOT_NUMBERS)
            return None if fits else "a number is needed"
        case "string":
            return None if type(value) is str else "a string is needed"
        case _:
            return _bytes_fault(value)


def _bytes_fault(value: Any, size: int | None = None) -> str | None:
    if type(value) is not str or any(char > "\xff" for char in value):
        return r"a string of characters from \u0000 to \u00ff is needed, one for each byte"
    if size is not None and len(value) != size:
        return f"{size} bytes are needed, not {len(value)}"
    return None
