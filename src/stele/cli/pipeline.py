"""`stele pipeline`: write registered streams into tables with Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from time import sleep, strftime
from typing import TYPE_CHECKING, Annotated, Any, Self

import msgspec
import typer
from rich.text import Text

from stele.cli import dead_letters, pipeline_init, table_rows
from stele.cli.files import ForceOption, ToOption, check_target, write_text
from stele.cli.output import (
    Output,
    OutputOption,
    console,
    errors,
    exit_on_error,
    print_json,
    print_progress,
    print_text,
)
from stele.cli.pipeline_file import FileArgument, check_pipeline_registry, load_pipeline
from stele.cli.progress import show_job_progress
from stele.cli.spark_start import start_spark
from stele.errors import InvalidRequest, StoreError
from stele.spark.pipeline import BatchReport, PipelineReport, TablePlan, apply_plan, plan_pipeline, run_pipeline
from stele.spark.pipeline.config import PipelineConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = typer.Typer(
    help="Create, run and observe pipelines that write registered streams to tables with Spark.", no_args_is_help=True
)
app.command("init")(pipeline_init.init)
app.command("dead-letters")(dead_letters.list_dead_letters)
app.command("replay")(dead_letters.replay_letters)
app.command("show")(table_rows.show)

MOST_IDS = 8
"""Maximum number of ids in the line about a batch."""


@app.command("plan")
def plan(
    file: FileArgument,
    apply: Annotated[bool, typer.Option("--apply", help="Make the changes.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what each table needs for the newest version of its subject. Nothing is changed without --apply.

    Exit code 1 if a table cannot take its schema: then --apply changes no table.
    """
    with exit_on_error():
        plans = _plan_tables(load_pipeline(file), apply=apply)
    if output is Output.JSON:
        print_json(plans)
    else:
        _print_plans(plans, done=apply)
    if any(each.clashes for each in plans):
        raise typer.Exit(1)


@app.command("run")
def run(file: FileArgument, output: OutputOption = Output.TEXT) -> None:
    """Run a pipeline until all records are read, or, with an interval trigger, until Ctrl-C or SIGTERM.

    The next run continues where the last one ended. Every record counts exactly once, also after a crash.
    """
    with exit_on_error():
        config = load_pipeline(file)
        check_pipeline_registry(config)
        with BatchProgress(config) as progress:
            report = run_pipeline(
                config, progress=progress.finish_batch, on_batch_start=progress.begin_batch, start=start_spark
            )
    if output is Output.JSON:
        print_json(report)
    else:
        print_summary(report)
        print_progress(f"stele pipeline show {file} prints rows, and with --snippet how other tools open the table")


