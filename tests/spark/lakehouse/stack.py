"""Helpers for lakehouse tests: settings for Spark with Kafka, Delta and Iceberg, pipelines, and records to send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import Producer
from tests.support.maven import jars
from tests.support.server_process import call

_POM = Path(__file__).parents[2] / "support" / "spark-pom.xml"
KINDS = ("delta", "iceberg-spark")


def spark_settings(warehouse: Path) -> dict[str, str]:
    """Return settings of a session with Kafka, Delta tables, and an Iceberg catalogue `ice` in the folder."""
    return {
        "spark.jars": ",".join(str(jar) for jar in sorted(jars(_POM).glob("*.jar"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(warehouse / "ice"),
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def pipeline_file(
    folder: Path, kind: str, broker: str, registry: str, *, source: str = "", table: str = "", more: str = ""
) -> Path:
    """Write a pipeline from Kafka into tables of a kind, in a folder of its own, and return its path."""
    place = 'catalog = "ice"' if kind == "iceberg-spark" else f'warehouse = "{folder / "lake"}"'
    conf = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in spark_settings(folder).items())
    path = folder / "pipeline.toml"
    path.write_text(
        f'checkpoint = "state"\n[source]\nkind = "kafka"\nbootstrap = "{broker}"\nregistry = "{registry}"\n{source}\n'
        f'[table]\nkind = "{kind}"\n{place}\n{table}\n{more}\n[spark.conf]\n{conf}'
    )
    return path


def running(file: Path, *, log: Path) -> subprocess.Popen[bytes]:
    """Start `stele pipeline run` in a process group of its own, so that a signal also reaches its JVM."""
    command = [sys.executable, "-m", "stele.cli", "pipeline", "run", str(file)]
    with log.open("ab") as out:
        environ = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
        return subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, env=environ)


def register(registry: str, subject: str, schema: object) -> int:
    """Register an Avro schema and return its id. Raises `OSError` when the registry is unavailable or not ready."""
    answer = call(f"{registry}/subjects/{subject}/versions", "POST", {"schema": json.dumps(schema)})
    if answer.status == 503:
        raise ConnectionError(f"the registry is not ready: {answer.body}")
    assert answer.status == 200, answer
    number: int = answer.body["id"]
    return number


def open_producer(broker: str) -> Producer:
    """Return an idempotent producer: each record is stored once and in order, even if it is sent again."""
    return Producer({"bootstrap.servers": broker, "enable.idempotence": True})


def send(producer: Producer, topic: str, records: Iterable[bytes | None]) -> None:
    """Send records and wait until the broker has them."""
    for number, record in enumerate(records):
        producer.produce(topic, record, key=str(number))
        producer.poll(0)
    assert producer.flush(240) == 0
