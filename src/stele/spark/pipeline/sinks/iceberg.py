"""Iceberg tables through pyiceberg: no jar, a catalogue in an SQL database, data files written by the tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from stele.errors import Conflict, Invalid, NotFound
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.iceberg import iceberg_dataframe, open_catalog
from stele.spark.pipeline.schema_evolution import ColumnChange, TableCapabilities, can_widen
from stele.spark.pipeline.sinks import iceberg_maintenance as upkeep
from stele.spark.pipeline.sinks.columns import is_applied
from stele.spark.pipeline.sinks.file_writer import RESULT_DDL, FileTarget, PartitionWriter
from stele.spark.pipeline.sinks.iceberg_types import iceberg_schema, spark_schema

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

BATCH_PROPERTY: Final = "stele.batch."
"""Table property, with the application behind it: the newest batch that is in the table. Set in the same commit."""

MAX_ATTEMPTS: Final = 10
"""How often a change of columns is tried when other writers come first."""


class IcebergSink:
    """One table. Data files of a batch have a folder of their own, `<data>/stele-<application>/<batch>`, so what a dead
    attempt left is found without listing the table."""

    def __init__(self, spark: SparkSession, config: TableConfig, name: str) -> None:
        self._spark, self._config, self._name = spark, config, name
        self._catalog = open_catalog(config)

    @property
    def name(self) -> str:
        """`namespace.table`."""
        return self._name

    @property
    def capabilities(self) -> TableCapabilities:
        """Everything Iceberg can."""
        return TableCapabilities(nested=True, rename=True, widens=can_widen)

    def load_columns(self) -> StructType | None:
        """Its columns now. Raises `Invalid` for a partitioned table, and for types that Spark lacks."""
        table = self._load_table()
        return None if table is None else spark_schema(table.schema())

    def apply_changes(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        """Rename, then add and widen in one step; see `Sink`."""
        from pyiceberg.exceptions import CommitFailedException, ValidationError
        from sqlalchemy.exc import IntegrityError

        for left in reversed(range(MAX_ATTEMPTS)):
            try:
                self._evolve_schema(changes, wanted)
                return
            except (CommitFailedException, IntegrityError) as error:
                # another writer was faster, and pyiceberg tries again for data only
                if not left:
                    raise Conflict(f"other writers keep changing the columns of {self._name}: {error}") from error
            except (ValidationError, ValueError) as error:
                raise Conflict(f"the table {self._name} cannot take the new schema: {error}") from error

    def append_batch(self, rows: DataFrame, application: str, batch: int) -> None:
        """Write the rows' files in the tasks, then name them all in one commit that carries the batch; see `Sink`."""
        table = self._require_table()
        if is_committed(table, application, batch):
            return
        folder = table.properties.get("write.data.path") or f"{table.location()}/data"
        folder = f"{folder}/stele-{application}/{batch}"
        upkeep.delete_unreferenced(table, folder)
        files = self._write_files(rows, table, folder, f"stele-{application}-{batch}-")
        if files:
            commit_files(table, files, application, batch)
            upkeep.delete_unreferenced(table, folder, keep=frozenset(files))
            upkeep.expire_snapshots(table)

    def read_table(self) -> DataFrame:
        """The table as it is now. Raises `NotFound`, `Invalid` when it has delete files."""
        return iceberg_dataframe(self._spark, self._require_table())

    def _load_table(self) -> Table | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            table = self._catalog.load_table(self._name)
        except NoSuchTableError:
            return None
        if table.spec().fields:
            raise Invalid(f"the table {self._name} is partitioned; pipelines write unpartitioned tables")
        return table

    def _require_table(self) -> Table:
        table = self._load_table()
        if table is None:
            raise NotFound(f"there is no table {self._name} in {self._config.catalog}")
        return table

    def _evolve_schema(self, changes: Iterable[ColumnChange], wanted: StructType) -> None:
        schema = iceberg_schema(wanted)
        table = self._load_table()
        if table is None:
            self._catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
            table = self._catalog.create_table_if_not_exists(self._name, schema, properties=upkeep.PROPERTIES)
        for change in changes:
            if change.kind == "rename" and not is_applied(change, spark_schema(table.schema()), wanted):
                with table.update_schema() as update:
                    update.rename_column(change.path, change.to)
        with table.update_schema() as update:
            update.union_by_name(schema)

    def _write_files(self, rows: DataFrame, table: Table, folder: str, prefix: str) -> list[str]:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        target = FileTarget(schema_to_pyarrow(table.schema()), folder, prefix, dict(table.io.properties))
        # mapInArrow looks its columns up by name and stumbles over dots and quotes in them
        plain = rows.toDF(*(f"c{number}" for number in range(len(rows.columns))))
        return [path for path, _ in plain.mapInArrow(PartitionWriter(target, rows.columns), RESULT_DDL).collect()]


def is_committed(table: Table, application: str, batch: int) -> bool:
    """Whether the batch, or a later one of the same application, is in the table."""
    return int(table.properties.get(BATCH_PROPERTY + application, -1)) >= batch


def commit_files(table: Table, files: Sequence[str], application: str, batch: int) -> None:
    """Add the files in one snapshot that carries the batch; pyiceberg tries again when another writer was faster."""
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    marks = {"stele.application": application, "stele.batch": str(batch)}
    with table.transaction() as transaction:
        transaction.set_properties({BATCH_PROPERTY + application: str(batch)})
        with transaction.update_snapshot(snapshot_properties=marks).merge_append() as append:
            for path in files:
                append.append_data_file(parquet_file_to_data_file(table.io, table.metadata, path))
