"""Metrics of pipelines: counters that continue over runs, a limited number of labels, a port and a file."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from tests.support.server_process import free_port

from stele.errors import Conflict, Invalid
from stele.spark.engines.base import Decoded, ErrorColumns, error_structs
from stele.spark.engines.error_codes import ErrorCode
from stele.spark.pipeline.config import MetricsConfig, PipelineConfig, SourceConfig, TableConfig
from stele.spark.pipeline.dead_letters import KINDS, count_by_kind
from stele.spark.pipeline.journal import BatchEntry, BatchJournal, BatchReport
from stele.spark.pipeline.kafka_lag import LagMeter
from stele.spark.pipeline.metrics import FAMILIES, MAX_IDS, PipelineMetrics, open_metrics

BATCH = BatchReport(
    0,
    at=1_700_000_000.0,
    rows=7,
    dead_letters=3,
    tombstones=1,
    tables={"shop.orders": 7},
    versions={"orders-value": 2},
    records={"1": 4, "2": 3},
    codes={"UNKNOWN_SCHEMA_ID": 2, "BAD_UTF8": 1},
    reasons={"unknown schema id 9": 2, "a string is not UTF-8": 1},
    seconds=3.0,
)


def config(folder: Path, port: int = 0, file: str = "") -> PipelineConfig:
    """Return a pipeline with metrics."""
    return PipelineConfig(
        str(folder / "state"),
        SourceConfig(path=str(folder), subject="orders-value"),
        TableConfig(kind="parquet", name="shop.orders"),
        metrics=MetricsConfig(port, str(folder / file) if file else ""),
    )


def figures(text: str) -> dict[str, float]:
    """Return samples by name and labels, without the label of the pipeline."""
    samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sample.labels.items() if name != "pipeline")
            samples[f"{sample.name}{{{labels}}}"] = sample.value
    return samples


def test_a_file_after_every_batch(tmp_path: Path) -> None:
    """The file exists from the start with zero counts, and has all figures after a batch."""
    with open_metrics(config(tmp_path, file="deep/orders.prom")) as count_batch:
        file = tmp_path / "deep" / "orders.prom"
        assert figures(file.read_text())["stele_pipeline_batches_total{}"] == 0
        count_batch(BATCH)
        now = figures(file.read_text())
    assert now["stele_pipeline_rows_total{table=shop.orders}"] == 7
    assert now["stele_pipeline_records_total{id=2}"] == 3
    assert now["stele_pipeline_dead_letters_total{kind=unknown_schema_id}"] == 2
    assert now["stele_pipeline_dead_letters_total{kind=bad_utf8}"] == 1
    assert now["stele_pipeline_dead_letters_total{kind=other}"] == 0
    assert now["stele_pipeline_tombstones_total{}"] == 1
    assert now["stele_pipeline_batch_seconds_bucket{le=2.5}"] == 0
    assert now["stele_pipeline_batch_seconds_bucket{le=5.0}"] == 1
    assert now["stele_pipeline_batch_seconds_count{}"] == 1
    assert now["stele_pipeline_batch_seconds_sum{}"] == 3.0
    assert now["stele_pipeline_last_batch_timestamp_seconds{}"] == 1_700_000_000.0
    assert now["stele_pipeline_subject_version{subject=orders-value}"] == 2
    assert list(file.parent.iterdir()) == [file], "no draft is left behind"


def test_counters_go_on_in_the_next_run(tmp_path: Path) -> None:
    """A second run continues the counts of the checkpoint and the file, and counts no batch twice."""
    settings = config(tmp_path, file="orders.prom")
    with open_metrics(settings) as count_batch:
        count_batch(BATCH)
    BatchJournal(settings.checkpoint).finish_batch(BatchEntry(0, ()), BATCH)
    with open_metrics(settings) as count_batch:
        count_batch(msgspec.structs.replace(BATCH, replayed=True))
        count_batch(msgspec.structs.replace(BATCH, batch=1, seconds=4000.0))
    now = figures((tmp_path / "orders.prom").read_text())
    assert now["stele_pipeline_batches_total{}"] == 2
    assert now["stele_pipeline_rows_total{table=shop.orders}"] == 14
    assert now["stele_pipeline_dead_letters_total{kind=unknown_schema_id}"] == 4
    assert now["stele_pipeline_batch_seconds_bucket{le=1800.0}"] == 1
    assert now["stele_pipeline_batch_seconds_bucket{le=+Inf}"] == 2
    assert now["stele_pipeline_batch_seconds_sum{}"] == 4003.0


@pytest.mark.parametrize("left", ["not a metrics file {", 'stele_pipeline_dead_letters_total{kind="x"', "\xff"])
def test_a_file_that_is_none_counts_nothing(tmp_path: Path, left: str) -> None:
    """A file with any other content does not stop the run, which overwrites it."""
    (tmp_path / "orders.prom").write_bytes(left.encode("latin-1"))
    with open_metrics(config(tmp_path, file="orders.prom")):
        now = figures((tmp_path / "orders.prom").read_text())
    assert now["stele_pipeline_dead_letters_total{kind=unknown_schema_id}"] == 0


def test_a_port_while_it_runs(tmp_path: Path) -> None:
    """Metrics are served from before the first batch until the end; then the port is free."""
    port = free_port()
    settings = config(tmp_path, port)
    address = f"http://127.0.0.1:{port}/metrics"
    with open_metrics(settings) as count_batch:
        count_batch(BATCH)
        with urllib.request.urlopen(address, timeout=30) as answer_questions:
            assert figures(answer_questions.read().decode())["stele_pipeline_rows_total{table=shop.orders}"] == 7
    with open_metrics(settings), urllib.request.urlopen(address, timeout=30):
        pass


def test_what_cannot_be_is_said_at_once(tmp_path: Path) -> None:
    """A port in use, and a file that cannot be written, are errors before the first batch."""
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Conflict, match=f"port {port}"), open_metrics(config(tmp_path, port)):
            pytest.fail("it was opened")
    with pytest.raises(Conflict, match="port 70000"), open_metrics(config(tmp_path, 70000)):
        pytest.fail("it was opened")
    (tmp_path / "file").touch()
    with (
        pytest.raises(Invalid, match=r"orders\.prom cannot be written"),
        open_metrics(config(tmp_path, file="file/orders.prom")),
    ):
        pytest.fail("it was opened")


def test_a_full_disk_fails_no_batch(tmp_path: Path) -> None:
    """During the run, a file that cannot be written is ignored."""
    with open_metrics(config(tmp_path, file="folder/orders.prom")) as count_batch:
        (tmp_path / "folder" / "orders.prom").unlink()
        (tmp_path / "folder").rmdir()
        (tmp_path / "folder").touch()
        count_batch(BATCH)
    assert (tmp_path / "folder").read_bytes() == b""


def test_nothing_without_settings(tmp_path: Path) -> None:
    """A pipeline without metrics opens no port and writes no file."""
    with open_metrics(config(tmp_path)) as count_batch:
        count_batch(BATCH)
    assert list(tmp_path.iterdir()) == []


def test_labels_stay_few(tmp_path: Path) -> None:
    """The number of series is limited for any number of ids and reasons, and the sums stay complete."""
    ids = {str(number): 1 for number in range(5 * MAX_IDS)}
    reasons = {f"schema id {number} cannot be read: so": 1 for number in range(20)}
    codes = {"UNUSABLE_SCHEMA": 20}
    tables = {"shop.orders": 500}
    batch = BatchReport(0, records=ids, rows=500, dead_letters=50, codes=codes, reasons=reasons, tables=tables)
    with open_metrics(config(tmp_path, file="it.prom")) as count_batch:
        count_batch(batch)
    now = figures((tmp_path / "it.prom").read_text())
    records = {name: value for name, value in now.items() if name.startswith("stele_pipeline_records_total")}
    assert len(records) == MAX_IDS + 1
    assert sum(records.values()) == 500
    assert now["stele_pipeline_dead_letters_total{kind=unusable_schema}"] == 20
    assert now["stele_pipeline_dead_letters_total{kind=other}"] == 30, "those whose codes the report leaves out"
    assert sum(1 for name in now if name.startswith("stele_pipeline_dead_letters_total")) == len(KINDS)


def test_lag_is_asked_for_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lag is reported by topic. Frequent scrapes ask the broker once, and an unknown lag has no series."""
    calls: list[PipelineConfig] = []

    def behind(settings: PipelineConfig) -> dict[str, int]:
        calls.append(settings)
        return {"orders": 12}

    monkeypatch.setattr(LagMeter, "HOLDS", 600.0)
    metrics = PipelineMetrics(config(tmp_path), behind=behind)
    metrics.count_batch(BATCH)
    for _ in range(3):
        lags = {sample.labels["topic"]: sample.value for sample in _samples(metrics, "lag_records")}
        assert lags == {"orders": 12}
    assert len(calls) == 1
    silent = PipelineMetrics(config(tmp_path), behind=lambda _: None)
    assert list(_samples(silent, "lag_records")) == []


