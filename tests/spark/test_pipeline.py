"""Pipelines into Iceberg: evolution without restart, dead letters, replays, and a process killed half-way."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread, Timer
from unittest.mock import Mock

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V1, V2, V3, drop, frame_record, order

from stele.client import SchemaRegistryClient
from stele.errors import Conflict, DecodeError, Invalid, NotFound, StoreError, SubjectNotFound, Unavailable
from stele.spark import PipelineConfig, iceberg_dataframe, load_config, run_pipeline
from stele.spark.pipeline import BatchReport, PipelineFailed, open_table
from stele.spark.pipeline.batch import BatchRunner
from stele.spark.pipeline.config import SourceConfig, TriggerConfig
from stele.spark.pipeline.journal import BatchJournal
from stele.spark.pipeline.sinks import iceberg

TOML = """
checkpoint = "state"
{top}
[source]
path = "in"
subject = "orders-value"
registry = "{registry}"
max_files_per_trigger = 1
[table]
catalog = "sqlite:///catalog.db"
warehouse = "warehouse"
name = "shop.orders"
{more}
"""


def config(folder: Path, registry: str, top: str = "", more: str = "") -> PipelineConfig:
    """Return a pipeline in a folder of its own."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "pipeline.toml").write_text(TOML.format(registry=registry, top=top, more=more))
    return load_config(folder / "pipeline.toml")


def ids(spark: SparkSession, settings: PipelineConfig) -> list[int]:
    """Return the ids in the table, read by Spark, sorted."""
    return sorted(row.id for row in iceberg_dataframe(spark, open_table(settings.table)).select("id").collect())


def letters(settings: PipelineConfig) -> list[dict[str, object]]:
    """Return the dead letters, read by pyiceberg."""
    return open_table(settings.table, settings.dead_letter_table).scan().to_arrow().to_pylist()


