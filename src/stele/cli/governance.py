"""`stele census`, `backtest` and `drift`: what is really stored, as Spark jobs over framed records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stele.cli.connect import DEFAULT_URLS
from stele.cli.files import read_text, unreadable
from stele.cli.output import console, failures
from stele.client import SchemaSnapshot
from stele.core.findings import WhenUndecided
from stele.errors import InvalidRequest

if TYPE_CHECKING:
    from stele.spark.governance.gathering import Records
    from stele.spark.governance.report import Reported
    from stele.spark.source import RegistryLike


class Shape(StrEnum):
    """Shapes of a report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


RegistryOption = Annotated[
    str,
    typer.Option("--registry", envvar="STELE_URL", help="Base URL of the registry, or a snapshot file (*.json)."),
]
DataOption = Annotated[str, typer.Option("--data", help="File, folder or table with the records.")]
DataFormatOption = Annotated[
    str,
    typer.Option("--format", help="parquet, orc, json, csv (base64), binaryFile, table, or another one Spark reads."),
]
ColumnOption = Annotated[str, typer.Option("--column", help="The column with the records.")]
SubjectsOption = Annotated[list[str] | None, typer.Option("--subject", help="A subject of the records; repeatable.")]
WireOption = Annotated[
    str, typer.Option("--wire", help="confluent, confluent-header, pravega:GROUP, avro-single-object, unframed:ID …")
]
HeadersOption = Annotated[str | None, typer.Option("--headers", help="The column with the headers of records.")]
TimeOption = Annotated[
    str | None, typer.Option("--timestamp", help="The column that says when a record was written, for last seen.")
]
MessageOption = Annotated[str, typer.Option("--message", help="Which message of a Protobuf schema records are.")]
EngineOption = Annotated[str, typer.Option("--engine", help="For Avro: vm, python, or auto, the quicker one there is.")]
SampleOption = Annotated[float, typer.Option("--sample", help="Part of the records that is decoded, up to 1.")]
ShapeOption = Annotated[Shape, typer.Option("--output", "-o", help="Shape of the report.")]
FileOption = Annotated[
    Path | None, typer.Option("--to", help="Write the report to this file instead of standard output.")
]


def census(
    data: DataOption,
    registry: RegistryOption = DEFAULT_URLS[0],
    subject: SubjectsOption = None,
    data_format: DataFormatOption = "parquet",
    column: ColumnOption = "value",
    wire: WireOption = "confluent",
    headers: HeadersOption = None,
    timestamp: TimeOption = None,
    message: MessageOption = "",
    fields: Annotated[
        bool, typer.Option("--fields/--no-fields", help="Decode records to count fields, or only look at frames.")
    ] = True,
    engine: EngineOption = "auto",
    output: ShapeOption = Shape.TEXT,
    to: FileOption = None,
) -> None:
    """Count schema ids, versions and fields in stored records, and say which versions may be deleted.

    Exit code 0 when all records were counted, whatever they are; 2 when they could not be.
    """
    with failures():
        from stele.spark.governance import census as run

        with _records(data, data_format, column, headers, timestamp) as records:
            answer = run(
                records.df,
                records.column,
                registry=_registry(registry),
                subject=subject or (),
                wire=wire,
                headers=headers,
                timestamp=timestamp,
                message=message,
                fields=fields,
                engine=engine,
            )
        _show(answer, output, to)


