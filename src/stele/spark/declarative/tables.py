"""A streaming table of one registered stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from stele.errors import Invalid
from stele.spark.declarative.streams import (
    DeclaredStream,
    Newer,
    active_session,
    declare_dead_letters,
    require_pipelines,
)
from stele.spark.decode.planning import plan_read
from stele.spark.registry.clients import PATIENCE, RegistryLike, as_picklable
from stele.spark.registry.snapshot import ReaderLike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from stele.spark.decode.rules import RulesLike
    from stele.spark.wires import WireLike

RawSource: TypeAlias = "str | Callable[[SparkSession], DataFrame]"
"""Where raw records are: another streaming dataset of the pipeline by its name, or a function that reads a stream. The
function is called once, while definitions are loaded."""


def streaming_table(
    name: str,
    *,
    subject: str,
    registry: RegistryLike,
    source: RawSource,
    column: str = "value",
    headers: str | None = None,
    keep: Sequence[str] = (),
    dead_letters: str | None = "",
    records: str = "",
    newer: Newer = "stop",
    reader: ReaderLike = "latest",
    wire: WireLike = "confluent",
    message: str = "",
    rules: RulesLike = "refuse",
    topic: str = "",
    engine: str = "auto",
    patience: float = PATIENCE,
    format: str | None = None,  # noqa: A002 - as pyspark.pipelines.table has it
    **details: Any,
) -> None:
    """Declare a streaming table of a registered stream, with its records and dead letters beside it.

    source        see `RawSource`; column and headers are its columns as for `from_registry`
    keep          more of its columns, which the table and the dead letters have, too
    dead_letters  a name for that table, the table's + `_dead_letters` if empty; None: a bad record stops the run
    records       a name for the table of raw records, the table's + `_records` if empty
    newer         see `Newer`; of no meaning unless reader is `latest`
    format        of all three tables, Spark's default if None
    details       for the table alone: comment, table_properties, partition_cols, cluster_by, spark_conf

    The other arguments are those of `from_registry`. The table has the schema's fields, `_stele_schema_id`,
    `_stele_version` (see `pipeline`) and what was kept; null records are no rows. Raises what `from_registry` raises,
    `Invalid` also for a schema that is no record; `NotInstalled` before PySpark 4.1.
    """
    # Long because every choice is an argument, and each is told once, here
    require_pipelines()
    if newer not in ("stop", "read"):
        raise Invalid(f"newer is stop or read, not {newer!r}")
    reading = plan_read(
        as_picklable(registry),
        subject,
        reader,
        wire=wire,
        message=message,
        rules=rules,
        topic=topic,
        engine=engine,
        patience=patience,
    )
    if reading.wire.needs_headers and headers is None:
        raise Invalid("the wire has ids in the headers of records: name their column, headers='headers'")
    stream = DeclaredStream(
        replace(reading, targets=(replace(reading.targets[0], name=name),)),
        records or f"{name}_records",
        column,
        headers if reading.wire.needs_headers else None,
        tuple(keep),
        stops=newer == "stop" and reader == "latest",
        fail_fast=dead_letters is None,
    )
    spark = active_session()
    raw = spark.readStream.table(source) if isinstance(source, str) else source(spark)
    stream.declare_tables(spark, raw, {each: each for each in keep}, format, details)
    if dead_letters is not None:
        declare_dead_letters(
            dead_letters or f"{name}_dead_letters", {stream.records: stream.select_dead_letters(spark)}, format
        )
