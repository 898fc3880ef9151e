"""Whether a default value fits the type of its field (Avro 1.12, table of field default values)."""

from __future__ import annotations

from typing import Any, Final

from stele.formats.avro.model import (
    NO_DEFAULT,
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
    describe_type,
)
from stele.formats.avro.scalars import make_converter

_RANGES: Final = {"int": range(-(2**31), 2**31), "long": range(-(2**63), 2**63)}
_NOT_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})


def find_default_fault(node: AvroType, value: Any, incomplete: AvroRecord | None = None) -> str | None:
    """Return why value is no default for node, as the end of a sentence; None when it is one.

    A union takes a default of any branch (since Avro 1.12; before, of the first). incomplete is the record the field is
    in: it has no fields yet, so it can have no default values inside itself.
    """
    return _DefaultChecker(incomplete).find_fault(node, value)


def make_default(node: AvroType, value: Any) -> Any:
    """Return a new Python value of a default: bytes from characters, logical types and inner defaults converted.

    A default that does not fit (read leniently) stays the JSON value it is.
    """
    match node:
        case AvroUnion():
            branch = next((branch for branch in node.branches if find_default_fault(branch, value) is None), None)
            return value if branch is None else make_default(branch, value)
        case AvroArray() if isinstance(value, list):
            return [make_default(node.items, item) for item in value]
        case AvroMap() if isinstance(value, dict):
            return {key: make_default(node.values, item) for key, item in value.items()}
        case AvroRecord() if isinstance(value, dict):
            given = {field.name: value.get(field.name, field.default) for field in node.fields}
            return {field.name: make_default(field.type, given[field.name]) for field in node.fields}
        case AvroPrimitive() | AvroFixed() if find_default_fault(node, value) is None:
            return _make_scalar(node, value)
    return value


def _make_scalar(node: AvroPrimitive | AvroFixed, value: Any) -> Any:
    raw = value
    if node.kind in ("bytes", "fixed"):
        raw = value.encode("latin-1")
    elif node.kind in ("float", "double"):
        raw = float(value)
    convert = make_converter(node.logical)
    try:
        return raw if convert is None else convert(raw)
    except (ValueError, OverflowError):
        return raw


class _DefaultChecker:
    """Remembers what it refuted: else nested unions would be tried again and again, exponentially."""

    def __init__(self, incomplete: AvroRecord | None) -> None:
        self.incomplete = incomplete
        self.refuted: dict[tuple[int, int], str] = {}

    def find_fault(self, node: AvroType, value: Any) -> str | None:
        match node:
            case AvroPrimitive():
                return _primitive_fault(node.kind, value)
            case AvroUnion():
                return self._find_union_fault(node, value)
            case AvroEnum():
                return None if type(value) is str and value in node.symbols else f"it is no symbol of {node.name}"
            case AvroFixed():
                return _bytes_fault(value, node.size)
            case AvroArray():
                if type(value) is not list:
                    return "an array is needed"
                return next((why for item in value if (why := self.find_fault(node.items, item))), None)
            case AvroMap():
                if type(value) is not dict:
                    return "an object is needed"
                return next((why for item in value.values() if (why := self.find_fault(node.values, item))), None)
            case AvroRecord():
                return self._find_record_fault(node, value)

    def _find_union_fault(self, node: AvroUnion, value: Any) -> str | None:
        key = (id(node), id(value))
        if key in self.refuted:
            return self.refuted[key]
        for branch in node.branches:
            if self.find_fault(branch, value) is None:
                return None
        self.refuted[key] = f"it fits no branch of {describe_type(node)}"
        return self.refuted[key]

    def _find_record_fault(self, node: AvroRecord, value: Any) -> str | None:
        if type(value) is not dict:
            return "an object is needed"
        if node is self.incomplete:
            return f"{node.name} is still being defined here"
        for field in node.fields:
            if field.name in value:
                why = self.find_fault(field.type, value[field.name])
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
