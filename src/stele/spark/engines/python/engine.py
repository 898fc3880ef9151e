"""The `python` engine: one record after the other, for lack of a compiler and as the second opinion in tests."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from stele.errors import DataError
from stele.formats.avro.model import AvroSchema
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import Decoded, Decoder, Encoder, ErrorColumns, FindWriter
from stele.spark.engines.error_codes import ErrorCode, RecordError
from stele.spark.engines.python.reading import Cursor, Read, reader, to_arrow
from stele.spark.engines.python.writing import PythonEncoder
from stele.spark.engines.resolve import Resolver
from stele.wire.confluent import id_prefix

_HEADER = struct.Struct(">bi")


class PythonDecoder:
    """Decodes batches towards one reader's schema; grows by one closure per writer id met."""

    def __init__(self, resolver: Resolver, writers: FindWriter) -> None:
        self._resolver = resolver
        self._writers = writers
        self._readers: dict[int, Read | RecordError] = {}

    @property
    def type(self) -> ArrowType:
        """The type of decoded values."""
        return self._resolver.root.type

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `Decoder.decode`."""
        self._forget_unknown()
        values: list[Any] = [None] * len(frames)
        numbers: list[int | None] = [None] * len(frames)
        errors = ErrorColumns(len(frames))
        for row, data in enumerate(frames.to_pylist()):
            if data is None:
                continue
            if len(data) < _HEADER.size or data[0] != 0:
                errors.add(row, ErrorCode.NOT_FRAMED, offset=0)
                continue
            _, number = _HEADER.unpack_from(data)
            numbers[row] = number
            read = self._reader(number)
            try:
                if isinstance(read, RecordError):
                    errors.add_error(row, read)
                else:
                    values[row] = _read_whole(read, Cursor(data, _HEADER.size))
            except RecordError as error:
                errors.add_error(row, error)
        column = to_arrow(self._resolver.root, values)
        return Decoded(column, pa.array(numbers, pa.int32()), *errors.columns())

    def _reader(self, number: int) -> Read | RecordError:
        if number not in self._readers:
            self._readers[number] = self._compile(number)
        return self._readers[number]

    def _compile(self, number: int) -> Read | RecordError:
        try:
            writer = self._writers(number) if number >= 0 else None
            if writer is None:
                return RecordError(ErrorCode.UNKNOWN_SCHEMA_ID, offset=0)
            return reader(self._resolver.resolve_writer(writer))
        except DataError as error:
            return RecordError(ErrorCode.UNUSABLE_SCHEMA, str(error), 0)

    def _forget_unknown(self) -> None:
        """An id unknown in the last batch may be registered by now."""
        for number, found in list(self._readers.items()):
            if isinstance(found, RecordError) and found.code is ErrorCode.UNKNOWN_SCHEMA_ID:
                del self._readers[number]


def _read_whole(read: Read, cursor: Cursor) -> Any:
    """Return a value that is all of a record."""
    value = read(cursor)
    if cursor.at != cursor.end:
        raise cursor.error(ErrorCode.TRAILING, cursor.at)
    return value


class PythonEngine:
    """Decodes and encodes value by value; needs pyarrow only."""

    name = "python"

    def decoder(
        self, reader: AvroSchema, writers: FindWriter, *, for_spark: bool = False, recursion: int = 0
    ) -> Decoder:
        """See `Engine.decoder`."""
        return PythonDecoder(Resolver(reader, for_spark=for_spark, recursion=recursion), writers)

    def encoder(self, schema: AvroSchema, schema_id: int, *, for_spark: bool = False, recursion: int = 0) -> Encoder:
        """See `Engine.encoder`."""
        resolver = Resolver(schema, for_spark=for_spark, recursion=recursion)
        return PythonEncoder(resolver.root, resolver.resolve_writer(schema), id_prefix(schema_id))
