"""Iceberg tables through pyiceberg: types, opening, reading in Spark, writing and maintenance.

They need an SQL catalogue and no jar. Maintenance deletes old metadata and snapshots, so that a table with many batches
does not grow without end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Final

from stele.errors import Conflict, Invalid, NotFound, NotInstalled, StoreError
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.schema_evolution import ColumnChange, TableCapabilities, can_widen, is_applied
from stele.spark.types.metadata import COMMENT, comment_of

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import IcebergType, NestedField
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_PAIRS: Final = {
    "boolean": ("BooleanType", "BooleanType"),
    "int": ("IntegerType", "IntegerType"),
    "bigint": ("LongType", "LongType"),
    "float": ("FloatType", "FloatType"),
    "double": ("DoubleType", "DoubleType"),
    "date": ("DateType", "DateType"),
    "time(6)": ("TimeType", "TimeType"),
    "timestamp_ntz": ("TimestampType", "TimestampNTZType"),
    "timestamp": ("TimestamptzType", "TimestampType"),
    "string": ("StringType", "StringType"),
    "binary": ("BinaryType", "BinaryType"),
}
"""Class names of a type in Iceberg and in Spark, by Spark's SQL name. Spark before 4.1 has no time type."""
_ONE_WAY: Final = {"tinyint": "IntegerType", "smallint": "IntegerType"}
_OTHER_WAY: Final = {"UUIDType": "StringType", "FixedType": "BinaryType"}

ID: Final = "parquet.field.id"
"""Key under which Spark's Parquet reader looks for the id of a field."""


def iceberg_schema(struct: StructType) -> Schema:
    """Return the columns of a table, all optional, with ids from 1. Raises `Invalid` for types that Iceberg lacks."""
    import pyiceberg.types as iceberg
    from pyiceberg.schema import Schema
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    numbers = count(1)

    def fields(struct: StructType, path: str) -> list[NestedField]:
        return [
            iceberg.NestedField(
                next(numbers),
                each.name,
                convert_type(each.dataType, f"{path}{each.name}."),
                required=False,
                doc=comment_of(each) or None,
            )
            for each in struct.fields
        ]

    def convert_type(type_: DataType, path: str) -> IcebergType:
        match type_:
            case StructType():
                return iceberg.StructType(*fields(type_, path))
            case ArrayType():
                element = convert_type(type_.elementType, f"{path}element.")
                return iceberg.ListType(next(numbers), element, element_required=False)
            case MapType():
                key, value = convert_type(type_.keyType, f"{path}key."), convert_type(type_.valueType, f"{path}value.")
                return iceberg.MapType(next(numbers), key, next(numbers), value, value_required=False)
            case DecimalType():
                return iceberg.DecimalType(type_.precision, type_.scale)
        word = type_.simpleString()
        name = _ONE_WAY.get(word) or _PAIRS.get(word, ("", ""))[0]
        if not name:
            raise Invalid(f"column {path.rstrip('.')}: Iceberg has no type for {word}")
        plain: IcebergType = getattr(iceberg, name)()
        return plain

    return Schema(*fields(struct, ""))


def spark_schema(schema: Schema, *, ids: bool = False) -> StructType:
    """Return the columns of a table as Spark reads them; with `ids`, their metadata has Iceberg's field ids.

    Raises `Invalid` for types that Spark lacks.
    """
    import pyiceberg.types as iceberg
    import pyspark.sql.types as spark

    back = _OTHER_WAY | dict(_PAIRS.values())

    def struct(fields: tuple[NestedField, ...], path: str) -> StructType:
        return spark.StructType([field(each, f"{path}{each.name}.") for each in fields])

    def field(each: NestedField, path: str) -> spark.StructField:
        metadata: dict[str, int | str] = {ID: each.field_id} if ids else {}
        if each.doc:
            metadata[COMMENT] = each.doc
        return spark.StructField(each.name, convert_type(each.field_type, path), metadata=metadata)

    def convert_type(type_: IcebergType, path: str) -> DataType:
        match type_:
            case iceberg.StructType():
                return struct(type_.fields, path)
            case iceberg.ListType():
                return spark.ArrayType(convert_type(type_.element_type, f"{path}element."))
            case iceberg.MapType():
                key, value = (
                    convert_type(type_.key_type, f"{path}key."),
                    convert_type(type_.value_type, f"{path}value."),
                )
                return spark.MapType(key, value)
            case iceberg.DecimalType():
                return spark.DecimalType(type_.precision, type_.scale)
        plain = getattr(spark, back.get(type(type_).__name__, ""), None)
        if plain is None:
            raise Invalid(f"column {path.rstrip('.')}: Spark has no type for {type_}")
        converted: DataType = plain()
        return converted

    return struct(schema.fields, "")