def test_the_documented_families_are_those_there_are(tmp_path: Path) -> None:
    """The list for the documentation has every family, with its type."""
    metrics = PipelineMetrics(config(tmp_path), behind=lambda _: {})
    metrics.count_batch(BATCH)
    there = {(family.name, family.type, family.documentation) for family in metrics.collect()}
    assert there == {(f"stele_pipeline_{each.name}", each.type, each.text) for each in FAMILIES}


def test_kinds_of_codes() -> None:
    """The kind of a dead letter is its code. Dead letters of old reports, which have no codes, are of one kind."""
    assert count_by_kind({"UNKNOWN_SCHEMA_ID": 5}, 6) == {"unknown_schema_id": 5, "other": 1}
    codes = ("UNUSABLE_SCHEMA", "TRUNCATED", "UNROUTED", "NOT_FRAMED", "RULE_FAILED", "INVALID_DATA")
    assert count_by_kind(dict.fromkeys(codes, 1), len(codes)) == {code.lower(): 1 for code in codes}
    assert {code.lower() for code in codes} < set(KINDS)
    assert count_by_kind({}, 0) == {}


@pytest.mark.parametrize(
    ("label", "schema_id"),
    [("schema id", 12), ("encoding id", 5), ("record id", 2), ("schema", "guid"), ("dataschema", "uri")],
)
def test_ids_of_every_wire_count_as_unknown_ids(label: str, schema_id: object) -> None:
    """The wire's word for an id changes the sentence, but not the kind."""
    errors = ErrorColumns(1)
    errors.add(0, ErrorCode.UNKNOWN_SCHEMA_ID)
    decoded = Decoded(pa.nulls(1), pa.array([schema_id]), *errors.columns(), label)
    (error,) = error_structs(decoded).to_pylist()
    assert (error["code"], error["reason"]) == ("UNKNOWN_SCHEMA_ID", f"unknown {label} {schema_id}")
    assert count_by_kind({error["code"]: 1}, 1) == {"unknown_schema_id": 1}


def _samples(metrics: PipelineMetrics, name: str) -> list[Sample]:
    families = {family.name: family for family in metrics.collect()}
    return list(families[f"stele_pipeline_{name}"].samples) if f"stele_pipeline_{name}" in families else []
