"""Pipelines: framed records that keep arriving become rows of tables, exactly once, dead letters beside them.

    report = run_pipeline(load_config("pipeline.toml"))

One micro-batch goes like this (`batch`): pin the newest versions of the subjects, decode (`classification`), write down
what it was classified by (`journal`), let the tables grow (`schema_evolution`, `tables`), append once per table
(`sinks`). After a crash the same batch is classified the same way again, and only what is missing is done.
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
    """Return what each table needs for the newest version of its subject; nothing is touched.

    Raises what `run_pipeline` raises before its first batch.
    """
    return _plans(config, spark, registry, apply=False)


def apply_plan(
    config: PipelineConfig, *, spark: SparkSession | None = None, registry: RegistryLike | None = None
) -> list[TablePlan]:
    """Do what `plan_pipeline` says, which it returns. Raises `Conflict` when a table cannot take its schema."""
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
    """Decode open dead letters again, by what the registry knows now; good ones become rows, and are open no more.

    where   which ones, a condition of SQL over the columns of the dead-letter table; '' is all
    progress is called with the report of a replay that was cut short, then of this one. May run beside the pipeline,
    not beside another replay (`Conflict`). Raises `Invalid` for a condition that is none, and what `run_pipeline` does.
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
    """Return all dead letters, with the time at which they were replayed, null for open ones. Raises `NotFound`."""
    from stele.spark.pipeline.dead_letters import DeadLetterTable

    return DeadLetterTable(spark, config).read_all()
