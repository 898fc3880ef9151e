"""Registered streams as datasets of Spark's declarative pipelines: real runs, with packages from PyPI only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V2, V3, VERSIONS, drop, frame_record, order
from tests.support.java_machine import JavaMachine

from stele.errors import Invalid, SubjectNotFound
from stele.spark import declarative

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ENVIRON = os.environ | {
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_TESTING": "1",  # with it, Spark Connect takes a free port
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
}
DATABASE = "pipelines"
SPEC = """
name: shop
storage: file://{home}/storage
libraries:
  - glob:
      include: definitions/**
"""
DEFINITION = """
from stele.spark import declarative as stele

stele.streaming_table(
    "{name}",
    subject="{subject}",
    registry="{url}",
    source=lambda spark: spark.readStream.schema("value binary, region string").parquet("{home}/incoming"),
    keep=["region"],
    {more}
)
"""


class Project:
    """A folder with a pipeline, and the process that runs it."""

    def __init__(self, home: Path, process: subprocess.Popen[str]) -> None:
        self.home, self._process = home, process
        (home / "definitions").mkdir(parents=True)
        (home / "spark-pipeline.yml").write_text(SPEC.format(home=home), encoding="utf-8")

    def define(self, name: str, text: str) -> None:
        """Write a definition file."""
        (self.home / "definitions" / f"{name}.py").write_text(text, encoding="utf-8")

    def table(self, name: str, url: str, more: str = "") -> None:
        """Define a streaming table of the orders."""
        self.define(name, DEFINITION.format(name=name, subject=SUBJECT, url=url, home=self.home, more=more))

    def run(self, *full_refresh: str) -> str:
        """Run the pipeline once and return the error, '' if there is none."""
        spec = str(self.home / "spark-pipeline.yml")
        return str(self._ask({"run": spec, "full_refresh": list(full_refresh)})["error"])

    def sql(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        rows: list[dict[str, Any]] = self._ask({"sql": query})["rows"]
        return rows

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process ended"
        return json.loads(line)


@pytest.fixture(scope="module")
def process(
    spark: SparkSession, connect_address: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[subprocess.Popen[str]]:
    """One process for all runs, a client of the session's Spark Connect server, with a database of its own."""
    home = tmp_path_factory.mktemp("pipelines")
    spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{home / 'warehouse'}'")
    command = [sys.executable, str(Path(__file__).with_name("pipelines_process.py")), connect_address, DATABASE]
    with (home / "log").open("w", encoding="utf-8") as log:
        started = subprocess.Popen(
            command, cwd=home, env=ENVIRON, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
        with started:  # closes its pipes, which ends the process
            yield started
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


@pytest.fixture
def project(tmp_path: Path, process: subprocess.Popen[str]) -> Project:
    """An empty pipeline."""
    return Project(tmp_path, process)


def test_a_stream_becomes_a_table_that_grows(project: Project, registry: LocalRegistry) -> None:
    """Records are rows or dead letters, each once, over two runs.

    The version registered between them adds its columns, including nested ones.
    """
    first = registry.add(SUBJECT, VERSIONS[1])
    project.table("orders", registry.url)
    drop(project.home / "incoming", "1.parquet", [order(2, first, 1), b"bad", None, order(2, first, 2)])
    assert project.run() == ""
    rows = project.sql("SELECT * FROM orders ORDER BY id")
    assert [row["id"] for row in rows] == [1, 2]
    assert list(rows[0]) == ["id", "place", "tags", "at", "_stele_schema_id", "_stele_version", "region"]

    second = registry.add(SUBJECT, VERSIONS[2])
    drop(project.home / "incoming", "2.parquet", [order(2, first, 3), order(3, second, 4), order(3, second, 5)[:-3]])
    assert project.run() == ""
    rows = project.sql("SELECT * FROM orders ORDER BY id")
    assert [row["id"] for row in rows] == [1, 2, 3, 4]
    assert [row["note"] for row in rows] == [None, None, None, "note 4"]
    assert [row["place"]["country"] for row in rows] == [None, None, None, "NO"]
    assert [(row["_stele_schema_id"], row["_stele_version"]) for row in rows] == [(1, 1), (1, 1), (1, 1), (2, 2)]
    dead = project.sql("SELECT value, schema_id, byte, reason FROM orders_dead_letters ORDER BY schema_id")
    assert [(row["value"], row["schema_id"]) for row in dead] == [(str(b"bad"), None), (str(order(3, 2, 5)[:-3]), 2)]
    assert "no frame" in dead[0]["reason"]
    counts = project.sql("SELECT _stele_table, count(*) n FROM orders_records GROUP BY 1 ORDER BY 1")
    assert counts == [{"_stele_table": None, "n": 2}, {"_stele_table": "orders", "n": 5}]


def test_a_newer_schema_stops_the_run(project: Project, registry: LocalRegistry) -> None:
    """A record whose schema was registered after the run began is not read without its new columns.

    The run stops and writes nothing, and the next run reads the whole record.
    """
    first = registry.add(SUBJECT, VERSIONS[1])
    late = registry.add("elsewhere", VERSIONS[2])
    project.table("stopped", registry.url)
    drop(project.home / "incoming", "1.parquet", [order(2, first, 1), order(3, late, 2)])
    error = project.run()
    assert f"schema id {late} was registered after this run began" in error
    assert project.sql("SELECT * FROM stopped_records") == []

    registry.add(SUBJECT, VERSIONS[2])
    assert project.run() == ""
    rows = project.sql("SELECT id, note FROM stopped ORDER BY id")
    assert rows == [{"id": 1, "note": None}, {"id": 2, "note": "note 2"}]


def test_a_wider_type_wants_a_full_refresh(project: Project, registry: LocalRegistry) -> None:
    """Spark's pipelines do not widen columns, so the run fails before it reads.

    A full refresh of the table decodes the stored records again, although their files are deleted. The next run
    succeeds.
    """
    first = registry.add(SUBJECT, VERSIONS[0])
    project.table("wide", registry.url, 'dead_letters="wide_rest", records="wide_raw", comment="orders"')
    drop(project.home / "incoming", "1.parquet", [order(1, first, 1), b"bad"])
    assert project.run() == ""
    (project.home / "incoming" / "1.parquet").unlink()
    second = registry.add(SUBJECT, VERSIONS[1])
    drop(project.home / "incoming", "2.parquet", [order(2, second, 2**40)])
    assert "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE" in project.run()
    assert project.run("wide") == ""  # refreshes that table alone: no new records are read
    assert [row["id"] for row in project.sql("SELECT id FROM wide")] == [1]
    assert project.run() == ""
    assert [row["id"] for row in project.sql("SELECT id FROM wide ORDER BY id")] == [1, 2**40]
    assert len(project.sql("SELECT * FROM wide_rest")) == 1


RAW = """
from pyspark import pipelines as dp
from stele.client import SchemaRegistryClient
from stele.spark import declarative as stele


@dp.table
def landed():
    return spark.readStream.schema("value binary, region string").parquet("{home}/incoming").withColumnsRenamed(
        {{"value": "the.bytes"}}
    )


def registry():
    return SchemaRegistryClient("{url}")


stele.streaming_table(
    "eager", subject="{subject}", registry=registry, source="landed", column="the.bytes", reader=1, engine="python"
)
stele.from_config("pipeline.toml")
"""
TOML = """
checkpoint = "unused"
engine = "python"

[source]
path = "mixed"
registry = "{url}"

[table]
kind = "parquet"
catalog = "spark_catalog"
keep = ["source"]

[[route]]
table = "default.orders"
subject = "{subject}"

[[route]]
table = "default.refunds"
subject = "refunds"
"""
UNROUTED = """
checkpoint = "unused"
mode = "FAILFAST"
source = {kind = "kafka", bootstrap = "nowhere:9092", topics = ["one", "two"]}
table = {kind = "delta"}
route = [{topic = "one", table = "default.one"}]
"""
REFUND = {"type": "record", "name": "Refund", "fields": [{"name": "amount", "type": "double"}]}


def read_stored(home: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table, read from its files."""
    return [
        row for file in (home / "spark-warehouse" / table).glob("*.parquet") for row in pq.read_table(file).to_pylist()
    ]


def test_the_command_runs_a_pipeline_toml(tmp_path: Path, registry: LocalRegistry, java_machine: JavaMachine) -> None:
    """`spark-pipelines run` works on tables of a pipeline.toml with two types in one folder.

    A further table reads another dataset of the pipeline, by a fixed version and with a function for a registry. The
    command's own Java machine only starts a Python, whose session uses the shared one.
    """
    first, second, refund = registry.add(SUBJECT, V2), registry.add(SUBJECT, V3), registry.add("refunds", REFUND)
    known = {"url": registry.url, "subject": SUBJECT, "home": tmp_path}
    (tmp_path / "definitions").mkdir()
    for name, text in {"spark-pipeline.yml": SPEC, "definitions/raw.py": RAW, "pipeline.toml": TOML}.items():
        (tmp_path / name).write_text(text.format(**known), encoding="utf-8")
    drop(tmp_path / "incoming", "1.parquet", [order(2, first, 1), order(3, second, 2)])
    money = frame_record(REFUND, {"amount": 0.5}, refund)
    drop(tmp_path / "mixed", "1.parquet", [order(2, first, 3), money, order(3, second, 4), b"neither"])
    command = [str(Path(sys.executable).with_name("spark-pipelines")), "run"]
    with java_machine.lend(tmp_path) as variables:
        environ = ENVIRON | variables
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=600, check=False
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]

    eager = sorted(read_stored(tmp_path, "eager"), key=lambda row: row["id"])
    assert [(row["id"], row["_stele_version"]) for row in eager] == [(1, 1), (2, 2)]
    assert "note" not in eager[0]
    assert read_stored(tmp_path, "eager_dead_letters") == []
    orders = sorted(read_stored(tmp_path, "orders"), key=lambda row: row["id"])
    assert [(row["id"], row["note"]) for row in orders] == [(3, None), (4, "note 4")]
    (paid,) = read_stored(tmp_path, "refunds")
    assert (paid["amount"], paid["_stele_schema_id"]) == (0.5, refund)
    assert paid["_stele_source"].endswith("/mixed/1.parquet")
    (dead,) = read_stored(tmp_path, "orders_dead_letters")
    assert (dead["value"], dead["byte"]) == (b"neither", 0)
    assert dead["source"] == paid["_stele_source"]


def test_what_is_refused(tmp_path: Path, registry: LocalRegistry) -> None:
    """Tables that Spark's pipelines cannot write, and invalid choices, are refused before anything is declared."""
    toml = TOML.format(url=registry.url, subject=SUBJECT).replace(
        'kind = "parquet"\ncatalog = "spark_catalog"', 'catalog = "sqlite:///c.db"\nwarehouse = "w"'
    )
    (tmp_path / "pipeline.toml").write_text(toml, encoding="utf-8")
    with pytest.raises(Invalid, match="of the kind iceberg: choose parquet, delta, iceberg-spark"):
        declarative.from_config(tmp_path / "pipeline.toml")
    (tmp_path / "pipeline.toml").write_text(UNROUTED, encoding="utf-8")
    with pytest.raises(Invalid, match="a route for every topic"):
        declarative.from_config(tmp_path / "pipeline.toml")
    registry.add("headers", VERSIONS[0])
    table = partial(declarative.streaming_table, "orders", registry=registry.url, source="raw")
    with pytest.raises(Invalid, match="newer must be 'stop' or 'read'"):
        table(subject="headers", newer="never")
    with pytest.raises(Invalid, match="name their column"):
        table(subject="headers", wire="confluent-header")
    with pytest.raises(SubjectNotFound):
        table(subject="nobody")
