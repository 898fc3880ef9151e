"""What the tasks of `from_registry` do, and how they say what is wrong with a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stele.spark.decode.errors import error_structs, error_type, raise_first_error

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from stele.spark.decode.records import ReadPlan
    from stele.spark.engines.arrow import ArrowType


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
                raise_first_error(decoded)
            else:
                columns.append(error_structs(decoded))
            yield pa.RecordBatch.from_arrays(columns, [f"p{place}" for place in range(len(columns))])
