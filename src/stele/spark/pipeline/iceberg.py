"""Iceberg tables through pyiceberg: opened, and read in Spark. Pipelines write them by `sinks.iceberg`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stele.errors import Invalid, NotFound, NotInstalled, StoreError
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.sinks.iceberg_types import spark_schema

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame, SparkSession

OPEN_ATTEMPTS = 5
"""How often a catalog is opened when another process is making it."""


def open_catalog(config: TableConfig) -> Catalog:
    """The SQL catalog. Raises `NotInstalled`, `StoreError` when its database cannot be opened."""
    try:
        from pyiceberg.catalog.sql import SqlCatalog
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as missing:
        raise NotInstalled("pyiceberg with SQLAlchemy", "spark") from missing
    warehouse = config.warehouse if "://" in config.warehouse else f"file://{config.warehouse}"
    if warehouse.startswith("file://"):
        _make_folder(warehouse.removeprefix("file://"))
    if config.catalog.startswith("sqlite:///"):
        _make_folder(config.catalog.removeprefix("sqlite:///").rpartition("/")[0])
    for left in reversed(range(OPEN_ATTEMPTS)):
        try:
            return SqlCatalog("stele", uri=config.catalog, warehouse=warehouse)
        except SQLAlchemyError as error:
            # another process may be making the same tables in a new database
            if not left:
                raise StoreError(f"the catalog {config.catalog} cannot be opened: {error}") from error
    raise AssertionError("unreachable")


def _make_folder(path: str) -> None:
    from pathlib import Path

    Path(path or ".").mkdir(parents=True, exist_ok=True)


def open_table(config: TableConfig, name: str = "") -> Table:
    """The table of a pipeline, or another one of its catalog. Raises `NotFound`."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return open_catalog(config).load_table(name or config.name)
    except NoSuchTableError as error:
        raise NotFound(f"there is no table {name or config.name} in {config.catalog}") from error


def iceberg_dataframe(spark: SparkSession, table: Table) -> DataFrame:
    """The table as a DataFrame, read by Spark itself from the data files of the current snapshot, without extra jars.

    Columns are found by Iceberg's field ids, so added, widened and renamed ones are right in old files too. The list of
    files is taken now: call again to see newer snapshots. Raises `Invalid` for tables with delete files.
    """
    schema = spark_schema(table.schema(), ids=True)
    plan = list(table.scan().plan_files())
    if any(task.delete_files for task in plan):
        raise Invalid("the table has delete files: rewrite it, or read it with pyiceberg")
    if not plan:
        return spark.createDataFrame([], schema)
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    return spark.read.schema(schema).parquet(*(task.file.file_path for task in plan))
