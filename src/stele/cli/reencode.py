"""`stele reencode`: write stored records again under another version, subject, language or wire.

The command is not called `migrate`, because that word means moving a registry (`stele import`, `stele export`). This
command moves data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stele.cli.options import expand_dataclass
from stele.cli.output import exit_on_error
from stele.cli.progress import run_audit
from stele.cli.records import ReportOptions, Stored, check_registry, spark_session
from stele.errors import InvalidRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stele.spark.data_audit import MigratedRecords, Migration
    from stele.spark.data_audit.migrate import ExistingData, OutputTarget


@dataclass(frozen=True)
class TargetOptions:
    """Subject, version and wire of the new records."""

    to_subject: Annotated[str, typer.Option("--to-subject", help="Subject of the new records. Default: the same.")] = ""
    to_version: Annotated[str, typer.Option("--to-version", help="Number of the version to write with.")] = "latest"
    to_wire: Annotated[str, typer.Option("--to-wire", help="Wire format of the new records. Default: the same.")] = ""
    to_message: Annotated[str, typer.Option("--to-message", help="Message of the Protobuf schema to write.")] = ""
    headers_into: Annotated[
        str,
        typer.Option(
            "--headers-into", help="Column for headers, if the new wire format has headers and the old one had none."
        ),
    ] = "headers"
    schema_version: Annotated[
        str, typer.Option("--schema-version", help="With --wire unframed: version that the records were written with.")
    ] = "latest"


@dataclass(frozen=True)
class DestinationOptions:
    """Destination of the new records, and how they are written and verified."""

    into: Annotated[
        str,
        typer.Option("--into", metavar="PLACE", help="Folder or table for the new records. Not needed with --dry-run."),
    ] = ""
    into_format: Annotated[
        str, typer.Option("--into-format", help="Format of --into, one of those of --format. Default: the same.")
    ] = ""
    dead: Annotated[
        str,
        typer.Option(
            "--dead", metavar="PLACE", help="Folder or table for dead letters. Default: --into with the suffix -dead."
        ),
    ] = ""
    append: Annotated[bool, typer.Option("--append", help="Append to --into.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Overwrite --into.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the results; write nothing.")] = False
    verify: Annotated[bool, typer.Option("--verify/--no-verify", help="Read the new records back and count them.")] = (
        True
    )
    verify_values: Annotated[
        bool,
        typer.Option(
            "--verify-values", help="Also compare their values with the old ones. Works within one schema language."
        ),
    ] = False

    def targets(self, stored: Stored) -> tuple[OutputTarget, OutputTarget]:
        """Return the target for records and the target for dead letters. Raises `InvalidRequest`."""
        from stele.spark.data_audit.migrate import OutputTarget, check_separate

        if not self.into:
            raise InvalidRequest("give --into for the new records, or --dry-run to count them only")
        if self.append and self.overwrite:
            raise InvalidRequest("--append and --overwrite exclude one another")
        existing: ExistingData = "append" if self.append else "overwrite" if self.overwrite else "refuse"
        form = self.into_format or stored.data_format
        target = OutputTarget(self.into, form, existing)
        # dead letters hold a struct, which text formats other than JSON cannot
        dead = OutputTarget(self.dead or f"{self.into.rstrip('/')}-dead", "json" if form == "csv" else form, existing)
        check_separate(stored.data, target, dead, stored.data_format)
        return target, dead


@expand_dataclass
def reencode(
    stored: Stored,
    new: TargetOptions,
    placed: DestinationOptions,
    report: ReportOptions,
    subject: Annotated[str, typer.Option("--subject", help="Subject of the records.")],
) -> None:
    """Write stored records again in another place: under another version, subject, schema language or wire.

    All other columns are copied. Records that cannot be written become dead letters.

    Exit code 0: all records were written and read again; 1: some are dead letters, or reading them again found a
    difference; 2: an error.
    """
    with exit_on_error():
        report.check()
        check_registry(stored.registry_like, (subject, new.to_subject))
        if placed.dry_run:
            with spark_session() as spark:
                audit = _reencode_records(spark, stored, new, subject).count_records
                answer = run_audit(spark, "counting records", audit)
        else:
            targets = placed.targets(stored)
            with spark_session() as spark:
                audit = partial(_write_records, spark, stored, new, placed, subject, targets)
                answer = run_audit(spark, "writing records", audit)
        report.print_report(answer, stored.sources)
    raise typer.Exit(0 if answer.is_complete else 1)


def _reencode_records(spark: SparkSession, stored: Stored, new: TargetOptions, subject: str) -> MigratedRecords:
    from stele.spark.data_audit import migrate
    from stele.spark.data_audit.stored_records import read_stored

    if new.schema_version != "latest" and stored.wire != "unframed":
        raise InvalidRequest("--schema-version needs records without a frame: add --wire unframed")
    return migrate(
        read_stored(spark, stored.data, stored.data_format, stored.column),
        stored.column,
        subject=subject,
        registry=stored.registry_like,
        to_subject=new.to_subject,
        to_version=_version_number(new.to_version),
        wire=stored.wire,
        schema=None if new.schema_version == "latest" else _version_number(new.schema_version),
        to_wire=new.to_wire or None,
        headers=stored.headers,
        headers_into=new.headers_into,
        message=stored.message,
        to_message=new.to_message,
        engine=stored.engine,
    )


def _write_records(
    spark: SparkSession,
    stored: Stored,
    new: TargetOptions,
    placed: DestinationOptions,
    subject: str,
    targets: tuple[OutputTarget, OutputTarget],
) -> Migration:
    from stele.spark.data_audit.migrate import (
        check_empty,
        count_records,
        verify_records,
        with_verification,
        write_records,
    )

    target, dead = targets
    for each in targets:
        check_empty(spark, each)
    moved = _reencode_records(spark, stored, new, subject)
    before = count_records(spark, target) if placed.append else 0
    moved.every.persist()
    try:
        counted = moved.count_records()
        write_records(moved.good, target, stored.column)
        if counted.dead:
            write_records(moved.dead, dead, stored.column)
        verification = None
        if placed.verify or placed.verify_values:
            headers = stored.headers or new.headers_into
            verification = verify_records(
                spark, target, stored.column, headers, moved, before=before, values=placed.verify_values
            )
    finally:
        moved.every.unpersist()
    return with_verification(counted, verification)


def _version_number(version: str) -> int | Literal["latest"]:
    """Return a version as a number or `latest`. Raises `InvalidRequest`."""
    if version == "latest":
        return "latest"
    if not (version.isascii() and version.isdigit()):
        raise InvalidRequest(f"a version must be a number, not {version!r}")
    return int(version)
