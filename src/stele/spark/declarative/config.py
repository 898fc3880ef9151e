"""The tables of a `pipeline.toml`, as datasets of Spark's own pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from stele.errors import Invalid
from stele.spark.declarative.streaming_tables import (
    DeclaredStream,
    Newer,
    active_session,
    declare_dead_letters,
    require_pipelines,
)
from stele.spark.decode.rules import refuse_reading
from stele.spark.pipeline.classification import select_unrouted
from stele.spark.pipeline.config import PipelineConfig, RouteConfig, load_config
from stele.spark.pipeline.dead_letters import dead_letter_fields
from stele.spark.pipeline.raw_records import RAW, read_raw_stream
from stele.spark.pipeline.routes import ERROR, PinnedRoute, RouteGroup, group_routes, has_unrouted
from stele.spark.pipeline.schema_evolution import RESERVED_PREFIX
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
    require_pipelines()
    from pyspark.sql import functions as f

    config = load_config(path)
    if config.table.kind not in _FORMATS:
        kinds = ", ".join(_FORMATS)
        raise Invalid(f"{path}: Spark's pipelines cannot write tables of the kind {config.table.kind}: choose {kinds}")
    if config.mode == "FAILFAST" and has_unrouted(config):
        raise Invalid(f"{path}: in mode FAILFAST there must be a route for every topic, or one without a topic")
    spark, format_ = active_session(), _FORMATS[config.table.kind]
    raw = read_raw_stream(spark, config)
    kept = {str(name): RESERVED_PREFIX + name for name in config.table.keep}
    letters = {}
    registry = config.source.open_registry()
    grouped = group_routes([_pin_route(route, config, registry) for route in config.routes])
    for group in grouped:
        stream = _make_stream(group, config, registry, newer)
        stream.declare_tables(spark, group.select_records(raw), kept, format_, {})
        letters[stream.records] = stream.select_dead_letters(spark)
    rest = select_unrouted(raw, grouped, config)
    if rest is not None:
        error = f.col(ERROR)
        parts = dead_letter_fields(error)
        letters["unrouted"] = rest.select(*RAW, *parts)
    if config.mode == "DEADLETTER":
        declare_dead_letters(_qualify_table(config, config.dead_letter_table), letters, format_)


def _pin_route(route: RouteConfig, config: PipelineConfig, registry: RegistryLike) -> PinnedRoute:
    pinned = pin_schemas(registry, route.subject, patience=config.source.patience)
    if config.source.rules == "refuse":
        refuse_reading(pinned)
    return PinnedRoute(route, pinned)


def _make_stream(group: RouteGroup, config: PipelineConfig, registry: RegistryLike, newer: Newer) -> DeclaredStream:
    """The records of a group, whose tables have their full names."""
    reading = group.make_read_plan(config, registry)
    named = tuple(replace(target, name=_qualify_table(config, target.name)) for target in reading.targets)
    return DeclaredStream(
        replace(reading, targets=named),
        f"{named[0].name}_records",
        "value",
        "headers" if reading.wire.needs_headers else None,
        tuple(name for name in RAW if name != "value"),
        stops=newer == "stop",
        fail_fast=config.mode == "FAILFAST",
    )


def _qualify_table(config: PipelineConfig, table: str) -> str:
    return f"{config.table.catalog}.{table}" if config.table.catalog else table