def test_a_running_query_gains_columns(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """A single query adds the columns of each new version to the table, including nested columns and wider types.

    It waits for a registry that is unavailable for some seconds.
    """
    settings = config(tmp_path, registry.url, more='[trigger]\ninterval = "0 seconds"')
    registry.add(SUBJECT, V1)
    drop(tmp_path / "in", "a.parquet", [order(1, 1, number) for number in range(10)])
    reports: list[BatchReport] = []
    stop = Event()
    runner = Thread(
        target=run_pipeline, args=(settings,), kwargs={"spark": spark, "progress": reports.append, "stop": stop}
    )
    runner.start()
    try:
        _until(lambda: len(reports) == 1)
        registry.add(SUBJECT, V2)
        drop(tmp_path / "in", "b.parquet", [order(2, 2, 10), order(1, 1, 11), None])
        _until(lambda: len(reports) == 2)
        registry.add(SUBJECT, V3)
        registry.break_down()
        Timer(3, registry.heal).start()
        drop(tmp_path / "in", "c.parquet", [order(3, 3, 12), order(1, 1, 13), order(2, 2, 14), b"junk"])
        _until(lambda: len(reports) == 3)
    finally:
        stop.set()
        runner.join(240)
    assert [report.versions for report in reports] == [{SUBJECT: number} for number in (1, 2, 3)]
    assert [report.rows for report in reports] == [10, 2, 3]
    assert [report.columns_added for report in reports[1:]] == [("at",), ("place.country", "note", "places")]
    assert list(map(str, reports[0].changes)) == [
        "shop.orders: table created",
        "shop.orders_dead_letters: table created",
    ]
    assert list(map(str, reports[1].changes)) == [
        "shop.orders: column id: int → bigint",
        "shop.orders: column at added: timestamp",
    ]
    assert reports[1].tombstones == 1
    assert reports[2].records == {"1": 1, "2": 1, "3": 1}
    table = open_table(settings.table)
    assert str(table.schema().find_type("id")) == "long"
    df = iceberg_dataframe(spark, table)
    assert [tuple(row) for row in df.groupBy("_stele_version").count().orderBy("_stele_version").collect()] == [
        (1, 12),
        (2, 2),
        (3, 1),
    ]
    rows = {row.id: row for row in df.collect()}
    assert sorted(rows) == list(range(15))
    assert (rows[0].place.city, rows[0].place.country, rows[0].note, rows[0].at) == ("city 0", None, None, None)
    assert (rows[12].place.country, rows[12].note, rows[12].places["home"].city) == ("NO", "note 12", "here")
    assert rows[13].at.year == 1970, "the reader's default, once the reader has the field"
    assert table.scan().to_arrow().sort_by("id")["id"].to_pylist() == list(range(15)), "pyiceberg reads the same"
    assert [letter["value"] for letter in letters(settings)] == [b"junk"]
    with table.update_schema() as update:
        update.rename_column("note", "remark")
    renamed = iceberg_dataframe(spark, open_table(settings.table)).where("remark IS NOT NULL").collect()
    assert [(row.id, row.remark) for row in renamed] == [(12, "note 12")], "columns are found by id, not by name"
    assert len(table.metadata.schemas) == 4, "one for each version and one for the renaming"


def _until(done: object) -> None:
    deadline = time.monotonic() + 240
    while not done():  # type: ignore[operator]  # a condition
        assert time.monotonic() < deadline, "the pipeline did not get there"
        time.sleep(0.1)


def test_bad_records_go_beside_the_table(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """Dead letters have raw bytes, id, reason, byte, file and batch; good rows of the same file are in the table."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url)
    bad = [order(1, 1, 1)[:-1], b"\0\0\0\0\x63zz", b"", order(1, 1, 2) + b"!"]
    drop(tmp_path / "in", "a.parquet", [bad[0], order(1, 1, 7), *bad[1:], None, order(1, 1, 8)])
    report = run_pipeline(settings, spark=spark)
    assert (report.batches, report.rows, report.dead_letters, report.tombstones) == (1, 2, 4, 1)
    assert ids(spark, settings) == [7, 8]
    dead_letters = letters(settings)
    assert [letter["value"] for letter in dead_letters] == bad
    assert [letter["schema_id"] for letter in dead_letters] == [1, 99, None, 1]
    assert (dead_letters[0]["byte"], dead_letters[0]["offset"]) == (len(order(1, 1, 1)) - 6, None)
    assert dead_letters[0]["reason"] == "the record ends inside a value"
    assert str(dead_letters[0]["source"]).endswith("in/a.parquet")
    assert {letter["batch"] for letter in dead_letters} == {0}
    again = run_pipeline(settings, spark=spark)
    assert again.batches == 0, "nothing new, nothing done"


def test_a_report_keeps_samples_of_dead_letters(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """A report keeps the configured number of samples of each code: code, reason, place and the first bytes."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url, more="[dead_letter]\nsamples = 1")
    unknown = b"\0\0\0\0\x63" + b"z" * 2_000
    drop(tmp_path / "in", "a.parquet", [unknown, unknown, order(1, 1, 1)[:-1], order(1, 1, 7)])
    run_pipeline(settings, spark=spark)
    (report,) = BatchJournal(settings.checkpoint).read_reports()
    assert report.dead_letters == 3
    assert sorted(sample.code for sample in report.samples) == sorted(report.codes)
    samples = {sample.bytes: sample for sample in report.samples}
    assert base64.b64decode(samples[len(unknown)].value) == unknown[:1024]
    short = samples[len(order(1, 1, 1)) - 1]
    assert base64.b64decode(short.value) == order(1, 1, 1)[:-1]
    assert (short.reason, short.place.endswith("in/a.parquet")) == ("the record ends inside a value", True)


def test_failfast_stops_and_goes_on_where_it_stopped(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path
) -> None:
    """A bad record stops a FAILFAST pipeline with the reason. A DEADLETTER pipeline then processes the batch once."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url, top='mode = "FAILFAST"')
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1), b"bad"])
    with pytest.raises(DecodeError, match="no frame"):
        run_pipeline(settings, spark=spark)
    with pytest.raises(NotFound):
        open_table(settings.table)
    report = run_pipeline(msgspec.structs.replace(settings, mode="DEADLETTER"), spark=spark)
    assert (report.rows, report.dead_letters) == (1, 1)
    assert ids(spark, settings) == [1]


def test_a_replayed_batch_adds_nothing(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """A batch that Spark runs again because its commit was lost adds no rows to both tables."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url)
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1), b"bad"])
    drop(tmp_path / "in", "b.parquet", [order(1, 1, 2)])
    assert run_pipeline(settings, spark=spark).batches == 2
    (tmp_path / "state/commits/1").unlink()
    (tmp_path / "state/commits/.1.crc").unlink()
    reports: list[BatchReport] = []
    run_pipeline(settings, spark=spark, progress=reports.append)
    assert [(report.batch, report.replayed) for report in reports] == [(1, True)]
    # also without the journal's entry: the table itself has the newest batch
    (tmp_path / "state/commits/1").unlink()
    (tmp_path / "state/commits/.1.crc").unlink()
    (tmp_path / "state/stele/1.json").unlink()
    run_pipeline(settings, spark=spark)
    assert ids(spark, settings) == [1, 2]
    assert len(letters(settings)) == 1
    snapshots = open_table(settings.table).snapshots()
    assert [snapshot.summary["stele.batch"] for snapshot in snapshots if snapshot.summary] == ["0", "1"]


