"""What the tasks of `from_registry` and `to_registry` do, and what can be said about columns before the first row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stele.client import ResolvedSchema
from stele.errors import EncodeError, Invalid
from stele.formats.avro.model import AvroRecord, AvroType, AvroUnion
from stele.spark.decode.errors import error_structs, error_type, raise_first_error
from stele.spark.registry import parse_avro

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from stele.spark.decode.records import ReadPlan, WritePlan
    from stele.spark.engines.arrow import ArrowType, Column


class DecodeTask:
    """Decode batches whose first column is the raw one, with its headers behind it where there are some.

    The result has the other columns, the value, and the id and error when wanted.
    """

    def __init__(self, reading: ReadPlan, *, with_headers: bool, with_id: bool, fail_fast: bool) -> None:
        self._reading = reading
        self._with_headers, self._with_id, self._fail_fast = with_headers, with_id, fail_fast

    def added_types(self) -> list[ArrowType]:
        """Types of the columns it adds; faults of the reader's schema show here, on the driver."""
        types = [self._reading.type]
        if self._with_id:
            types.append(self._reading.wire.id_type)
        if not self._fail_fast:
            types.append(error_type(self._reading.wire.id_type))
        return types

    def as_expression(self, df: DataFrame) -> DataFrame | None:
        """Return the same for a whole DataFrame by the engine `jvm`; None where another engine is chosen."""
        from stele.spark.decode.jvm_expressions import ERROR, ID, VALUE, decode_column

        raw, *kept = df.columns
        made = decode_column(df.sparkSession, df[raw], self._reading, fail_fast=self._fail_fast)
        if made is None:
            return None
        parts = [VALUE, *([ID] if self._with_id else []), *([] if self._fail_fast else [ERROR])]
        found = df.select(*kept, made.alias("made")).select(*kept, *(f"made.{part}" for part in parts))
        return found.toDF(*(f"p{place}" for place in range(len(found.columns))))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function Spark maps."""
        import pyarrow as pa

        decoder = self._reading.decoder()
        taken = 2 if self._with_headers else 1
        for batch in batches:
            decoded = decoder.decode(*batch.columns[:taken])
            columns = [*batch.columns[taken:], decoded.values]
            if self._with_id:
                columns.append(decoded.schema_ids)
            if self._fail_fast:
                raise_first_error(decoded)
            else:
                columns.append(error_structs(decoded))
            yield pa.RecordBatch.from_arrays(columns, [f"p{place}" for place in range(len(columns))])


class EncodeTask:
    """Batches in, the columns to encode first; out come the other columns and the framed record, and its headers.

    fields  names of those columns in the record; None when the one column is the whole value.
    """

    def __init__(self, writing: WritePlan, fields: Sequence[str] | None) -> None:
        self._writing = writing
        self._fields = None if fields is None else tuple(fields)

    def check_columns(self, types: Sequence[ArrowType]) -> None:
        """Raise on the driver what every row would meet: `EncodeError` for columns that do not fit the schema."""
        import pyarrow as pa

        from stele.spark.decode.formats import check_columns

        value = self._as_one_column([pa.nulls(0, type_) for type_ in types])
        if _is_avro(self._writing.writer):
            self._check_avro(value)
        else:
            check_columns(self._writing.writer, value, self._writing.message, self._writing.recursion)

    def _check_avro(self, value: Column) -> None:
        from stele.spark.engines.inputs import ColumnInputs
        from stele.spark.engines.resolve import Resolver

        schema = parse_avro(self._writing.writer)
        root = Resolver(schema, for_spark=True, recursion=self._writing.recursion).root
        if self._fields is not None and isinstance(schema.root, AvroRecord):
            there = {child.name for child in root.children}
            missing = [
                f.name
                for f in schema.root.fields
                if f.name in there and f.name not in self._fields and not _is_nullable(f.type)
            ]
            if missing:
                raise EncodeError(f"the schema's field {missing[0]!r} has no column, and may not be null")
        ColumnInputs.from_column(root, value)

    def as_expression(self, df: DataFrame) -> DataFrame | None:
        """Return the same for a whole DataFrame by the engine `jvm`; None where another engine is chosen."""
        from stele.spark.decode.jvm_expressions import encode_columns

        taken = 1 if self._fields is None else len(self._fields)
        made = encode_columns(df, df.columns[:taken], self._writing, self._fields)
        if made is None:
            return None
        found = df.select(*df.columns[taken:], made)
        return found.toDF(*(f"p{place}" for place in range(len(found.columns))))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function Spark maps."""
        import pyarrow as pa

        from stele.spark.decode.records import RecordEncoder

        encoder = RecordEncoder(self._writing)
        taken = 1 if self._fields is None else len(self._fields)
        for batch in batches:
            columns = [*batch.columns[taken:], *encoder.encode(self._as_one_column(batch.columns[:taken]))]
            yield pa.RecordBatch.from_arrays(columns, [f"p{place}" for place in range(len(columns))])

    def _as_one_column(self, columns: Sequence[Column]) -> Column:
        import pyarrow as pa

        if self._fields is None:
            return columns[0]
        return pa.StructArray.from_arrays(columns, names=list(self._fields))


def field_names(
    writer: ResolvedSchema, columns: Sequence[str], message: str = "", recursion: int = 0
) -> Sequence[str] | None:
    """Return the columns as fields of the record, or None where the schema is no record and one column is its value.

    Raises `Invalid` when there are several columns then, `DataError` for a schema of a format without columns.
    """
    if _is_avro(writer):
        root = parse_avro(writer).root
        branches = root.branches if isinstance(root, AvroUnion) else (root,)
        is_record, kind = any(isinstance(branch, AvroRecord) for branch in branches), root.kind
    else:
        import pyarrow as pa

        from stele.spark.decode.formats import type_for

        type_ = type_for(writer, message, recursion)
        is_record, kind = pa.types.is_struct(type_), str(type_)
    if is_record:
        return columns
    if len(columns) != 1:
        raise Invalid(f"the schema is no record but {kind}: name the one column that holds its value")
    return None


def _is_avro(schema: ResolvedSchema) -> bool:
    return schema.schema_type == "AVRO"


def _is_nullable(node: AvroType) -> bool:
    return node.kind == "null" or (
        isinstance(node, AvroUnion) and any(branch.kind == "null" for branch in node.branches)
    )
