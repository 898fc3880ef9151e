"""The interface of engines for decoding and encoding, and the decoded batch that they return.

A batch has values, the ids in the frames, and for each bad record a code, a detail and an offset. Users see those as
the error struct of `from_registry`, or as the error that fails a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stele.errors import DecodeError
from stele.formats.avro.model import AvroSchema
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.error_codes import (
    CODE_NAMES,
    ErrorCode,
    RecordError,
    describe_error,
    describe_errors,
    names_schema_id,
)

if TYPE_CHECKING:
    from stele.spark.engines.arrow import ArrowType, Column


@dataclass(frozen=True, slots=True)
class Decoded:
    """One decoded batch. All arrays are as long as the input and in its order.

    Attributes:
        values: Under the reader's type; null where the record was null or bad.
        schema_ids: int32 or, after `RecordDecoder`, the wire's own type; null where there was no frame.
        codes: uint8, never null: the `ErrorCode` of each record, 0 where it was good, or null itself.
        details: string: the value that a code's sentence needs; null with most codes.
        offsets: int32, never null: byte of the payload (after the frame) at which the bad value begins, -1 where it is
            not known or the record was good.
        id_label: The wire's word for an id in messages.
    """

    values: Column
    schema_ids: Column
    codes: Column
    details: Column
    offsets: Column
    id_label: str = "schema id"

    def bad_rows(self) -> Column:
        """Return the row numbers of the bad records, in order."""
        return pc.indices_nonzero(self.codes)

    def is_bad(self) -> Column:
        """Return a boolean for each record: whether it is bad."""
        return pc.not_equal(self.codes, pa.scalar(0, pa.uint8()))

    def take(self, rows: Column) -> Decoded:
        """Return the records of these row numbers; a null number is a good null record without an id."""
        taken = {each: getattr(self, each).take(rows) for each in _ARRAYS}
        if rows.null_count:
            taken["codes"] = pc.fill_null(taken["codes"], pa.scalar(0, pa.uint8()))
            taken["offsets"] = pc.fill_null(taken["offsets"], pa.scalar(-1, pa.int32()))
        return replace(self, **taken)

    def with_errors(self, code: ErrorCode, details: Mapping[int, str | None]) -> Decoded:
        """Return the batch with more bad records, at unknown offsets.

        Args:
            code: The error of these records.
            details: The detail of each by row number; None if the sentence of the code needs none.
        """
        if not details:
            return self
        codes, offsets = np.array(self.codes), np.array(self.offsets)
        codes[list(details)], offsets[list(details)] = code, -1
        texts: Column = pa.array([details.get(row) for row in range(len(codes))], pa.string())
        return replace(
            self,
            codes=pa.array(codes, pa.uint8()),
            details=pc.coalesce(texts, self.details),
            offsets=pa.array(offsets, pa.int32()),
        )

    @classmethod
    def concat(cls, pieces: Sequence[Decoded]) -> Decoded:
        """Return several batches as one."""
        if len(pieces) == 1:
            return pieces[0]
        joined = {each: pa.concat_arrays([getattr(piece, each) for piece in pieces]) for each in _ARRAYS}
        return replace(pieces[0], **joined)


_ARRAYS = tuple(each.name for each in fields(Decoded) if each.name != "id_label")


class ErrorColumns:
    """Collects the errors of a batch row by row, for decoders that go through the rows in Python."""

    def __init__(self, size: int) -> None:
        self._codes = np.zeros(size, np.uint8)
        self._offsets = np.full(size, -1, np.int32)
        self._details: dict[int, str] = {}

    def add(self, row: int, code: ErrorCode, detail: str | None = None, offset: int | None = None) -> None:
        """Mark a record as bad, unless it is already."""
        if self._codes[row]:
            return
        self._codes[row] = code
        self._offsets[row] = -1 if offset is None else offset
        if detail is not None:
            self._details[row] = detail

    def add_error(self, row: int, error: RecordError) -> None:
        """Mark a record as bad, unless it is already."""
        self.add(row, error.code, error.detail, error.offset)

    def columns(self) -> tuple[Column, Column, Column]:
        """Return codes, details and offsets in the form that `Decoded` has."""
        return error_columns(self._codes, self._details, self._offsets)


def error_columns(codes: np.ndarray, details: dict[int, str], offsets: np.ndarray) -> tuple[Column, Column, Column]:
    """Return codes, details by row and offsets as the arrays of `Decoded`."""
    n = len(codes)
    texts = pa.array([details.get(row) for row in range(n)], pa.string()) if details else pa.nulls(n, pa.string())
    return pa.array(codes, pa.uint8()), texts, pa.array(offsets, pa.int32())


def no_errors(size: int) -> tuple[Column, Column, Column]:
    """Return codes, details and offsets of `size` good records."""
    return error_columns(np.zeros(size, np.uint8), {}, np.full(size, -1, np.int32))


FindWriter: TypeAlias = Callable[[int], "AvroSchema | None"]
"""Returns the schema of an id, or None when the registry does not know the id.

