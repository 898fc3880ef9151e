"""The generated file of a pipeline: it is valid for any answers, and contains them."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.errors import Invalid
from stele.spark.pipeline.config import PipelineConfig, TableKind, load_config
from stele.spark.pipeline.scaffold import PipelineAnswers, render_pipeline_toml

KINDS: tuple[TableKind, ...] = get_args(TableKind)
SOURCES = {
    "kafka": {"bootstrap": "broker:9092", "topics": ("orders",)},
    "kafka with a subject": {"bootstrap": "broker:9092", "topics": ("orders",), "subject": "shop.Order"},
    "several topics": {"bootstrap": "a:1,b:2", "topics": ("orders", "pay-ments", "pay.ments", "orders_dead_letters")},
    "files": {"path": "in/orders", "subject": ":.shop:orders-value"},
}


def write_pipeline(folder: Path, start: PipelineAnswers, spark: str = "4.1.1") -> PipelineConfig:
    """Write the file and return the loaded configuration, without environment variables."""
    file = folder / "pipeline.toml"
    file.write_text(render_pipeline_toml(start, folder, spark=spark), encoding="utf-8")
    return load_config(file, {})


@pytest.mark.parametrize("table", ["", "shop.data"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_combination_is_valid(tmp_path: Path, source: str, kind: TableKind, table: str) -> None:
    """The file loads, and the configuration has the answers."""
    start = PipelineAnswers(**SOURCES[source], table=table, kind=kind, registry="http://registry:8081")  # type: ignore[arg-type]  # of several types
    config = write_pipeline(tmp_path, start)
    assert config.source.registry == "http://registry:8081"
    assert config.table.kind == kind
    assert tuple(route.table for route in config.routes) == start.tables
    assert tuple(route.subject for route in config.routes) == start.subjects
    assert config.source.topics == start.topics
    assert len(set(start.tables)) == len(start.tables)
    if table:
        assert start.tables[0].startswith("shop.")
    packages = " ".join(config.spark.packages)
    assert ("spark-sql-kafka-0-10_2.13:4.1.1" in packages) == bool(start.bootstrap)
    assert ("iceberg-spark-runtime-4.1_2.13" in packages) == (kind == "iceberg-spark")
    assert ("delta-spark_2.13" in packages) == (kind == "delta")
    assert bool(config.table.warehouse) == (kind != "iceberg-spark")
    if kind == "iceberg-spark":
        assert f"spark.sql.catalog.{config.table.catalog}" in config.spark.conf


def test_names_made_of_topics() -> None:
    """Tables are named after topics and subjects, in letters every catalogue takes."""
    assert PipelineAnswers(bootstrap="b", topics=("shop.orders-v1",)).tables == ("streams.shop_orders_v1",)
    assert PipelineAnswers(path="in", subject=":.eu:orders-value").tables == ("streams.orders",)
    assert PipelineAnswers(bootstrap="b", topics=("a.b", "a-b"), table="x.y.z").tables == ("x.y.a_b", "x.y.a_b_2")
    dead = PipelineAnswers(bootstrap="b", topics=("o", "o_dead_letters")).tables
    assert dead == ("streams.o", "streams.o_dead_letters_2"), "the first table's dead letters have that name"


def test_comments_are_settings_too(tmp_path: Path) -> None:
    """The settings that the file suggests in comments are valid when they are uncommented."""
    for source in SOURCES.values():
        text = render_pipeline_toml(PipelineAnswers(**source), tmp_path)  # type: ignore[arg-type]  # of several types
        lines = [
            line[2:] if line.startswith("# ") and ("=" in line or line.startswith("# [")) else line
            for line in text.splitlines()
        ]
        (tmp_path / "all.toml").write_text("\n".join(lines), encoding="utf-8")
        config = load_config(tmp_path / "all.toml", {})
        assert (config.mode, config.table.changes, config.metrics.port) == ("FAILFAST", "ask", 9108)
        assert config.trigger.interval


def test_packages_fit_spark(tmp_path: Path) -> None:
    """Packages fit the installed Spark. For an unknown Spark version, a comment says which version they are for."""
    start = PipelineAnswers(bootstrap="b", topics=("t",), kind="iceberg-spark")
    assert "iceberg-spark-runtime-4.0_2.13" in write_pipeline(tmp_path, start, "4.0.2").spark.packages[1]
    assert "spark-sql-kafka-0-10_2.13:4.0.2" in write_pipeline(tmp_path, start, "4.0.2").spark.packages[0]
    assert "Made for" not in render_pipeline_toml(start, tmp_path, spark="4.1.1")
    for other in ("", "4.3.0"):
        assert "Made for Spark 4.1" in render_pipeline_toml(start, tmp_path, spark=other)
        assert "spark-sql-kafka-0-10_2.13:4.1.1" in write_pipeline(tmp_path, start, other).spark.packages[0]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (PipelineAnswers(), "either the address"),
        (PipelineAnswers(bootstrap="b", path="in", subject="s"), "either the address"),
        (PipelineAnswers(bootstrap="b"), "no Kafka topic given"),
        (PipelineAnswers(path="in"), "no subject given"),
        (PipelineAnswers(path="in", subject="s", topics=("t",)), "files have no topics"),
        (PipelineAnswers(bootstrap="b", topics=("t", "t")), "named twice"),
        (PipelineAnswers(bootstrap="b", topics=("t", "u"), subject="s"), "with several topics"),
        (PipelineAnswers(path="in", subject="s", table="orders"), "namespace.table"),
        (PipelineAnswers(path="in", subject="s", table="a.b.c", kind="parquet"), "database.table"),
    ],
)
def test_answers_that_do_not_fit(tmp_path: Path, start: PipelineAnswers, message: str) -> None:
    """Contradictory or incomplete answers are refused with a reason, before a file is written."""
    with pytest.raises(Invalid, match=message):
        render_pipeline_toml(start, tmp_path)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(lambda text: "${" not in text)


@settings(
    max_examples=scale_examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(path=_TEXT, subject=_TEXT, registry=_TEXT)
def test_any_text_comes_back(tmp_path: Path, path: str, subject: str, registry: str) -> None:
    """Quotes, control characters and other alphabets do not break the file."""
    config = write_pipeline(tmp_path, PipelineAnswers(path=f"x{path}", subject=subject, registry=f"http://{registry}/"))
    assert config.source.subject == subject
    assert config.source.registry == f"http://{registry}/"
    assert config.source.path.endswith(f"x{path}")


@settings(
    max_examples=scale_examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(topics=st.lists(st.text("ab._-", min_size=1, max_size=4), min_size=1, max_size=6, unique=True))
def test_any_topics_have_tables(tmp_path: Path, topics: list[str]) -> None:
    """Topics with similar names each have a table of their own, and the file is valid."""
    start = PipelineAnswers(bootstrap="b:1", topics=tuple(topics), kind="parquet")
    assert len({route.table for route in write_pipeline(tmp_path, start).routes}) == len(topics)
