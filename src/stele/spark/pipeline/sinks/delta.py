"""Delta tables, written by Delta's own runtime in the Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stele.errors import Conflict, Invalid
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.schema_evolution import TableCapabilities
from stele.spark.pipeline.schema_evolution import can_widen as iceberg_widens
from stele.spark.pipeline.sinks.sql_table import (
    SqlTable,
    add_missing_columns,
    error_condition,
    first_line,
    format_properties,
    get_java_session,
    get_jvm,
    require_class,
    spark_errors,
)
from stele.spark.types.names import quote_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

MAPPING: Final = "delta.columnMapping.mode"
WIDENING: Final = "delta.enableTypeWidening"

PROPERTIES: Final = {MAPPING: "name", WIDENING: "true"}
"""Properties of tables created here: columns can be renamed and have any names, and types can be widened."""

CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"

ADVICE: Final = (
    'the Spark session has no Delta: add "io.delta:delta-spark_2.13:VERSION" to packages of [spark] (the version for '
    f'this Spark), and to its conf "spark.sql.extensions" = "{EXTENSION}" and '
    f'"spark.sql.catalog.spark_catalog" = "{CATALOG}"'
)

_CONFLICTS: Final = ("DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED", "DELTA_CONCURRENT_")
"""Prefixes of Delta's error conditions for an append that failed because another writer committed first."""
MAX_ATTEMPTS: Final = 5
"""How often such an append is tried."""


class DeltaSink(SqlTable):
    """One table in a catalogue, or in the folder `<warehouse>/<namespace>/<table>` if a warehouse is given.

    Delta itself stores the newest batch of each application, and skips batches that it already has.
    """

    def __init__(self, spark: SparkSession, config: TableConfig, name: str) -> None:
        require_class(spark, "io.delta.tables.DeltaTable", ADVICE)
        if EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
            raise Invalid(ADVICE)
        self._folder = ""
        if config.warehouse:
            self._folder = f"{config.warehouse.rstrip('/')}/{'/'.join(name.split('.'))}"
            super().__init__(spark, name, quote_path(["delta", self._folder]))
        else:
            parts = [config.catalog or spark.catalog.currentCatalog(), *name.split(".")]
            super().__init__(spark, name, quote_path(parts))

    @property
    def capabilities(self) -> TableCapabilities:
        """Nested columns always; renaming and widening if the table's properties allow them."""
        properties = PROPERTIES
        if self.load_columns() is not None:
            properties = dict(self._spark.sql(f"SHOW TBLPROPERTIES {self._sql_name}").collect())
        can_widen = properties.get(WIDENING) == "true"
        return TableCapabilities(
            nested=True,
            rename=properties.get(MAPPING) in {"name", "id"},
            widens=can_widen_delta if can_widen else never,
        )

    def load_columns(self) -> StructType | None:
        """Return its columns now, or None if the table does not exist."""
        if not self._table_exists():
            return None
        return self._spark.table(self._sql_name).schema

    def append_batch(self, rows: DataFrame, application: str, batch: int) -> None:
        """Append the rows in one commit that carries the batch number; see `Sink`."""
        if rows.isEmpty():
            return
        for left in reversed(range(MAX_ATTEMPTS)):
            writer = add_missing_columns(rows, self._require_columns()).write.format("delta").mode("append")
            writer = writer.option("txnAppId", application).option("txnVersion", batch)
            try:
                if self._folder:
                    writer.save(self._folder)
                else:
                    writer.saveAsTable(self._sql_name)
                return
            except spark_errors() as error:
                if not error_condition(self._spark, error).startswith(_CONFLICTS):
                    raise
                if not left:
                    raise Conflict(
                        f"other writers keep changing the table {self._name}: {first_line(error)}"
                    ) from error

    def _create_table(self, columns: str) -> None:
        if not self._folder:
            self._run_sql(f"CREATE NAMESPACE IF NOT EXISTS {self._sql_name.rpartition('.')[0]}")
        self._run_sql(
            f"CREATE TABLE IF NOT EXISTS {self._sql_name} ({columns}) USING delta "
            f"TBLPROPERTIES ({format_properties(PROPERTIES)})"
        )

    def _table_exists(self) -> bool:
        if not self._folder:
            return self._spark.catalog.tableExists(self._sql_name)
        tables = get_jvm(self._spark).io.delta.tables.DeltaTable
        return bool(tables.isDeltaTable(get_java_session(self._spark), self._folder))


def can_widen_delta(has: DataType, wanted: DataType) -> bool:
    """Return whether Delta can widen one type to the other.

    It widens as Iceberg does, and whole numbers to double and decimal, decimals to a larger scale, and date to
    timestamp_ntz.
    """
    from pyspark.sql.types import DecimalType

    if iceberg_widens(has, wanted):
        return True
    one = has.simpleString()
    if isinstance(wanted, DecimalType):
        whole = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}.get(one)
        if isinstance(has, DecimalType):
            more = wanted.scale - has.scale
            return more > 0 and wanted.precision - has.precision >= more
        return whole is not None and wanted.precision - wanted.scale >= whole
    return (one, wanted.simpleString()) in _OTHERS


_OTHERS: Final = {*((one, "double") for one in ("tinyint", "smallint", "int")), ("date", "timestamp_ntz")}


def never(_has: DataType, _wanted: DataType) -> bool:
    """Return False: no type can be widened."""
    return False
