"""Constant values: whether one fits a type, and the datum for it."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.thrift.grammar import I8, I16, I32, I64, make_fault, position_of
from stele.formats.thrift.schema import (
    ContainerType,
    ListValue,
    LiteralValue,
    MapValue,
    ResolvedType,
    ThriftEnum,
    ThriftStruct,
    ThriftUnit,
    Value,
    ValueName,
)

RANGES: Final = {"i8": I8, "i16": I16, "i32": I32, "i64": I64}
TEXTS: Final = frozenset({"string", "binary", "uuid"})
SCALARS: Final = frozenset({"bool", "double", "enum", *RANGES, *TEXTS})
"""Types whose values can be keys of a Python dict."""


def follow_names(unit: ThriftUnit, value: Value) -> tuple[ThriftUnit, Value]:
    """Return the value behind the names of constants and enum values (its number), and the unit of that value."""
    while isinstance(value, ValueName):
        target = unit.find_value(value.name)
        if target is None:
            line, column = position_of(unit.text, value.at)
            raise UnresolvedReference(
                f"there is no constant or enum value named {value.name!r}",
                line=line,
                column=column,
                expected="a constant, or an enum value with the name of its enum before it",
            )
        if len(target) == 2:
            unit, value = target[0], target[1].value
        else:
            value = LiteralValue(target[2].number)
    return unit, value


def resolve_names(unit: ThriftUnit, value: Value) -> Value:
    """Return the value with names replaced: constants by their values, enum values by their numbers."""
    unit, value = follow_names(unit, value)
    match value:
        case ListValue():
            return ListValue(tuple(resolve_names(unit, item) for item in value.items))
        case MapValue():
            return MapValue(tuple((resolve_names(unit, key), resolve_names(unit, item)) for key, item in value.items))
    return value


def require_fit(unit: ThriftUnit, value: Value, kind: ResolvedType, at: int) -> None:
    """Raise `MalformedSchema` when a value of the unit does not fit a type. `at` is the position to report."""
    if isinstance(value, ValueName):
        _require_name_fit(unit, value, kind)
        return
    match kind.node, value:
        case ThriftEnum(), LiteralValue(bool() | int()):
            if all(each.number != value.value for each in kind.node.values):
                raise _misfit_error(unit, at, value, kind)
        case ThriftStruct(), MapValue():
            _require_struct_fit(unit, value, kind.unit, kind.node)
        case ContainerType(kind="map"), MapValue():
            for key, item in value.items:
                require_fit(unit, key, kind.inner_type(0), value.at)
                require_fit(unit, item, kind.inner_type(1), value.at)
        case ContainerType(kind="list" | "set"), ListValue():
            for item in value.items:
                require_fit(unit, item, kind.inner_type(0), value.at)
        case ContainerType(), ListValue(items=()) | MapValue(items=()):
            pass  # compilers take either empty value for every container
        case _, LiteralValue() if _is_scalar_fitting(kind.kind, value.value):
            pass
        case _:
            raise _misfit_error(unit, at, value, kind)


def _is_scalar_fitting(kind: str, value: bool | float | str) -> bool:
    if kind in TEXTS:
        return isinstance(value, str) and (kind != "uuid" or parse_uuid(value) is not None)
    if kind == "double":
        return not isinstance(value, str)
    if kind == "bool":
        return isinstance(value, int)
    return isinstance(value, int) and kind in RANGES and value in RANGES[kind]


def _require_name_fit(unit: ThriftUnit, value: ValueName, kind: ResolvedType) -> None:
    """Raise unless the value behind a name fits the type. An enum accepts only its own values."""
    target = unit.find_value(value.name)
    if target is not None and len(target) == 3 and isinstance(kind.node, ThriftEnum) and target[1] is not kind.node:
        raise make_fault(
            unit.text, value.at, f"{value.name} is a value of another enum", f"a value of {kind.node.name}"
        )
    home, plain = follow_names(unit, value)
    try:
        require_fit(home, plain, kind, 0)
    except MalformedSchema as error:
        why = f"the value of {value.name} does not fit"
        raise make_fault(unit.text, value.at, why, error.expected) from None


def _require_struct_fit(unit: ThriftUnit, value: MapValue, home: ThriftUnit, struct: ThriftStruct) -> None:
    fields = {field.name: field for field in struct.fields}
    for key, item in value.items:
        name = key.value if isinstance(key, LiteralValue) else None
        if not isinstance(name, str) or name not in fields:
            raise make_fault(unit.text, value.at, f"{struct.name} has no field {name!r}", f"one of {', '.join(fields)}")
        require_fit(unit, item, home.resolve_type(fields[name].type), value.at)


def _misfit_error(unit: ThriftUnit, at: int, value: Value, kind: ResolvedType) -> MalformedSchema:
    description = {ListValue: "a list", MapValue: "a map"}.get(type(value), "")
    if isinstance(value, LiteralValue):
        description = repr(value.value)[:60]
    return make_fault(unit.text, at, f"the value {description} does not fit its type", _describe_expected(kind))


def _describe_expected(kind: ResolvedType) -> str:
    if isinstance(kind.node, ThriftEnum):
        return f"a value of the enum {kind.node.name}"
    return f"a value of type {kind.node.name if isinstance(kind.node, ThriftStruct) else kind.kind}"


def make_datum(unit: ThriftUnit, value: Value, kind: ResolvedType) -> Any:
    """Return the datum of a constant value, as the codec decodes it: structs are dicts, enums symbols, sets lists."""
    unit, value = follow_names(unit, value)
    match kind.node, value:
        case ThriftEnum(), LiteralValue(number):
            return next((each.name for each in kind.node.values if each.number == number), number)
        case ThriftStruct(), MapValue():
            types = {field.name: field.type for field in kind.node.fields}
            return {
                key.value: make_datum(unit, item, kind.unit.resolve_type(types[str(key.value)]))
                for key, item in value.items
                if isinstance(key, LiteralValue) and key.value in types
            }
        case ContainerType(kind="map"), MapValue():
            pairs = [
                (make_datum(unit, key, kind.inner_type(0)), make_datum(unit, item, kind.inner_type(1)))
                for key, item in value.items
            ]
            return make_map(kind, pairs)
        case ContainerType(kind="map"), _:
            return make_map(kind, [])
        case ContainerType(), ListValue():
            items = [make_datum(unit, item, kind.inner_type(0)) for item in value.items]
            return items if kind.kind == "list" else list({repr(item): item for item in items}.values())
        case ContainerType(), _:
            return []
        case _, LiteralValue(plain):
            return _make_scalar(kind.kind, plain)
    return None


def count_parts(unit: ThriftUnit, value: Value) -> int:
    """Return the number of values in a value, with names resolved."""
    unit, value = follow_names(unit, value)
    match value:
        case ListValue():
            return 1 + sum(count_parts(unit, item) for item in value.items)
        case MapValue():
            return 1 + sum(count_parts(unit, each) for pair in value.items for each in pair)
    return 1


def make_map(kind: ResolvedType, pairs: list[tuple[Any, Any]]) -> Any:
    """Return a map as a datum: a dict where keys are scalars, else a list of (key, value)."""
    return dict(pairs) if kind.inner_type(0).kind in SCALARS else pairs


def _make_scalar(kind: str, value: bool | float | str) -> Any:
    match kind:
        case "bool":
            return bool(value)
        case "double":
            return float(value)
        case "binary":
            return str(value).encode()
        case "uuid":
            uuid = parse_uuid(str(value))
            return value if uuid is None else str(uuid)
        case "string":
            return value
    return int(value)


def parse_uuid(text: str) -> UUID | None:
    """Return the UUID in a text, with or without braces; None for any other text."""
    try:
        return UUID(text)
    except ValueError:
        return None


def to_json_value(unit: ThriftUnit, value: Value) -> Any:
    """Return a value as JSON. Names are resolved, and enum values become their symbols."""
    if isinstance(value, ValueName):
        target = unit.find_value(value.name)
        if target is not None and len(target) == 3:
            return target[2].name
    unit, value = follow_names(unit, value)
    match value:
        case ListValue():
            return [to_json_value(unit, item) for item in value.items]
        case MapValue():
            return {str(to_json_value(unit, key)): to_json_value(unit, item) for key, item in value.items}
        case LiteralValue():
            return value.value
    return None