def test_a_version_registered_in_between_loses_no_column(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path
) -> None:
    """If a batch has records of a version newer than the pinned one, it is decoded again with the newer one."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url)
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1), order(3, 2, 2)])
    registry.call_before("/schemas/ids/2", lambda: registry.add(SUBJECT, V3))  # at the first lookup of its id by a task
    report = run_pipeline(settings, spark=spark)
    assert report.versions == {SUBJECT: (2,)}
    rows = iceberg_dataframe(spark, open_table(settings.table)).orderBy("id").collect()
    assert [(row.id, row.note, row._stele_version) for row in rows] == [(1, None, 1), (2, "note 2", 2)]
    assert len(list((tmp_path / "warehouse").rglob("*.parquet"))) == 1, "files of the first try are gone"


def test_what_the_table_cannot_take_is_a_conflict(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """A column that cannot change its type stops the pipeline with the reason, and the table does not change."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url)
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1)])
    run_pipeline(settings, spark=spark)
    changed = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
    number = registry.add(SUBJECT, changed)
    drop(tmp_path / "in", "b.parquet", [frame_record(changed, {"id": "x"}, number)])
    with pytest.raises(
        Conflict, match="cannot take version 2 of orders-value: column id: it is int and cannot become string"
    ):
        run_pipeline(settings, spark=spark)
    assert ids(spark, settings) == [1]


def test_a_pipeline_runs_from_a_snapshot_file(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """With a snapshot file no registry is needed."""
    registry.add(SUBJECT, V1)
    with SchemaRegistryClient(registry.url) as client:
        client.snapshot(subjects=[SUBJECT]).save(tmp_path / "schemas.json")
    registry.break_down()
    settings = config(tmp_path, "schemas.json")
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 5)])
    assert run_pipeline(settings, spark=spark).rows == 1


def test_faults_of_the_driver_keep_their_class(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """An unknown subject raises `SubjectNotFound`, not a Java error, and a missing table raises `NotFound`."""
    settings = config(tmp_path, registry.url)
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 5)])
    with pytest.raises(SubjectNotFound):
        run_pipeline(settings, spark=spark)
    with pytest.raises(NotFound, match=r"there is no table shop\.orders"):
        open_table(settings.table)
    registry.break_down()
    with pytest.raises(Unavailable, match="on purpose"):
        run_pipeline(settings, spark=spark)
    registry.heal()
    registry.add(SUBJECT, V1)
    run_pipeline(settings, spark=spark)
    registry.break_down()
    Timer(2, registry.heal).start()
    assert run_pipeline(settings, spark=spark).batches == 0, "a registry that answered once is waited for"
    bad = msgspec.structs.replace(settings, trigger=TriggerConfig(interval="banana"))
    with pytest.raises(PipelineFailed, match="Error parsing 'banana' to interval"):
        run_pipeline(bad, spark=spark)
    with pytest.raises(NotFound, match="there is no folder /nowhere"):
        run_pipeline(msgspec.structs.replace(bad, source=_source(Path("/nowhere"), registry.url)), spark=spark)
    with pytest.raises(Invalid, match="Spark Connect"):
        run_pipeline(settings, spark=object())  # type: ignore[arg-type]  # like a session without a JVM here


def test_a_file_without_the_column_is_no_tombstone(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path
) -> None:
    """A file without the binary column stops the pipeline and leaves no rows; a file with only nulls does not."""
    registry.add(SUBJECT, V1)
    settings = msgspec.structs.replace(config(tmp_path, registry.url), source=_source(tmp_path, registry.url))
    drop(tmp_path / "in", "a b%.parquet", [None, None])
    assert run_pipeline(settings, spark=spark).tombstones == 2
    drop(tmp_path / "in", "good.parquet", [order(1, 1, 1)])
    pq.write_table(pa.table({"payload": [order(1, 1, 2)]}), tmp_path / "in" / "other.parquet")
    with pytest.raises(Invalid, match=r"in/other\.parquet has no column 'value'"):
        run_pipeline(settings, spark=spark)
    assert not list((tmp_path / "warehouse").rglob("*.parquet"))


def _source(folder: Path, registry: str) -> SourceConfig:
    """Return a source with all files in one batch."""
    return SourceConfig(path=str(folder / "in"), subject=SUBJECT, registry=registry)


