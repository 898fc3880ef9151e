"""Thrift structs as columns; the binary protocol, one struct for each record.

A field that is not set is null, or its default. A struct inside itself is JSON text where it comes round again.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
import pyarrow as pa

from stele.client.serdes.schemas import Ready
from stele.errors import Invalid
from stele.formats.thrift.codec import ThriftCodec
from stele.formats.thrift.schema import Resolved
from stele.formats.thrift.syntax import Struct as Declared
from stele.spark.formats.base import Accepts, Reads, Write
from stele.spark.formats.plans import Entries, Items, Leaf, Part, Plan, Struct, member

MAX_COLUMNS: Final = 10_000
"""Columns at all levels together."""

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


class ThriftLanguage:
    """See `Language`."""

    careful = ""

    def plan(self, schema: Ready, message: str) -> Plan:
        """See `Language`. Raises `InvalidRequest` for an unknown struct."""
        parsed = schema.parsed
        return _Planner().struct(Resolved(parsed.unit, parsed.struct(message)), "", ())

    def scanner(self, reader: Ready, message: str, accepts: Accepts) -> None:
        """See `Language`."""

    def reading(self, writer: Ready, reader: Ready, message: str) -> Reads:
        """See `Language`. The writer's schema says nothing the bytes do not say themselves."""
        del writer
        decode = ThriftCodec(reader.parsed, name=message).decode
        return Reads(decode, decode)

    def writing(self, schema: Ready, message: str) -> Write:
        """See `Language`."""
        return ThriftCodec(schema.parsed, name=message).encode


class _Planner:
    def __init__(self) -> None:
        self._left = MAX_COLUMNS

    def struct(self, kind: Resolved, path: str, above: tuple[Declared, ...]) -> Struct:
        struct = kind.node
        assert isinstance(struct, Declared)
        self._left -= len(struct.fields)
        if self._left < 0:
            raise Invalid(f"{struct.name} has more than {MAX_COLUMNS} columns")
        parts = []
        for field in struct.fields:
            inner = kind.unit.resolve(field.type)
            plan = self._plan(inner, f"{path}.{field.name}" if path else field.name, (*above, struct))
            parts.append(Part(field.name, member(field.name), plan))
        return Struct(parts, path)

    def _plan(self, kind: Resolved, path: str, above: tuple[Declared, ...]) -> Plan:
        match kind.kind:
            case "list" | "set":
                return Items(self._plan(kind.inner(0), f"{path}[]", above), path)
            case "map":
                key = self._plan(kind.inner(0), f"{path}{{key}}", above)
                pairs = not isinstance(key, Leaf)
                return Entries(key, self._plan(kind.inner(1), f"{path}{{}}", above), path, pairs=pairs)
            case "struct" if any(kind.node is each for each in above):
                return Leaf(pa.string(), path, read=_dumped, write=orjson.loads)
            case "struct":
                return self.struct(kind, path, above)
            case "enum":
                return Leaf(pa.string(), path, read=str, write=_symbol)
        return Leaf(_TYPES[kind.kind], path)


def _symbol(text: str) -> str | int:
    """A name, or the number of a value that has none."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else text


def _dumped(value: Any) -> str:
    return orjson.dumps(value, default=_other, option=orjson.OPT_NON_STR_KEYS).decode()


def _other(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    raise TypeError(type(value).__name__)
