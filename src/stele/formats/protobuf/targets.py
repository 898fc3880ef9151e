"""Which type of Protobuf stands for a type of the neutral model that has no parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from stele.formats.conversion.model import Array, Decimal, Loss, Scalar, ScalarKind, Type, TypeReference
from stele.formats.protobuf.draft import TypeRef

SCALAR_WORDS: Final = {
    ScalarKind.BOOLEAN: "bool",
    ScalarKind.INT8: "int32",
    ScalarKind.INT16: "int32",
    ScalarKind.INT32: "int32",
    ScalarKind.INT64: "int64",
    ScalarKind.UINT8: "uint32",
    ScalarKind.UINT16: "uint32",
    ScalarKind.UINT32: "uint32",
    ScalarKind.UINT64: "uint64",
    ScalarKind.INTEGER: "int64",
    ScalarKind.NUMBER: "double",
    ScalarKind.FLOAT32: "float",
    ScalarKind.FLOAT64: "double",
    ScalarKind.STRING: "string",
    ScalarKind.UUID: "string",
    ScalarKind.BYTES: "bytes",
}
"""The scalar type for each kind that has one."""
_NARROW: Final = frozenset({ScalarKind.INT8, ScalarKind.INT16, ScalarKind.UINT8, ScalarKind.UINT16})
MAP_KEY_KINDS: Final = frozenset(SCALAR_WORDS) - {
    ScalarKind.BYTES,
    ScalarKind.FLOAT32,
    ScalarKind.FLOAT64,
    ScalarKind.NUMBER,
}
"""What the keys of a map may be."""
TYPE_WORDS: Final = frozenset({*SCALAR_WORDS.values(), *(kind.value for kind in ScalarKind)})
"""Words for types, which say too little as names of fields."""
NO_CONSTRAINTS: Final[Mapping[str, Any]] = MappingProxyType({})
"""No constraints."""
_DECIMAL: Final = "confluent.type.Decimal"
_INT64: Final = range(-(1 << 63), 1 << 63)


def _imported_type(word: str, file: str, *more: str, is_message: bool = True) -> TypeRef:
    return TypeRef(word, imports=(file, *more), is_message=is_message)


_JSON_VALUE: Final = _imported_type("google.protobuf.Value", "google/protobuf/struct.proto")
_NULL: Final = _imported_type("google.protobuf.NullValue", "google/protobuf/struct.proto", is_message=False)
_DATE: Final = _imported_type("google.type.Date", "google/type/date.proto")
TIME: Final = _imported_type("google.type.TimeOfDay", "google/type/timeofday.proto")
"""A time of day."""
INSTANT: Final = _imported_type("google.protobuf.Timestamp", "google/protobuf/timestamp.proto")
"""A point in time."""
WALL_CLOCK: Final = _imported_type("google.type.DateTime", "google/type/datetime.proto")
"""A date and a time without a place."""
SPAN: Final = _imported_type("google.protobuf.Duration", "google/protobuf/duration.proto")
"""A span of time of an exact length."""
IMPORTED_MESSAGES: Final[dict[str, tuple[TypeRef, dict[str, int]]]] = {
    "google.protobuf.Any": (
        _imported_type("google.protobuf.Any", "google/protobuf/any.proto"),
        {"type_url": 1, "value": 2},
    ),
    "google.protobuf.Empty": (_imported_type("google.protobuf.Empty", "google/protobuf/empty.proto"), {}),
    "google.protobuf.FieldMask": (
        _imported_type("google.protobuf.FieldMask", "google/protobuf/field_mask.proto"),
        {"paths": 1},
    ),
}
"""Messages that are imported rather than declared again, with their fields."""


def scalar_type_ref(kind: Scalar, path: str, constraints: Mapping[str, Any]) -> tuple[TypeRef, list[Loss]]:
    """The type of a scalar, and what it does not say; constraints are those of the field."""
    word = SCALAR_WORDS.get(kind.kind, "")
    match kind.kind:
        case ScalarKind.ANY:
            return _JSON_VALUE, [Loss(path, "PRECISION", "Numbers in any JSON value are doubles here.", data=True)]
        case ScalarKind.NULL:
            return _NULL, []
        case ScalarKind.DATE:
            return _DATE, []
        case ScalarKind.NUMBER:
            why = "Numbers are doubles here: digits beyond 15 may change."
            return TypeRef(word), [Loss(path, "PRECISION", why, data=True)]
        case ScalarKind.INTEGER:
            bounds = (constraints.get("minimum"), constraints.get("maximum"))
            if not all(isinstance(bound, int) and bound in _INT64 for bound in bounds):
                return TypeRef(word), [Loss(path, "RANGE", "Integers beyond 64 bits cannot be written.", data=True)]
        case ScalarKind.UUID:
            return TypeRef(word), [Loss(path, "FORMAT", "Any text is taken where a UUID was demanded.")]
        case _ if kind.kind in _NARROW:
            return TypeRef(word), [Loss(path, "RANGE", f"All of {word} is taken where {kind.kind.value} was demanded.")]
    return TypeRef(word), []


def decimal_type_ref(kind: Decimal) -> TypeRef:
    """A decimal, with precision and scale as an option of the field."""
    params = {"precision": kind.precision, "scale": kind.scale} if kind.precision or kind.scale else {}
    shown = ", ".join(f'{{key: "{name}", value: "{value}"}}' for name, value in params.items() if value is not None)
    if not shown:
        return _imported_type(_DECIMAL, "confluent/type/decimal.proto")
    made = _imported_type(_DECIMAL, "confluent/type/decimal.proto", "confluent/meta.proto")
    return replace(made, options=(("confluent.field_meta", f"{{params: [{shown}]}}"),))


def branch_name(kind: Type) -> str:
    """What a branch of a union is called that has no name of its own."""
    match kind:
        case TypeReference():
            return kind.name.rpartition(".")[2]
        case Scalar():
            return kind.kind.value
        case Array():
            return f"{branch_name(kind.items)}_list"
    return type(kind).__name__.lower()
