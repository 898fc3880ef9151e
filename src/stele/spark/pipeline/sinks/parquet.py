"""Parquet tables of Spark's own session catalogue, a Hive metastore for one: exactly once without transactions.

Rows are written by Spark into a hidden folder of the batch. A list of its files is the commit: it appears whole or not
at all. Then the files are moved to where readers look, under names that follow from application and batch. Whoever dies
on the way leaves a list whose files can be moved by anybody who comes next, or no list, and then the folder is nothing.

    <location>/stele-<application>-<batch>-<number>.snappy.parquet     what readers see
    <location>/_stele/<application>/<batch>/part-….parquet             written, not yet in the table
    <location>/_stele/<application>/<batch>.json                       the list, of the newest batch only
    <location>/_stele/columns/<number>.json                            the columns, where the catalogue may forget them
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from stele.errors import Conflict, Invalid
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.schema_evolution import Abilities, Change, widens
from stele.spark.pipeline.sinks.columns import applied, filled, literal, nullable, quoted, sql_columns
from stele.spark.pipeline.sinks.hadoop import Folder
from stele.spark.pipeline.sinks.jvm import java_session, jvm
from stele.spark.pipeline.sinks.sql_table import SqlTable, first_line, refusals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

HIDDEN: Final = "_stele"
"""Our folder in the table's. Spark and Hive pass over names that begin like that."""

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
                f"Spark's own catalogue is forgotten with its session: give the table a warehouse, or the session a "
                f'metastore, "{HIVE}" = "hive" in conf of [spark]'
            )
        super().__init__(spark, name, quoted([CATALOG, *name.split(".")]))
        self._given = f"{config.warehouse.rstrip('/')}/{name.replace('.', '/')}" if config.warehouse else ""
        option = jvm(spark).scala.Option.apply
        database, table = name.split(".")
        self._ident = jvm(spark).org.apache.spark.sql.catalyst.TableIdentifier(table, option(database), option(CATALOG))

    @property
    def abilities(self) -> Abilities:
        """Columns are found by their names, so none is renamed; Spark reads old files in wider types."""
        return Abilities(nested=True, rename=False, widens=widens)

    def columns(self) -> StructType | None:
        """Its columns now, from the catalogue; no file is listed. Raises `Invalid` if partitioned or no Parquet."""
        from pyspark.sql.types import StructType

        table = self._table()
        if table is None:
            return None
        found = nullable(StructType.fromJson(json.loads(table.schema().json())))
        assert isinstance(found, StructType)
        return found

    def read(self) -> DataFrame:
        """The table, with what other sessions have written. Raises `NotFound` while there is none."""
        self._needed()
        self._refresh()
        return super().read()

    def append(self, rows: DataFrame, application: str, batch: int) -> None:
        """Stage the rows, list their files, move them in; see the module and `Sink`."""
        columns, folder = self._needed(), self._folder()
        home = f"{HIDDEN}/{quote(application, safe='')}"
        if self._finish(folder, home) >= batch or rows.isEmpty():
            return
        for dead in folder.names(home, folders=True):
            folder.delete(f"{home}/{dead}")
        self._stage(filled(rows, columns), folder.full(f"{home}/{batch}"))
        staged = [name for name in folder.names(f"{home}/{batch}") if name.endswith(".parquet")]
        folder.write(f"{home}/{batch}.json", json.dumps(staged))
        self._finish(folder, home)

    def _finish(self, folder: Folder, home: str) -> int:
        """Move in what is listed and not yet moved; the newest batch that is in the table, -1 for none."""
        listed = sorted(int(name.removesuffix(".json")) for name in folder.names(home) if name.endswith(".json"))
        if not listed:
            return -1
        newest = listed[-1]
        staged = set(folder.names(f"{home}/{newest}"))
        if staged:
            names = json.loads(folder.read(f"{home}/{newest}.json"))
            application = home.rpartition("/")[2]
            for number, name in enumerate(names):
                # one that is not there was moved before, perhaps to be replaced by another writer since
                if name in staged:
                    self._move(folder, f"{home}/{newest}/{name}", f"stele-{application}-{newest}-{number:05}", name)
            folder.delete(f"{home}/{newest}")
        for old in listed[:-1]:
            folder.delete(f"{home}/{old}.json")
        self._refresh()
        return newest

    @staticmethod
    def _move(folder: Folder, path: str, to: str, name: str) -> None:
        """Move a file in, with the ending of its name. Where moving is copying, it may be there already."""
        target = f"{to}.{name.partition('.')[2]}"
        if not folder.exists(target):
            folder.move(path, target)

    def _stage(self, rows: DataFrame, path: str) -> None:
        rows.write.parquet(path)

    def _create(self, columns: str) -> None:
        self._sql(f"CREATE DATABASE IF NOT EXISTS {self._place.rpartition('.')[0]}")
        location = f" LOCATION {literal(self._given)}" if self._given else ""
        self._sql(f"CREATE TABLE IF NOT EXISTS {self._place} ({columns}) USING parquet{location}")
        if self._given:
            self._remember(self._needed())

    def _grow(self, changes: Sequence[Change], wanted: StructType) -> None:
        """Columns at the top could be added with SQL; the catalogue's own call takes nested and wider ones, too."""
        columns = applied(self._needed(), changes, wanted)
        if self._given:
            self._remember(columns)
        made = jvm(self._spark).org.apache.spark.sql.types.DataType.fromJson(columns.json())
        try:
            self._catalogue.alterTableDataSchema(self._ident, made)
        except refusals() as error:
            advice = ADVICE if self._spark.conf.get(HIVE, "") == "hive" else ""
            raise Conflict(f"the table {self._name} cannot be changed: {first_line(error)}{advice}") from error
        self._refresh()

    @property
    def _catalogue(self) -> Any:
        return java_session(self._spark).sessionState().catalog()

    def _table(self) -> Any:
        """What the catalogue knows of the table, None when there is none."""
        if not self._spark.catalog.tableExists(self._place) and not self._recalled():
            return None
        table = self._catalogue.getTableMetadata(self._ident)
        if table.partitionColumnNames().nonEmpty():
            raise Invalid(f"the table {self._name} is partitioned; pipelines write unpartitioned tables")
        provider = table.provider()
        if provider.isEmpty() or str(provider.get()).lower() != "parquet":
            raise Invalid(f"the table {self._name} is there and is of another kind than parquet")
        return table

    def _folder(self) -> Folder:
        location = self._table().location()
        return Folder(self._spark, str(jvm(self._spark).org.apache.hadoop.fs.Path(location).toString()))

    def _refresh(self) -> None:
        """Let this session look for files again; REFRESH TABLE would look at once, through all of them."""
        self._catalogue.refreshTable(self._ident)

    def _remember(self, columns: StructType) -> None:
        """Write the columns into the table's folder: a catalogue in memory is gone with its session, files are not."""
        folder, home = Folder(self._spark, self._given), f"{HIDDEN}/columns"
        known = sorted(folder.names(home))
        number = int(known[-1].removesuffix(".json")) + 1 if known else 0
        folder.write(f"{home}/{number:08}.json", columns.json())
        for old in known:
            folder.delete(f"{home}/{old}")

    def _recalled(self) -> bool:
        """Whether the table's folder knew the columns, and the catalogue now does again."""
        from pyspark.sql.types import StructType

        if not self._given:
            return False
        folder, home = Folder(self._spark, self._given), f"{HIDDEN}/columns"
        known = folder.names(home)
        if not known:
            return False
        columns = StructType.fromJson(json.loads(folder.read(f"{home}/{known[-1]}")))
        self._sql(f"CREATE DATABASE IF NOT EXISTS {self._place.rpartition('.')[0]}")
        self._sql(
            f"CREATE TABLE IF NOT EXISTS {self._place} ({sql_columns(columns)}) USING parquet "
            f"LOCATION {literal(self._given)}"
        )
        return True
