"""JSON data as columns: checked against the schema they were written with, in the shape of the reader's.

A member that is missing and one that is null are both null; members the reader's schema does not name are left out.
When data are written, null is written for members that are required, and the others are left out.
Where the reader's schema has no one type for a place, its column holds JSON text. Integers that do not fit 64 bits and
fractions where the reader wants integers are no data of the reader's.
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
from stele.spark.decode.formats.base import Accepts, Reads, Write
from stele.spark.decode.formats.plans import Deeper, Entries, Items, Leaf, Part, Plan, Struct, member
from stele.spark.engines.arrow import ArrowType, Column

_INT: Final = frozenset({int})
_FLOAT: Final = frozenset({float})
_OBJECT: Final = frozenset({dict})


class JsonLanguage:
    """See `Language`."""

    careful = r"(?s)(?:[:,\[\s]|^.{5})\s*-?[0-9](?:[0-9]{17}|[0-9.]*[eE][+]?[0-9]{3})"
    """Found in every frame with a number that orjson may not read exactly: an integer of so many digits, or an exponent
    beyond those of doubles. Digits behind a point, or in strings, do not matter."""

    def plan(self, schema: ParsedSchema, message: str, recursion: int) -> Plan:
        """See `Language`."""
        del message  # a schema has one type
        columns = marked_schema(schema.parsed, recursion)
        only = columns.field(0) if len(columns) == 1 else None
        if only is None or WHOLE not in (only.metadata or {}):
            return _struct(list(columns), "")
        plan = _plan(only.type, only.metadata, "the value")
        if plan is None:
            raise Invalid("the schema contains itself and has no value that ends")
        return plan

    def scanner(self, reader: ParsedSchema, message: str, plan: Plan, accepts: Accepts) -> None:
        """See `Language`."""

    def reading(self, writer: ParsedSchema, reader: ParsedSchema, message: str) -> Reads:
        """See `Language`."""
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
            return exact(data)  # says what is wrong

        return Reads(read, exact)

    def writing(self, schema: ParsedSchema, message: str) -> Write:
        """See `Language`."""
        del message
        return schema.format.codec(schema.parsed).encode


def _struct(fields: list[Any], path: str) -> Struct:
    parts, deeper = [], []
    for field in fields:
        plan = _plan(field.type, field.metadata, f"{path}.{field.name}" if path else field.name)
        needed = REQUIRED in (field.metadata or {})
        if plan is not None:
            parts.append(Part(field.name, member(field.name), plan, keeps_null=needed))
            continue
        empty: Any = [] if pa.types.is_list(field.type) else {} if pa.types.is_map(field.type) else None
        deeper.append(Deeper(field.name, member(field.name), empty is not None, empty if needed else None))
    return Struct(parts, path, kinds=_OBJECT, deeper=deeper)


def _plan(type_: ArrowType, metadata: Any, path: str) -> Plan | None:
    """The plan of a place; None where a schema would be deeper inside itself than asked for."""
    if DEEPER in (metadata or {}):
        return None
    if JSON_TEXT in (metadata or {}):
        return Leaf(pa.string(), path, read=_dumped, write=_loaded)
    if pa.types.is_struct(type_):
        return _struct(list(type_), path)
    if pa.types.is_list(type_):
        items = _plan(type_.value_type, type_.value_field.metadata, f"{path}[]")
        return None if items is None else Items(items, path, kinds=frozenset({list}))
    if pa.types.is_map(type_):
        key = Leaf(pa.string(), f"{path}{{key}}", kinds=frozenset({str}))
        item = _plan(type_.item_type, type_.item_field.metadata, f"{path}{{}}")
        return None if item is None else Entries(key, item, path, kinds=_OBJECT)
    return _scalar(type_, path)


def _scalar(type_: ArrowType, path: str) -> Leaf:
    if pa.types.is_integer(type_):
        return Leaf(pa.int64(), path, read=_whole, kinds=_INT | _FLOAT, easy=_INT)
    if pa.types.is_floating(type_):
        return Leaf(pa.float64(), path, read=float, kinds=_INT | _FLOAT, easy=_FLOAT)
    if pa.types.is_boolean(type_):
        return Leaf(pa.bool_(), path, kinds=frozenset({bool}))
    if pa.types.is_null(type_):
        return Leaf(pa.string(), path, kinds=frozenset())
    if pa.types.is_string(type_):
        return Leaf(pa.string(), path, kinds=frozenset({str}), take=_as_text)
    raise Invalid(f"{path}: there is no column for {type_}")


def _as_text(values: Column) -> Column | None:
    """Points in time as RFC 3339 has them, bytes as base64; the rest is as Arrow writes it."""
    if pa.types.is_timestamp(values.type):
        return pc.strftime(values, "%Y-%m-%dT%H:%M:%S" + ("Z" if values.type.tz else ""))
    if pa.types.is_binary(values.type):
        return pa.array(
            [None if data is None else b64encode(data).decode() for data in values.to_pylist()], pa.string()
        )
    return None


def _whole(value: float) -> int:
    if value != int(value):
        raise ValueError(f"{value} is no integer")
    return int(value)


def _dumped(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # integers beyond 64 bits
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"the text is no JSON: {error}") from error
