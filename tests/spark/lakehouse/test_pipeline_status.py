"""A pipeline from Kafka as `stele pipeline init` writes it, and its lag with a real broker."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession
from tests.spark.lakehouse.stack import open_producer, register, send
from tests.spark.orders import V1, order
from tests.support.kafka import kafka
from tests.support.server_process import serving

from stele.spark.pipeline import load_config, run_pipeline
from stele.spark.pipeline.kafka_lag import finished_offsets, measure_lag
from stele.spark.pipeline.scaffold import PipelineAnswers, render_pipeline_toml
from stele.spark.pipeline.status import read_status

pytestmark = pytest.mark.servers


def test_the_first_file_runs_and_lag_is_known(spark: SparkSession, tmp_path: Path) -> None:
    """The generated file for Kafka and Delta runs unchanged. After a stop, the lag counts the unprocessed records."""
    with kafka(tmp_path) as broker, serving(folder=tmp_path) as registry:
        producer = open_producer(broker)
        for topic in ("orders", "returns"):
            number = register(registry.url, f"{topic}-value", V1)
            send(producer, topic, [order(1, number, each) for each in range(20)])
        start = PipelineAnswers(bootstrap=broker, topics=("orders", "returns"), registry=registry.url, kind="delta")
        (tmp_path / "pipeline.toml").write_text(render_pipeline_toml(start, tmp_path, spark=spark.version))
        config = load_config(tmp_path / "pipeline.toml")
        stop = Event()
        done = run_pipeline(config, spark=spark, progress=lambda _: stop.set(), stop=stop)
        assert done.tables == {"streams.orders": 20, "streams.returns": 20}
        send(producer, "returns", [order(1, number, each) for each in range(5)])
        status = read_status(config)
    assert status.lag == {"orders": 0, "returns": 5}
    assert status.totals.rows == 40
    assert finished_offsets(config.checkpoint) is not None
    assert measure_lag(config) is None, "the broker is gone"
