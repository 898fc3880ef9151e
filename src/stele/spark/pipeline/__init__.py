"""Pipelines: framed records that keep arriving become rows of an Iceberg table, exactly once, dead letters beside it.

    report = run_pipeline(load_config("pipeline.toml"))

One micro-batch goes like this (`batch`): pin the subject's newest version, let the table grow to it, decode and write
data files in the tasks, write down which files they were (`journal`), commit. Whatever dies in between, the same batch
comes again, finds what was done, and does the rest.
"""

from stele.spark.pipeline.config import PipelineConfig, load_config
from stele.spark.pipeline.iceberg import iceberg_dataframe, open_table
from stele.spark.pipeline.report import BatchReport, PipelineReport
from stele.spark.pipeline.runner import PipelineFailed, run_pipeline

__all__ = [
    "BatchReport",
    "PipelineConfig",
    "PipelineFailed",
    "PipelineReport",
    "iceberg_dataframe",
    "load_config",
    "open_table",
    "run_pipeline",
]
