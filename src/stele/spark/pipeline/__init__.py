"""Pipelines: framed records that keep arriving become rows of tables, exactly once, dead letters beside them.

    report = run_pipeline(load_config("pipeline.toml"))

One micro-batch goes like this (`batch`): pin the newest versions of the subjects, decode (`classification`), write down
what it was classified by (`journal`), let the tables grow (`schema_evolution`, `tables`), append once per table
(`sinks`). After a crash the same batch is classified the same way again, and only what is missing is done.
"""

from stele.spark.pipeline.admin import apply_plan, plan_pipeline, read_dead_letters, replay_dead_letters
from stele.spark.pipeline.config import PipelineConfig, load_config
from stele.spark.pipeline.journal import BatchReport, PipelineReport
from stele.spark.pipeline.runner import PipelineFailed, run_pipeline
from stele.spark.pipeline.schema_evolution import ColumnChange, TablePlan
from stele.spark.pipeline.sinks.iceberg import iceberg_dataframe, open_table

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