A `DataError` means that the id is not usable (another format, text that does not parse), and becomes the reason of its
records. Any other error fails the batch, as an outage must.
"""


class Decoder(Protocol):
    """Decodes batches of one column.

    It keeps what it compiled per writer. It must not be used by several threads at once.
    """

    @property
    def type(self) -> ArrowType:
        """The type of `Decoded.values`: a struct for a record schema."""
        ...

    def decode(self, frames: Column) -> Decoded:
        """Decode Confluent-framed records. Bad records are reported, not raised; nulls stay null."""
        ...


class Encoder(Protocol):
    """Encodes rows under one schema."""

    def encode(self, values: Column) -> Column:
        """Return framed records, one per row. A null row stays null (a tombstone), unless the schema allows null.

        Raises `EncodeError` that names row and field.
        """
        ...


class Engine(Protocol):
    """One way to decode and encode."""

    @property
    def name(self) -> str:
        """Name by which `get_engine` finds it."""
        ...

    def decoder(
        self, reader: AvroSchema, writers: FindWriter, *, for_spark: bool = False, recursion: int = 0
    ) -> Decoder:
        """Return a decoder towards the reader's schema; with `for_spark` its types are those that Spark can hold.

        recursion is how many times a type that contains itself is nested in itself in the columns; deeper records are
        bad.
        Raises `Invalid` when the reader's schema has no table shape (a type that contains itself, and no recursion).
        """
        ...

    def encoder(self, schema: AvroSchema, schema_id: int, *, for_spark: bool = False, recursion: int = 0) -> Encoder:
        """Return an encoder whose frames carry the id.

        recursion is as in `decoder`; deeper values are written as null or empty.

        Raises `Invalid` when the schema has no table shape.
        """
        ...


def error_type(id_type: ArrowType = None) -> ArrowType:
    """Return the type of the error struct: (schema_id, offset, code, reason).

    Args:
        id_type: Type of the wire's ids, by default a 32-bit integer.
    """
    import pyarrow as pa

    kinds = [("schema_id", id_type or pa.int32()), ("offset", pa.int32()), ("code", pa.string())]
    return pa.struct([*kinds, ("reason", pa.string())])


def error_structs(decoded: Decoded) -> Column:
    """Return the error struct of each record, null for good ones; `offset` is null where it is unknown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bad = decoded.is_bad()
    offsets = pc.if_else(pc.less(decoded.offsets, pa.scalar(0, pa.int32())), None, decoded.offsets)
    names = pa.array(CODE_NAMES, pa.string()).take(decoded.codes.cast(pa.int32()))
    parts = [decoded.schema_ids, offsets, names, describe_errors(decoded)]
    return pa.StructArray.from_arrays(parts, fields=list(error_type(decoded.schema_ids.type)), mask=pc.invert(bad))


def raise_first_error(decoded: Decoded) -> None:
    """Raise `DecodeError` for the first bad record of a batch, if there is one."""
    bad = decoded.bad_rows()
    if not len(bad):
        return
    row = bad[0].as_py()
    code, offset = ErrorCode(decoded.codes[row].as_py()), decoded.offsets[row].as_py()
    schema_id, detail = decoded.schema_ids[row].as_py(), decoded.details[row].as_py()
    reason = describe_error(code, decoded.id_label, schema_id, detail)
    raise decode_error(code, reason, schema_id, None if offset < 0 else offset)


def decode_error(code: ErrorCode, reason: str, schema_id: object, offset: int | None) -> DecodeError:
    """Return the exception for a bad record. It names the record's id and offset unless the reason does."""
    if schema_id is None or names_schema_id(code):
        return DecodeError(reason)
    return DecodeError(f"{reason} (schema id {schema_id})", offset=offset)