def test_signals_end_a_run_between_two_batches(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """SIGTERM in a batch lets it finish and starts no other. The next run continues. Two runs at once are refused."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url, more='[trigger]\ninterval = "0 seconds"')
    for number in range(4):
        drop(tmp_path / "in", f"{number}.parquet", [order(1, 1, number)])
    before = signal.getsignal(signal.SIGTERM)

    def end(_: BatchReport) -> None:
        with pytest.raises(Conflict, match="is being run by another process"):
            run_pipeline(settings, spark=spark)
        os.kill(os.getpid(), signal.SIGTERM)  # a second one would end the run at once
        while signal.getsignal(signal.SIGTERM) != signal.default_int_handler:  # the main thread has not handled it yet
            time.sleep(0.01)

    report = run_pipeline(settings, spark=spark, progress=end)
    assert report.batches == 1
    assert len(ids(spark, settings)) == report.batches
    assert signal.getsignal(signal.SIGTERM) == before
    run_pipeline(msgspec.structs.replace(settings, trigger=TriggerConfig()), spark=spark)
    assert ids(spark, settings) == [0, 1, 2, 3]


CHILD = """
import os, sys
from stele.spark import load_config, run_pipeline
from stele.spark.pipeline.sinks import iceberg
where = sys.argv[2]
calls = iter(range(2))
original = iceberg.commit_files
def commit(table, *rest):
    if next(calls) == 1:
        open(where, "w").close()
        os.kill(os.getpid(), 9)
    original(table, *rest)
iceberg.commit_files = commit
run_pipeline(load_config(sys.argv[1]))
"""


def _run_and_kill(folder: Path) -> None:
    """Run the pipeline in a process that kills itself between the two commits; its session logs nothing until then."""
    marker = folder / "killed"
    command = [sys.executable, "-c", CHILD, str(folder / "pipeline.toml"), str(marker)]
    child = subprocess.run(command, env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()[-2000:]
    assert marker.exists()
    assert b" WARN " not in child.stderr
    assert b"log level" not in child.stderr


@pytest.mark.parametrize("killed", [True, False], ids=["killed between the two commits", "failed before the first"])
def test_a_batch_that_was_cut_short_is_finished_exactly_once(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """After SIGKILL or an error around the commits, and a restart, every row and every dead letter is stored once.

    The unknown id is registered before the restart. A batch that was classified is not classified again, else its
    record would be in both tables or in none.
    """
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url)
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1), b"bad", order(1, 2, 9), order(1, 1, 2)])
    if killed:
        _run_and_kill(tmp_path)
    else:
        with monkeypatch.context() as patch:
            patch.setattr(iceberg, "commit_files", Mock(side_effect=StoreError("the catalog is away")))
            with pytest.raises(StoreError, match="the catalog is away"):
                run_pipeline(settings, spark=spark)
    registry.add("other", V1 | {"doc": "known too late"})
    drop(tmp_path / "in", "b.parquet", [order(1, 1, 3)])
    reports: list[BatchReport] = []
    run_pipeline(settings, spark=spark, progress=reports.append)
    assert [(report.batch, report.replayed) for report in reports] == [(0, True), (1, False)]
    assert ids(spark, settings) == [1, 2, 3]
    assert [letter["value"] for letter in letters(settings)] == [b"bad", order(1, 2, 9)]


def test_what_spark_gives_up_is_started_again(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of Spark itself does not end a run that makes progress, and ends one that does not."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url)
    for number in range(3):
        drop(tmp_path / "in", f"{number}.parquet", [order(1, 1, number)])
    whole, calls = BatchRunner.run_batch, []

    def breaking(self: BatchRunner, df: DataFrame, batch: int) -> BatchReport:
        calls.append(batch)
        if len(calls) == 2 or batch == 2:
            raise RuntimeError("a broker went away")
        return whole(self, df, batch)

    with monkeypatch.context() as patch:
        patch.setattr(BatchRunner, "run_batch", breaking)
        with pytest.raises(PipelineFailed, match="a broker went away"):
            run_pipeline(settings, spark=spark)
    assert calls == [0, 1, 1, 2, 2], "each failed batch came again, and the one that fails again ends the run"
    assert run_pipeline(settings, spark=spark).rows == 1
    assert ids(spark, settings) == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("checkpoint = 1", "Expected `str`, got `int` - at `$.checkpoint`"),
        ('surprise = "x"', "surprise"),
        ("[trigger]\navailable_now = true\ninterval = '1 second'", "either available_now or an interval"),
        ("= broken", "Invalid"),
    ],
)
def test_faulty_files_are_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    """Unknown keys, wrong types, contradictions and bad TOML are errors that name the file and the key."""
    path = tmp_path / "pipeline.toml"
    path.write_text(TOML.format(registry="x", top="", more=text) if "checkpoint" not in text else text)
    with pytest.raises(Invalid, match=r"pipeline\.toml") as caught:
        load_config(path)
    assert message in str(caught.value)