CATALOG_NAME: Final = "stele"
"""Name of the catalogue. Readers must use the same name to find the tables."""
OPEN_ATTEMPTS = 5
"""How often opening a catalogue is tried while another process creates it."""

BATCH_PROPERTY: Final = "stele.batch."
"""Prefix of the table property with the newest batch of an application, whose name follows. Set in the same commit."""

MAX_ATTEMPTS: Final = 10
"""How often a change of columns is tried when other writers commit first."""


class IcebergSink:
    """One table.

    Data files of a batch have a folder of their own, `<data>/stele-<application>/<batch>`. So the files of a failed
    attempt are found without listing the table.
    """

    def __init__(self, spark: SparkSession, config: TableConfig, name: str) -> None:
        self._spark, self._config, self._name = spark, config, name
        self._catalog = open_catalog(config)

    @property
    def name(self) -> str:
        """Name of the table, `namespace.table`."""
        return self._name

    @property
    def capabilities(self) -> TableCapabilities:
        """Every change that Iceberg supports."""
        return TableCapabilities(nested=True, rename=True, widens=can_widen)

    def load_columns(self) -> StructType | None:
        """Return its columns now. Raises `Invalid` for a partitioned table, and for types that Spark lacks."""
        table = self._load_table()
        return None if table is None else spark_schema(table.schema())

    def apply_changes(self, changes: Sequence[ColumnChange], wanted: StructType) -> None:
        """Rename, then add, widen and comment in one step; see `Sink`."""
        from pyiceberg.exceptions import CommitFailedException, ValidationError
        from sqlalchemy.exc import IntegrityError

        for left in reversed(range(MAX_ATTEMPTS)):
            try:
                self._evolve_schema(changes, wanted)
                return
            except (CommitFailedException, IntegrityError) as error:
                # another writer committed first, and pyiceberg retries commits of data only
                if not left:
                    raise Conflict(f"other writers keep changing the columns of {self._name}: {error}") from error
            except (ValidationError, ValueError) as error:
                raise Conflict(f"the table {self._name} cannot take the new schema: {error}") from error

    def append_batch(self, rows: DataFrame, application: str, batch: int) -> None:
        """Write the rows' files in tasks, then commit them in one snapshot that carries the batch; see `Sink`."""
        table = self._require_table()
        if is_committed(table, application, batch):
            return
        folder = table.properties.get("write.data.path") or f"{table.location()}/data"
        folder = f"{folder}/stele-{application}/{batch}"
        delete_unreferenced(table, folder)
        files = self._write_files(rows, table, folder, f"stele-{application}-{batch}-")
        if files:
            commit_files(table, files, application, batch)
            delete_unreferenced(table, folder, keep=frozenset(files))
            expire_snapshots(table)

    def read_table(self) -> DataFrame:
        """Return the table as it is now. Raises `NotFound`, `Invalid` when it has delete files."""
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
            table = self._catalog.create_table_if_not_exists(self._name, schema, properties=PROPERTIES)
        for change in changes:
            if change.kind == "rename" and not is_applied(change, spark_schema(table.schema()), wanted):
                with table.update_schema() as update:
                    update.rename_column(change.path, change.to)
        with table.update_schema() as update:
            update.union_by_name(schema)

    def _write_files(self, rows: DataFrame, table: Table, folder: str, prefix: str) -> list[str]:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        from stele.spark.pipeline.sinks.file_writer import RESULT_DDL, FileTarget, PartitionWriter

        target = FileTarget(schema_to_pyarrow(table.schema()), folder, prefix, dict(table.io.properties))
        # mapInArrow looks up columns by name, and fails for names with dots or quotes
        plain = rows.toDF(*(f"c{number}" for number in range(len(rows.columns))))
        return [path for path, _ in plain.mapInArrow(PartitionWriter(target, rows.columns), RESULT_DDL).collect()]


