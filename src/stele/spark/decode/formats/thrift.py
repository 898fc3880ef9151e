"""Thrift structs as columns; the binary protocol, one struct for each record.

A field that is not set is null, or its default. A struct inside itself is JSON text where it comes round again.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
import pyarrow as pa

from stele.client.serdes.schemas import ParsedSchema
from stele.errors import Invalid
from stele.formats.thrift.codec import ThriftCodec
from stele.formats.thrift.schema import ResolvedType, is_required
from stele.formats.thrift.syntax import ThriftStruct as Declared
from stele.spark.decode.formats.base import Accepts, Reads, Write
from stele.spark.decode.formats.plans import Deeper, Entries, Items, Leaf, Part, Plan, Struct, member

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


_EMPTY: Final[dict[str, Any]] = {"list": [], "set": [], "map": {}}


class ThriftLanguage:
    """See `Language`."""

    careful = ""

    def plan(self, schema: ParsedSchema, message: str, recursion: int) -> Plan:
        """See `Language`. Raises `InvalidRequest` for an unknown struct."""
        parsed = schema.parsed
        struct = parsed.struct(message)
        plan = _Planner(recursion).struct(ResolvedType(parsed.unit, struct), "", ())
        if plan is None:
            raise Invalid(f"{struct.name} contains itself and has no value that ends")
        return plan

    def scanner(self, reader: ParsedSchema, message: str, plan: Plan, accepts: Accepts) -> None:
        """See `Language`."""

    def reading(self, writer: ParsedSchema, reader: ParsedSchema, message: str) -> Reads:
        """See `Language`. The writer's schema says nothing the bytes do not say themselves."""
        del writer
        decode = ThriftCodec(reader.parsed, name=message).decode
        return Reads(decode, decode)

    def writing(self, schema: ParsedSchema, message: str) -> Write:
        """See `Language`."""
        return ThriftCodec(schema.parsed, name=message).encode


class _Planner:
    def __init__(self, recursion: int) -> None:
        self._left = MAX_COLUMNS
        self._recursion = recursion

    def struct(self, kind: ResolvedType, path: str, above: tuple[Declared, ...]) -> Struct | None:
        """The plan of a struct; None where it cannot be without going deeper than asked for."""
        struct = kind.node
        assert isinstance(struct, Declared)
        self._left -= len(struct.fields)
        if self._left < 0:
            raise Invalid(f"{struct.name} has more than {MAX_COLUMNS} columns")
        parts, deeper = [], []
        for field in struct.fields:
            inner = kind.unit.resolve_type(field.type)
            plan = self._plan(inner, f"{path}.{field.name}" if path else field.name, (*above, struct))
            if plan is not None:
                parts.append(Part(field.name, member(field.name), plan))
                continue
            empty = _EMPTY.get(inner.kind)
            needed = is_required(struct, field)
            if needed and empty is None:
                return None
            deeper.append(Deeper(field.name, member(field.name), empty is not None, empty if needed else None))
        return Struct(parts, path, deeper=deeper)

    def _plan(self, kind: ResolvedType, path: str, above: tuple[Declared, ...]) -> Plan | None:
        """The plan of one value; None where it would be deeper inside itself than asked for."""
        match kind.kind:
            case "list" | "set":
                item = self._plan(kind.inner_type(0), f"{path}[]", above)
                return None if item is None else Items(item, path)
            case "map":
                key = self._plan(kind.inner_type(0), f"{path}{{key}}", above)
                item = self._plan(kind.inner_type(1), f"{path}{{}}", above)
                if key is None or item is None:
                    return None
                return Entries(key, item, path, pairs=not isinstance(key, Leaf))
            case "struct" if sum(kind.node is each for each in above) > self._recursion > 0:
                return None
            case "struct" if not self._recursion and any(kind.node is each for each in above):
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
