"""The tables of a `pipeline.toml`, as datasets of Spark's own pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stele.errors import Invalid
from stele.spark.declarative.streams import Newer, Stream, declare_letters, need_pipelines, session
from stele.spark.functions import spark_types
from stele.spark.pipeline.changes import OWN
from stele.spark.pipeline.config import PipelineConfig, RouteConfig, load_config
from stele.spark.pipeline.judging import UNROUTED
from stele.spark.pipeline.source import RAW, frames
from stele.spark.records import Reading, Target
from stele.spark.rules import refuse_reading
from stele.spark.source import RegistryLike, pin
from stele.spark.wires import wire_named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FORMATS: Final[Mapping[str, str]] = {"parquet": "parquet", "delta": "delta", "iceberg-spark": "iceberg"}


def from_config(path: Path | str, *, newer: Newer = "stop") -> None:
    """Declare the tables of a `pipeline.toml`, each with its records, and their dead letters.

    Sources, routes, kept columns and names of tables are the file's; checkpoints, triggers, the session and its metrics
    are those of Spark's pipeline, and so is where tables are kept and how they grow. Tables are of the kinds `parquet`,
    `delta` and `iceberg-spark`. Raises `Invalid` for another kind, for a wrong file, and for FAILFAST where topics may
    have no route; otherwise as `streaming_table`.
    """
    need_pipelines()
    config = load_config(path)
    if config.table.kind not in _FORMATS:
        kinds = ", ".join(_FORMATS)
        raise Invalid(f"{path}: Spark's pipelines cannot write tables of the kind {config.table.kind}: choose {kinds}")
    if config.mode == "FAILFAST" and _has_unrouted(config):
        raise Invalid(f"{path}: in mode FAILFAST there must be a route for every topic, or one without a topic")
    spark, format_ = session(), _FORMATS[config.table.kind]
    raw = frames(spark, config)
    kept = {str(name): OWN + name for name in config.table.keep}
    letters = {}
    for topic, stream in _streams(config, newer):
        stream.declare(spark, _of_topic(raw, topic, config), kept, format_, {})
        letters[stream.records] = stream.letters(spark)
    if _has_unrouted(config):
        letters["unrouted"] = _unrouted(raw, config)
    if config.mode == "DEADLETTER":
        declare_letters(_in_catalog(config, config.dead_letter_table), letters, format_)


def _streams(config: PipelineConfig, newer: Newer) -> Iterator[tuple[str, Stream]]:
    """The records of each topic that has routes; those of all others are of the topic ''."""
    registry = config.source.opened_registry()
    for topic in dict.fromkeys(route.topic for route in config.routes):
        routes = [route for route in config.routes if route.topic == topic]
        reading = _reading(config, registry, topic, routes)
        yield (
            topic,
            Stream(
                reading,
                f"{reading.targets[0].name}_records",
                "value",
                "headers" if reading.wire.needs_headers else None,
                tuple(name for name in RAW if name != "value"),
                stops=newer == "stop",
                fail_fast=config.mode == "FAILFAST",
            ),
        )


def _reading(config: PipelineConfig, registry: RegistryLike, topic: str, routes: list[RouteConfig]) -> Reading:
    source = config.source
    targets = []
    for route in routes:
        pinned = pin(registry, route.subject, patience=source.patience)
        if source.rules == "refuse":
            refuse_reading(pinned)
        targets.append(Target(_in_catalog(config, route.table), pinned, route.message))
    return Reading(
        tuple(targets),
        registry,
        config.engine,
        wire_named(source.wire),
        source.rules,
        several=len(targets) > 1,
        topic=topic,
        patience=source.patience,
        recursion=source.recursion,
    )


def _in_catalog(config: PipelineConfig, table: str) -> str:
    return f"{config.table.catalog}.{table}" if config.table.catalog else table


def _of_topic(raw: DataFrame, topic: str, config: PipelineConfig) -> DataFrame:
    from pyspark.sql import functions as f

    if topic:
        return raw.where(f.col("topic") == topic)
    others = [route.topic for route in config.routes if route.topic]
    return raw.where(f.col("topic").isNull() | ~f.col("topic").isin(*others)) if others else raw


def _has_unrouted(config: PipelineConfig) -> bool:
    topics = {route.topic for route in config.routes}
    return "" not in topics and set(config.source.topics) != topics


def _unrouted(raw: DataFrame, config: PipelineConfig) -> DataFrame:
    """Records of topics that no route takes, as dead letters."""
    from pyspark.sql import functions as f

    topics = [route.topic for route in config.routes]
    number = f.lit(None).cast(spark_types([wire_named(config.source.wire).id_type])[0])
    reason = f.concat(f.lit(f"{UNROUTED} "), f.col("topic"))
    parts = [number.alias("schema_id"), f.lit(None).cast("int").alias("byte"), reason.alias("reason")]
    return raw.where(~f.col("topic").isin(*topics)).select(*RAW, *parts)
