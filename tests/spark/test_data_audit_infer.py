"""Schemas for raw data: JSON, CSV and Parquet through the command, documents in a column, and registration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.support.server_process import serving
from typer.testing import CliRunner

from stele.cli.app import app
from stele.client import SchemaRegistryClient
from stele.errors import Invalid, InvalidRequest
from stele.spark import spark_schema
from stele.spark.data_audit import infer, to_html

ROWS: list[dict[str, Any]] = [
    {"id": n, "state": "PAID" if n % 3 else "NEW", "at": f"2026-11-{n % 28 + 1:02}T10:00:00Z", "price": n / 4}
    for n in range(400)
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server."""
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("server")) as server:
        yield server.url


@pytest.fixture
def _shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give commands the session of the tests, which they cannot stop."""
    monkeypatch.setattr(type(spark), "stop", lambda session: None)


def run(*arguments: str) -> Any:
    """Run a command and return its JSON output and its exit code."""
    done = CliRunner().invoke(app, ["infer-data", *arguments, "-o", "json"])
    assert done.exit_code in (0, 1), done.output
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.usefixtures("_shared_session")
def test_json_lines_are_registered_unless_refused(url: str, tmp_path: Path) -> None:
    """A folder of JSON lines becomes a version with notes; a schema that the policy refuses is exit code 1."""
    lines = [json.dumps(row) for row in ROWS]
    (tmp_path / "a.json").write_text("\n".join(lines[:250]))
    (tmp_path / "b.json").write_text("\n".join([*lines[250:], "", "{broken"]))
    options = ["--data", str(tmp_path), "--name", "shop.Order", "--enumerations", "4", "--registry", url]
    out = tmp_path.parent / "order.avsc"
    code, report = run(*options, "--register", "raw-value", "--schema-to", str(out))
    assert code == 0
    assert (report["records"], sum(report["unreadable"].values())) == (401, 1)
    assert report["offer"]["version"] == 1
    schema = json.loads(out.read_text())
    assert (schema["namespace"], [field["name"] for field in schema["fields"]]) == ("shop", list(ROWS[0]))
    types = [field["type"] for field in schema["fields"]]
    assert types[0] == "long"
    assert types[1]["symbols"] == ["NEW", "PAID"]
    assert types[2]["logicalType"] == "timestamp-millis"
    confidence = {field["path"]: field["confidence"] for field in report["fields"]}
    assert set(confidence.values()) == {0.9925}
    (tmp_path / "c.json").write_text('{"id": "x"}')
    with SchemaRegistryClient(url) as client:
        client.set_config("FULL", "raw-value")
        code, report = run(*options, "--register", "raw-value")
        assert (code, report["offer"]["version"]) == (1, 0)
        assert report["offer"]["against"]
        assert client.versions("raw-value") == [1]


@pytest.mark.usefixtures("_shared_session")
def test_csv_and_parquet(tmp_path: Path) -> None:
    """CSV gets the types that its texts look like. Parquet keeps its own, and never-null fields are required."""
    head = "id,zip,price\n"
    (tmp_path / "a.csv").write_text(head + "".join(f"{n},{n:04},{n / 4}\n" for n in range(50)) + "50,,x\n")
    _, report = run("--data", str(tmp_path / "a.csv"), "--format", "csv", "--no-notes")
    types = {field["name"]: field["type"] for field in json.loads(report["schema"])["fields"]}
    assert types == {"id": "long", "zip": ["null", "string"], "price": "string"}
    assert "all are texts" in next(field["note"] for field in report["fields"] if field["path"] == "price")
    nested = pa.struct([("city", pa.string()), ("zip", pa.string())])
    table = pa.table(
        {
            "id": pa.array(range(60), pa.int32()),
            "place": pa.array([{"city": "Oslo", "zip": None if n else "1"} for n in range(60)], nested),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    _, report = run("--data", str(tmp_path / "a.parquet"), "--format", "parquet", "--as", "json")
    schema = json.loads(report["schema"])
    assert set(schema["required"]) >= {"id", "place"}
    fields = {field["path"]: field for field in report["fields"]}
    assert fields["place.zip"]["note"].startswith("always there, in 60 records; null in 59 of 60 (98.33 %)")


def test_documents_in_a_column(spark: SparkSession) -> None:
    """Bytes or texts in any column are read as documents. The schema can decode columns, and the page has the table."""
    rows = [(n, json.dumps(row).encode()) for n, row in enumerate(ROWS)] + [(400, None)]
    df = spark.createDataFrame(rows, "n int, `a.b` binary").repartition(3)
    result = infer(df, "a.b", to="json", notations=False)
    assert (result.records, result.nulls, result.unreadable) == (400, 1, {})
    struct, _ = spark_schema("json", result.schema)
    assert struct.simpleString() == "struct<id:bigint,state:string,at:string,price:double>"
    assert "an enumeration? (NEW, PAID)" in to_html(result)
    half = infer(df, "a.b", sample=0.5, seed=1)
    assert 100 < half.records < 300
    with pytest.raises(InvalidRequest, match="no records"):
        infer(df.where("n > 400"), "a.b")
    for wrong, why in (
        ({"column": "n"}, "strings or binary"),
        ({"column": "x"}, "exactly one column"),
        ({"sample": 2.0}, "sample"),
    ):
        with pytest.raises(Invalid, match=why):
            infer(df, **wrong)
