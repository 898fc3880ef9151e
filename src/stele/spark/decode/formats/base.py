"""The interface of a schema language whose data become columns, and its use record by record.

Languages that have no engine of their own are decoded by `RowDecoder` and encoded by `RowEncoder`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stele.client.serdes.schemas import ParsedSchema, parse_schema
from stele.client.snapshot import ResolvedSchema
from stele.errors import DataError, DecodeError, EncodeError, Invalid
from stele.spark.decode.formats.plans import ColumnPlan, ListPlan, MapPlan, ScalarPlan, Struct, build_column
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import Decoded, ErrorColumns, no_errors
from stele.spark.engines.error_codes import ErrorCode, RecordError
from stele.wire.confluent import id_prefix

if TYPE_CHECKING:
    from stele.spark.decode.formats.protobuf_scan import Scanner

Read: TypeAlias = Callable[[bytes], Any]
"""Returns the value of the bytes after the id in a frame. Raises `DecodeError`, `FrameError`."""
Write: TypeAlias = Callable[[Any], bytes]
"""Returns the bytes after the id in a frame for a value. Raises `EncodeError`."""


Accepts: TypeAlias = Callable[[int, tuple[int, ...]], bool]
"""Returns whether records with a schema id and message indexes have the type that is read."""


class DatumReaders(NamedTuple):
    """Two functions that read data: the usual one, and one for data in which `ColumnFormat.careful` matches.

    accepts  whether data that begin with these message indexes have the type that is read; Protobuf only
    """

    usual: Read
    careful: Read
    accepts: Callable[[tuple[int, ...]], bool] = bool


class ColumnFormat(Protocol):
    """Converts values of one schema language to columns and back.

    message names one of the types of a schema that has several (Protobuf, Thrift); '' is the usual one.
    """

    @property
    def careful(self) -> str:
        """Regular expression that matches data for the careful reader; '' for a language with one reader only."""
        ...

    def plan(self, schema: ParsedSchema, message: str, recursion: int) -> ColumnPlan:
        """Return the columns for data of a schema. Raises `Invalid` when it has no table shape.

        recursion is how many times a type that contains itself is nested in itself in the columns. Deeper values are
        bad; with 0 they are JSON text where the type repeats.
        """
        ...

    def make_scanner(self, reader: ParsedSchema, message: str, plan: ColumnPlan, accepts: Accepts) -> Scanner | None:
        """Return a scanner of whole batches, or None if there is none for the reader's schema and its plan."""
        ...

    def make_readers(self, writer: ParsedSchema, reader: ParsedSchema, message: str) -> DatumReaders:
        """Return functions that read data of the writer's schema as values for the plan of the reader's schema."""
        ...

    def make_writer(self, schema: ParsedSchema, message: str) -> Write:
        """Return a function that writes data in the form of the schema's plan."""
        ...


def require_parsed(schema: ResolvedSchema, schema_type: str) -> ParsedSchema:
    """Return the parsed schema. Raises `DataError` when it has another type or does not parse."""
    if schema.schema_type.upper() != schema_type.upper():
        raise DataError(f"its format is {schema.schema_type}, {schema_type} is needed")
    try:
        return parse_schema(schema)
    except Invalid as error:
        raise DataError(f"the text is not a valid {schema_type} schema: {error}") from error


def fit_column(plan: ColumnPlan, values: Column, path: str = "") -> Column:
    """Return a column in the form that a schema needs; missing fields are null. Raises `EncodeError` if this fails."""
    if values.type == plan.type:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), plan.type)
    match plan:
        case Struct() if pa.types.is_struct(values.type):
            return _fit_struct(plan, values, path)
        case Struct() if plan.whole is not None and plan.whole(values.type):
            return values
        case ListPlan() if pa.types.is_list(values.type):
            items = fit_column(plan.item, values.values, f"{path}[]")
            return pa.ListArray.from_arrays(_list_offsets(values), items)
        case MapPlan() if pa.types.is_map(values.type):
            keys = fit_column(plan.key, values.keys, f"{path}{{key}}")
            return pa.MapArray.from_arrays(
                _list_offsets(values), keys, fit_column(plan.item, values.items, f"{path}{{}}")
            )
        case ScalarPlan() if not pa.types.is_nested(values.type):
            return _fit_leaf(plan, values, path)
    raise EncodeError(f"{path or 'the value'} is {values.type}, the schema wants {plan.type}")


