"""Parquet tables of Spark's session catalogue, such as a Hive metastore, written exactly once without transactions.

Spark writes the rows into a hidden folder of the batch. A list of its files is the commit: it appears atomically. Then
the files are moved into the table's folder, under names made from application and batch. After a crash there is either
a list, and the next writer moves its files, or no list, and the next writer deletes the hidden folder.

    <location>/stele-<application>-<batch>-<number>.snappy.parquet     what readers see
    <location>/_stele/<application>/<batch>/part-….parquet             written, not yet in the table
    <location>/_stele/<application>/<batch>.json                       the list, of the newest batch only
    <location>/_stele/columns/<number>.json                            the columns, where the catalogue may lose them
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from stele.errors import Conflict, Invalid
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.schema_evolution import (
    ColumnChange,
    TableCapabilities,
    can_widen,
    change_schema,
    make_nullable,
)
from stele.spark.pipeline.sinks.sql_table import (
    HadoopFolder,
    SqlTable,
    add_missing_columns,
    first_line,
    format_columns,
    get_java_session,
    get_jvm,
    quote_string,
    spark_errors,
)
from stele.spark.types.names import quote_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

HIDDEN: Final = "_stele"
"""Name of Stele's folder in the table's folder. Spark and Hive ignore names that begin with an underscore."""

CATALOG: Final = "spark_catalog"
HIVE: Final = "spark.sql.catalogImplementation"

_STRICT: Final = "hive.metastore.disallow.incompatible.col.type.changes"
ADVICE: Final = (
    f". A metastore takes new columns inside of others when it has {_STRICT} = false; for one of the session's own "
    f'add "spark.hadoop.{_STRICT}" = "false" to conf of [spark]'
)


class ParquetSink(SqlTable):
    """One table of the session catalogue; in the folder `<warehouse>/<namespace>/<table>` if a warehouse is given."""

    def __init__(self, spark: SparkSession, config: TableConfig, name: str) -> None:
        if name.count(".") != 1:
            raise Invalid(f"a table of Spark's session catalogue is called database.table, not {name}")
        if not config.warehouse and spark.conf.get(HIVE, "in-memory") != "hive":
            raise Invalid(
                f"Spark's own catalogue ends with its session: give the table a warehouse, or the session a "
                f'metastore, "{HIVE}" = "hive" in conf of [spark]'
            )
        super().__init__(spark, name, quote_path([CATALOG, *name.split(".")]))
        self._given = f"{config.warehouse.rstrip('/')}/{name.replace('.', '/')}" if config.warehouse else ""
        option = get_jvm(spark).scala.Option.apply
        database, table = name.split(".")
        self._ident = get_jvm(spark).org.apache.spark.sql.catalyst.TableIdentifier(
            table, option(database), option(CATALOG)
        )

    @property
    def capabilities(self) -> TableCapabilities:
        """Columns are matched by name, so none can be renamed; Spark can read old files in wider types."""
        return TableCapabilities(nested=True, rename=False, widens=can_widen)

    def load_columns(self) -> StructType | None:
        """Return its columns from the catalogue, without listing files.

        Raises `Invalid` for a partitioned table, and for a table that is not Parquet.
        """
        from pyspark.sql.types import StructType

        table = self._load_metadata()
        if table is None:
            return None
        columns = make_nullable(StructType.fromJson(json.loads(table.schema().json())))
        assert isinstance(columns, StructType)
        return columns

    def read_table(self) -> DataFrame:
        """Return the table, including rows that other sessions wrote. Raises `NotFound` if it does not exist."""
        self._require_columns()
        self._refresh_table()
        return super().read_table()

    def append_batch(self, rows: DataFrame, application: str, batch: int) -> None:
        """Stage the rows, write the list of their files, and move the files into the table; see module and `Sink`."""
        columns, folder = self._require_columns(), self._table_folder()
        home = f"{HIDDEN}/{quote(application, safe='')}"
        if self._publish_staged(folder, home) >= batch or rows.isEmpty():
            return
        for dead in folder.list_names(home, folders=True):
            folder.delete_path(f"{home}/{dead}")
        self._stage_rows(add_missing_columns(rows, columns), folder.full_path(f"{home}/{batch}"))
        staged = [name for name in folder.list_names(f"{home}/{batch}") if name.endswith(".parquet")]
        folder.write_text(f"{home}/{batch}.json", json.dumps(staged))
        self._publish_staged(folder, home)

    def _publish_staged(self, folder: HadoopFolder, home: str) -> int:
        """Move listed files that are not moved yet. Return the newest batch in the table, -1 for none."""
        listed = sorted(int(name.removesuffix(".json")) for name in folder.list_names(home) if name.endswith(".json"))
        if not listed:
            return -1
        newest = listed[-1]
        staged = set(folder.list_names(f"{home}/{newest}"))
        if staged:
            names = json.loads(folder.read_text(f"{home}/{newest}.json"))
            application = home.rpartition("/")[2]
            for number, name in enumerate(names):
                # a missing file was moved before; another writer may have replaced it since
                if name in staged:
                    self._move_file(
                        folder, f"{home}/{newest}/{name}", f"stele-{application}-{newest}-{number:05}", name
                    )
            folder.delete_path(f"{home}/{newest}")
        for old in listed[:-1]:
            folder.delete_path(f"{home}/{old}.json")
        self._refresh_table()
        return newest

    @staticmethod
    def _move_file(folder: HadoopFolder, path: str, to: str, name: str) -> None:
        """Move a file into the table, unless it is there. The file name's suffix is kept.

        On file systems where a move is a copy, the file can be there already.
        """
        target = f"{to}.{name.partition('.')[2]}"
        if not folder.exists(target):
            folder.move_file(path, target)

    def _stage_rows(self, rows: DataFrame, path: str) -> None:
        rows.write.parquet(path)

    def _create_table(self, columns: str) -> None:
        self._run_sql(f"CREATE DATABASE IF NOT EXISTS {self._sql_name.rpartition('.')[0]}")
        location = f" LOCATION {quote_string(self._given)}" if self._given else ""
        self._run_sql(f"CREATE TABLE IF NOT EXISTS {self._sql_name} ({columns}) USING parquet{location}")
        if self._given:
            self._save_columns(self._require_columns())

    def _add_and_widen(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        """Change the columns by a call of the catalogue. SQL can only add columns at the top level."""
        columns = change_schema(self._require_columns(), changes, wanted)
        if self._given:
            self._save_columns(columns)
        java_columns = get_jvm(self._spark).org.apache.spark.sql.types.DataType.fromJson(columns.json())
        try:
            self._session_catalog.alterTableDataSchema(self._ident, java_columns)
        except spark_errors() as error:
            advice = ADVICE if self._spark.conf.get(HIVE, "") == "hive" else ""
            raise Conflict(f"the table {self._name} cannot be changed: {first_line(error)}{advice}") from error
        self._refresh_table()

    def _set_comments(self, changes: Sequence[ColumnChange]) -> None:
        if changes:
            self._add_and_widen(changes, self._require_columns())

    @property
    def _session_catalog(self) -> Any:
        return get_java_session(self._spark).sessionState().catalog()

    def _load_metadata(self) -> Any:
        """Return the catalogue's metadata of the table, or None if the table does not exist."""
        if not self._spark.catalog.tableExists(self._sql_name) and not self._restore_table():
            return None
        table = self._session_catalog.getTableMetadata(self._ident)
        if table.partitionColumnNames().nonEmpty():
            raise Invalid(f"the table {self._name} is partitioned; pipelines write unpartitioned tables")
        provider = table.provider()
        if provider.isEmpty() or str(provider.get()).lower() != "parquet":
            raise Invalid(f"the table {self._name} exists and is not a Parquet table")
        return table

    def _table_folder(self) -> HadoopFolder:
        location = self._load_metadata().location()
        return HadoopFolder(self._spark, str(get_jvm(self._spark).org.apache.hadoop.fs.Path(location).toString()))

    def _refresh_table(self) -> None:
        """Make this session list the files again at the next read. REFRESH TABLE would list them all at once."""
        self._session_catalog.refreshTable(self._ident)

    def _save_columns(self, columns: StructType) -> None:
        """Write the columns into the table's folder, because an in-memory catalogue loses them with its session."""
        folder, home = HadoopFolder(self._spark, self._given), f"{HIDDEN}/columns"
        known = sorted(folder.list_names(home))
        number = int(known[-1].removesuffix(".json")) + 1 if known else 0
        folder.write_text(f"{home}/{number:08}.json", columns.json())
        for old in known:
            folder.delete_path(f"{home}/{old}")

    def _restore_table(self) -> bool:
        """Create the table again from the columns in its folder. Return whether they were there."""
        from pyspark.sql.types import StructType

        if not self._given:
            return False
        folder, home = HadoopFolder(self._spark, self._given), f"{HIDDEN}/columns"
        known = folder.list_names(home)
        if not known:
            return False
        columns = StructType.fromJson(json.loads(folder.read_text(f"{home}/{known[-1]}")))
        self._run_sql(f"CREATE DATABASE IF NOT EXISTS {self._sql_name.rpartition('.')[0]}")
        self._run_sql(
            f"CREATE TABLE IF NOT EXISTS {self._sql_name} ({format_columns(columns)}) USING parquet "
            f"LOCATION {quote_string(self._given)}"
        )
        return True
