"""Lag of a pipeline, with Spark's offsets files and a mock broker of librdkafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.mock_broker import run_mock_broker

from stele.errors import StoreError
from stele.spark.pipeline.config import PipelineConfig, SourceConfig, TableConfig
from stele.spark.pipeline.journal import BatchEntry, BatchJournal, BatchReport
from stele.spark.pipeline.kafka_lag import LagMeter, finished_offsets, kafka_client_settings, measure_lag


def checkpoint(folder: Path, *batches: object, done: int) -> Path:
    """Make a checkpoint as Spark and a pipeline write it: all batches planned, the first `done` of them finished."""
    (folder / "offsets").mkdir(parents=True)
    for number, offsets in enumerate(batches):
        (folder / "offsets" / str(number)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(offsets)}')
        (folder / "offsets" / f".{number}.crc").write_bytes(b"crc")
    journal = BatchJournal(str(folder))
    for number in range(done):
        journal.finish_batch(BatchEntry(number, ()), BatchReport(number))
    return folder


def config(folder: Path, bootstrap: str, *topics: str, **options: str) -> PipelineConfig:
    """Return a pipeline with a Kafka source."""
    source = SourceConfig(kind="kafka", bootstrap=bootstrap, topics=topics, subject="s", options=options)
    return PipelineConfig(str(folder), source, TableConfig(kind="parquet", name="a.b"))


@pytest.fixture
def broker() -> Iterator[str]:
    """A broker with three records in partition 0 and two in partition 1 of `orders`, one of `late`."""
    with run_mock_broker() as address:
        producer = Producer({"bootstrap.servers": address})
        for topic, partition in (("orders", 0),) * 3 + (("orders", 1),) * 2 + (("late", 0),):
            producer.produce(topic, b"x", partition=partition)
        assert producer.flush(30) == 0
        yield address


def test_only_finished_batches_count(tmp_path: Path) -> None:
    """The offsets are those at the end of the newest finished batch, not of the batch that is running."""
    assert finished_offsets(str(tmp_path)) is None
    folder = checkpoint(tmp_path / "state", {"orders": {"0": 1}}, {"orders": {"0": 3}}, done=1)
    assert finished_offsets(str(folder)) == {"orders": {0: 1}}
    assert finished_offsets(f"file://{folder}") == {"orders": {0: 1}}


@pytest.mark.parametrize("offsets", [{"logOffset": 4}, [], "text", {"orders": {"zero": 1}}])
def test_other_sources_have_no_such_offsets(tmp_path: Path, offsets: object) -> None:
    """Offsets that are not those of Kafka give None, not an error."""
    assert finished_offsets(str(checkpoint(tmp_path / "state", offsets, done=1))) is None


def test_a_checkpoint_without_the_offsets_of_its_batch(tmp_path: Path) -> None:
    """Offset files that are missing or truncated give None."""
    folder = checkpoint(tmp_path / "state", {"orders": {"0": 1}}, done=1)
    (folder / "offsets" / "0").write_text("v1")
    assert finished_offsets(str(folder)) is None
    (folder / "offsets" / "0").unlink()
    assert finished_offsets(str(folder)) is None


def test_lag_is_what_the_broker_has_and_no_batch_had(tmp_path: Path, broker: str) -> None:
    """Partitions and topics without a finished batch count all their records; deleted topics count none."""
    folder = checkpoint(tmp_path / "state", {"orders": {"0": 1}, "gone": {"0": 7}}, done=1)
    assert measure_lag(config(folder, broker, "orders", "late")) == {"orders": 4, "late": 1}
    assert measure_lag(config(tmp_path / "new", broker, "orders")) is None, "no batch is finished"


def test_nobody_knows(tmp_path: Path) -> None:
    """A broker that does not answer, and settings that only Java understands, give no lag and no error."""
    folder = checkpoint(tmp_path / "state", {"orders": {"0": 1}}, done=1)
    assert measure_lag(config(folder, "127.0.0.1:1", "orders")) is None
    assert measure_lag(config(folder, "127.0.0.1:1", "orders", **{"kafka.no.such": "x"})) is None
    files = PipelineConfig(str(folder), SourceConfig(path="x", subject="s"), TableConfig(kind="parquet", name="a.b"))
    assert measure_lag(files) is None


def test_a_checkpoint_that_cannot_be_read_has_no_lag(tmp_path: Path) -> None:
    """A checkpoint that cannot be read gives no lag and no error, as batches must not fail for it."""
    folder = checkpoint(tmp_path / "state", {"orders": {"0": 1}}, done=1)
    (folder / "stele" / "totals.json").write_text("{")
    with pytest.raises(StoreError):
        finished_offsets(str(folder))
    assert measure_lag(config(folder, "127.0.0.1:1", "orders")) is None


def test_settings_in_the_words_of_librdkafka() -> None:
    """The connector's settings become a client's, with user and password from the JAAS line."""
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a\\"b=c";'
    options = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": jaas,
        "kafka.ssl.truststore.location": "/x.jks",
        "failOnDataLoss": "false",
    }
    settings = kafka_client_settings(SourceConfig(kind="kafka", bootstrap="b:1", topics=("t",), options=options))
    assert {name: value for name, value in settings.items() if isinstance(value, str)} == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": 'a"b=c',
    }


def test_an_answer_is_good_for_a_while() -> None:
    """The broker is asked again when the last answer is too old."""
    now, answers = [0.0], iter([{"t": 1}, {"t": 2}])
    watch = LagMeter(lambda: next(answers), lambda: now[0])
    assert (watch(), watch()) == ({"t": 1}, {"t": 1})
    now[0] = LagMeter.HOLDS
    assert watch() == {"t": 2}
