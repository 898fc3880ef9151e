"""Registered streams on Spark: DataFrames decoded and encoded by registered schemas, and pipelines into tables.

    from stele.spark import from_registry, to_registry
    orders = from_registry(raw, "value", subject="orders-value", registry="http://localhost:8081")

Nothing here imports Spark before it is used.
"""

from stele.spark.functions import Split, from_registry, to_registry
from stele.spark.pipeline import PipelineConfig, PipelineReport, iceberg_dataframe, load_config, run_pipeline
from stele.spark.session import local_session

__all__ = [
    "PipelineConfig",
    "PipelineReport",
    "Split",
    "from_registry",
    "iceberg_dataframe",
    "load_config",
    "local_session",
    "run_pipeline",
    "to_registry",
]
