"""Iceberg tables through pyiceberg: opened or created, grown to a schema, committed once per batch, read in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from stele.errors import Conflict, Invalid, NotFound, NotInstalled, StoreError
from stele.spark.pipeline.config import TableConfig

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame, SparkSession

BATCH_PROPERTY = "stele.batch."
"""Table property, with the application behind it: the newest batch that is in the table. Set in the same commit."""

PROPERTIES = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "20"}
"""Of tables made here: every batch is a new metadata file, which would pile up for ever."""
TRIES = 5
"""How often a change of columns is tried when other writers come first."""


class Target(NamedTuple):
    """What a task needs to write files of a table; travels to the executors.

    schema      the table's columns as Arrow, with Iceberg's field ids
    folder      where data files go
    properties  how the file system is reached
    """

    schema: pa.Schema
    folder: str
    properties: dict[str, str]


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
    for left in reversed(range(TRIES)):
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


def grown(catalog: Catalog, name: str, schema: pa.Schema) -> tuple[Table, tuple[str, ...]]:
    """The table, made or widened so that it holds the schema, and the dotted paths of the columns it gained.

    Columns are added, at any depth, and types widened (int to long, float to double, decimals to more digits); nothing
    is ever dropped or narrowed. Raises `Conflict` when a column would have to change its type otherwise.
    """
    from pyiceberg.exceptions import CommitFailedException, ValidationError
    from sqlalchemy.exc import IntegrityError

    for left in reversed(range(TRIES)):
        try:
            table = _loaded(catalog, name, schema)
            before = set(table.schema().column_names)
            with table.update_schema() as update:
                update.union_by_name(schema)
            break
        except (CommitFailedException, IntegrityError):
            # another writer was faster, and pyiceberg tries again for data only
            if not left:
                raise
        except (ValidationError, ValueError) as error:
            raise Conflict(f"the table {name} cannot take the new schema: {error}") from error
    added = set(table.schema().column_names) - before
    # of a new struct or list only its own name
    return table, tuple(path for path in table.schema().column_names if path in added and not _parents(path) & added)


def _loaded(catalog: Catalog, name: str, schema: pa.Schema) -> Table:
    """The table, made with the schema when there is none."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        table = catalog.load_table(name)
    except NoSuchTableError:
        catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        return catalog.create_table_if_not_exists(name, schema, properties=PROPERTIES)
    if table.spec().fields:
        raise Invalid(f"the table {name} is partitioned; pipelines write unpartitioned tables")
    return table


def _parents(path: str) -> set[str]:
    parts = path.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts))}


def target(table: Table) -> Target:
    """What tasks need to write files of the table as it is now."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    folder = table.properties.get("write.data.path") or f"{table.location()}/data"
    return Target(schema_to_pyarrow(table.schema()), folder, dict(table.io.properties))


def committed(table: Table, application: str, batch: int) -> bool:
    """Whether the batch, or a later one of the same application, is in the table."""
    return int(table.properties.get(BATCH_PROPERTY + application, -1)) >= batch


def commit(table: Table, files: Sequence[str], application: str, batch: int) -> None:
    """Add the files in one snapshot that carries the batch; nothing happens when it is there already.

    pyiceberg tries again by itself when another writer was faster.
    """
    from pyiceberg.io.pyarrow import parquet_file_to_data_file

    table.refresh()
    if not files or committed(table, application, batch):
        return
    marks = {"stele.application": application, "stele.batch": str(batch)}
    with table.transaction() as transaction:
        transaction.set_properties({BATCH_PROPERTY + application: str(batch)})
        with transaction.update_snapshot(snapshot_properties=marks).fast_append() as append:
            for path in files:
                append.append_data_file(parquet_file_to_data_file(table.io, table.metadata, path))


def discard(table: Table, files: Sequence[str]) -> None:
    """Delete files that will not be committed."""
    for path in files:
        table.io.delete(path)


def iceberg_dataframe(spark: SparkSession, table: Table) -> DataFrame:
    """The table as a DataFrame, read by Spark itself from the data files of the current snapshot, without extra jars.

    Columns are found by Iceberg's field ids, so added, widened and renamed ones are right in old files too. The list of
    files is taken now: call again to see newer snapshots. Raises `Invalid` for tables with delete files.
    """
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    schema = _spark_type(schema_to_pyarrow(table.schema(), include_field_ids=True))
    plan = list(table.scan().plan_files())
    if any(task.delete_files for task in plan):
        raise Invalid("the table has delete files: rewrite it, or read it with pyiceberg")
    if not plan:
        return spark.createDataFrame([], schema)
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    return spark.read.schema(schema).parquet(*(task.file.file_path for task in plan))


def _spark_type(schema: pa.Schema) -> Any:
    """Spark's schema, with the field ids where its Parquet reader looks for them."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    def converted(type_: Any) -> Any:
        if pa.types.is_struct(type_):
            return StructType([field(each) for each in type_])
        if pa.types.is_list(type_) or pa.types.is_large_list(type_):
            return ArrayType(converted(type_.value_type))
        if pa.types.is_map(type_):
            return MapType(converted(type_.key_type), converted(type_.item_type))
        return from_arrow_type(type_)

    def field(each: Any) -> StructField:
        number = int((each.metadata or {})[b"PARQUET:field_id"])
        return StructField(each.name, converted(each.type), metadata={"parquet.field.id": number})

    return StructType([field(each) for each in schema])
