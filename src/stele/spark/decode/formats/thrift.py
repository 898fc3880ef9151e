"""Thrift structs as columns; the binary protocol, one struct for each record.

A field that is not set is null, or its default. A struct inside itself is JSON text where the type repeats.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
import pyarrow as pa

from stele.client.serdes.schemas import ParsedSchema
from stele.errors import Invalid
from stele.formats.thrift.codec import ThriftCodec
from stele.formats.thrift.schema import ResolvedType, is_required
from stele.formats.thrift.schema import ThriftStruct as Declared
from stele.spark.decode.formats.base import Accepts, DatumReaders, Write
from stele.spark.decode.formats.plans import (
    ColumnPlan,
    FieldPlan,
    ListPlan,
    MapPlan,
    ScalarPlan,
    Struct,
    TruncatedField,
    pick_member,
)

MAX_COLUMNS: Final = 10_000
"""Maximum number of columns over all levels."""

_TYPES: Final = {
    "bool": pa.bool_(),
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.string(),
}


_EMPTY: Final[dict[str, Any]] = {"list": [], "set": [], "map": {}}


class ThriftColumns:
    """The `ColumnFormat` of Thrift."""

    careful = ""

    def plan(self, schema: ParsedSchema, message: str, recursion: int) -> ColumnPlan:
        """Return the columns of a struct; see `ColumnFormat.plan`. Raises `InvalidRequest` for an unknown struct."""
        parsed = schema.parsed
        struct = parsed.find_struct(message)
        plan = _Planner(recursion).struct(ResolvedType(parsed.unit, struct), "", ())
        if plan is None:
            raise Invalid(f"{struct.name} contains itself and has no value that ends")
        return plan

    def make_scanner(self, reader: ParsedSchema, message: str, plan: ColumnPlan, accepts: Accepts) -> None:
        """Return None: Thrift has no scanner."""

    def make_readers(self, writer: ParsedSchema, reader: ParsedSchema, message: str) -> DatumReaders:
        """Return readers by the reader's schema alone, as the bytes carry all that the writer's schema could add."""
        del writer
        decode = ThriftCodec(reader.parsed, name=message).decode
        return DatumReaders(decode, decode)

    def make_writer(self, schema: ParsedSchema, message: str) -> Write:
        """Return a function that writes a struct; see `ColumnFormat.make_writer`."""
        return ThriftCodec(schema.parsed, name=message).encode


class _Planner:
    def __init__(self, recursion: int) -> None:
        self._left = MAX_COLUMNS
        self._recursion = recursion

    def struct(self, kind: ResolvedType, path: str, above: tuple[Declared, ...]) -> Struct | None:
        """Return the plan of a struct, or None if it would be nested in itself too deep."""
        struct = kind.node
        assert isinstance(struct, Declared)
        self._left -= len(struct.fields)
        if self._left < 0:
            raise Invalid(f"{struct.name} has more than {MAX_COLUMNS} columns")
        parts, deeper = [], []
        for field in struct.fields:
            inner = kind.unit.resolve_type(field.type)
            plan = self._plan_value(inner, f"{path}.{field.name}" if path else field.name, (*above, struct))
            if plan is not None:
                parts.append(FieldPlan(field.name, pick_member(field.name), plan))
                continue
            empty = _EMPTY.get(inner.kind)
            needed = is_required(struct, field)
            if needed and empty is None:
                return None
            deeper.append(
                TruncatedField(field.name, pick_member(field.name), empty is not None, empty if needed else None)
            )
        return Struct(parts, path, deeper=deeper)

    def _plan_value(self, kind: ResolvedType, path: str, above: tuple[Declared, ...]) -> ColumnPlan | None:
        """Return the plan of one value, or None if it would be nested in itself too deep."""
        match kind.kind:
            case "list" | "set":
                item = self._plan_value(kind.inner_type(0), f"{path}[]", above)
                return None if item is None else ListPlan(item, path)
            case "map":
                key = self._plan_value(kind.inner_type(0), f"{path}{{key}}", above)
                item = self._plan_value(kind.inner_type(1), f"{path}{{}}", above)
                if key is None or item is None:
                    return None
                return MapPlan(key, item, path, pairs=not isinstance(key, ScalarPlan))
            case "struct" if sum(kind.node is each for each in above) > self._recursion > 0:
                return None
            case "struct" if not self._recursion and any(kind.node is each for each in above):
                return ScalarPlan(pa.string(), path, read=_dump_json, write=orjson.loads)
            case "struct":
                return self.struct(kind, path, above)
            case "enum":
                return ScalarPlan(pa.string(), path, read=str, write=_enum_value)
        return ScalarPlan(_TYPES[kind.kind], path)


def _enum_value(text: str) -> str | int:
    """Return the name of an enum's value, or its number if it has none."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else text


def _dump_json(value: Any) -> str:
    return orjson.dumps(value, default=_to_json_value, option=orjson.OPT_NON_STR_KEYS).decode()


def _to_json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    raise TypeError(type(value).__name__)
