"""Pipelines that write framed records from a stream into tables, each record exactly once.

    report = run_pipeline(load_config("pipeline.toml"))

A record that cannot be decoded becomes a dead letter in a table of its own.

A micro-batch has these steps:

1. Pin the newest versions of the subjects (`batch`).
2. Decode and classify the records (`classification`).
3. Save what the batch was classified by (`journal`).
4. Change the tables to the new columns (`schema_evolution`, `tables`).
5. Append once per table (`sinks`).

After a crash the same batch is classified in the same way again, and only the missing steps are done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from stele.spark.pipeline.config import PipelineConfig, load_config
from stele.spark.pipeline.journal import BatchReport, PipelineReport
from stele.spark.pipeline.runner import PipelineFailed, find_session, open_session, resolve_registry, run_pipeline
from stele.spark.pipeline.schema_evolution import ColumnChange, TablePlan
from stele.spark.pipeline.sinks.iceberg import iceberg_dataframe, open_table
from stele.spark.registry import RegistryLike
from stele.spark.session import find_cause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "BatchReport",
    "ColumnChange",
    "PipelineConfig",
    "PipelineFailed",
    "PipelineReport",
    "TablePlan",
    "apply_plan",
    "iceberg_dataframe",
    "load_config",
    "open_table",
    "plan_pipeline",
    "read_dead_letters",
    "replay_dead_letters",
    "run_pipeline",
]


def plan_pipeline(
    config: PipelineConfig, *, spark: SparkSession | None = None, registry: RegistryLike | None = None
) -> list[TablePlan]:
    """Return the changes that each table needs for the newest version of its subject. Changes nothing.

    Raises what `run_pipeline` raises before its first batch.
    """
    return _plans(config, spark, registry, apply=False)


def apply_plan(
    config: PipelineConfig, *, spark: SparkSession | None = None, registry: RegistryLike | None = None
) -> list[TablePlan]:
    """Apply the changes that `plan_pipeline` lists, and return the plans.

    Raises `Conflict` when a table cannot take its schema.
    """
    return _plans(config, spark, registry, apply=True)


def _plans(
    config: PipelineConfig, spark: SparkSession | None, registry: RegistryLike | None, *, apply: bool
) -> list[TablePlan]:
    from stele.spark.pipeline.classification import BatchClassifier
    from stele.spark.pipeline.tables import PipelineTables

    existing_session = find_session(config, spark)
    routes = BatchClassifier(config, resolve_registry(config, registry), threading.Event()).pin_routes()
    with open_session(config, existing_session) as session:
        tables = PipelineTables(session, config)
        plans = tables.plan_tables(routes)
        if apply:
            tables.evolve(routes, is_confirmed=True)
        return plans


def replay_dead_letters(
    config: PipelineConfig,
    *,
    where: str = "",
    spark: SparkSession | None = None,
    registry: RegistryLike | None = None,
    progress: Callable[[BatchReport], None] | None = None,
) -> PipelineReport:
    """Decode open dead letters again, with the schemas that the registry has now.

    Records that can be decoded become rows, and their dead letters are marked as replayed.

    where     SQL condition over the columns of the dead-letter table that selects the dead letters; '' selects all
    progress  called with the report of an earlier replay that was interrupted, if any, and then with that of this
              replay

    A replay can run beside the pipeline, but not beside another replay. Raises `Conflict` when another replay runs,
    `Invalid` for a condition that Spark does not understand, and what `run_pipeline` raises.
    """
    existing_session = find_session(config, spark)
    from pyspark.errors import PySparkException

    from stele.spark.pipeline.batch import NAME, run_replay
    from stele.spark.pipeline.journal import pipeline_lock

    with pipeline_lock(config.checkpoint, NAME), open_session(config, existing_session) as session:
        try:
            return run_replay(session, config, resolve_registry(config, registry), where, progress)
        except PySparkException as error:
            raise PipelineFailed(find_cause(str(error))) from error


def read_dead_letters(config: PipelineConfig, *, spark: SparkSession) -> DataFrame:
    """Return all dead letters with the time of their replay, which is null for open ones. Raises `NotFound`."""
    from stele.spark.pipeline.dead_letters import DeadLetterTable

    return DeadLetterTable(spark, config).read_all()
