"""Constant values: whether one fits a type, and the datum it stands for."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.thrift.lexer import fault, place
from stele.formats.thrift.numbers import I8, I16, I32, I64
from stele.formats.thrift.schema import Resolved, Unit
from stele.formats.thrift.syntax import Container, EnumType, ListValue, Literal, MapValue, Name, Struct, Value

RANGES: Final = {"i8": I8, "i16": I16, "i32": I32, "i64": I64}
TEXTS: Final = frozenset({"string", "binary", "uuid"})
SCALARS: Final = frozenset({"bool", "double", "enum", *RANGES, *TEXTS})
"""Kinds of types that can be keys of a Python dict."""


def follow(unit: Unit, value: Value) -> tuple[Unit, Value]:
    """The value behind the names of constants and enum values (its number), and the unit it stands in."""
    while isinstance(value, Name):
        found = unit.value(value.name)
        if found is None:
            line, column = place(unit.text, value.at)
            raise UnresolvedReference(
                f"there is no constant or enum value named {value.name!r}",
                line=line,
                column=column,
                expected="a constant, or an enum value with the name of its enum before it",
            )
        if len(found) == 2:
            unit, value = found[0], found[1].value
        else:
            value = Literal(found[2].number)
    return unit, value


def fit(unit: Unit, value: Value, kind: Resolved, at: int) -> None:
    """Raise `MalformedSchema` when a value of the unit does not fit a type; at is the place to name."""
    if isinstance(value, Name):
        _name_fits(unit, value, kind)
        return
    match kind.node, value:
        case EnumType(), Literal(bool() | int()):
            if all(each.number != value.value for each in kind.node.values):
                raise _misfit(unit, at, value, kind)
        case Struct(), MapValue():
            _struct_fits(unit, value, kind.unit, kind.node)
        case Container(kind="map"), MapValue():
            for key, item in value.items:
                fit(unit, key, kind.inner(0), value.at)
                fit(unit, item, kind.inner(1), value.at)
        case Container(kind="list" | "set"), ListValue():
            for item in value.items:
                fit(unit, item, kind.inner(0), value.at)
        case Container(), ListValue(items=()) | MapValue(items=()):
            pass  # compilers take either empty value for every container
        case _, Literal() if _scalar_fits(kind.kind, value.value):
            pass
        case _:
            raise _misfit(unit, at, value, kind)


def _scalar_fits(kind: str, value: bool | float | str) -> bool:
    if kind in TEXTS:
        return isinstance(value, str) and (kind != "uuid" or uuid_of(value) is not None)
    if kind == "double":
        return not isinstance(value, str)
    if kind == "bool":
        return isinstance(value, int)
    return isinstance(value, int) and kind in RANGES and value in RANGES[kind]


def _name_fits(unit: Unit, value: Name, kind: Resolved) -> None:
    """What a name leads to must fit as if it stood there; an enum wants its own values."""
    found = unit.value(value.name)
    if found is not None and len(found) == 3 and isinstance(kind.node, EnumType) and found[1] is not kind.node:
        raise fault(unit.text, value.at, f"{value.name} is a value of another enum", f"a value of {kind.node.name}")
    home, plain = follow(unit, value)
    try:
        fit(home, plain, kind, 0)
    except MalformedSchema as error:
        why = f"the value of {value.name} does not fit"
        raise fault(unit.text, value.at, why, error.expected) from None


def _struct_fits(unit: Unit, value: MapValue, home: Unit, struct: Struct) -> None:
    fields = {field.name: field for field in struct.fields}
    for key, item in value.items:
        name = key.value if isinstance(key, Literal) else None
        if not isinstance(name, str) or name not in fields:
            raise fault(unit.text, value.at, f"{struct.name} has no field {name!r}", f"one of {', '.join(fields)}")
        fit(unit, item, home.resolve(fields[name].type), value.at)


def _misfit(unit: Unit, at: int, value: Value, kind: Resolved) -> MalformedSchema:
    shown = {ListValue: "a list", MapValue: "a map"}.get(type(value), "")
    if isinstance(value, Literal):
        shown = repr(value.value)[:60]
    return fault(unit.text, at, f"the value {shown} does not fit its type", _expected(kind))


def _expected(kind: Resolved) -> str:
    if isinstance(kind.node, EnumType):
        return f"a value of the enum {kind.node.name}"
    return f"a value of type {kind.node.name if isinstance(kind.node, Struct) else kind.kind}"


def datum(unit: Unit, value: Value, kind: Resolved) -> Any:
    """The datum of a constant value, as the codec decodes it: structs are dicts, enums symbols, sets lists."""
    unit, value = follow(unit, value)
    match kind.node, value:
        case EnumType(), Literal(number):
            return next((each.name for each in kind.node.values if each.number == number), number)
        case Struct(), MapValue():
            types = {field.name: field.type for field in kind.node.fields}
            return {
                key.value: datum(unit, item, kind.unit.resolve(types[str(key.value)]))
                for key, item in value.items
                if isinstance(key, Literal) and key.value in types
            }
        case Container(kind="map"), MapValue():
            pairs = [(datum(unit, key, kind.inner(0)), datum(unit, item, kind.inner(1))) for key, item in value.items]
            return pairing(kind, pairs)
        case Container(kind="map"), _:
            return pairing(kind, [])
        case Container(), ListValue():
            items = [datum(unit, item, kind.inner(0)) for item in value.items]
            return items if kind.kind == "list" else list({repr(item): item for item in items}.values())
        case Container(), _:
            return []
        case _, Literal(plain):
            return _scalar(kind.kind, plain)
    return None


def parts(unit: Unit, value: Value) -> int:
    """How many values a value consists of, names written out."""
    unit, value = follow(unit, value)
    match value:
        case ListValue():
            return 1 + sum(parts(unit, item) for item in value.items)
        case MapValue():
            return 1 + sum(parts(unit, each) for pair in value.items for each in pair)
    return 1


def pairing(kind: Resolved, pairs: list[tuple[Any, Any]]) -> Any:
    """A map as a datum: a dict where keys are scalars, else a list of (key, value)."""
    return dict(pairs) if kind.inner(0).kind in SCALARS else pairs


def _scalar(kind: str, value: bool | float | str) -> Any:
    match kind:
        case "bool":
            return bool(value)
        case "double":
            return float(value)
        case "binary":
            return str(value).encode()
        case "uuid":
            found = uuid_of(str(value))
            return value if found is None else str(found)
        case "string":
            return value
    return int(value)


def uuid_of(text: str) -> UUID | None:
    """The UUID that a text is, with braces or without; None when it is none."""
    try:
        return UUID(text)
    except ValueError:
        return None


def json_text(unit: Unit, value: Value) -> Any:
    """A value as JSON can say it, names replaced by what they stand for, but enum values by their symbols."""
    if isinstance(value, Name):
        found = unit.value(value.name)
        if found is not None and len(found) == 3:
            return found[2].name
    unit, value = follow(unit, value)
    match value:
        case ListValue():
            return [json_text(unit, item) for item in value.items]
        case MapValue():
            return {str(json_text(unit, key)): json_text(unit, item) for key, item in value.items}
        case Literal():
            return value.value
    return None
