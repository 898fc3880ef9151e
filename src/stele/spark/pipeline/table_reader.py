"""The first rows of a pipeline's table, and snippets that open the table in other tools.

Rows are read by pyiceberg or pyarrow if possible, else by Spark. Snippets exist for pyiceberg, DuckDB and Trino.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from stele.errors import Invalid, NotFound
from stele.spark.pipeline.config import PipelineConfig, TableConfig
from stele.spark.pipeline.runner import StartSession, find_session, open_session
from stele.spark.pipeline.sinks.iceberg import CATALOG_NAME, warehouse_address
from stele.spark.session import local_session

if TYPE_CHECKING:
    import pyarrow as pa


class TableHead(NamedTuple):
    """Some rows of a table; `more` is true if the table has further rows."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    more: bool


def read_table_head(config: PipelineConfig, name: str, limit: int, start: StartSession = local_session) -> TableHead:
    """Return rows of a table, in no order; Spark is started only for tables that pyiceberg and pyarrow cannot read.

    Args:
        config: The pipeline.
        name: `namespace.table`, of rows or of dead letters.
        limit: Maximum number of rows.
        start: Creates the session if one is needed.

    Raises:
        NotFound: The table does not exist yet.
        StoreError: Its catalogue cannot be opened.
        SteleError: An error of `open_sink`, if Spark reads the table.
    """
    match config.table.kind:
        case "iceberg":
            return _take_rows(_read_iceberg(config.table, name, limit + 1), limit)
        case "parquet" if config.table.warehouse:
            return _take_rows(_read_parquet(config.table, name, limit + 1), limit)
        case _:
            return _read_with_spark(config, name, limit, start)


def _take_rows(tables: Sequence[pa.Table], limit: int) -> TableHead:
    """Return the rows of tables whose columns can differ; a newer file can have more columns."""
    columns = tuple(dict.fromkeys(column for table in reversed(tables) for column in table.column_names))
    rows = [tuple(map(row.get, columns)) for table in tables for row in table.to_pylist()]
    return TableHead(columns, rows[:limit], len(rows) > limit)


def _read_iceberg(config: TableConfig, name: str, most: int) -> list[pa.Table]:
    from stele.spark.pipeline.sinks.iceberg import open_table

    place = config.catalog.removeprefix("sqlite:///")
    if place != config.catalog and not Path(place).exists():  # opening the catalogue would create it
        raise NotFound(f"there is no table {name} yet: {place} does not exist")
    return [open_table(config, name).scan(limit=most).to_arrow()]


def _read_parquet(config: TableConfig, name: str, most: int) -> list[pa.Table]:
    import pyarrow.dataset as ds
    from pyarrow.fs import FileSystem, FileType

    address = f"{config.warehouse.rstrip('/')}/{name.replace('.', '/')}"
    files, folder = FileSystem.from_uri(address)
    if files.get_file_info(folder).type != FileType.Directory:
        raise NotFound(f"there is no table {name} yet: {address} does not exist")
    tables, left = [], most
    for fragment in ds.dataset(folder, filesystem=files, format="parquet").get_fragments():
        if left <= 0:
            break
        tables.append(fragment.head(left))
        left -= len(tables[-1])
    return tables


def _read_with_spark(config: PipelineConfig, name: str, limit: int, start: StartSession) -> TableHead:
    from stele.spark.pipeline.sinks import open_sink

    with open_session(config, find_session(config, None), start) as spark:
        table = open_sink(spark, config.table, name).read_table()
        rows = [tuple(row) for row in table.limit(limit + 1).collect()]
        return TableHead(tuple(table.columns), rows[:limit], len(rows) > limit)


ROWS: Final = 20
"""Number of rows in a snippet's query."""
PASSWORD: Final = "CATALOG_PASSWORD"  # noqa: S105 - the name of a variable of the environment
"""Environment variable with the catalogue's password. Snippets never contain the password itself."""
_SELECT: Final = "SELECT * FROM"
_DRIVERS: Final = {"postgresql": "org.postgresql.Driver", "mysql": "com.mysql.cj.jdbc.Driver"}