def is_committed(table: Table, application: str, batch: int) -> bool:
    """Return whether the batch, or a later one of the same application, is in the table."""
    return int(table.properties.get(BATCH_PROPERTY + application, -1)) >= batch


def commit_files(table: Table, files: Sequence[str], application: str, batch: int) -> None:
    """Add the files in one snapshot that carries the batch; pyiceberg retries if another writer commits first."""
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    marks = {"stele.application": application, "stele.batch": str(batch)}
    with table.transaction() as transaction:
        transaction.set_properties({BATCH_PROPERTY + application: str(batch)})
        with transaction.update_snapshot(snapshot_properties=marks).merge_append() as append:
            for path in files:
                append.append_data_file(parquet_file_to_data_file(table.io, table.metadata, path))


def open_catalog(config: TableConfig) -> Catalog:
    """Return the SQL catalog. Raises `NotInstalled`, `StoreError` when its database cannot be opened."""
    try:
        from pyiceberg.catalog.sql import SqlCatalog
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as missing:
        raise NotInstalled("pyiceberg with SQLAlchemy", "spark") from missing
    warehouse = warehouse_address(config)
    if warehouse.startswith("file://"):
        _make_folder(warehouse.removeprefix("file://"))
    if config.catalog.startswith("sqlite:///"):
        _make_folder(config.catalog.removeprefix("sqlite:///").rpartition("/")[0])
    for left in reversed(range(OPEN_ATTEMPTS)):
        try:
            return SqlCatalog(CATALOG_NAME, uri=config.catalog, warehouse=warehouse)
        except SQLAlchemyError as error:
            # another process may be creating the same tables in a new database
            if not left:
                raise StoreError(f"the catalog {config.catalog} cannot be opened: {error}") from error
    raise AssertionError("unreachable")


def warehouse_address(config: TableConfig) -> str:
    """Return the URI of the warehouse folder for the catalogue."""
    return config.warehouse if "://" in config.warehouse else f"file://{config.warehouse}"


def _make_folder(path: str) -> None:
    from pathlib import Path

    Path(path or ".").mkdir(parents=True, exist_ok=True)


