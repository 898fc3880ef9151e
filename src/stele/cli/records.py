"""What commands over stored records share: where records are, who knows their schemas, where reports go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stele.cli.connect import DEFAULT_URLS
from stele.cli.files import unreadable_file
from stele.cli.output import console
from stele.client import SchemaSnapshot
from stele.errors import InvalidRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stele.spark.data_audit.aggregation import RecordColumn
    from stele.spark.data_audit.report import HasReport
    from stele.spark.registry.clients import RegistryLike


class ReportShape(StrEnum):
    """Shapes of a report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


DataOption = Annotated[str, typer.Option("--data", help="File, folder or table with the records.")]
DataFormatOption = Annotated[
    str,
    typer.Option("--format", help="parquet, orc, json, csv (base64), binaryFile, table, or another one Spark reads."),
]
RegistryOption = Annotated[
    str,
    typer.Option("--registry", envvar="STELE_URL", help="Base URL of the registry, or a snapshot file (*.json)."),
]
SubjectsOption = Annotated[list[str] | None, typer.Option("--subject", help="A subject of the records; repeatable.")]
SampleOption = Annotated[float, typer.Option("--sample", help="Part of the records that is decoded, up to 1.")]
TimeOption = Annotated[
    str | None, typer.Option("--timestamp", help="The column that says when a record was written, for last seen.")
]


@dataclass(frozen=True)
class Stored:
    """Framed records, and the registry that knows their schemas."""

    data: DataOption
    registry: RegistryOption = DEFAULT_URLS[0]
    data_format: DataFormatOption = "parquet"
    column: Annotated[str, typer.Option("--column", help="The column with the records.")] = "value"
    wire: Annotated[
        str,
        typer.Option("--wire", help="confluent, confluent-header, pravega:GROUP, avro-single-object, unframed:ID …"),
    ] = "confluent"
    headers: Annotated[str | None, typer.Option("--headers", help="The column with the headers of records.")] = None
    message: Annotated[str, typer.Option("--message", help="Which message of a Protobuf schema records are.")] = ""
    engine: Annotated[
        str, typer.Option("--engine", help="For Avro: vm, python, or auto, the quicker one there is.")
    ] = "auto"

    @property
    def registry_like(self) -> RegistryLike:
        """The registry, or the snapshot it is. Raises `InvalidRequest`."""
        return registry_named(self.registry)

    @contextmanager
    def open_records(self, timestamp: str | None = None, position: Sequence[str] = ()) -> Iterator[RecordColumn]:
        """The records, in a Spark of this command's own."""
        from stele.spark.data_audit.stored_records import read_records

        with spark_session() as spark:
            yield read_records(
                spark,
                self.data,
                self.data_format,
                column=self.column,
                headers=self.headers,
                timestamp=timestamp,
                position=position,
            )


@dataclass(frozen=True)
class ReportOptions:
    """How a report is shown, and where."""

    output: Annotated[ReportShape, typer.Option("--output", "-o", help="Shape of the report.")] = ReportShape.TEXT
    to: Annotated[
        Path | None, typer.Option("--to", help="Write the report to this file instead of standard output.")
    ] = None

    def print_report(self, answer: HasReport) -> None:
        """Print a report or write it to the file. Raises `InvalidRequest`."""
        from stele.spark.data_audit import print_text, to_html, to_json, to_text

        if self.to is None and self.output is ReportShape.TEXT:
            print_text(answer, console)
            return
        made = {ReportShape.TEXT: to_text, ReportShape.JSON: to_json, ReportShape.HTML: to_html}[self.output](answer)
        if self.to is None:
            typer.echo(made, nl=not made.endswith("\n"))
            return
        try:
            self.to.write_text(made, encoding="utf-8")
        except OSError as error:
            raise InvalidRequest(f"{self.to}: {error.strerror}") from None


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """A Spark of a command's own."""
    from stele.spark import local_session

    spark = local_session("stele governance")
    try:
        yield spark
    finally:
        spark.stop()


def registry_named(said: str) -> RegistryLike:
    """An address as it is, a file with a snapshot read. Raises `InvalidRequest`."""
    if not said.endswith(".json"):
        return said
    try:
        return SchemaSnapshot.load(Path(said))
    except OSError as error:
        raise unreadable_file(said, error) from None
