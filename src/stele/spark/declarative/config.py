"""The tables of a `pipeline.toml`, as datasets of Spark's own pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from stele.errors import Invalid
from stele.spark.declarative.streams import Newer, Stream, declare_letters, need_pipelines, session
from stele.spark.decode.rules import refuse_reading
from stele.spark.pipeline.config import PipelineConfig, RouteConfig, load_config
from stele.spark.pipeline.judging import ERROR, Group, Route, groups, has_unrouted, letter_parts, unrouted
from stele.spark.pipeline.raw_records import RAW, frames
from stele.spark.pipeline.schema_evolution import OWN
from stele.spark.registry.clients import RegistryLike
from stele.spark.registry.snapshot import pin_schemas

_FORMATS: Final[Mapping[str, str]] = {"parquet": "parquet", "delta": "delta", "iceberg-spark": "iceberg"}


def from_config(path: Path | str, *, newer: Newer = "stop") -> None:
    """Declare the tables of a `pipeline.toml`, each with its records, and their dead letters.

    Sources, routes, kept columns and names of tables are the file's; checkpoints, triggers, the session and its metrics
    are those of Spark's pipeline, and so is where tables are kept and how they grow. Tables are of the kinds `parquet`,
    `delta` and `iceberg-spark`. Raises `Invalid` for another kind, for a wrong file, and for FAILFAST where topics may
    have no route; otherwise as `streaming_table`.
    """
    need_pipelines()
    from pyspark.sql import functions as f

    config = load_config(path)
    if config.table.kind not in _FORMATS:
        kinds = ", ".join(_FORMATS)
        raise Invalid(f"{path}: Spark's pipelines cannot write tables of the kind {config.table.kind}: choose {kinds}")
    if config.mode == "FAILFAST" and has_unrouted(config):
        raise Invalid(f"{path}: in mode FAILFAST there must be a route for every topic, or one without a topic")
    spark, format_ = session(), _FORMATS[config.table.kind]
    raw = frames(spark, config)
    kept = {str(name): OWN + name for name in config.table.keep}
    letters = {}
    registry = config.source.opened_registry()
    grouped = groups([_route(route, config, registry) for route in config.routes])
    for group in grouped:
        stream = _stream(group, config, registry, newer)
        stream.declare(spark, group.taken(raw), kept, format_, {})
        letters[stream.records] = stream.letters(spark)
    rest = unrouted(raw, grouped, config)
    if rest is not None:
        error = f.col(ERROR)
        parts = letter_parts(error)
        letters["unrouted"] = rest.select(*RAW, *parts)
    if config.mode == "DEADLETTER":
        declare_letters(_in_catalog(config, config.dead_letter_table), letters, format_)


def _route(route: RouteConfig, config: PipelineConfig, registry: RegistryLike) -> Route:
    pinned = pin_schemas(registry, route.subject, patience=config.source.patience)
    if config.source.rules == "refuse":
        refuse_reading(pinned)
    return Route(route, pinned)


def _stream(group: Group, config: PipelineConfig, registry: RegistryLike, newer: Newer) -> Stream:
    """The records of a group, whose tables have their full names."""
    reading = group.reading(config, registry)
    named = tuple(replace(target, name=_in_catalog(config, target.name)) for target in reading.targets)
    return Stream(
        replace(reading, targets=named),
        f"{named[0].name}_records",
        "value",
        "headers" if reading.wire.needs_headers else None,
        tuple(name for name in RAW if name != "value"),
        stops=newer == "stop",
        fail_fast=config.mode == "FAILFAST",
    )


def _in_catalog(config: PipelineConfig, table: str) -> str:
    return f"{config.table.catalog}.{table}" if config.table.catalog else table