class TableTool(StrEnum):
    """Tools that can open a table."""

    PYICEBERG = "pyiceberg"
    DUCKDB = "duckdb"
    TRINO = "trino"


def write_snippet(config: TableConfig, name: str, tool: TableTool) -> str:
    """Return a program, or settings and a query, that read a table under its name in the catalogue.

    Args:
        config: The pipeline's tables.
        name: `namespace.table`.
        tool: The tool that opens the table.

    Raises:
        Invalid: The tool cannot open a table of this kind, or not in this catalogue.
    """
    match config.kind, tool:
        case "iceberg", TableTool.PYICEBERG:
            return f"{_load_table(config, name)}print(table.scan(limit={ROWS}).to_arrow())\n"
        case "iceberg", TableTool.DUCKDB:
            scan = _query_duckdb("iceberg_scan('{table.metadata_location}')").replace('"', 'f"', 1)
            install = 'duckdb.sql("INSTALL iceberg; LOAD iceberg")'
            return f"import duckdb\n{_load_table(config, name)}{install}\n{scan}"
        case "iceberg", TableTool.TRINO:
            return _write_trino(config, name)
        case "parquet", TableTool.DUCKDB if config.warehouse:
            files = f"{_folder(config, name)}/*.parquet"
            return f"import duckdb\n\n{_query_duckdb(f'read_parquet({files!r}, union_by_name=true)')}"
        case "delta", TableTool.DUCKDB if config.warehouse:
            scan = f"delta_scan({_folder(config, name)!r})"
            return f'import duckdb\n\nduckdb.sql("INSTALL delta; LOAD delta")\n{_query_duckdb(scan)}'
        case _:
            raise Invalid(
                f"there is no snippet for {tool} and a table of the kind {config.kind}: see how-to/read-tables"
            )


def _folder(config: TableConfig, name: str) -> str:
    return f"{config.warehouse.rstrip('/')}/{name.replace('.', '/')}"


def _query_duckdb(source: str) -> str:
    return f'duckdb.sql("{_SELECT} {source} LIMIT {ROWS}").show()\n'


def _load_table(config: TableConfig, name: str) -> str:
    """Return the lines of Python that load an Iceberg table; a password comes from the environment."""
    uri = f'"{config.catalog}"'
    imports = "from pyiceberg.catalog.sql import SqlCatalog\n"
    password = urlsplit(config.catalog).password
    if password:
        uri = 'f"' + config.catalog.replace(f":{password}@", f":{{os.environ['{PASSWORD}']}}@", 1) + '"'
        imports = f"import os\n\n{imports}"
    warehouse = warehouse_address(config)
    return (
        f'{imports}\ncatalog = SqlCatalog("{CATALOG_NAME}", uri={uri}, warehouse="{warehouse}")\n'
        f'table = catalog.load_table("{name}")\n'
    )


def _write_trino(config: TableConfig, name: str) -> str:
    """Return Trino's catalogue file and a query. Raises `Invalid` for a database that Trino cannot reach by JDBC."""
    url = urlsplit(config.catalog)
    database = url.scheme.partition("+")[0]
    if database not in _DRIVERS:
        raise Invalid(
            f"Trino reads the catalogue by JDBC, and {config.catalog} is a file of this machine: "
            "keep the catalogue in PostgreSQL or MySQL"
        )
    port = f":{url.port}" if url.port else ""
    return (
        "# etc/catalog/lake.properties\n"
        "connector.name=iceberg\n"
        "iceberg.catalog.type=jdbc\n"
        f"iceberg.jdbc-catalog.catalog-name={CATALOG_NAME}\n"
        f"iceberg.jdbc-catalog.driver-class={_DRIVERS[database]}\n"
        f"iceberg.jdbc-catalog.connection-url=jdbc:{database}://{url.hostname}{port}{url.path}\n"
        f"iceberg.jdbc-catalog.connection-user={url.username or ''}\n"
        f"iceberg.jdbc-catalog.connection-password=${{ENV:{PASSWORD}}}\n"
        f"iceberg.jdbc-catalog.default-warehouse-dir={config.warehouse}\n"
        f"# {_SELECT} lake.{name} LIMIT {ROWS}\n"
    )
