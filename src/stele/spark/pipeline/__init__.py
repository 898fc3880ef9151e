"""Pipelines: framed records that keep arriving become rows of tables, exactly once, dead letters beside them.

    report = run_pipeline(load_config("pipeline.toml"))

One micro-batch goes like this (`batch`): pin the newest versions of the subjects, decode (`judging`), write down what
the records were judged by (`journal`), let the tables grow (`changes`, `tables`), append, each table once per batch
(`sinks`). Whatever dies in between, the same batch comes again, is judged the same, and only what is missing is done.
"""

from stele.spark.pipeline.admin import apply_plan, dead_letters, plan_pipeline, replay_dead_letters
from stele.spark.pipeline.config import PipelineConfig, load_config
from stele.spark.pipeline.iceberg import iceberg_dataframe, open_table
from stele.spark.pipeline.report import BatchReport, PipelineReport
from stele.spark.pipeline.runner import PipelineFailed, run_pipeline
from stele.spark.pipeline.schema_evolution import ColumnChange, TablePlan

__all__ = [
    "BatchReport",
    "ColumnChange",
    "PipelineConfig",
    "PipelineFailed",
    "PipelineReport",
    "TablePlan",
    "apply_plan",
    "dead_letters",
    "iceberg_dataframe",
    "load_config",
    "open_table",
    "plan_pipeline",
    "replay_dead_letters",
    "run_pipeline",
]
