"""What the tasks of `from_registry` do, and how they say what is wrong with a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stele.errors import DecodeError
from stele.spark.source import Lookup, Pin, RegistryLike, parsed

if TYPE_CHECKING:
    import pyarrow as pa

    from stele.spark.engines.arrow import ArrowType, Column
    from stele.spark.engines.base import Decoded


class Decode:
    """Batches in, the raw column first; out come the other columns, the value, and the id and error when wanted."""

    def __init__(self, pinned: Pin, registry: RegistryLike, engine: str, *, with_id: bool, fail_fast: bool) -> None:
        self._pinned, self._registry, self._engine = pinned, registry, engine
        self._with_id, self._fail_fast = with_id, fail_fast

    def types(self) -> list[ArrowType]:
        """Types of the columns it adds; faults of the reader's schema show here, on the driver."""
        import pyarrow as pa

        from stele.spark.engines.resolve import Resolver

        types = [Resolver(parsed(self._pinned.reader), for_spark=True).root.type]
        if self._with_id:
            types.append(pa.int32())
        if not self._fail_fast:
            types.append(error_type())
        return types

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function Spark maps."""
        import pyarrow as pa

        from stele.spark.engines.base import engine_named

        reader = parsed(self._pinned.reader)
        decoder = engine_named(self._engine).decoder(reader, Lookup(self._pinned, self._registry), for_spark=True)
        for batch in batches:
            decoded = decoder.decode(batch.column(0))
            columns = [*batch.columns[1:], decoded.values]
            if self._with_id:
                columns.append(decoded.schema_ids)
            if self._fail_fast:
                fail_on_bad(decoded)
            else:
                columns.append(errors(decoded))
            yield pa.RecordBatch.from_arrays(columns, [f"p{place}" for place in range(len(columns))])


def error_type() -> ArrowType:
    """What is known about a bad record; offset is the byte of the payload where it showed."""
    import pyarrow as pa

    return pa.struct([("schema_id", pa.int32()), ("offset", pa.int32()), ("reason", pa.string())])


def errors(decoded: Decoded) -> Column:
    """The error struct of each record, null for good ones."""
    import pyarrow as pa

    parts = [decoded.schema_ids, decoded.places, decoded.reasons]
    return pa.StructArray.from_arrays(parts, fields=list(error_type()), mask=decoded.reasons.is_null())


def fail_on_bad(decoded: Decoded) -> None:
    """Raise `DecodeError` for the first bad record of a batch."""
    if decoded.reasons.null_count == len(decoded.reasons):
        return
    row = decoded.reasons.is_valid().index(True).as_py()
    number, reason = decoded.schema_ids[row].as_py(), decoded.reasons[row].as_py()
    if number is None or f"schema id {number}" in reason:
        raise DecodeError(reason)
    raise DecodeError(f"{reason} (schema id {number})", offset=decoded.places[row].as_py())
