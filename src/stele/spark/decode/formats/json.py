"""JSON data as columns: validated against the schema they were written with, in the shape of the reader's schema.

A member that is missing and one that is null are both null. Members that the reader's schema does not name are left
out. When data are written, null is written for members that are required, and the others are left out. Where the
reader's schema has no single type for a place, its column holds JSON text. Integers that do not fit 64 bits, and
fractions where the reader needs integers, are errors.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, Final

import jsonschema_rs
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from stele.client.serdes.schemas import ParsedSchema
from stele.errors import Invalid
from stele.formats.jsonschema.arrow import DEEPER, JSON_TEXT, REQUIRED, WHOLE, marked_schema
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
from stele.spark.engines.arrow import ArrowType, Column

_INT: Final = frozenset({int})
_FLOAT: Final = frozenset({float})
_OBJECT: Final = frozenset({dict})


class JsonColumns:
    """The `ColumnFormat` of JSON Schema."""

    careful = r"(?s)(?:[:,\[\s]|^.{5})\s*-?[0-9](?:[0-9]{17}|[0-9.]*[eE][+]?[0-9]{3})"
    """Regular expression that matches every frame with a number that orjson may not read exactly.

    Such a number is an integer of so many digits, or has an exponent beyond those of doubles. Digits after a point, or
    in strings, do not matter.
    """

    def plan(self, schema: ParsedSchema, message: str, recursion: int) -> ColumnPlan:
        """Return the columns for data of a schema; see `ColumnFormat.plan`."""
        del message  # a schema has one type
        columns = marked_schema(schema.parsed, recursion)
        only = columns.field(0) if len(columns) == 1 else None
        if only is None or WHOLE not in (only.metadata or {}):
            return _plan_struct(list(columns), "")
        plan = _plan_column(only.type, only.metadata, "the value")
        if plan is None:
            raise Invalid("the schema contains itself and has no value that ends")
        return plan

    def make_scanner(self, reader: ParsedSchema, message: str, plan: ColumnPlan, accepts: Accepts) -> None:
        """Return None: JSON has no scanner."""

    def make_readers(self, writer: ParsedSchema, reader: ParsedSchema, message: str) -> DatumReaders:
        """Return readers that also validate against the writer's schema; see `ColumnFormat.make_readers`."""
        del reader, message
        exact = writer.format.codec(writer.parsed).decode
        is_valid = writer.parsed.validator.is_valid

        def read(data: bytes) -> Any:
            try:
                value = orjson.loads(data)
                if is_valid(value):
                    return value
            except (orjson.JSONDecodeError, jsonschema_rs.ValidationError, ValueError, TypeError, RecursionError):
                pass
            return exact(data)  # raises the error with its reason

        return DatumReaders(read, exact)

    def make_writer(self, schema: ParsedSchema, message: str) -> Write:
        """Return the encoder of the schema's codec; see `ColumnFormat.make_writer`."""
        del message
        return schema.format.codec(schema.parsed).encode


def _plan_struct(fields: list[Any], path: str) -> Struct:
    parts, deeper = [], []
    for field in fields:
        plan = _plan_column(field.type, field.metadata, f"{path}.{field.name}" if path else field.name)
        needed = REQUIRED in (field.metadata or {})
        if plan is not None:
            parts.append(FieldPlan(field.name, pick_member(field.name), plan, keeps_null=needed))
            continue
        empty: Any = [] if pa.types.is_list(field.type) else {} if pa.types.is_map(field.type) else None
        deeper.append(TruncatedField(field.name, pick_member(field.name), empty is not None, empty if needed else None))
    return Struct(parts, path, kinds=_OBJECT, deeper=deeper)


def _plan_column(type_: ArrowType, metadata: Any, path: str) -> ColumnPlan | None:
    """Return the plan of a place, or None if its type would be nested in itself too deep."""
    if DEEPER in (metadata or {}):
        return None
    if JSON_TEXT in (metadata or {}):
        return ScalarPlan(pa.string(), path, read=_dump_json, write=_load_json)
    if pa.types.is_struct(type_):
        return _plan_struct(list(type_), path)
    if pa.types.is_list(type_):
        items = _plan_column(type_.value_type, type_.value_field.metadata, f"{path}[]")
        return None if items is None else ListPlan(items, path, kinds=frozenset({list}))
    if pa.types.is_map(type_):
        key = ScalarPlan(pa.string(), f"{path}{{key}}", kinds=frozenset({str}))
        item = _plan_column(type_.item_type, type_.item_field.metadata, f"{path}{{}}")
        return None if item is None else MapPlan(key, item, path, kinds=_OBJECT)
    return _plan_scalar(type_, path)


def _plan_scalar(type_: ArrowType, path: str) -> ScalarPlan:
    if pa.types.is_integer(type_):
        return ScalarPlan(pa.int64(), path, read=_to_whole_number, kinds=_INT | _FLOAT, easy=_INT)
    if pa.types.is_floating(type_):
        return ScalarPlan(pa.float64(), path, read=float, kinds=_INT | _FLOAT, easy=_FLOAT)
    if pa.types.is_boolean(type_):
        return ScalarPlan(pa.bool_(), path, kinds=frozenset({bool}))
    if pa.types.is_null(type_):
        return ScalarPlan(pa.string(), path, kinds=frozenset())
    if pa.types.is_string(type_):
        return ScalarPlan(pa.string(), path, kinds=frozenset({str}), take=_as_text)
    raise Invalid(f"{path}: there is no column for {type_}")


def _as_text(values: Column) -> Column | None:
    """Return points in time as RFC 3339 text and bytes as base64, or None for a type that Arrow can cast itself."""
    if pa.types.is_timestamp(values.type):
        return pc.strftime(values, "%Y-%m-%dT%H:%M:%S" + ("Z" if values.type.tz else ""))
    if pa.types.is_binary(values.type):
        return pa.array(
            [None if data is None else b64encode(data).decode() for data in values.to_pylist()], pa.string()
        )
    return None


def _to_whole_number(value: float) -> int:
    if value != int(value):
        raise ValueError(f"{value} is not an integer")
    return int(value)


def _dump_json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # integers beyond 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"the text is not JSON: {error}") from error
