"""New records written beside the old ones, never over them, and read again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from stele.errors import Invalid, InvalidRequest
from stele.spark.data_audit.migrate import MigratedRecords, Migration, Verification
from stele.spark.data_audit.stored_records import TABLE, TEXTS, load_data
from stele.spark.functions import from_registry
from stele.spark.session import spark_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ExistingData = Literal["refuse", "append", "overwrite"]
"""What to do with records that are where new ones are to go."""
_SPARK_MODE: Final = {"refuse": "errorifexists", "append": "append", "overwrite": "overwrite"}


class OutputTarget(msgspec.Struct, frozen=True):
    """Where records go: a path, or the name of a table where the format is `table`. existing: what may be there."""

    path: str
    format: str = "parquet"
    existing: ExistingData = "refuse"


def check_separate(source: str, target: OutputTarget, dead: OutputTarget, source_format: str) -> None:
    """Raise `InvalidRequest` where new records, or dead letters, would go over the old ones or one another."""
    places = {
        "the old records": _absolute_location(source, source_format),
        "new ones": _absolute_location(target.path, target.format),
        "dead letters": _absolute_location(dead.path, dead.format),
    }
    names = list(places)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            first, second = places[one], places[other]
            if first == second or first.startswith(f"{second}/") or second.startswith(f"{first}/"):
                raise InvalidRequest(f"{one} are at {first}, {other} would be at {second}: choose separate locations")


def check_empty(spark: SparkSession, target: OutputTarget) -> None:
    """Raise `InvalidRequest` where there is something and nobody said what to do with it."""
    if target.existing == "refuse" and _has_data(spark, target):
        raise InvalidRequest(f"there is something at {target.path}: say whether to append to it or to overwrite it")


def write_records(df: DataFrame, target: OutputTarget, column: str) -> None:
    """Write records; in formats of text their column is base64. Raises `JobFailed`."""
    from pyspark.sql import functions as f

    with spark_failures():
        if target.format in TEXTS:
            df = df.withColumn(column, f.base64(f.col(_quoted(column))))
        # an existing, empty folder is nothing to be careful of
        mode = "append" if target.existing == "refuse" else _SPARK_MODE[target.existing]
        writer = df.write.mode(mode)
        if target.format == TABLE:
            writer.saveAsTable(target.path)
        else:
            writer.format(target.format).option("header", "true").save(target.path)


def count_records(spark: SparkSession, target: OutputTarget) -> int:
    """Records that are there, none where nothing is. Raises `JobFailed`."""
    if not _has_data(spark, target):
        return 0
    with spark_failures():
        return int(load_data(spark, target.path, target.format).count())


def verify_records(
    spark: SparkSession,
    target: OutputTarget,
    column: str,
    headers: str | None,
    moved: MigratedRecords,
    *,
    before: int = 0,
    values: bool = False,
) -> Verification:
    """Read what was written with its own schema, and compare.

    before  records that were there already
    values  compare values, too: those of the old records, read with the new schema. Within one language, and of a
            target that was empty only

    Raises `Invalid`, `JobFailed`.
    """
    from pyspark.sql import functions as f

    plan = moved.plan
    if values and (plan.languages[0] != plan.languages[1] or before):
        raise Invalid("values can only be compared within one schema language and for a target that was empty")
    with spark_failures():
        there = load_data(spark, target.path, target.format)
        if target.format in TEXTS:
            there = there.withColumn(column, f.unbase64(f.col(_quoted(column))))
        read = _read_new(there, column, headers, moved)
        row = read.agg(
            f.count("*").alias("n"), f.count_if(f.isnull("value_error")).alias("good"), _digest_column()
        ).collect()[0]
        same = None
        if values:
            old = moved.every.where("error IS NULL").select(f.col(moved.raw).alias(column), *_old_headers(moved))
            same = _read_old(old, column, moved).agg(_digest_column()).collect()[0]["digest"] == row["digest"]
    return Verification(row["n"], row["good"], before, same)


def with_verification(migration: Migration, seen: Verification | None) -> Migration:
    """Return the answer once records are written."""
    return msgspec.structs.replace(migration, written=True, verified=seen)


def _read_new(df: DataFrame, column: str, headers: str | None, moved: MigratedRecords) -> DataFrame:
    writing = moved.plan.writing
    return from_registry(
        df,
        column,
        subject=moved.plan.to_subject,
        registry=writing.registry,
        reader=writing.writer,
        mode="PERMISSIVE",
        wire=writing.wire,
        headers=headers if writing.wire.needs_headers else None,
        message=writing.message,
        rules="ignore",
        keep=(),
        engine=writing.engine,
    )


def _read_old(df: DataFrame, column: str, moved: MigratedRecords) -> DataFrame:
    reading = moved.plan.reading
    return from_registry(
        df,
        column,
        subject=moved.plan.subject,
        registry=reading.registry,
        reader=moved.plan.writing.writer,
        mode="PERMISSIVE",
        wire=reading.wire,
        headers="headers" if reading.wire.needs_headers else None,
        message=reading.targets[0].message,
        rules="ignore",
        keep=(),
        engine=reading.engine,
    )


def _old_headers(moved: MigratedRecords) -> list[Any]:
    from pyspark.sql import functions as f

    return [f.col(moved.heads).alias("headers")] if moved.heads is not None else []


def _digest_column() -> Any:
    """Return a sum over all values, the same in any order."""
    from pyspark.sql import functions as f

    text = f.to_json(f.struct("value"))
    return f.sum(f.xxhash64(text).cast("decimal(38, 0)")).alias("digest")


def _has_data(spark: SparkSession, target: OutputTarget) -> bool:
    if target.format == TABLE:
        return bool(spark.catalog.tableExists(target.path))
    path = Path(target.path)
    if "://" in target.path:
        # a scheme only Spark can look into: reading nothing fails, and then nothing is there
        from pyspark.errors import AnalysisException

        try:
            load_data(spark, target.path, target.format)
        except AnalysisException:
            return False
        return True
    return path.exists() and (path.is_file() or any(path.iterdir()))


def _absolute_location(path: str, format_: str) -> str:
    if format_ == TABLE:
        return f"table {path}"
    return path.rstrip("/") if "://" in path else str(Path(path).resolve())


def _quoted(column: str) -> str:
    escaped = column.replace("`", "``")
    return f"`{escaped}`"
