"""Records of any schema, each as the name of its type and its value as JSON text.

This is for topics whose types are not known in advance: the columns do not depend on a schema. Bytes are base64.
Decimals, and other values that JSON cannot express, are text.
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

from stele.client.serdes.schemas import ParsedSchema, parse_schema
from stele.errors import DataError, DecodeError, Invalid, InvalidRequest
from stele.formats.protobuf import message_by_indexes
from stele.spark.decode.formats.base import Schemas, as_record_error, iterate_frames
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import Decoded, ErrorColumns
from stele.spark.engines.error_codes import ErrorCode, RecordError
from stele.wire.confluent import decode_indexes

TYPE: Final[ArrowType] = pa.struct([("type", pa.string()), ("json", pa.string())])
"""Type of a decoded record: the full name of its type ('' if the schema has no name) and its value."""

_Read: TypeAlias = Callable[[bytes], tuple[str, str]]


class GenericDecoder:
    """Decodes records by their own schemas, with a cached reader per id."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._reads: dict[int, _Read | RecordError] = {}

    @property
    def type(self) -> ArrowType:
        """The type of decoded values, `TYPE`."""
        return TYPE

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `engines.base.Decoder.decode`."""
        self._reads = {number: read for number, read in self._reads.items() if not isinstance(read, RecordError)}
        n = len(frames)
        types: list[str | None] = [None] * n
        texts: list[str | None] = [None] * n
        numbers: list[int | None] = [None] * n
        errors = ErrorColumns(n)
        for row, number, payload in iterate_frames(frames, errors):
            numbers[row] = number
            read = self._reads.get(number)
            if read is None:
                read = self._reads[number] = self._prepare_reader(number)
            try:
                if isinstance(read, RecordError):
                    errors.add_error(row, read)
                else:
                    types[row], texts[row] = read(payload)
            except DataError as error:
                errors.add_error(row, as_record_error(error))
            except InvalidRequest as error:
                errors.add(row, ErrorCode.INVALID_DATA, str(error))
        absent = pa.array([text is None for text in texts])
        parts = [pa.array(types, pa.string()), pa.array(texts, pa.string())]
        values = pa.StructArray.from_arrays(parts, fields=list(TYPE), mask=absent)
        return Decoded(values, pa.array(numbers, pa.int32()), *errors.columns())

    def _prepare_reader(self, number: int) -> _Read | RecordError:
        try:
            schema = self._schemas(number) if number >= 0 else None
            return (
                RecordError(ErrorCode.UNKNOWN_SCHEMA_ID, offset=0)
                if schema is None
                else _build_reader(parse_schema(schema))
            )
        except (DataError, Invalid) as error:
            return RecordError(ErrorCode.UNUSABLE_SCHEMA, str(error), 0)


def _build_reader(schema: ParsedSchema) -> _Read:
    if schema.format.name == "protobuf":
        return _build_protobuf_reader(schema)
    codec, name = schema.format.codec(schema.parsed), str(schema.parsed.type_name)
    return lambda data: (name, dump_json_text(codec.decode(data)))


def _build_protobuf_reader(schema: ParsedSchema) -> _Read:
    def read(data: bytes) -> tuple[str, str]:
        indexes, start = decode_indexes(data)
        name = message_by_indexes(schema.parsed, indexes)
        try:
            message = schema.parsed.message_class(name).FromString(data[start:])
            return name, json_format.MessageToJson(message, indent=None, preserving_proto_field_name=True)
        except (ParserError, json_format.SerializeToJsonError, TypeError, ValueError) as error:
            raise DecodeError(f"no message {name}: {error}") from error

    return read


def dump_json_text(value: Any) -> str:
    """Return a decoded value as JSON text.

    Raises `DecodeError` for what JSON cannot hold, such as half a surrogate pair.
    """
    try:
        return orjson.dumps(
            value, default=_to_json_value, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
        ).decode()
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise DecodeError(f"the value cannot be written as JSON: {error}") from error


def _to_json_value(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, tuple):
        return list(value)
    return str(value)
