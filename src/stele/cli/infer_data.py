"""`stele infer-data`: a schema for files and tables of any size, as a Spark job; `stele infer` is for a few samples."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from stele.cli.files import check_target, write_text
from stele.cli.options import expand_dataclass
from stele.cli.output import exit_on_error
from stele.cli.progress import run_audit
from stele.cli.records import RecordRegistry, ReportOptions, check_registry, spark_session

DataFormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        help="json (one document per line), csv, parquet, orc, table, or another format that Spark reads.",
    ),
]
EnumerationsOption = Annotated[
    int,
    typer.Option("--enumerations", help="Maximum number of symbols of an enumeration; 0 creates no enumerations."),
]
RegisterOption = Annotated[
    str, typer.Option("--register", help="Subject to register the schema in, if its policy allows it.")
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Exit with 1 if the schema cannot represent some of the data.")
]


@expand_dataclass
def infer_data(
    data: Annotated[str, typer.Option("--data", help="File, folder or table with the data.")],
    report: ReportOptions,
    registry: RecordRegistry,
    data_format: DataFormatOption = "json",
    column: Annotated[
        str | None, typer.Option("--column", help="Column with JSON documents. By default the columns are the fields.")
    ] = None,
    language: Annotated[
        str, typer.Option("--as", metavar="FORMAT", help="Format of the schema: avro, json, protobuf …")
    ] = "avro",
    name: Annotated[str, typer.Option("--name", help="Full name of the record.")] = "Record",
    texts: Annotated[bool, typer.Option("--texts", help="Leave dates, timestamps and UUIDs in text as text.")] = False,
    enumerations: EnumerationsOption = 0,
    notes: Annotated[
        bool, typer.Option("--notes/--no-notes", help="Write the statistics of the data into the schema.")
    ] = True,
    sample: Annotated[float, typer.Option("--sample", help="Fraction of the records to read, up to 1.")] = 1.0,
    schema_to: Annotated[Path | None, typer.Option("--schema-to", help="File to write the schema to.")] = None,
    register: RegisterOption = "",
    strict: StrictOption = False,
) -> None:
    """Infer a schema that fits all records, and report how certain each part of it is.

    Exit code 0: inferred; 1: the subject refuses it, or, with --strict, it cannot hold all of the data; 2: no schema.
    """
    with exit_on_error():
        from stele.spark.data_audit import infer as run
        from stele.spark.data_audit import register_inferred
        from stele.spark.data_audit.stored_records import read_raw

        report.check()
        check_target(schema_to, force=report.force)
        subject_registry = registry.find_registry() if register else ""
        if register:
            check_registry(subject_registry)
        with spark_session() as spark:
            audit = partial(
                run,
                read_raw(spark, data, data_format, column),
                column or ("value" if data_format == "json" else None),
                to=language,
                name=name,
                parse=data_format == "csv" and column is None,
                notations=not texts,
                enumerations=enumerations,
                notes=notes,
                sample=sample,
            )
            answer = run_audit(spark, f"reading {data}", audit)
        if schema_to is not None:
            write_text(schema_to, answer.schema.rstrip())
        refused = False
        if register:
            answer = register_inferred(answer, register, subject_registry)
            refused = answer.offer is not None and not answer.offer.is_registered
        report.print_report(answer, {"data": data, "registry": registry.describe_registry() if register else ""})
    raise typer.Exit(1 if refused or (strict and not answer.keeps_data) else 0)
