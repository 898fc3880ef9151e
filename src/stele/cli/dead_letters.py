"""`stele pipeline dead-letters` and `replay`: list records that could not be decoded, and decode them again."""

from __future__ import annotations

import csv
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stele.cli.output import Output, OutputOption, console, errors, exit_on_error, print_json, print_rows
from stele.cli.pipeline_file import FileArgument, check_pipeline_registry, load_pipeline
from stele.cli.progress import show_job_progress
from stele.cli.spark_start import start_spark
from stele.errors import Invalid
from stele.spark.pipeline import BatchReport, read_dead_letters, replay_dead_letters

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HEAD = 24
"""Number of bytes of a record that the text output shows."""
COLUMNS = (
    "letter",
    "seen_at",
    "topic",
    "partition",
    "offset",
    "source",
    "schema_id",
    "byte",
    "code",
    "reason",
    "batch",
)
"""Listed columns of a dead letter. The time of its replay and its bytes follow them."""


class ListShape(StrEnum):
    """Output formats of a list."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


class By(StrEnum):
    """Columns by which dead letters can be counted."""

    CODE = "code"
    REASON = "reason"
    ID = "schema_id"
    TOPIC = "topic"
    SOURCE = "source"
    BATCH = "batch"


WhereOption = Annotated[
    str,
    typer.Option(
        "--where", help="SQL condition that selects dead letters: \"code = 'UNKNOWN_SCHEMA_ID' AND batch > 10\"."
    ),
]


def list_dead_letters(
    file: FileArgument,
    where: WhereOption = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of dead letters, newest first.")] = 20,
    by: Annotated[
        By | None, typer.Option("--by", help="Count dead letters by this column, instead of listing them.")
    ] = None,
    replayed: Annotated[
        bool, typer.Option("--all", help="Include dead letters that were written to the table since.")
    ] = False,
    output: Annotated[ListShape, typer.Option("--output", "-o", help="Format of the list.")] = ListShape.TEXT,
) -> None:
    """List records that could not be decoded: their position, the reason, and their first bytes.

    JSON and CSV output contain the whole record in base64.
    """
    with exit_on_error():
        from stele.spark.pipeline.runner import find_session, open_session

        config = load_pipeline(file)
        with open_session(config, find_session(config, None), start_spark) as spark:
            letters = _select_letters(read_dead_letters(config, spark=spark), where, replayed=replayed)
            rows = _list_rows(letters, limit) if by is None else _count_rows(letters, by, limit)
    _print_rows(rows, output)


def replay_letters(file: FileArgument, where: WhereOption = "", output: OutputOption = Output.TEXT) -> None:
    """Decode dead letters again with what the registry has now. Good ones become rows, the others stay.

    Exit code 1 if some records still cannot be decoded.
    """
    with exit_on_error():
        from stele.spark.pipeline.runner import find_session, open_session

        config = load_pipeline(file)
        check_pipeline_registry(config)
        with (
            open_session(config, find_session(config, None), start_spark) as spark,
            show_job_progress(spark, "decoding dead letters"),
        ):
            done = replay_dead_letters(config, where=where, spark=spark, progress=_print_batch)
    if output is Output.JSON:
        print_json(done)
    else:
        console.print(f"{done.rows:,} became rows, {done.dead_letters:,} are still dead letters", highlight=False)
    if done.dead_letters:
        raise typer.Exit(1)


def _select_letters(df: DataFrame, where: str, *, replayed: bool) -> DataFrame:
    """Return the dead letters that match the condition, those replayed already only if `replayed` is set.

    Raises `Invalid` for a condition that Spark does not understand.
    """
    from pyspark.errors import AnalysisException, ParseException

    chosen = df if replayed else df.where("replayed_at IS NULL")
    try:
        return chosen.where(where) if where else chosen
    except (AnalysisException, ParseException) as error:
        raise Invalid(f"the condition {where!r} is not understood: {str(error).partition(chr(10))[0]}") from error


def _list_rows(df: DataFrame, limit: int) -> list[dict[str, Any]]:
    from pyspark.sql import functions as f

    newest = df.orderBy(f.desc("seen_at"), "topic", "partition", "offset", "letter").limit(limit)
    columns = [
        _format_time(name) if name.endswith("_at") else f.col(name) for name in (*COLUMNS, "replayed_at", "value")
    ]
    return [row.asDict() for row in newest.select(*columns).collect()]


def _count_rows(df: DataFrame, by: By, limit: int) -> list[dict[str, Any]]:
    from pyspark.sql import functions as f

    counts = df.groupBy(by.value).agg(
        f.count("*").alias("letters"), f.min("seen_at").alias("first"), f.max("seen_at").alias("last")
    )
    most = counts.orderBy(f.desc("letters"), by.value).limit(limit)
    return [
        row.asDict() for row in most.select(by.value, "letters", _format_time("first"), _format_time("last")).collect()
    ]


def _format_time(name: str) -> Column:
    """Return a time column as RFC 3339 text, because Python would show it in the time zone of this machine."""
    from pyspark.sql import functions as f

    return f.date_format(name, "yyyy-MM-dd'T'HH:mm:ssXXX").alias(name)


def _print_rows(rows: Sequence[Mapping[str, Any]], shape: ListShape) -> None:
    if shape is ListShape.TEXT:
        short_rows = [{name: "" if cell is None else cell for name, cell in _shorten(row).items()} for row in rows]
        if short_rows:
            print_rows(Output.TEXT, tuple(short_rows[0]), short_rows)
        else:
            errors.print("no dead letters")
        return
    plain = [_to_plain(row) for row in rows]
    if shape is ListShape.JSON:
        print_json(plain)
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if plain:
        writer.writerow(plain[0])
    writer.writerows(row.values() for row in plain)


def _to_plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of texts and numbers. The bytes of the record are in base64, under the name `value_base64`."""
    if "value" not in row:
        return dict(row)
    value = row["value"]
    rest = {name: cell for name, cell in row.items() if name != "value"}
    return rest | {"value_base64": None if value is None else b64encode(value).decode()}


def _shorten(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a row that fit a terminal, under the names of the text output."""
    if "value" not in row:
        return dict(row)
    value: bytes = row["value"] or b""
    file = (row["source"] or "").rpartition("/")[2]
    where = f"{row['topic']}/{row['partition']}/{row['offset']}" if row["topic"] is not None else file
    return {
        "seen at": row["seen_at"],
        "where": where,
        "id": row["schema_id"],
        "byte": row["byte"],
        "reason": row["reason"],
        "begins": value[:HEAD].hex() + ("…" if len(value) > HEAD else ""),
        "replayed at": row["replayed_at"],
    }


def _print_batch(batch: BatchReport) -> None:
    again = ", begun by an earlier replay" if batch.replayed else ""
    counts = f"{batch.rows:,} rows, {batch.dead_letters:,} still dead letters"
    message = f"replay {batch.batch}: {counts}, {batch.seconds:.1f} s{again}"
    errors.print(message, highlight=False, soft_wrap=True)
