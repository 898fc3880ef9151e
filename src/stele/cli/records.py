"""Options that commands over stored records share: the records, the registry with their schemas, the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast
from uuid import uuid4

import typer

from stele.cli.connect import DEFAULT_URL, REGISTRY_PANEL, RegistryOptions
from stele.cli.files import ForceOption, ToOption, check_target, unreadable_file, write_text
from stele.cli.output import console, print_progress
from stele.client import Request, Retry, SchemaRegistryClient, SchemaSnapshot, endpoints
from stele.client.request import ignore_body
from stele.errors import SubjectNotFound

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stele.spark.data_audit.aggregation import RecordColumn
    from stele.spark.data_audit.report import HasReport
    from stele.spark.registry import RegistryLike


class ReportShape(StrEnum):
    """Output formats of a report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


DataOption = Annotated[str, typer.Option("--data", help="File, folder or table with the records.")]
DataFormatOption = Annotated[
    str,
    typer.Option(
        "--format", help="parquet, orc, json, csv (base64), binaryFile, table, or another format that Spark reads."
    ),
]
SubjectsOption = Annotated[list[str] | None, typer.Option("--subject", help="Subject of the records; repeatable.")]
SampleOption = Annotated[float, typer.Option("--sample", help="Fraction of the records to decode, up to 1.")]
TimeOption = Annotated[
    str | None,
    typer.Option("--timestamp", help="Column with the time at which a record was written, for the time of last use."),
]


@dataclass(frozen=True, kw_only=True)
class RecordRegistry(RegistryOptions):
    """The registry that knows the schemas of records, or a snapshot of it."""

    registry: Annotated[
        list[str] | None,
        typer.Option(
            "--registry",
            metavar="URL",
            help=f"Base URL of the registry (STELE_URL; else {DEFAULT_URL}), or a snapshot file (*.json).",
            rich_help_panel=REGISTRY_PANEL,
        ),
    ] = None

    def find_registry(self) -> RegistryLike:
        """Return the registry in a form that can be sent to Spark's tasks. Raises `InvalidRequest`."""
        if self.registry and self.registry[0].endswith(".json"):
            return load_snapshot(Path(self.registry[0]))
        from stele.spark.registry import ClientFactory

        connection = self.find_connection()
        return (
            ClientFactory(uuid4().hex, connection.open_client)
            if connection.has_credentials
            else ",".join(connection.urls)
        )

    def describe_registry(self) -> str:
        """Return the registry's addresses, or the snapshot's name, for people. Raises `InvalidRequest`."""
        if self.registry and self.registry[0].endswith(".json"):
            return self.registry[0]
        return ", ".join(re.sub(r"//[^/@]*@", "//", url) for url in self.find_connection(ask=False).urls)


@dataclass(frozen=True, kw_only=True)
class Stored(RecordRegistry):
    """Framed records, and the registry that knows their schemas."""

    data: DataOption
    data_format: DataFormatOption = "parquet"
    column: Annotated[str, typer.Option("--column", help="Column with the records.")] = "value"
    wire: Annotated[
        str,
        typer.Option("--wire", help="confluent, confluent-header, pravega:GROUP, avro-single-object, unframed:ID …"),
    ] = "confluent"
    headers: Annotated[str | None, typer.Option("--headers", help="Column with the headers of the records.")] = None
    message: Annotated[str, typer.Option("--message", help="Message of the Protobuf schema that the records hold.")] = (
        ""
    )
    engine: Annotated[
        str, typer.Option("--engine", help="Engine for Avro: vm, python, or auto for the fastest that is available.")
    ] = "auto"

    @property
    def sources(self) -> Mapping[str, str]:
        """Sources that a report on these records names: the data and the registry."""
        return {"data": self.data, "registry": self.describe_registry()}

    @cached_property
    def registry_like(self) -> RegistryLike:
        """The registry, or a snapshot of it. Raises `InvalidRequest`."""
        return self.find_registry()

    @contextmanager
    def open_records(
        self, subjects: Iterable[str], timestamp: str | None = None, position: Sequence[str] = ()
    ) -> Iterator[RecordColumn]:
        """Yield the records in a Spark session of this command, which starts after `check_registry` has succeeded."""
        from stele.spark.data_audit.stored_records import read_records

        check_registry(self.registry_like, subjects)
        with spark_session() as spark:
            print_progress(f"reading {self.data}")
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
    """Output format and destination of a report."""

    output: Annotated[ReportShape, typer.Option("--output", "-o", help="Format of the report.")] = ReportShape.TEXT
    to: ToOption = None
    force: ForceOption = False

    def check(self) -> None:
        """Raise `InvalidRequest` if the report may not be written to its file. Called before the work begins."""
        check_target(self.to, force=self.force)

    def print_report(self, answer: HasReport, sources: Mapping[str, str]) -> None:
        """Print a report or write it to the file; a page names its sources. Raises `InvalidRequest`."""
        from stele.spark.data_audit import print_text, to_html, to_json, to_text

        match self.output:
            case ReportShape.HTML:
                write_text(self.to, to_html(answer, sources=sources))
            case ReportShape.JSON:
                write_text(self.to, to_json(answer))
            case _ if self.to is not None:
                write_text(self.to, to_text(answer))
            case _:
                print_text(answer, console)


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """Yield a Spark session for this command, and stop it at the end."""
    from stele.cli.spark_start import start_spark

    spark = start_spark("stele governance")
    try:
        yield spark
    finally:
        spark.stop()


def load_snapshot(file: Path) -> SchemaSnapshot:
    """Read a snapshot file. Raises `InvalidRequest`."""
    try:
        return SchemaSnapshot.load(file)
    except OSError as error:
        raise unreadable_file(file, error) from None


def check_registry(registry: RegistryLike, subjects: Iterable[str] = ()) -> None:
    """Check that a registry answers and has the subjects, including deleted ones.

    The check fails early: Spark takes seconds to start, and its tasks repeat failed requests for half a minute.
    Raises `SubjectNotFound`, `RegistryUnreachable`, `Unauthenticated` and similar errors.
    """
    names = [name for name in subjects if name]
    if isinstance(registry, SchemaSnapshot):
        known = {schema.subject for schema in registry.schemas}
        for name in names:
            if name not in known:
                raise SubjectNotFound(name)
        return
    opened = SchemaRegistryClient(registry, retry=Retry(rounds=2)) if isinstance(registry, str) else registry()
    with cast("SchemaRegistryClient", opened) as client:
        for name in names:
            client.send(endpoints.versions(name, deleted=True))
        if not names:
            client.send(Request("GET", "/subjects", ignore_body, "limit=1"))