def _fit_struct(plan: Struct, values: Column, path: str) -> Column:
    # flatten, not field: Arrow can keep values below a null struct, which must not count as present
    columns = dict(zip((field.name for field in values.type), values.flatten(), strict=True))
    unknown = sorted(columns.keys() - {part.name for part in plan.parts})
    if unknown:
        raise EncodeError(f"{_join_path(path, unknown[0])} is not in the schema")
    there = [part for part in plan.parts if part.name in columns]
    children = [fit_column(part.plan, columns[part.name], _join_path(path, part.name)) for part in there]
    names = [part.name for part in there]
    return pa.StructArray.from_arrays(children, names=names, mask=values.is_null())


def _fit_leaf(plan: ScalarPlan, values: Column, path: str) -> Column:
    taken = plan.take(values) if plan.take is not None else None
    if taken is not None:
        return taken
    try:
        return values.cast(plan.type)
    except pa.ArrowException as error:
        raise EncodeError(f"{path or 'the value'} ({values.type}) does not fit {plan.type}: {error}") from error


def _list_offsets(column: Column) -> Column:
    """Return the offsets of a list or map, where a null offset marks a null list."""
    if not column.null_count:
        return column.offsets
    mask = pa.concat_arrays([column.is_null(), pa.array([False])])
    return pc.if_else(mask, pa.scalar(None, column.offsets.type), column.offsets)


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


Schemas: TypeAlias = Callable[[int], "ResolvedSchema | None"]
"""Returns the schema of an id; see `engines.base.FindWriter` for what it raises."""
_HEADER = 5
_PIECE = 2000


def iterate_frames(frames: Column, errors: ErrorColumns) -> Iterator[tuple[int, int, bytes]]:
    """Yield (row, schema id, payload) of each record. Add an error for those without a frame, and skip nulls."""
    for row, data in enumerate(frames.to_pylist()):
        if data is None:
            continue
        if len(data) < _HEADER or data[0] != 0:
            errors.add(row, ErrorCode.NOT_FRAMED, offset=0)
            continue
        yield row, int.from_bytes(data[1:_HEADER], "big", signed=True), data[_HEADER:]


