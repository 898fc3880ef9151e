"""Registered streams on Spark: DataFrames decoded and encoded by registered schemas, and pipelines into tables.

    from stele.spark import from_registry, to_registry
    orders = from_registry(raw, "value", subject="orders-value", registry="http://localhost:8081")

Nothing here imports Spark before it is used.
"""

from stele.spark.datasource import add_source, subject_tables
from stele.spark.engines.jvm import add_engine
from stele.spark.functions import DecodedSplit, from_registry, to_registry
from stele.spark.pipeline import PipelineConfig, PipelineReport, iceberg_dataframe, load_config, run_pipeline
from stele.spark.session import local_session
from stele.spark.stream_sql import create_stream, describe_stream, drop_stream, list_streams, read_stream, script, sql
from stele.spark.stream_sql.sql_functions import register_sql_functions
from stele.spark.types import from_spark, schema_for, spark_schema, to_spark

__all__ = [
    "DecodedSplit",
    "PipelineConfig",
    "PipelineReport",
    "add_engine",
    "add_source",
    "create_stream",
    "describe_stream",
    "drop_stream",
    "from_registry",
    "from_spark",
    "iceberg_dataframe",
    "list_streams",
    "load_config",
    "local_session",
    "read_stream",
    "register_sql_functions",
    "run_pipeline",
    "schema_for",
    "script",
    "spark_schema",
    "sql",
    "subject_tables",
    "to_registry",
    "to_spark",
]
