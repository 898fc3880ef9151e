"""Iceberg tables, written by Iceberg's own runtime in the Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stele.errors import Invalid
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.schema_evolution import TableCapabilities, can_widen
from stele.spark.pipeline.sinks.sql_table import (
    SqlTable,
    add_missing_columns,
    format_properties,
    quote_string,
    require_class,
)
from stele.spark.types.names import quote_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CATALOGS: Final = ("org.apache.iceberg.spark.SparkCatalog", "org.apache.iceberg.spark.SparkSessionCatalog")

ADVICE: Final = (
    'the Spark session has no Iceberg: add "org.apache.iceberg:iceberg-spark-runtime-SPARK_2.13:VERSION" to packages '
    "of [spark], SPARK being the first two numbers of this Spark's version"
)

PROPERTIES: Final = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
"""Properties of tables created here. They limit old metadata files, as each batch adds one."""

APPLICATION: Final = "stele.application"
BATCH: Final = "stele.batch"
"""Key of the batch number in the summary of a snapshot that a pipeline made, beside `APPLICATION`."""


class IcebergSparkSink(SqlTable):
    """One table of a catalogue of the session."""

    def __init__(self, spark: SparkSession, config: TableConfig, name: str) -> None:
        require_class(spark, CATALOGS[0], ADVICE)
        catalog = config.catalog or spark.catalog.currentCatalog()
        if spark.conf.get(f"spark.sql.catalog.{catalog}", "") not in CATALOGS:
            raise Invalid(
                f"the Spark session has no catalogue {catalog} of Iceberg: add to conf of [spark] "
                f'"spark.sql.catalog.{catalog}" = "{CATALOGS[0]}", "spark.sql.catalog.{catalog}.type" = "hadoop" (or '
                f'hive, rest, jdbc …) and "spark.sql.catalog.{catalog}.warehouse"'
            )
        super().__init__(spark, name, quote_path([catalog, *name.split(".")]))
        self._location = f"{config.warehouse.rstrip('/')}/{'/'.join(name.split('.'))}" if config.warehouse else ""

    @property
    def capabilities(self) -> TableCapabilities:
        """Every change that Iceberg supports."""
        return TableCapabilities(nested=True, rename=True, widens=can_widen)

    def load_columns(self) -> StructType | None:
        """Return its columns now, or None if the table does not exist."""
        if not self._spark.catalog.tableExists(self._sql_name):
            return None
        # the catalogue caches tables for a while
        self._spark.catalog.refreshTable(self._sql_name)
        return self._spark.table(self._sql_name).schema

    def append_batch(self, rows: DataFrame, application: str, batch: int) -> None:
        """Append the rows in one snapshot that carries the batch number; see `Sink`."""
        columns = self._require_columns()
        if self._newest_batch(application) >= batch or rows.isEmpty():
            return
        writer = add_missing_columns(rows, columns).writeTo(self._sql_name)
        writer = writer.option(f"snapshot-property.{APPLICATION}", application)
        writer.option(f"snapshot-property.{BATCH}", str(batch)).append()

    def _newest_batch(self, application: str) -> int:
        """Return the application's newest batch in the snapshots of the table; -1 for none."""
        snapshots = self._spark.table(f"{self._sql_name}.`snapshots`").where(
            f"summary[{quote_string(APPLICATION)}] = {quote_string(application)}"
        )
        newest = snapshots.selectExpr(f"max(CAST(summary[{quote_string(BATCH)}] AS BIGINT))").head()
        return -1 if newest is None or newest[0] is None else int(newest[0])

    def _create_table(self, columns: str) -> None:
        self._run_sql(f"CREATE NAMESPACE IF NOT EXISTS {self._sql_name.rpartition('.')[0]}")
        location = f"LOCATION {quote_string(self._location)} " if self._location else ""
        self._run_sql(
            f"CREATE TABLE IF NOT EXISTS {self._sql_name} ({columns}) USING iceberg {location}"
            f"TBLPROPERTIES ({format_properties(PROPERTIES)})"
        )
