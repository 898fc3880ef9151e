"""The decoder of the `python` engine: one record after the other."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pyarrow as pa

from stele.errors import DataError
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import Decoded, Writers
from stele.spark.engines.python.reading import Bad, Cursor, Read, arrow, reader
from stele.spark.engines.reasons import TEXTS, Reason
from stele.spark.engines.resolve import Resolver

_HEADER = struct.Struct(">bi")


class _Row(NamedTuple):
    value: Any
    number: int | None = None
    reason: str | None = None
    place: int | None = None


class PythonDecoder:
    """Decodes batches towards one reader's schema; grows by one closure per writer id met."""

    def __init__(self, resolver: Resolver, writers: Writers) -> None:
        self._resolver = resolver
        self._writers = writers
        self._readers: dict[int, Read | str] = {}

    @property
    def type(self) -> ArrowType:
        """The type of decoded values."""
        return self._resolver.root.type

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `Decoder.decode`."""
        self._forget_unknown()
        rows = [_Row(None) if data is None else self._row(data) for data in frames.to_pylist()]
        return Decoded(
            arrow(self._resolver.root, [row.value for row in rows]),
            pa.array([row.number for row in rows], pa.int32()),
            pa.array([row.reason for row in rows], pa.string()),
            pa.array([row.place for row in rows], pa.int32()),
        )

    def _row(self, data: bytes) -> _Row:
        if len(data) < _HEADER.size or data[0] != 0:
            return _Row(None, None, TEXTS[Reason.NOT_FRAMED], 0)
        _, number = _HEADER.unpack_from(data)
        read = self._reader(number)
        if isinstance(read, str):
            return _Row(None, number, read, 0)
        cursor = Cursor(data, _HEADER.size)
        try:
            value = read(cursor)
            if cursor.at != cursor.end:
                raise Bad(Reason.TRAILING, cursor.at)
        except Bad as bad:
            return _Row(None, number, TEXTS[bad.reason], bad.at - cursor.begin)
        return _Row(value, number)

    def _reader(self, number: int) -> Read | str:
        if number not in self._readers:
            self._readers[number] = self._compile(number)
        return self._readers[number]

    def _compile(self, number: int) -> Read | str:
        try:
            writer = self._writers(number) if number >= 0 else None
            if writer is None:
                return f"unknown schema id {number}"
            return reader(self._resolver.steps(writer))
        except DataError as error:
            return f"schema id {number} cannot be read: {error}"

    def _forget_unknown(self) -> None:
        """An id unknown in the last batch may be registered by now."""
        for number, found in list(self._readers.items()):
            if isinstance(found, str) and found.startswith("unknown"):
                del self._readers[number]