def open_table(config: TableConfig, name: str = "") -> Table:
    """Return the pipeline's table, or the named table of its catalogue. Raises `NotFound`."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return open_catalog(config).load_table(name or config.name)
    except NoSuchTableError as error:
        raise NotFound(f"there is no table {name or config.name} in {config.catalog}") from error


def iceberg_dataframe(spark: SparkSession, table: Table) -> DataFrame:
    """Return the table as a DataFrame that Spark reads from the files of the current snapshot, without extra jars.

    Columns are matched by Iceberg's field ids, so added, widened and renamed columns are right in old files, too. The
    list of files is made now: call again to see newer snapshots. Raises `Invalid` for tables with delete files.
    """
    schema = spark_schema(table.schema(), ids=True)
    plan = list(table.scan().plan_files())
    if any(task.delete_files for task in plan):
        raise Invalid("the table has delete files: rewrite it, or read it with pyiceberg")
    if not plan:
        return spark.createDataFrame([], schema)
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    return spark.read.schema(schema).parquet(*(task.file.file_path for task in plan))


LEAST: Final = "history.expire.min-snapshots-to-keep"
OLDEST: Final = "history.expire.max-snapshot-age-ms"

PROPERTIES: Final = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.manifest-merge.enabled": "true",
    LEAST: "100",
    OLDEST: str(24 * 3600 * 1000),
}
"""Properties of tables created here. They limit old metadata files, manifests and snapshots, as each batch adds one."""

TOGETHER: Final = 50
"""Number of expired snapshots at which they are dropped together, so that not every batch drops one."""


def delete_unreferenced(table: Table, folder: str, keep: frozenset[str] = frozenset()) -> list[str]:
    """Delete the files of a folder that no snapshot of the table names, except those to keep. Return their paths."""
    strange = {
        path for path in _list_files(table, folder) if _file_name(path) not in {_file_name(each) for each in keep}
    }
    if strange:
        named = {_file_name(path) for path in _referenced_files(table)}
        strange = {path for path in strange if _file_name(path) not in named}
    for path in strange:
        table.io.delete(path)
    return sorted(strange)


def _file_name(path: str) -> str:
    """Return a file's own name, which is unique. One file can have several addresses (`file:/x`, `/x`)."""
    return path.rpartition("/")[2]


def _list_files(table: Table, folder: str) -> Iterator[str]:
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFileIO

    if not isinstance(table.io, PyArrowFileIO):
        return
    scheme, netloc, path = PyArrowFileIO.parse_location(folder)
    files = table.io.fs_by_scheme(scheme, netloc)
    for info in files.get_file_info(FileSelector(path, allow_not_found=True)):
        if info.type == FileType.File:
            yield f"{folder}/{info.base_name}"


def _referenced_files(table: Table) -> Iterator[str]:
    """Yield the data files that any snapshot of the table names."""
    seen: set[str] = set()
    for snapshot in table.snapshots():
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in seen:
                seen.add(manifest.manifest_path)
                yield from (entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))


def expire_snapshots(table: Table) -> int:
    """Drop old snapshots as the table's properties define, and delete the metadata files that only they used.

    Tables without these properties keep all snapshots. Data files stay, even those that another writer has replaced.
    Returns the number of snapshots that were dropped.
    """
    from pyiceberg.exceptions import CommitFailedException

    old = _expirable_snapshots(table)
    if len(old) < TOGETHER:
        return 0
    before = {path for snapshot in old for path in _metadata_files(table, snapshot)}
    try:
        table.maintenance.expire_snapshots().by_ids([snapshot.snapshot_id for snapshot in old]).commit()
    except CommitFailedException:
        return 0  # another writer committed first; the next batch tries again
    still = {path for snapshot in table.refresh().snapshots() for path in _metadata_files(table, snapshot)}
    for path in before - still:
        with suppress(FileNotFoundError):
            table.io.delete(path)
    return len(old)


def _expirable_snapshots(table: Table) -> list[Snapshot]:
    """Return the snapshots that can be dropped.

    They are older than the configured age, not among the newest ones, and no branch or tag points at them.
    """
    least, oldest = table.properties.get(LEAST, ""), table.properties.get(OLDEST, "")
    if not (re.fullmatch(r"\d+", least) and re.fullmatch(r"\d+", oldest)):
        return []
    until = (datetime.now(UTC) - timedelta(milliseconds=int(oldest))).timestamp() * 1000
    referenced_ids = {ref.snapshot_id for ref in table.refs().values()}
    snapshots = sorted(table.snapshots(), key=lambda each: (each.sequence_number or 0, each.timestamp_ms))
    ahead = snapshots[: max(0, len(snapshots) - max(1, int(least)))]
    return [each for each in ahead if each.timestamp_ms < until and each.snapshot_id not in referenced_ids]


def _metadata_files(table: Table, snapshot: Snapshot) -> set[str]:
    manifests = {manifest.manifest_path for manifest in snapshot.manifests(table.io)}
    return manifests | ({snapshot.manifest_list} if snapshot.manifest_list else set())
