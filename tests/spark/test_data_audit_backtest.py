"""Proposed schemas against stored records, with planted faults."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V1, V2, V3, order
from typer.testing import CliRunner

from stele.cli.app import app
from stele.errors import Invalid
from stele.spark.data_audit import backtest as any_backtest

backtest = partial(any_backtest, engine="python")  # needs no compilation
NARROW = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]})


@pytest.fixture
def three(registry: LocalRegistry) -> LocalRegistry:
    """A registry with all three versions; ids are 1, 2, 3."""
    for document in (V1, V2, V3):
        registry.add(SUBJECT, document)
    return registry


STORED = [
    *(order(1, 1, n) for n in range(4)),
    *(order(3, 3, n) for n in range(3)),
    None,
    order(1, 1, 7)[:-1],
    b"\0\0\0\0\x63zz",
    b"{}",
]


def frame(spark: SparkSession) -> DataFrame:
    """The stored records with their offsets, in two partitions."""
    return spark.createDataFrame(list(enumerate(STORED)), "offset int, value binary").repartition(2)


def test_rules_and_records_say_no(spark: SparkSession, three: LocalRegistry) -> None:
    """A narrower schema is refused by a rule for the id with longs, and exactly its records cannot be read."""
    result = backtest(frame(spark), schema=NARROW, subject=SUBJECT, registry=three.url, position=["offset"], examples=2)
    assert (result.records, result.decoded, result.tombstones) == (10, 10, 1)
    assert [(it.id, it.records, it.verdict) for it in result.comparisons] == [
        ("1", 5, "compatible"),
        ("3", 3, "incompatible"),
        ("99", 1, "unknown"),
    ]
    assert result.comparisons[1].findings[0].path == "/fields/0/type"
    assert (result.broken_records, result.damaged_records, result.incompatible_ids) == (3, 3, ["3"])
    assert [(it.id, it.records) for it in result.failures if not it.damaged] == [("3", 3)]
    assert {it.id: it.reason for it in result.failures if it.damaged} == {
        "": "no frame: the first byte must be 0, followed by a schema id of four bytes",
        "1": "the record ends inside a value",
        "99": "unknown schema id 99",
    }
    offsets_by_id = {it.id: [] for it in result.examples}
    for it in result.examples:
        offsets_by_id[it.id].append(json.loads(it.position)["offset"])
    assert offsets_by_id == {"": [10], "1": [8], "3": [4, 5], "99": [9]}
    assert next(it.hex for it in result.examples if it.id == "") == "7b7d"
    assert not result.has_passed(allow_damaged=True)
    assert "the rules refuse id 3, 3 records not read, 3 records damaged" in result.report().verdict


def test_a_good_schema_passes_but_for_damage(spark: SparkSession, three: LocalRegistry) -> None:
    """The newest version reads all records that are not damaged; a sample decodes a part and still counts every id."""
    result = backtest(frame(spark), schema=json.dumps(V3), subject=SUBJECT, registry=three.url, sample=0.4, seed=3)
    assert result.broken_records == 0
    assert result.has_passed(allow_damaged=True)
    assert 0 < result.decoded < result.records == 10
    assert [it.id for it in result.comparisons] == ["1", "3", "99"]


def test_json_is_validated_by_the_proposed_schema(spark: SparkSession, registry: LocalRegistry) -> None:
    """A record that is valid under its own schema is refused if the proposed schema requires more."""
    registry.add_text("docs-value", json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}}), "JSON")
    rows = [(b"\0\0\0\0\1" + text,) for text in (b'{"a": 1}', b'{"a": -1}', b"{}", b"{")]
    proposed = json.dumps({"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}})
    df = spark.createDataFrame(rows, "value binary")
    result = backtest(df, schema=proposed, subject="docs-value", registry=registry.url)
    assert (result.broken_records, result.damaged_records) == (1, 1)
    assert result.comparisons[0].verdict == "incompatible"


def test_bad_questions(spark: SparkSession, three: LocalRegistry) -> None:
    """A missing subject, an invalid sample, and a text that is not a schema are errors before any job."""
    ask = partial(backtest, frame(spark), registry=three.url)
    with pytest.raises(Invalid, match="no subject given"):
        ask(schema=NARROW, subject="")
    with pytest.raises(Invalid, match="sample must be a fraction"):
        ask(schema=NARROW, subject=SUBJECT, sample=0)
    with pytest.raises(Invalid):
        ask(schema='{"type": "record"}', subject=SUBJECT)


def test_the_command(
    spark: SparkSession, three: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1 for a schema that cannot read all records, with file and row of the first failing records; else 0."""
    monkeypatch.setattr(type(spark), "stop", lambda session: None)
    pq.write_table(pa.table({"value": pa.array(STORED[:8], pa.binary())}), tmp_path / "records.parquet")
    for name, text in (("bad", NARROW), ("good", json.dumps(V3))):
        (tmp_path / f"{name}.avsc").write_text(text)
    options = ["--registry", three.url, "--data", str(tmp_path / "records.parquet"), "--subject", SUBJECT]
    options += ["--engine", "python", "-o", "json"]
    done = CliRunner().invoke(app, ["backtest", str(tmp_path / "bad.avsc"), *options])
    assert done.exit_code == 1, done.output
    first = json.loads(done.stdout)["examples"][0]
    assert json.loads(first["position"]) == {"file": "records.parquet", "row": 4}
    assert CliRunner().invoke(app, ["backtest", str(tmp_path / "good.avsc"), *options]).exit_code == 0
    assert CliRunner().invoke(app, ["backtest", str(tmp_path / "absent.avsc"), *options]).exit_code == 2
