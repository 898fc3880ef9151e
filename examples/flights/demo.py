"""The demo: a registry on SQLite, a stream of real flights in three schema versions, and the resulting table.

    make demo            leaves the server running at the end
    DEMO_EXIT=1 make demo    stops it; the exit code is 1 if a check failed

All its files are below `.stele/demo`, which each run creates again.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
from data import airlines, flights
from rich.progress import Progress
from schemas import ALL, REFUSED, SUBJECT, V1
from server import run_server
from stream import AFTER_V3, BEFORE_V3, frame, write_file

from report import Report
from stele.cli.output import print_finding
from stele.client import BaselineSchema, Schema, SchemaRegistryClient
from stele.errors import Incompatible
from stele.spark.pipeline import BatchReport, PipelineReport, iceberg_dataframe, load_config, open_table, run_pipeline
from stele.spark.session import local_session

HOME = Path(".stele/demo").resolve()
PIPELINE = """\
checkpoint = "checkpoint"

[source]
path = "incoming"
subject = "{subject}"
registry = "{url}"
max_files_per_trigger = 6

[table]
catalog = "sqlite:///catalog.db"
warehouse = "warehouse"
name = "nyc.flights"

[trigger]
interval = "1 second"
"""


def main() -> int:
    """Run the whole demo. Returns 0 if every check passed."""
    shutil.rmtree(HOME, ignore_errors=True)
    (HOME / "incoming").mkdir(parents=True)
    report = Report()
    with run_server(HOME) as server, SchemaRegistryClient(server.url) as registry:
        ids = [evolve(registry, report)]
        rows = flights()
        (HOME / "pipeline.toml").write_text(PIPELINE.format(subject=SUBJECT, url=server.url), encoding="utf-8")
        ids, stream, done = flow(registry, report, rows, ids)
        inspect(report, rows, ids, stream, done)
        held = report.conclude()
        if os.environ.get("DEMO_EXIT") != "1":
            server.leave_up(HOME)
    return 0 if held else 1


def evolve(registry: SchemaRegistryClient, report: Report) -> int:
    """Register version 1 and return its id. Show the refusal of an incompatible change."""
    report.step("Schema registry")
    first = registry.register(SUBJECT, Schema(V1))
    report.say(f"registered flight schema v1 as {SUBJECT}, id {first.id}")
    try:
        registry.register(SUBJECT, Schema(REFUSED))
        report.check("the incompatible change was refused", False)
    except Incompatible as refusal:
        report.say("refused: retyping `distance` and adding `gate` without a default, because")
        findings = registry.check("avro", REFUSED, against=[BaselineSchema(V1)]).findings
        for finding in findings:
            print_finding(finding)
        report.check("the incompatible change was refused", len(findings) == 2 and refusal is not None)
    return first.id


def flow(
    registry: SchemaRegistryClient, report: Report, rows: pa.Table, ids: list[int]
) -> tuple[list[int], dict[str, int], PipelineReport]:
    """Stream the flights through the pipeline and register version 3 meanwhile.

    Returns the schema ids, counts of the sent records, and the report of the pipeline.
    """
    report.step("Stream and pipeline")
    ids.append(registry.register(SUBJECT, Schema(ALL[1])).id)
    report.say(f"registered v2 (adds tailnum, widens distance to long), id {ids[1]}")
    sent = {"files": 0, "good": 0, "bad": 0, "v1": 0, "v2": 0, "v3": 0}
    spark, stop, chance = local_session("stele demo"), threading.Event(), random.Random(2013)
    results: list[PipelineReport] = []
    failures: list[BaseException] = []
    with Progress(console=report.console) as progress:
        encoded = progress.add_task("records sent", total=len(rows))
        stored = progress.add_task("rows stored", total=len(rows))

        def on_batch(batch: BatchReport) -> None:
            progress.update(stored, advance=batch.rows)
            for column in batch.columns_added:
                report.say(f"batch {batch.batch}: the table gained column {column} (schema v{batch.versions[SUBJECT]})")

        def pipeline() -> None:
            try:
                config = load_config(HOME / "pipeline.toml")
                results.append(run_pipeline(config, spark=spark, progress=on_batch, stop=stop))
            except BaseException as error:  # passed to the main thread, which raises it
                failures.append(error)

        thread = threading.Thread(target=pipeline)
        thread.start()
        try:
            for number in range(BEFORE_V3 + AFTER_V3):
                if number == BEFORE_V3:
                    _wait(lambda: failures or progress.tasks[stored].completed > 0, "the pipeline did not start")
                    ids.append(registry.register(SUBJECT, Schema(ALL[2])).id)
                    report.say(f"registered v3 (adds nested weather) while the pipeline runs, id {ids[2]}")
                _send(_share(rows, number), ids, sent, chance, number)
                progress.update(encoded, completed=sent["good"])
            _wait(lambda: failures or progress.tasks[stored].completed >= len(rows), "the pipeline fell behind")
        finally:
            stop.set()
            thread.join()
    if failures:
        raise failures[0]
    return ids, sent, results[0]


def _share(rows: pa.Table, number: int) -> pa.Table:
    """Return the rows of one file of the stream."""
    files = BEFORE_V3 + AFTER_V3
    first, end = number * len(rows) // files, (number + 1) * len(rows) // files
    return rows.slice(first, end - first)


def _send(part: pa.Table, ids: list[int], sent: dict[str, int], chance: random.Random, number: int) -> None:
    """Write one file with the rows spread over all registered versions, and with corrupted copies among them."""
    records: list[bytes] = []
    for version, schema_id in enumerate(ids, 1):
        share = part.take(list(range(version - 1, len(part), len(ids))))
        records += frame(share, version, schema_id)
        sent[f"v{version}"] += len(share)
    sent["bad"] += write_file(HOME / "incoming" / f"{number:03}.parquet", records, chance)
    sent["good"] += len(records)
    sent["files"] += 1


def _wait(done: object, complaint: str, seconds: float = 240) -> None:
    assert callable(done)
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            raise TimeoutError(complaint)
        time.sleep(0.2)


def inspect(report: Report, rows: pa.Table, ids: list[int], sent: dict[str, int], done: PipelineReport) -> None:
    """Query the table with Spark SQL and compare every figure with the source data."""
    report.step("The table, asked with Spark SQL")
    spark = local_session("stele demo")
    config = load_config(HOME / "pipeline.toml")
    iceberg_dataframe(spark, open_table(config.table, config.table.name)).createOrReplaceTempView("flights")
    iceberg_dataframe(spark, open_table(config.table, config.dead_letter_table)).createOrReplaceTempView("dead_letters")
    names = spark.createDataFrame(list(airlines().items()), "carrier string, airline string")
    names.createOrReplaceTempView("airlines")
    report.query(
        spark,
        "Worst average delays",
        """
        SELECT airline, count(*) flights, round(avg(arr_delay), 1) `mean delay, min`
        FROM flights JOIN airlines USING (carrier) GROUP BY airline ORDER BY 3 DESC LIMIT 5""",
    )
    versions = report.query(
        spark,
        "Per schema version of the writer",
        """
        SELECT _stele_version version, count(*) flights, count(tailnum) tailnums, count(weather) `with weather`,
               round(avg(weather.temp), 1) `mean °F`
        FROM flights GROUP BY 1 ORDER BY 1""",
    )
    report.query(
        spark,
        "Dead letters by reason",
        """
        SELECT regexp_replace(reason, '[0-9]+', 'N') reason, count(*) records
        FROM dead_letters GROUP BY 1 ORDER BY 2 DESC""",
    )
    totals = spark.sql("""
        SELECT count(*) n, sum(distance) distance, sum(dep_delay) dep_delay, sum(arr_delay) arr_delay,
               sum(flight) flight, count(tailnum) tailnum, sum(weather.precip) precip FROM flights""").first()
    assert totals is not None
    dead = spark.sql("SELECT count(*) n FROM dead_letters").first()
    assert dead is not None
    report.step("Checked against the source")
    report.equal("records in = rows out + dead letters", sent["good"] + sent["bad"], totals.n + dead.n)
    report.equal("rows", len(rows), totals.n)
    report.equal("dead letters", sent["bad"], dead.n)
    report.equal("rows the pipeline counted", done.rows, totals.n)
    for column in ("distance", "dep_delay", "arr_delay", "flight"):
        report.equal(f"sum of {column}", pa.compute.sum(rows[column]).as_py(), totals[column])
    for row in versions:
        report.equal(f"rows written with v{row['version']}", sent[f"v{row['version']}"], row["flights"])
    report.check("weather arrived only after v3", versions[0]["with weather"] == versions[1]["with weather"] == 0)
    report.check("weather arrived with v3", versions[2]["with weather"] > 0)
    report.check("the table gained its columns while running", "weather" in done.columns_added)
    report.say(f"{done.batches} micro-batches, {len(ids)} schema ids in one stream, no restart")
    spark.stop()


if __name__ == "__main__":
    sys.exit(main())
