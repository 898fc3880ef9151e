"""`stele pipeline`: registered streams into tables, on Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from stele.cli.output import Output, OutputOption, console, errors, failures, print_json
from stele.errors import InvalidRequest
from stele.spark.pipeline import BatchReport, PipelineReport, load_config, run_pipeline

app = typer.Typer(help="Turn registered streams into tables, on Spark.", no_args_is_help=True)


@app.command("run")
def run(
    file: Annotated[Path, typer.Argument(help="The pipeline's TOML file.")],
    output: OutputOption = Output.TEXT,
) -> None:
    """Run a pipeline until all there is is read, or, with an interval trigger, until Ctrl-C or SIGTERM.

    Running it again goes on where the last run ended; every record counts exactly once, also after a crash.
    """
    with failures():
        try:
            config = load_config(file)
        except OSError as error:
            raise InvalidRequest(f"{file}: {error.strerror}") from None
        report = run_pipeline(config, progress=_show)
    if output is Output.JSON:
        print_json(report)
    else:
        _summary(report)


@app.callback()
def _pipeline() -> None:
    """A callback keeps `run` a subcommand while it is the only one."""


def _show(batch: BatchReport) -> None:
    ids = ", ".join(f"id {number}: {count:,}" for number, count in sorted(batch.records.items()))
    rows = f"{batch.rows:,} rows{f' ({ids})' if ids else ''}"
    again = ", finished from an earlier run" if batch.replayed else ""
    added = f", new columns: {', '.join(batch.columns_added)}" if batch.columns_added else ""
    clock = time.strftime("%H:%M:%S")
    errors.print(
        f"{clock} batch {batch.batch}: {rows}, {batch.dead_letters:,} dead letters, "
        f"reader version {batch.reader_version}, {batch.seconds:.1f} s{added}{again}",
        highlight=False,
        soft_wrap=True,
    )


def _summary(report: PipelineReport) -> None:
    console.print(
        f"{report.batches} batches, {report.rows:,} rows, {report.dead_letters:,} dead letters, "
        f"{report.tombstones:,} tombstones; reader versions {', '.join(map(str, report.versions)) or '–'}",
        highlight=False,
        soft_wrap=True,
    )
