"""Encodes, decodes and validates single data (payload only, no frame, no schema id), and makes an example datum."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from stele.errors import DecodeError, EncodeError, Invalid, MalformedSchema
from stele.formats.avro import decode as _decode
from stele.formats.avro import encode as _encode
from stele.formats.avro.model import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
)
from stele.formats.avro.scalars import MAX_DIGITS


class AvroCodec:
    """A codec for data of the writer's schema. If a reader's schema is given, decoding resolves to it.

    Safe to share between threads. Python types are those of `stele.formats.avro.scalars`; records are dicts. See
    `decode` and `encode` for what is rejected. A value that is accepted is never changed by encoding and decoding.
    """

    def __init__(self, writer: AvroSchema, reader: AvroSchema | None = None) -> None:
        self.writer = writer
        self.reader = reader or writer

    def encode(self, datum: Any) -> bytes:
        """Return one datum of the writer's schema as bytes. Raises `EncodeError` with the path of what does not fit."""
        out = bytearray()
        write = self._get_writer
        try:
            write(out, datum)
        except _encode.DatumMismatch as misfit:
            raise EncodeError(misfit.to_sentence()) from None
        except RecursionError:
            raise EncodeError("the datum is nested too deeply") from None
        return bytes(out)

    def decode(self, data: bytes) -> Any:
        """Return one datum. Raises `DecodeError` with the offset, also for bytes that are left over."""
        read, counts_empties = self._get_reader
        data = _decode.CountedBytes(data) if counts_empties else bytes(data)
        try:
            value, end = read(data, 0)
        except _decode.MalformedData as broken:
            raise broken.to_decode_error() from None
        except IndexError:
            raise DecodeError("the data end in the middle of a value", offset=len(data)) from None
        except RecursionError:
            raise DecodeError("the data are nested too deeply") from None
        if end != len(data):
            raise DecodeError(f"{len(data) - end} bytes are left over after the datum", offset=end)
        return value

    def validate(self, datum: Any) -> list[str]:
        """Return why the datum does not fit the writer's schema, each reason a sentence with its path (100 at most)."""
        problems: list[str] = []
        try:
            for sentence in _encode.find_problems(self.writer.root, datum):
                problems.append(sentence)
                if len(problems) == _encode.MAX_PROBLEMS:
                    break
        except RecursionError:
            problems.append("the datum is nested too deeply")
        return problems

    def example(self) -> Any:
        """Return a small datum that fits the writer's schema. Raises `Invalid` when there is no finite one."""
        return make_example(self.writer.root)

    @cached_property
    def _get_writer(self) -> _encode.Write:
        try:
            return _encode.WriterBuilder().build_writer(self.writer.root)
        except RecursionError:
            raise MalformedSchema("the types of the schema are nested too deeply for a codec") from None

    @cached_property
    def _get_reader(self) -> tuple[_decode.Read, bool]:
        builder = _decode.ReaderBuilder()
        try:
            return builder.build_reader(self.writer.root, self.reader.root), builder.counts_empties
        except RecursionError:
            raise MalformedSchema("the types of the schema are nested too deeply for a codec") from None


# --- examples ---------------------------------------------------------------------------------------------------------
# A small datum that fits a schema, the same one each time.

MAX_VALUES: Final = 10_000
"""Maximum number of values in one example. A type that is used twice at each of n levels has 2**n values."""

MAX_FIXED: Final = 1 << 20
"""Maximum size in bytes of a fixed in an example."""

MAX_DEPTH: Final = 3
"""Maximum nesting of records. Deeper, arrays and maps stay empty and unions prefer null."""

_MOMENT: Final = datetime(2024, 1, 31, 12, 30, tzinfo=UTC)
_PLAIN: Final[dict[str, Any]] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.5,
    "double": 1.5,
    "bytes": b"bytes",
    "string": "text",
}
_LOGICAL: Final[dict[str, Any]] = {
    "date": date(2024, 1, 31),
    "time-millis": time(12, 30),
    "time-micros": time(12, 30),
    "timestamp-millis": _MOMENT,
    "timestamp-micros": _MOMENT,
    "local-timestamp-millis": _MOMENT.replace(tzinfo=None),
    "local-timestamp-micros": _MOMENT.replace(tzinfo=None),
    "uuid": UUID("123e4567-e89b-42d3-a456-426614174000"),
}


def make_example(node: AvroType) -> Any:
    """Return a datum of a type: recursion ends at the first union, array or map that lets it.

    Raises `Invalid` when every datum would be infinite or has more than MAX_VALUES values.
    """
    return _ExampleMaker().make_datum(node)


class _ExampleMaker:
    def __init__(self) -> None:
        self.open: list[AvroRecord] = []
        self.made = 0

    def make_datum(self, node: AvroType) -> Any:
        """Return a datum. Raises `Invalid` where the type leads back into a record that is being made."""
        self.made += 1
        if self.made > MAX_VALUES:
            raise Invalid(f"an example of this schema would have more than {MAX_VALUES} values")
        match node:
            case AvroPrimitive() | AvroFixed():
                return _make_scalar(node)
            case AvroEnum():
                if not node.symbols:
                    raise Invalid(f"the enum {node.name} has no symbols, so no datum fits it")
                return node.symbols[0]
            case AvroArray():
                return self._wrap_item(node.items, list, lambda item: [item])
            case AvroMap():
                return self._wrap_item(node.values, dict, lambda item: {"key": item})
            case AvroUnion():
                return self._make_union(node)
            case AvroRecord():
                return self._make_record(node)

    def _wrap_item(self, node: AvroType, empty: Callable[[], Any], wrap: Callable[[Any], Any]) -> Any:
        """Return a collection of one item, or an empty one.

        It is empty when the item would nest too deeply or has no finite datum.
        """
        if len(self.open) > MAX_DEPTH:
            return empty()
        try:
            return wrap(self.make_datum(node))
        except Invalid:
            return empty()

    def _make_union(self, node: AvroUnion) -> Any:
        """Return a datum of the first branch that has one.

        Null is tried last. Below `MAX_DEPTH` it is tried first, which ends recursion.
        """
        deep = len(self.open) > MAX_DEPTH
        refused = Invalid("no datum fits an empty union")
        for branch in sorted(node.branches, key=lambda branch: (branch.kind == "null") != deep):
            try:
                return self.make_datum(branch)
            except Invalid as error:
                refused = error
        raise refused

    def _make_record(self, node: AvroRecord) -> dict[str, Any]:
        if node in self.open:
            raise Invalid(f"every datum of {node.name} would contain another one infinitely")
        self.open.append(node)
        try:
            return {field.name: self.make_datum(field.type) for field in node.fields}
        finally:
            self.open.pop()


def _make_scalar(node: AvroPrimitive | AvroFixed) -> Any:
    if isinstance(node, AvroFixed) and node.size > MAX_FIXED:
        raise Invalid(f"an example of {node.name} would have {node.size} bytes, more than {MAX_FIXED}")
    logical = node.logical
    if logical is not None and logical.name == "decimal":
        if logical.precision <= MAX_DIGITS:
            return Decimal(1).scaleb(-logical.scale)
        return bytes(node.size) if isinstance(node, AvroFixed) else b"\x01"
    if logical is not None and logical.name in _LOGICAL:
        return _LOGICAL[logical.name]
    return bytes(node.size) if isinstance(node, AvroFixed) else _PLAIN[node.kind]
