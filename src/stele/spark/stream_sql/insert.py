"""`INSERT INTO` a stream: match columns with fields, cast them, encode records, and write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from stele.errors import Invalid
from stele.spark.functions import to_registry, to_spark_types
from stele.spark.stream_sql.projection import can_cast_losslessly
from stele.spark.stream_sql.stream import RegisteredStream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_RECORD: Final = "$raw"
_HEADERS: Final = "$headers"


def insert_rows(spark: SparkSession, stream: RegisteredStream, df: DataFrame, columns: Sequence[str] = ()) -> None:
    """Append the rows of a batch DataFrame to a stream, encoded with the newest version.

    Raises what `to_registry` raises, and:

    Args:
        spark: The session.
        stream: The stream to write to.
        df: The rows.
        columns: The fields that the columns of the DataFrame fill, in order; empty means all fields of the schema in
            their order. `_x` is the column x of the source beside the record, unless the schema has a field `_x`.

    Raises:
        Invalid: If a column does not exist, columns are missing, or the stream cannot be written.
        EncodeError: If a type does not fit its field.
    """
    how = stream.options
    if len(how.subjects) != 1 or how.reader != "latest":
        raise Invalid("INSERT needs a stream of one subject, read by its newest version")
    if df.isStreaming:
        raise Invalid("INSERT writes batches: use to_registry and writeStream for a streaming query")
    fields = _newest_columns(stream)
    beside, complete = how.connector.writable_columns(spark)
    targets = _match_targets(
        columns or list(fields), len(df.columns), fields, [f"_{name}" for name in beside], stream.name
    )
    if complete and (missing := [name for name in beside if f"_{name}" not in targets]):
        raise Invalid(f"{how.connector} have further columns: name _{', _'.join(missing)} in the list, too")
    written = to_registry(
        _cast_columns(df, targets, fields),
        subject=how.subjects[0],
        registry=stream.registry,
        columns=[name for name in targets if name in fields],
        keep=[name for name in targets if name not in fields],
        into=_RECORD,
        headers_into=_HEADERS,
        wire=how.wire,
        message=how.message,
        rules=how.rules,
        topic=how.topic,
        engine=how.engine,
        patience=how.patience,
        recursion=how.recursion,
    )
    names = {_RECORD: how.connector.column, _HEADERS: how.connector.headers or "headers"}
    how.connector.write(written.toDF(*(names.get(name, name[1:]) for name in written.columns)))


def _newest_columns(stream: RegisteredStream) -> dict[str, DataType]:
    """Return the columns of the newest version with their types."""
    from pyspark.sql.types import StructType

    from stele.spark.decode.planning import plan_read

    how = stream.options
    plan = plan_read(
        stream.registry,
        how.subjects[0],
        message=how.message,
        wire=how.wire,
        rules="ignore",
        patience=how.patience,
        recursion=how.recursion,
    )
    kind = to_spark_types([plan.type])[0]
    return {field.name: field.dataType for field in kind} if isinstance(kind, StructType) else {"value": kind}


def _match_targets(
    columns: Sequence[str], given: int, fields: dict[str, DataType], beside: Sequence[str], name: str
) -> list[str]:
    """Return the field, or the column of the source with `_`, that each column fills."""
    if len(columns) != given:
        raise Invalid(f"the query has {given} columns, and {len(columns)} are to be filled: {', '.join(columns)}")
    known = {each.lower(): each for each in (*beside, *fields)}
    found = []
    for column in columns:
        target = known.get(column.lower())
        if target is None:
            raise Invalid(f"{name} has no column {column!r} to fill: it has {', '.join([*fields, *beside])}")
        if target in found:
            raise Invalid(f"the column {column!r} is listed twice")
        found.append(target)
    return found


def _cast_columns(df: DataFrame, targets: Sequence[str], fields: dict[str, DataType]) -> DataFrame:
    """Rename the columns; cast numbers, and types that fit without loss, to the type of their field."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import NumericType

    placed = df.toDF(*(f"c{place}" for place in range(len(targets))))
    made = []
    for place, name in enumerate(targets):
        column, held = f.col(f"c{place}"), placed.schema[place].dataType
        wanted = fields.get(name)
        numbers = isinstance(held, NumericType) and isinstance(wanted, NumericType)
        if wanted is not None and held != wanted and (numbers or can_cast_losslessly(held, wanted)):
            column = column.cast(wanted)
        made.append(column.alias(name))
    return placed.select(*made)
