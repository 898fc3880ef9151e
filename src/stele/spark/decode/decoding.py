"""What the tasks of `from_registry` do, and how they say what is wrong with a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stele.errors import DecodeError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from stele.spark.decode.records import ReadPlan
    from stele.spark.engines.arrow import ArrowType, Column
    from stele.spark.engines.base import Decoded


class DecodeTask:
    """Batches in, the raw column first, its headers behind it where there are some; out come the other columns, the
    value, and the id and error when wanted."""

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
        """The same for a whole DataFrame by the engine `jvm`; None where another engine is chosen."""
        from stele.spark.decode.jvm_expressions import ERROR, ID, VALUE, decoded

        raw, *kept = df.columns
        made = decoded(df.sparkSession, df[raw], self._reading, fail_fast=self._fail_fast)
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
                fail_on_bad(decoded)
            else:
                columns.append(error_structs(decoded))
            yield pa.RecordBatch.from_arrays(columns, [f"p{place}" for place in range(len(columns))])


def error_type(id_type: ArrowType = None) -> ArrowType:
    """What is known about a bad record; offset is the byte of the payload where it showed.

    id_type is that of the wire's ids, a 32-bit integer unless said otherwise.
    """
    import pyarrow as pa

    return pa.struct([("schema_id", id_type or pa.int32()), ("offset", pa.int32()), ("reason", pa.string())])


def error_structs(decoded: Decoded) -> Column:
    """The error struct of each record, null for good ones."""
    import pyarrow as pa

    parts = [decoded.schema_ids, decoded.places, decoded.reasons]
    return pa.StructArray.from_arrays(
        parts, fields=list(error_type(decoded.schema_ids.type)), mask=decoded.reasons.is_null()
    )


def fail_on_bad(decoded: Decoded) -> None:
    """Raise `DecodeError` for the first bad record of a batch."""
    if decoded.reasons.null_count == len(decoded.reasons):
        return
    row = decoded.reasons.is_valid().index(True).as_py()
    number, reason = decoded.schema_ids[row].as_py(), decoded.reasons[row].as_py()
    said = f"id {number}" if isinstance(number, int) else str(number)
    if number is None or said in reason:
        raise DecodeError(reason)
    raise DecodeError(f"{reason} (schema id {number})", offset=decoded.places[row].as_py())
