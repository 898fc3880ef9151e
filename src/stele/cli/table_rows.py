"""`stele pipeline show`: rows of a pipeline's tables, and how other tools open them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from stele.cli.output import Output, OutputOption, console, exit_on_error, print_json, print_progress
from stele.cli.pipeline_file import FileArgument, load_pipeline
from stele.cli.spark_start import start_spark
from stele.errors import InvalidRequest
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.pipeline.table_reader import TableTool, write_snippet


def show(
    file: FileArgument,
    table: Annotated[str, typer.Argument(help="Table to print, if there are several: namespace.table.")] = "",
    dead_letters: Annotated[
        bool,
        typer.Option(
            "--dead-letters",
            help="Print the table of dead letters, including those that were written to the table since.",
        ),
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of rows, in no order.")] = 20,
    snippet: Annotated[
        TableTool | None, typer.Option("--snippet", help="Print how to open the table with a tool, in place of rows.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print rows of a table. Spark starts only for tables that no other reader here can read.

    Iceberg tables are read by pyiceberg, Parquet tables in a warehouse by pyarrow, all others by Spark.
    """
    with exit_on_error():
        config = load_pipeline(file)
        name = config.dead_letter_table if dead_letters and not table else _choose_table(config, table)
        if snippet is not None:
            sys.stdout.write(write_snippet(config.table, name, snippet))
            return
        _print_table(config, name, limit, output)
    if output is Output.TEXT:
        _print_hint(file, name)


def _choose_table(config: PipelineConfig, table: str) -> str:
    """Return the name of the table to print: the given one, or the only one. Raises `InvalidRequest`."""
    names = [route.table for route in config.routes]
    if table in {*names, config.dead_letter_table}:
        return table
    if not table and len(names) == 1:
        return names[0]
    known = ", ".join([*names, config.dead_letter_table])
    raise InvalidRequest(f"the pipeline has no table {table}: it has {known}" if table else f"say which table: {known}")


def _print_table(config: PipelineConfig, name: str, limit: int, output: Output) -> None:
    from stele.spark.pipeline.table_reader import read_table_head
    from stele.spark.stream_sql.display import FirstRows, format_json_lines, format_rows

    rows = FirstRows(*read_table_head(config, name, limit, start_spark))
    if output is Output.JSON:
        print_json([msgspec.Raw(line.encode()) for line in format_json_lines(rows)])
    else:
        sys.stdout.write(f"{format_rows(rows, console.width)}\n")


def _print_hint(file: Path, name: str) -> None:
    tools = "|".join(TableTool)
    print_progress(f"{name} in other tools: stele pipeline show {file} {name} --snippet {tools}")
