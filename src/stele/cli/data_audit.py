"""`stele census`, `backtest` and `drift`: Spark jobs that examine stored, framed records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stele.cli.files import read_text
from stele.cli.options import expand_dataclass
from stele.cli.output import exit_on_error
from stele.cli.progress import run_audit
from stele.cli.records import ReportOptions, SampleOption, Stored, SubjectsOption, TimeOption
from stele.core.findings import WhenUndecided
from stele.errors import InvalidRequest

if TYPE_CHECKING:
    from stele.spark.data_audit import Census


@dataclass(frozen=True)
class RecordOptions:
    """Options that record a census in the registry."""

    record: Annotated[
        bool,
        typer.Option(
            "--record", help="Record the result in the registry, which then warns before a version in use is deleted."
        ),
    ] = False
    place: Annotated[
        str,
        typer.Option(
            "--place", help='Name of the place in the registry, such as "topic orders". Default: the value of --data.'
        ),
    ] = ""
    part: Annotated[bool, typer.Option("--part", help="The data are only a part of the place.")] = False

    def record_census(self, census: Census, stored: Stored) -> None:
        """Record the census if --record is given. Raises `InvalidRequest`, and what `record_usage` raises."""
        from stele.spark.data_audit import record_usage
        from stele.spark.data_audit.stored_records import TABLE

        if not self.record:
            if self.place or self.part:
                raise InvalidRequest("--place and --part need --record")
            return
        place = self.place or (f"table {stored.data}" if stored.data_format == TABLE else stored.data)
        record_usage(census, place, stored.registry_like, whole=not self.part)


@expand_dataclass
def census(
    stored: Stored,
    recorded: RecordOptions,
    report: ReportOptions,
    subject: SubjectsOption = None,
    timestamp: TimeOption = None,
    fields: Annotated[
        bool, typer.Option("--fields/--no-fields", help="Decode records to count fields, or read only their frames.")
    ] = True,
) -> None:
    """Count schema ids, versions and fields in stored records, and report which versions may be deleted.

    Exit code 0: all records were counted, whatever they contain; 2: they could not be counted.
    """
    with exit_on_error():
        from stele.spark.data_audit import census as run

        report.check()
        with stored.open_records(subject or (), timestamp) as records:
            audit = partial(
                run,
                records.df,
                records.column,
                registry=stored.registry_like,
                subject=subject or (),
                wire=stored.wire,
                headers=stored.headers,
                timestamp=timestamp,
                message=stored.message,
                fields=fields,
                engine=stored.engine,
            )
            answer = run_audit(records.df.sparkSession, "counting records", audit)
        recorded.record_census(answer, stored)
        report.print_report(answer, stored.sources)


@expand_dataclass
def backtest(
    schema: Annotated[Path, typer.Argument(help="File with the proposed schema; - for standard input.")],
    stored: Stored,
    report: ReportOptions,
    subject: Annotated[
        list[str],
        typer.Option(
            "--subject", help="Subject of the proposed schema. Further subjects are those of other records in the data."
        ),
    ],
    ruleset: Annotated[
        str, typer.Option("--ruleset", help="Ruleset to compare by. Default: the default ruleset of the format.")
    ] = "",
    undecided: Annotated[
        WhenUndecided, typer.Option("--undecided", help="What to do if no rule can decide.")
    ] = WhenUndecided.REFUSE,
    sample: SampleOption = 1.0,
    position: Annotated[
        list[str] | None,
        typer.Option("--position", help="Column that locates a record, such as its offset; repeatable."),
    ] = None,
    allow_damaged: Annotated[
        bool, typer.Option("--allow-damaged", help="Pass even if some records cannot be read by their own schema.")
    ] = False,
) -> None:
    """Test a proposed schema on stored records: by the rules, and by decoding them.

    Exit code 0: all records can be read; 1: some cannot; 2: invalid arguments, or the data could not be read.
    """
    with exit_on_error():
        from stele.spark.data_audit import backtest as run

        report.check()
        proposed = read_text(schema)
        with stored.open_records(subject, position=position or ()) as records:
            audit = partial(
                run,
                records.df,
                records.column,
                schema=proposed,
                registry=stored.registry_like,
                subject=subject,
                ruleset=ruleset,
                undecided=undecided,
                sample=sample,
                wire=stored.wire,
                headers=stored.headers,
                message=stored.message,
                position=records.position,
                engine=stored.engine,
            )
            answer = run_audit(records.df.sparkSession, "reading records with the schema", audit)
        report.print_report(answer, stored.sources)
    raise typer.Exit(0 if answer.has_passed(allow_damaged=allow_damaged) else 1)


@expand_dataclass
def drift(
    stored: Stored,
    report: ReportOptions,
    subject: SubjectsOption = None,
    sample: SampleOption = 1.0,
    least: Annotated[int, typer.Option("--least", help="Minimum number of values for a statement about a type.")] = 20,
) -> None:
    """Find what schemas allow and stored records never use: fields never set, symbols never written, types too wide.

    Exit code 0: the data were read, whatever they contain; 2: they could not be read.
    """
    with exit_on_error():
        from stele.spark.data_audit import drift as run

        report.check()
        with stored.open_records(subject or ()) as records:
            audit = partial(
                run,
                records.df,
                records.column,
                registry=stored.registry_like,
                subject=subject or (),
                least=least,
                sample=sample,
                wire=stored.wire,
                headers=stored.headers,
                message=stored.message,
                engine=stored.engine,
            )
            answer = run_audit(records.df.sparkSession, "comparing records with their schemas", audit)
        report.print_report(answer, stored.sources)
