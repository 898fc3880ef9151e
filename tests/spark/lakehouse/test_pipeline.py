"""Pipelines from a real broker into Delta and native Iceberg: several topics, evolution, dead letters, replays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.lakehouse.stack import KINDS, open_producer, pipeline_file, register, send
from tests.spark.orders import V1, V2, V3, datum, frame_record, order
from tests.support.kafka import kafka
from tests.support.server_process import serving

from stele.spark.pipeline import (
    PipelineConfig,
    load_config,
    plan_pipeline,
    read_dead_letters,
    replay_dead_letters,
    run_pipeline,
)
from stele.spark.pipeline.sinks import open_sink

pytestmark = pytest.mark.servers

CUSTOMER = {"type": "record", "name": "Customer", "fields": [{"name": "name", "type": "string"}]}
ROUTES = """
[[route]]
topic = "orders"
table = "{space}.orders"
[[route]]
topic = "customers"
table = "{space}.customers"
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real broker."""
    with kafka(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """The address of a real registry."""
    with serving(folder=tmp_path) as server:
        yield server.url


def rows(spark: SparkSession, config: PipelineConfig, name: str) -> list[dict[str, object]]:
    """Return the rows of a table."""
    return [row.asDict(recursive=True) for row in open_sink(spark, config.table, name).read_table().collect()]


@pytest.mark.parametrize("kind", KINDS)
def test_topics_become_tables(spark: SparkSession, broker: str, registry: str, tmp_path: Path, kind: str) -> None:
    """Two topics go into two tables, in batches of a limited size.

    Versions are registered between runs. Bad records become dead letters with their position in the topic, and are
    replayed when they can be decoded.
    """
    space = kind.replace("-", "_")
    orders, customers = f"{space}-orders", f"{space}-customers"
    producer = open_producer(broker)
    first = register(registry, f"{orders}-value", V1)
    customer = register(registry, f"{customers}-value", CUSTOMER)
    send(producer, orders, [order(1, first, number) for number in range(40)])
    send(producer, customers, [frame_record(CUSTOMER, {"name": f"c{number}"}, customer) for number in range(10)])
    file = pipeline_file(
        tmp_path,
        kind,
        broker,
        registry,
        source=f'topics = ["{orders}", "{customers}"]\nmax_records_per_trigger = 20',
        table='keep = ["topic", "partition", "offset", "key"]',
        more=ROUTES.format(space=space).replace('"orders"', f'"{orders}"').replace('"customers"', f'"{customers}"'),
    )
    config = load_config(file)
    done = run_pipeline(config, spark=spark)
    assert done.tables == {f"{space}.orders": 40, f"{space}.customers": 10}
    assert done.batches >= 3, "batches are bounded"
    second, third = register(registry, f"{orders}-value", V2), register(registry, f"{orders}-value", V3)
    send(producer, orders, [order(2, second, 40), order(3, third, 41), b"junk", None, order(3, third + 9, 42)])
    steps = [str(step) for plan in plan_pipeline(config, spark=spark) for step in plan.steps]
    assert "widen column id from int to bigint" in steps
    assert "add column place.country string" in steps
    done = run_pipeline(config, spark=spark)
    assert (done.rows, done.dead_letters, done.tombstones) == (2, 2, 1)
    rows_by_id = {row["id"]: row for row in rows(spark, config, f"{space}.orders")}
    assert sorted(rows_by_id) == list(range(42))  # type: ignore[type-var]  # numbers
    assert rows_by_id[41]["place"] == {"city": "city 41", "country": "NO"}
    assert (rows_by_id[3]["note"], rows_by_id[3]["_stele_topic"], rows_by_id[3]["_stele_version"]) == (None, orders, 1)
    assert bytes(rows_by_id[3]["_stele_key"]) == b"3"  # type: ignore[call-overload]  # bytes
    letters = {bytes(letter.value): letter for letter in read_dead_letters(config, spark=spark).collect()}
    assert letters[b"junk"].topic == orders
    assert letters[order(3, third + 9, 42)].offset > letters[b"junk"].offset
    late = [register(registry, "late", V3 | {"doc": f"made {number} times"}) for number in range(9)]
    assert late[-1] == third + 9
    assert replay_dead_letters(config, spark=spark).tables == {f"{space}.orders": 1}
    assert len(rows(spark, config, f"{space}.orders")) == 43
    assert run_pipeline(config, spark=spark).batches == 0
    assert datum(3, 42)["note"] in {row["note"] for row in rows(spark, config, f"{space}.orders")}