def backtest(
    schema: Annotated[Path, typer.Argument(help="File with the proposed schema; - for standard input.")],
    data: DataOption,
    subject: Annotated[list[str], typer.Option("--subject", help="The subject it is for; further ones are mixed in.")],
    registry: RegistryOption = DEFAULT_URLS[0],
    data_format: DataFormatOption = "parquet",
    column: ColumnOption = "value",
    wire: WireOption = "confluent",
    headers: HeadersOption = None,
    message: MessageOption = "",
    ruleset: Annotated[str, typer.Option("--ruleset", help="Rules to compare by; the format's default.")] = "",
    undecided: Annotated[
        WhenUndecided, typer.Option("--undecided", help="What to do where no rule can decide.")
    ] = WhenUndecided.REFUSE,
    sample: SampleOption = 1.0,
    position: Annotated[
        list[str] | None, typer.Option("--position", help="Column that tells where a record is; repeatable.")
    ] = None,
    allow_damaged: Annotated[
        bool, typer.Option("--allow-damaged", help="Pass in spite of records that their own schema does not read.")
    ] = False,
    engine: EngineOption = "auto",
    output: ShapeOption = Shape.TEXT,
    to: FileOption = None,
) -> None:
    """Read stored records with a proposed schema: by the rules, and by decoding them.

    Exit code 0: all can be read; 1: not; 2: the question makes no sense, or the data could not be read.
    """
    with failures():
        from stele.spark.governance import backtest as run

        proposed = read_text(schema)
        with _records(data, data_format, column, headers, position=position or ()) as records:
            answer = run(
                records.df,
                records.column,
                schema=proposed,
                registry=_registry(registry),
                subject=subject,
                ruleset=ruleset,
                undecided=undecided,
                sample=sample,
                wire=wire,
                headers=headers,
                message=message,
                position=records.position,
                engine=engine,
            )
        _show(answer, output, to)
    raise typer.Exit(0 if answer.passed(allow_damaged=allow_damaged) else 1)


def drift(
    data: DataOption,
    registry: RegistryOption = DEFAULT_URLS[0],
    subject: SubjectsOption = None,
    data_format: DataFormatOption = "parquet",
    column: ColumnOption = "value",
    wire: WireOption = "confluent",
    headers: HeadersOption = None,
    message: MessageOption = "",
    sample: SampleOption = 1.0,
    least: Annotated[int, typer.Option("--least", help="Values below which nothing is said about a type.")] = 20,
    engine: EngineOption = "auto",
    output: ShapeOption = Shape.TEXT,
    to: FileOption = None,
) -> None:
    """Find what schemas allow and stored records never use: fields never set, symbols never written, types too wide.

    Exit code 0 when the data were read, whatever they are; 2 when they could not be.
    """
    with failures():
        from stele.spark.governance import drift as run

        with _records(data, data_format, column, headers) as records:
            answer = run(
                records.df,
                records.column,
                registry=_registry(registry),
                subject=subject or (),
                least=least,
                sample=sample,
                wire=wire,
                headers=headers,
                message=message,
                engine=engine,
            )
        _show(answer, output, to)


@contextmanager
def _records(
    path: str,
    data_format: str,
    column: str,
    headers: str | None,
    timestamp: str | None = None,
    position: Sequence[str] = (),
) -> Iterator[Records]:
    """The records, in a Spark of this command's own."""
    from stele.spark import local_session
    from stele.spark.governance.data import read_records

    spark = local_session("stele governance")
    try:
        yield read_records(
            spark, path, data_format, column=column, headers=headers, timestamp=timestamp, position=position
        )
    finally:
        spark.stop()


def _registry(said: str) -> RegistryLike:
    if not said.endswith(".json"):
        return said
    try:
        return SchemaSnapshot.load(Path(said))
    except OSError as error:
        raise unreadable(said, error) from None


def _show(answer: Reported, shape: Shape, to: Path | None) -> None:
    """Print a report or write it to a file. Raises `InvalidRequest`."""
    from stele.spark.governance import print_text, shown, to_html, to_json

    if to is None and shape is Shape.TEXT:
        print_text(answer, console)
        return
    made = {Shape.TEXT: shown, Shape.JSON: to_json, Shape.HTML: to_html}[shape](answer)
    if to is None:
        typer.echo(made, nl=not made.endswith("\n"))
        return
    try:
        to.write_text(made, encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"{to}: {error.strerror}") from None
