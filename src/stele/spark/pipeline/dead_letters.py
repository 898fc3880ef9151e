"""The table of dead letters: its columns, the marks of replays, and counts by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from stele.errors import Invalid
from stele.spark.engines.arrow import ArrowType
from stele.spark.engines.error_codes import ErrorCode
from stele.spark.functions import to_spark_types
from stele.spark.pipeline.classification import ClassifiedBatch
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.raw_records import RAW
from stele.spark.pipeline.routes import ERROR, ID, id_type
from stele.spark.pipeline.schema_evolution import ColumnChange
from stele.spark.pipeline.sinks import Sink, open_sink

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType
_MARKS: Final[dict[str, ArrowType]] = {
    "letter": pa.string(),
    "replay": pa.int64(),
    "replayed_at": pa.timestamp("us", "UTC"),
}


OTHER: Final = "other"
"""Kind of dead letters without a code; old batches wrote them before codes existed."""
KINDS: Final = (*(code.name.lower() for code in ErrorCode if code is not ErrorCode.NONE), OTHER)
"""Every kind of dead letter. The order has no meaning."""


def count_by_kind(codes: Mapping[str, int], records: int) -> dict[str, int]:
    """Return the number of dead letters of a batch by kind.

    Args:
        codes: Number of dead letters by the name of their code.
        records: Number of all dead letters; those without a code count as `other`.
    """
    counts = {code.lower(): count for code, count in codes.items()}
    rest = records - sum(codes.values())
    return counts | ({OTHER: rest} if rest > 0 else {})


def dead_letter_fields(error: Column) -> list[Column]:
    """Return the fields of an error struct under the column names of the dead-letter table."""
    names = {"schema_id": "schema_id", "offset": "byte", "code": "code", "reason": "reason"}
    return [error[part].alias(name) for part, name in names.items()]


def dead_letter_columns(config: PipelineConfig) -> StructType:
    """Return the columns of the dead-letter table.

    letter       unique name of each dead letter
    …            the raw record and its position, see `raw_records.RAW`
    schema_id    name of its schema, in the wire's type
    byte         offset in the payload at which decoding failed
    code         name of the `ErrorCode`
    reason       the reason, a sentence
    batch, application, seen_at   which batch of which pipeline found it, and when
    """
    from pyspark.sql.types import StructField, StructType

    text, count, moment = to_spark_types([RAW["source"], RAW["offset"], RAW["timestamp"]])
    raw = zip(RAW, to_spark_types(list(RAW.values())), strict=True)
    columns = {"letter": text, **dict(raw), "schema_id": id_type(config), "byte": to_spark_types([RAW["partition"]])[0]}
    columns |= {"code": text, "reason": text, "batch": count, "application": text, "seen_at": moment}
    return StructType([StructField(name, type_) for name, type_ in columns.items()])


def select_dead_letters(judged: DataFrame, application: str, batch: int) -> DataFrame:
    """Return the dead letters among classified records."""
    from pyspark.sql import functions as f

    return judged.where(f.col(ERROR).isNotNull()).select(
        f.expr("uuid()").alias("letter"),
        *RAW,
        f.col(ID).alias("schema_id"),
        *dead_letter_fields(f.col(ERROR))[1:],
        f.lit(batch).cast("bigint").alias("batch"),
        f.lit(application).alias("application"),
        f.current_timestamp().alias("seen_at"),
    )


def _mark_columns() -> StructType:
    from pyspark.sql.types import StructField, StructType

    types = zip(_MARKS, to_spark_types(list(_MARKS.values())), strict=True)
    return StructType([StructField(name, type_) for name, type_ in types])


class DeadLetterTable:
    """The dead letters of one pipeline and the marks of those that were replayed."""

    def __init__(self, spark: SparkSession, config: PipelineConfig) -> None:
        self._letters = open_sink(spark, config.table, config.dead_letter_table)
        self.marks: Sink = open_sink(spark, config.table, f"{config.dead_letter_table}_replayed")

    def read_all(self) -> DataFrame:
        """Return all dead letters with the time of their replay, which is null for open ones.

        Raises `NotFound` when there is no table.
        """
        from pyspark.sql import functions as f

        letters = self._letters.read_table()
        if self.marks.load_columns() is None:
            return letters.withColumn("replayed_at", f.lit(None).cast("timestamp"))
        return letters.join(self.marks.read_table().select("letter", "replayed_at"), "letter", "left")

    def select_open(self, where: str) -> DataFrame:
        """Return the open dead letters that meet a condition. Raises `Invalid` if Spark does not understand it."""
        from pyspark.errors import AnalysisException, ParseException

        try:
            letters = self.read_all().where("replayed_at IS NULL")
            return letters.where(where) if where else letters
        except (AnalysisException, ParseException) as error:
            raise Invalid(f"the condition {where!r} is not understood: {str(error).partition(chr(10))[0]}") from error

    def letters_of_replay(self, replay: int) -> DataFrame | None:
        """Return the dead letters that a replay marked as rows of their tables, or None if it marked none."""
        if self.marks.load_columns() is None:
            return None
        mine = self.marks.read_table().where(f"replay = {replay}").select("letter")
        return None if mine.isEmpty() else self._letters.read_table().join(mine, "letter", "leftsemi")

    def mark_replayed(self, judged: ClassifiedBatch, replay: int, application: str) -> None:
        """Append a mark for each dead letter that becomes a row."""
        from pyspark.sql import functions as f

        if self.marks.load_columns() is None:
            self.marks.apply_changes((ColumnChange("create"),), _mark_columns())
        marks: DataFrame | None = None
        for _, df in judged.parts:
            good = df.where(f.col(ERROR).isNull()).select("letter")
            marks = good if marks is None else marks.union(good)
        assert marks is not None
        rows = marks.select(
            "letter", f.lit(replay).cast("bigint").alias("replay"), f.current_timestamp().alias("replayed_at")
        )
        columns = self.marks.load_columns()
        assert columns is not None
        self.marks.append_batch(rows.to(columns), application, replay)
