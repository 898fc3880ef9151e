"""Records of whatever schema, each as the name of its type and its value as JSON text.

For topics whose types nobody lists beforehand: the columns do not depend on a schema. Bytes are base64, decimals and
what JSON has no other word for are text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any, Final, TypeAlias

import orjson
import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.message import DecodeError as ParserError

from stele.client.serdes.schemas import Ready, ready
from stele.errors import DataError, DecodeError, Invalid, InvalidRequest
from stele.formats.protobuf import message_by_indexes
from stele.spark.decode.formats.rows import Schemas
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import Decoded
from stele.spark.engines.reasons import TEXTS, Reason
from stele.wire.confluent import decode_indexes

TYPE: Final[ArrowType] = pa.struct([("type", pa.string()), ("json", pa.string())])
"""What a record becomes: the full name of its type ('' where the schema gives none) and its value."""

_Read: TypeAlias = Callable[[bytes], tuple[str, str]]
_HEADER: Final = 5


class GenericDecoder:
    """Decodes records by their own schemas; grows by one reading per id met."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._reads: dict[int, _Read | str] = {}

    @property
    def type(self) -> ArrowType:
        """See `TYPE`."""
        return TYPE

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `engines.base.Decoder.decode`."""
        self._reads = {number: read for number, read in self._reads.items() if not isinstance(read, str)}
        types: list[str | None] = []
        texts: list[str | None] = []
        numbers: list[int | None] = []
        reasons: list[str | None] = []
        places: list[int | None] = []
        for data in frames.to_pylist():
            found, number, why, place = (None, None, None, None) if data is None else self._row(data)
            types.append(found and found[0])
            texts.append(found and found[1])
            numbers.append(number)
            reasons.append(why)
            places.append(place)
        absent = pa.array([text is None for text in texts])
        parts = [pa.array(types, pa.string()), pa.array(texts, pa.string())]
        values = pa.StructArray.from_arrays(parts, fields=list(TYPE), mask=absent)
        return Decoded(
            values, pa.array(numbers, pa.int32()), pa.array(reasons, pa.string()), pa.array(places, pa.int32())
        )

    def _row(self, data: bytes) -> tuple[tuple[str, str] | None, int | None, str | None, int | None]:
        if len(data) < _HEADER or data[0] != 0:
            return None, None, TEXTS[Reason.NOT_FRAMED], 0
        number = int.from_bytes(data[1:_HEADER], "big", signed=True)
        read = self._reads.get(number)
        if read is None:
            read = self._reads[number] = self._open(number)
        if isinstance(read, str):
            return None, number, read, 0
        try:
            return read(data[_HEADER:]), number, None, None
        except DecodeError as error:
            return None, number, error.why, error.offset
        except (DataError, InvalidRequest) as error:
            return None, number, str(error), None

    def _open(self, number: int) -> _Read | str:
        try:
            schema = self._schemas(number) if number >= 0 else None
            return f"unknown schema id {number}" if schema is None else _reading(ready(schema))
        except (DataError, Invalid) as error:
            return f"schema id {number} cannot be read: {error}"


def _reading(schema: Ready) -> _Read:
    if schema.format.name == "protobuf":
        return _protobuf(schema)
    codec, name = schema.format.codec(schema.parsed), str(schema.parsed.type_name)
    return lambda data: (name, dumped(codec.decode(data)))


def _protobuf(schema: Ready) -> _Read:
    def read(data: bytes) -> tuple[str, str]:
        indexes, start = decode_indexes(data)
        name = message_by_indexes(schema.parsed, indexes)
        try:
            message = schema.parsed.message_class(name).FromString(data[start:])
            return name, json_format.MessageToJson(message, indent=None, preserving_proto_field_name=True)
        except (ParserError, json_format.SerializeToJsonError, TypeError, ValueError) as error:
            raise DecodeError(f"no message {name}: {error}") from error

    return read


def dumped(value: Any) -> str:
    """A decoded value as JSON text. Raises `DecodeError` for what JSON cannot hold, such as half a surrogate pair."""
    try:
        return orjson.dumps(
            value, default=_other, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
        ).decode()
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise DecodeError(f"the value cannot be written as JSON: {error}") from error


def _other(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, tuple):
        return list(value)
    return str(value)
