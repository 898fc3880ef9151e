"""How other tools open a pipeline's table, as a text to copy: pyiceberg, DuckDB and Trino."""

from __future__ import annotations

from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from stele.errors import Invalid
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.sinks.iceberg import CATALOG_NAME, warehouse_address

ROWS: Final = 20
"""Rows that a snippet asks for."""
PASSWORD: Final = "CATALOG_PASSWORD"  # noqa: S105 - the name of a variable of the environment
"""The variable that holds the catalogue's password, which a snippet never shows."""
_SELECT: Final = "SELECT * FROM"
_DRIVERS: Final = {"postgresql": "org.postgresql.Driver", "mysql": "com.mysql.cj.jdbc.Driver"}


class TableTool(StrEnum):
    """What opens a table."""

    PYICEBERG = "pyiceberg"
    DUCKDB = "duckdb"
    TRINO = "trino"


def write_snippet(config: TableConfig, name: str, tool: TableTool) -> str:
    """Return a program, or settings and a query, that read a table under its catalogue's name.

    Args:
        config: The pipeline's tables.
        name: `namespace.table`.
        tool: What opens the table.

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
    """Return a catalogue of Trino and a query. Raises `Invalid` for a database that Trino does not reach by JDBC."""
    found = urlsplit(config.catalog)
    database = found.scheme.partition("+")[0]
    if database not in _DRIVERS:
        raise Invalid(
            f"Trino reads the catalogue by JDBC, and {config.catalog} is a file of this machine: "
            "keep the catalogue in PostgreSQL or MySQL"
        )
    port = f":{found.port}" if found.port else ""
    return (
        "# etc/catalog/lake.properties\n"
        "connector.name=iceberg\n"
        "iceberg.catalog.type=jdbc\n"
        f"iceberg.jdbc-catalog.catalog-name={CATALOG_NAME}\n"
        f"iceberg.jdbc-catalog.driver-class={_DRIVERS[database]}\n"
        f"iceberg.jdbc-catalog.connection-url=jdbc:{database}://{found.hostname}{port}{found.path}\n"
        f"iceberg.jdbc-catalog.connection-user={found.username or ''}\n"
        f"iceberg.jdbc-catalog.connection-password=${{ENV:{PASSWORD}}}\n"
        f"iceberg.jdbc-catalog.default-warehouse-dir={config.warehouse}\n"
        f"# {_SELECT} lake.{name} LIMIT {ROWS}\n"
    )