@app.command("status")
def status(
    file: FileArgument,
    watch: Annotated[float, typer.Option("--watch", help="Repeat every this many seconds, until Ctrl-C.")] = 0.0,
    pending: Annotated[
        bool, typer.Option("--plan", help="Also print the changes that tables need. Starts Spark.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show whether a pipeline runs, what it has done, which versions are in use, and how far it is behind Kafka."""
    with exit_on_error():
        if watch and pending:
            raise InvalidRequest("--plan and --watch exclude one another: --plan starts Spark")
        if watch < 0:
            raise InvalidRequest("--watch needs a number of seconds")
        config = load_pipeline(file)
        plans = _plan_tables(config) if pending else None
        try:
            while True:
                _print_status(config, plans, output, again=watch > 0)
                if not watch:
                    return
                sleep(watch)
        except KeyboardInterrupt:
            return


@app.command("report")
def report(
    file: FileArgument,
    to: ToOption = None,
    force: ForceOption = False,
) -> None:
    """Write a page with plots: throughput, schema ids in use, dead letters and batches over time.

    The page also shows the versions and fields of the subjects, unless the registry does not answer.
    """
    with exit_on_error():
        from stele.spark.data_audit.report import to_html
        from stele.spark.pipeline.status import load_pipeline_evolutions
        from stele.spark.pipeline.status import read_history as summarised

        check_target(to, force=force)
        config = load_pipeline(file)
        write_text(to, to_html(summarised(config, load_pipeline_evolutions(config))))


def _plan_tables(config: PipelineConfig, *, apply: bool = False) -> list[TablePlan]:
    from stele.spark.pipeline.runner import find_session, open_session

    check_pipeline_registry(config)
    with open_session(config, find_session(config, None), start_spark) as spark:
        plans = plan_pipeline(config, spark=spark)
        if apply and not any(each.clashes for each in plans):
            return apply_plan(config, spark=spark)
        return plans


def _print_plans(plans: Sequence[TablePlan], *, done: bool = False) -> None:
    for each in plans:
        of = f", for version {each.version} of {each.subject}" if each.subject else ""
        console.print(Text.assemble((each.table, "bold"), f"{of}:" if each.changes else f"{of}: nothing to do"))
        for change in each.changes:
            style = {"clash": "red", "left": "dim"}.get(change.kind, "")
            console.print(Text(f"  {'clash: ' if change.kind == 'clash' else ''}{change}", style), soft_wrap=True)
    if any(each.clashes for each in plans):
        errors.print(Text("nothing is done while tables cannot take their schemas", "red"))
    elif done and any(each.steps for each in plans):
        console.print("done")


def _print_status(config: PipelineConfig, plans: Sequence[TablePlan] | None, output: Output, *, again: bool) -> None:
    from stele.spark.data_audit.report import print_text as print_report
    from stele.spark.pipeline.status import read_status as found

    now = found(config)
    if output is Output.JSON:
        document: dict[str, Any] = msgspec.to_builtins(now)
        if plans is not None:
            document["plan"] = msgspec.to_builtins(plans)
        if again:
            sys.stdout.write(json.dumps(document) + "\n")
            sys.stdout.flush()
        else:
            print_json(document)
        return
    if again and console.is_terminal:
        console.clear()
    print_report(now, console)
    if plans is not None:
        console.print()
        _print_plans(plans)


class BatchProgress:
    """Shows the progress of a run on standard error: a bar or lines during a batch, and one line at its end."""

    def __init__(self, config: PipelineConfig) -> None:
        from stele.spark.pipeline.kafka_lag import LagMeter, measure_lag

        self._config = config
        self._behind = LagMeter(lambda: measure_lag(config))
        self._running = ExitStack()

    def __enter__(self) -> Self:
        """Return self. Nothing is shown before the first batch."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop showing a batch that was interrupted."""
        self._running.close()

    def begin_batch(self, number: int, spark: SparkSession) -> None:
        """Show the progress of a batch that starts now."""
        self._running.close()
        self._running.enter_context(show_job_progress(spark, f"batch {number} running"))

    def finish_batch(self, batch: BatchReport) -> None:
        """Print the results of a batch, and the changes that it made to tables."""
        self._running.close()
        behind = self._behind()
        if behind is not None:
            self._save_lag(behind)
        print_text(errors, Text(batch_line(batch, None if behind is None else sum(behind.values()))))
        for change in batch.changes:
            print_text(errors, Text(str(change)), indent=2)

    def _save_lag(self, topics: dict[str, int]) -> None:
        """Write the lag into the checkpoint, from which the registry's pages read it. Errors are ignored."""
        from stele.spark.pipeline.journal import BatchJournal

        with suppress(OSError, StoreError):
            BatchJournal(self._config.checkpoint).save_lag(topics)


def batch_line(batch: BatchReport, behind: int | None = None) -> str:
    """Return the line about a batch; `behind` is the number of records that Kafka has beyond it, None if unknown."""
    from stele.spark.data_audit.report import pluralize
    from stele.spark.pipeline.status import records_per_second

    ids = [f"id {name or '–'}: {count:,}" for name, count in sorted(batch.records.items(), key=_by_number)]
    if len(ids) > MOST_IDS:
        ids[MOST_IDS:] = [f"{len(ids) - MOST_IDS} more"]
    named = f" ({', '.join(ids)})" if ids else ""
    parts = [
        f"{strftime('%H:%M:%S')} batch {batch.batch}: {pluralize(batch.rows, 'row')}{named}",
        pluralize(batch.dead_letters, "dead letter"),
        *(f"{subject} v{version}" for subject, version in batch.versions.items()),
        f"{batch.seconds:.1f} s",
    ]
    speed = records_per_second([batch])
    parts += [f"{speed:,.{1 if speed < 10 else 0}f} records/s"] if speed else []
    parts += [] if behind is None else [f"{behind:,} behind Kafka"]
    parts += ["begun by an earlier run"] if batch.replayed else []
    return ", ".join(parts)


def _by_number(item: tuple[str, int]) -> tuple[bool, int, str]:
    name = item[0]
    return (not name.isdecimal(), int(name) if name.isdecimal() else 0, name)


def print_summary(done: PipelineReport) -> None:
    """Print the totals of a run."""
    from stele.spark.data_audit.report import pluralize

    versions = "; ".join(f"{subject} {', '.join(map(str, used))}" for subject, used in done.versions.items())
    counts = ((done.rows, "row"), (done.dead_letters, "dead letter"), (done.tombstones, "tombstone"))
    batches = f"{done.batches:,} batch{'' if done.batches == 1 else 'es'}"
    summary = ", ".join((batches, *(pluralize(count, what) for count, what in counts)))
    print_text(console, Text(f"{summary}; versions used: {versions or '–'}"))
    for change in done.changes:
        print_text(console, Text(str(change)))
