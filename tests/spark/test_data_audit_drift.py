"""Values that stored records never use are found."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import frame_record
from typer.testing import CliRunner

from stele.cli.app import app
from stele.spark.data_audit import drift as any_drift

drift = partial(any_drift, engine="python")  # needs no compilation
SUBJECT = "readings-value"
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN", "BLUE"]}


def schema(*more: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of readings, with further fields."""
    fields: list[dict[str, Any]] = [
        {"name": "small", "type": "long"},
        {"name": "large", "type": "long"},
        {"name": "whole", "type": "double"},
        {"name": "part", "type": "double"},
        {"name": "when", "type": "string"},
        {"name": "city", "type": "string"},
        {"name": "free", "type": "string"},
        {"name": "colour", "type": COLOUR},
        {"name": "unset", "type": ["null", "string"], "default": None},
        {"name": "ends", "type": {"type": "map", "values": "int"}},
        *more,
    ]
    return {"type": "record", "name": "Reading", "fields": fields}


def reading(n: int, **more: Any) -> dict[str, Any]:
    """Return a reading of a schema."""
    return {
        "small": n,
        "large": n << 40,
        "whole": float(n),
        "part": n + 0.5,
        "when": f"2026-11-{n % 28 + 1:02}T01:02:03Z",
        "city": "Oslo" if n % 2 else "Bergen",
        "free": f"text {n}",
        "colour": "RED" if n % 3 else "GREEN",
        "unset": None,
        "ends": {"low": n, "high": n + 1},
        **more,
    }


OLD, NEW = schema(), schema({"name": "only", "type": "string", "default": ""})


@pytest.fixture
def stored_records(registry: LocalRegistry) -> list[tuple[bytes | None]]:
    """30 readings of each of two versions, one damaged, one of an unknown id, a tombstone."""
    old, new = registry.add(SUBJECT, OLD), registry.add(SUBJECT, NEW)
    records: list[bytes | None] = [frame_record(OLD, reading(n), old) for n in range(30)]
    records += [frame_record(NEW, reading(n + 30, only="1", unset=f"set {n}" if n else None), new) for n in range(30)]
    records += [frame_record(OLD, reading(1), old)[:-2], b"\0\0\0\0\x63", None]
    return [(record,) for record in records]


def test_planted_drift_is_found(
    spark: SparkSession, registry: LocalRegistry, stored_records: list[tuple[bytes | None]]
) -> None:
    """Exactly the planted findings are reported. A finding of one version only is listed with that version's id."""
    df = spark.createDataFrame(stored_records, "value binary").repartition(2)
    result = drift(df, subject=SUBJECT, registry=registry.url)
    assert (result.records, result.read) == (62, 60)
    assert [(it.path, it.kind, it.ids) for it in result.drifts] == [
        ("city", "FEW_VALUES", ("1", "2")),
        ("colour", "UNUSED_SYMBOLS", ("1", "2")),
        ("ends", "CONSTANT_KEYS", ("1", "2")),
        ("only", "CONSTANT", ("2",)),
        ("small", "FITS_INT", ("1", "2")),
        ("when", "TEXT_IS_TIMESTAMP", ("1", "2")),
        ("whole", "WHOLE_NUMBERS", ("1", "2")),
    ]
    assert ("unset", "NEVER_SET", ("1",)) in [(it.path, it.kind, it.ids) for it in result.single]
    assert next(it.why for it in result.drifts if it.path == "colour").endswith("1 were never written: BLUE.")
    assert result.notes == {"99": "unknown schema id 99"}
    assert result.ids["2"] == (f"{SUBJECT} v2",)


def test_the_command(
    spark: SparkSession,
    registry: LocalRegistry,
    stored_records: list[tuple[bytes | None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`stele drift` reports the same for a file, as a table and as JSON."""
    monkeypatch.setattr(type(spark), "stop", lambda session: None)
    values = pa.array([value for (value,) in stored_records], pa.binary())
    pq.write_table(pa.table({"value": values}), tmp_path / "records.parquet")
    command = ["drift", "--registry", registry.url, "--data", str(tmp_path), "--subject", SUBJECT, "--engine", "python"]
    done = CliRunner().invoke(app, [*command, "-o", "json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert "UNUSED_SYMBOLS" in {it["kind"] for it in answer["drifts"]}
    assert [len(it["history"]["versions"]) for it in answer["evolutions"]] == [2]
    text = CliRunner().invoke(app, [*command, "--least", "1000"])
    assert text.exit_code == 0
    assert "the data use what their schemas allow" in text.stdout