class RowDecoder:
    """Decodes batches towards one reader's schema, with cached readers per writer id.

    scanning   whether whole batches can be scanned at once, if the language supports it
    recursion  as in `ColumnFormat.plan`
    """

    def __init__(
        self,
        language: ColumnFormat,
        reader: ParsedSchema,
        schemas: Schemas,
        message: str = "",
        *,
        scanning: bool = True,
        recursion: int = 0,
    ) -> None:
        self._language, self._reader, self._message = language, reader, message
        self._schemas = schemas
        self._plan = language.plan(reader, message, recursion)
        self._reads: dict[int, DatumReaders | RecordError] = {}
        self._scanner = language.make_scanner(reader, message, self._plan, self._accepts) if scanning else None

    @property
    def type(self) -> ArrowType:
        """The type of decoded values."""
        return self._plan.type

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `engines.base.Decoder.decode`."""
        self._reads = {number: read for number, read in self._reads.items() if not isinstance(read, RecordError)}
        scanned = None if self._scanner is None else self._scanner.scan(frames)
        if scanned is None:
            return self._decode_rows(frames)
        n = len(frames)
        good = Decoded(scanned.values, scanned.numbers, *no_errors(n))
        if not scanned.left:
            return good
        rest = self._decode_rows(frames.take(pa.array(scanned.left, pa.int64())))
        source = np.arange(n)
        source[scanned.left] = np.arange(n, n + len(scanned.left))
        return replace(Decoded.concat([good, rest]).take(pa.array(source)), schema_ids=scanned.numbers)

    def _accepts(self, number: int, indexes: tuple[int, ...]) -> bool:
        """Return whether records with this id and these message indexes have the type that is read."""
        read = self._reads.get(number) or self._prepare_reader(number)
        return not isinstance(read, RecordError) and read.accepts(indexes)

    def _decode_rows(self, frames: Column) -> Decoded:
        """Decode one record after the other, in pieces whose values fit the processor's cache."""
        pieces = [self._decode_piece(frames.slice(at, _PIECE)) for at in range(0, len(frames), _PIECE)]
        return Decoded.concat(pieces) if pieces else self._decode_piece(frames)

    def _decode_piece(self, frames: Column) -> Decoded:
        n = len(frames)
        values: list[Any] = [None] * n
        numbers: list[int | None] = [None] * n
        errors = ErrorColumns(n)
        careful = self._careful_rows(frames)
        with _without_garbage_collection():
            for row, number, payload in iterate_frames(frames, errors):
                numbers[row] = number
                read = self._reads.get(number) or self._prepare_reader(number)
                try:
                    if isinstance(read, RecordError):
                        errors.add_error(row, read)
                    else:
                        values[row] = (read.careful if row in careful else read.usual)(payload)
                except DataError as error:
                    errors.add_error(row, as_record_error(error))
            column, misfits = build_column(self._plan, values)
        for row, misfit in misfits.items():
            errors.add_error(row, misfit)
        return Decoded(column, pa.array(numbers, pa.int32()), *errors.columns())

    def _careful_rows(self, frames: Column) -> frozenset[int]:
        """Return the rows for the careful reader."""
        if not self._language.careful:
            return frozenset()
        matches: Column = pc.match_substring_regex(frames, self._language.careful)
        return frozenset(pc.indices_nonzero(matches.fill_null(False)).to_pylist())

    def _prepare_reader(self, number: int) -> DatumReaders | RecordError:
        try:
            writer = self._schemas(number) if number >= 0 else None
            if writer is None:
                readers: DatumReaders | RecordError = RecordError(ErrorCode.UNKNOWN_SCHEMA_ID, offset=0)
            else:
                ready = require_parsed(writer, self._reader.schema.schema_type)
                readers = self._language.make_readers(ready, self._reader, self._message)
        except DataError as error:
            readers = RecordError(ErrorCode.UNUSABLE_SCHEMA, str(error), 0)
        self._reads[number] = readers
        return readers


def as_record_error(error: DataError) -> RecordError:
    """Return the error of a format's codec as the error of a record."""
    if isinstance(error, RecordError):
        return error
    if isinstance(error, DecodeError):
        return RecordError(ErrorCode.INVALID_DATA, error.why, -1 if error.offset is None else error.offset)
    return RecordError(ErrorCode.INVALID_DATA, str(error))


class RowEncoder:
    """Encodes rows under one schema."""

    def __init__(self, plan: ColumnPlan, write: Write, number: int) -> None:
        self._plan, self._write = plan, write
        self._prefix = id_prefix(number)

    def encode(self, values: Column) -> Column:
        """Return framed records; see `engines.base.Encoder.encode`."""
        fitted = fit_column(self._plan, values)
        frames: list[bytes | None] = []
        for row, value in enumerate(fitted.to_pylist()):
            if value is None:
                frames.append(None)
                continue
            try:
                frames.append(self._prefix + self._write(self._plan.datum(value)))
            except EncodeError as error:
                raise EncodeError(f"row {row}, {error}") from error
        return pa.array(frames, pa.binary())


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Turn off garbage collection.

    A batch has many values and no cycles, and the search for cycles would take most of the time.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
