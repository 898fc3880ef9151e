"""Rows of a pipeline's tables without Spark, and the snippets that open the tables in other tools."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stele.errors import Invalid, NotFound
from stele.spark.pipeline.config import PipelineConfig, SourceConfig, TableConfig, load_config
from stele.spark.pipeline.sinks.iceberg import open_catalog
from stele.spark.pipeline.table_reader import TableTool, read_table_head, write_snippet

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "read-tables.md"


def pipeline(table: TableConfig) -> PipelineConfig:
    """Return a pipeline into such a table."""
    return PipelineConfig("state", SourceConfig(path="in", subject="trips-value"), table)


def iceberg(folder: Path) -> TableConfig:
    """Return the configuration of the pipeline's Iceberg table."""
    return TableConfig(catalog=f"sqlite:///{folder}/warehouse/catalog.db", warehouse=f"{folder}/warehouse", name="a.b")


def fill(config: TableConfig, rows: int) -> None:
    """Create the Iceberg table with rows, as a pipeline in another process does."""
    catalog = open_catalog(config)
    catalog.create_namespace("a")
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "city": ["Oslo"] * rows})
    catalog.create_table("a.b", table.schema).append(table)


def test_an_iceberg_table_needs_no_spark(tmp_path: Path) -> None:
    """Some rows are returned, and whether there are more; reading creates no file."""
    config = iceberg(tmp_path)
    with pytest.raises(NotFound, match=r"no table a\.b yet"):
        read_table_head(pipeline(config), "a.b", 3)
    assert list(tmp_path.iterdir()) == []
    fill(config, 5)
    head = read_table_head(pipeline(config), "a.b", 3)
    assert (head.columns, head.more) == (("id", "city"), True)
    assert head.rows == [(number, "Oslo") for number in range(3)]
    assert not read_table_head(pipeline(config), "a.b", 5).more
    with pytest.raises(NotFound, match=r"a\.c"):
        read_table_head(pipeline(config), "a.c", 3)


def test_a_parquet_table_needs_no_spark(tmp_path: Path) -> None:
    """Files from before and after a new column are rows of one table; unpublished files are not read."""
    config = TableConfig(kind="parquet", warehouse=str(tmp_path), name="a.b")
    with pytest.raises(NotFound, match=r"no table a\.b yet"):
        read_table_head(pipeline(config), "a.b", 3)
    folder = tmp_path / "a" / "b"
    (folder / "_stele").mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), folder / "stele-x-0-00000.parquet")
    pq.write_table(pa.table({"id": pa.array([2], pa.int64()), "n": ["x"]}), folder / "stele-x-1-00000.parquet")
    pq.write_table(pa.table({"id": [3]}), folder / "_stele" / "part.parquet")
    head = read_table_head(pipeline(config), "a.b", 10)
    assert head == (("id", "n"), [(1, None), (2, "x")], False)
    assert read_table_head(pipeline(config), "a.b", 1) == (("id", "n"), [(1, None)], True)


def test_the_snippet_for_pyiceberg_runs(tmp_path: Path) -> None:
    """The snippet opens the table under the catalogue's name, from any folder."""
    config = iceberg(tmp_path)
    fill(config, 2)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(write_snippet(config, "a.b", TableTool.PYICEBERG), {})
    assert "Oslo" in out.getvalue()


def test_a_snippet_shows_no_password() -> None:
    """The catalogue's password stays in the environment."""
    catalog = "postgresql+psycopg2://stele:s3cret@db:5433/catalog"
    config = TableConfig(catalog=catalog, warehouse="s3://bucket/warehouse", name="a.b")
    for tool in TableTool:
        text = write_snippet(config, "a.b", tool)
        assert "s3cret" not in text
        assert "CATALOG_PASSWORD" in text
        if tool is not TableTool.TRINO:
            compile(text, "snippet", "exec")
    trino = write_snippet(config, "a.b", TableTool.TRINO).splitlines()
    assert "iceberg.jdbc-catalog.connection-url=jdbc:postgresql://db:5433/catalog" in trino
    assert "iceberg.jdbc-catalog.catalog-name=stele" in trino


@pytest.mark.parametrize(
    ("config", "tool", "message"),
    [
        (TableConfig(catalog="sqlite:////x.db", warehouse="/w"), TableTool.TRINO, "PostgreSQL"),
        (TableConfig(kind="delta", warehouse="/w"), TableTool.TRINO, "no snippet"),
        (TableConfig(kind="parquet"), TableTool.DUCKDB, "no snippet"),
        (TableConfig(kind="iceberg-spark"), TableTool.PYICEBERG, "no snippet"),
    ],
)
def test_what_a_tool_cannot_open_is_said(config: TableConfig, tool: TableTool, message: str) -> None:
    """A table that a tool cannot open gives a reason instead of a snippet."""
    with pytest.raises(Invalid, match=message):
        write_snippet(config, "a.b", tool)


def test_files_are_read_by_duckdb() -> None:
    """Parquet and Delta tables in a warehouse are read from their folders."""
    parquet = write_snippet(TableConfig(kind="parquet", warehouse="/w/"), "a.b", TableTool.DUCKDB)
    assert "read_parquet('/w/a/b/*.parquet', union_by_name=true)" in parquet
    assert "delta_scan('/w/a/b')" in write_snippet(TableConfig(kind="delta", warehouse="/w"), "a.b", TableTool.DUCKDB)
    compile(parquet, "snippet", "exec")


@pytest.mark.parametrize("tool", TableTool)
def test_the_page_has_the_same_snippets(tool: TableTool, tmp_path: Path) -> None:
    """The snippets of the how-to page are those that the command prints."""
    local = TableConfig(catalog="sqlite:////data/warehouse/catalog.db", warehouse="/data/warehouse", name="shop.trips")
    file = tmp_path / "pipeline.toml"
    page = PAGE.read_text(encoding="utf-8")
    if tool is TableTool.TRINO:
        (table,) = [block for block in page.split("```toml\n")[1:] if "postgresql" in block]
        rest = 'checkpoint = "c"\n[source]\npath = "in"\nsubject = "trips-value"\n'
        file.write_text(f"{rest}{table.partition('```')[0]}", encoding="utf-8")
        local = load_config(file, {"CATALOG_PASSWORD": "secret"}).table
    assert write_snippet(local, "shop.trips", tool) in page
