"""Stored records are migrated to other versions, wires and languages, by the function and by the command."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.spark.orders import SUBJECT, V1, V3, datum, order
from tests.support.server_process import serving
from typer.testing import CliRunner

from stele.cli.app import app
from stele.client import Schema, SchemaRegistryClient
from stele.errors import CannotConvert, Invalid, VersionNotFound
from stele.spark import from_registry
from stele.spark.data_audit import JobFailed, to_html
from stele.spark.data_audit import migrate as any_migrate

migrate = partial(any_migrate, engine="python")  # needs no compilation
FLAT = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["id"],
    }
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server: two versions of orders, ids 1 and 2; a JSON Schema of some of their fields, id 3."""
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("server")) as server:
        with SchemaRegistryClient(server.url) as client:
            client.register(SUBJECT, Schema(json.dumps(V1)))
            client.register(SUBJECT, Schema(json.dumps(V3)))
            client.register("orders-json", Schema(FLAT, "JSON"))
        yield server.url


def make_records() -> list[tuple[str, bytes | None, int]]:
    """Return keys, records and offsets: 20 of id 1, 10 of id 2, a damaged one, an unknown id, a tombstone."""
    records: list[bytes | None] = [order(1, 1, n) for n in range(20)] + [order(3, 2, n) for n in range(10)]
    records += [order(1, 1, 1)[:-2], b"\0\0\0\0\x63zz", None]
    return [(f"k{n}", record, n) for n, record in enumerate(records)]


def test_to_the_newest_version_and_another_wire(spark: SparkSession, url: str) -> None:
    """All records get one schema, with the guid in a header.

    Other columns and headers stay, and bad records are dead letters.
    """
    header = [("trace", b"1")]
    rows = [(*row, header) for row in make_records()]
    columns = "key string, value binary, offset int, headers array<struct<key: string, value: binary>>"
    df = spark.createDataFrame(rows, columns)
    moved = migrate(df, subject=SUBJECT, registry=url, to_wire="confluent-header", headers="headers")
    moved.every.persist()
    assert moved.good.columns == df.columns
    assert moved.dead.columns == [*df.columns, "error"]
    good = {row.offset: row for row in moved.good.collect()}
    assert sorted(good) == [*range(30), 32]
    assert good[32].value is None
    assert good[3].key == "k3"
    assert [entry.key for entry in good[3].headers] == ["trace", "__value_schema_id"]
    back = from_registry(
        moved.good, subject=SUBJECT, registry=url, wire="confluent-header", headers="headers", engine="python", into="v"
    )
    values = {row.offset: row.v for row in back.collect()}
    assert values[25].asDict(True)["note"] == datum(3, 5)["note"]
    assert (values[3].id, values[3].note, values[3].places) == (3, None, {})
    dead = {row.offset: row for row in moved.dead.collect()}
    assert {at: (row.error.schema_id, row.error.code, bytes(row.value)) for at, row in dead.items()} == {
        30: ("1", "BAD_LENGTH", bytes(make_records()[30][1] or b"")),
        31: ("99", "UNKNOWN_SCHEMA_ID", b"\0\0\0\0\x63zz"),
    }
    report = moved.count_records()
    assert (report.records, report.dead, report.tombstones, report.version, report.id) == (32, 2, 1, 2, 2)
    assert [(it.id, it.records, it.dead) for it in report.ids] == [("1", 21, 1), ("2", 10, 0), ("99", 1, 1)]
    assert not report.is_complete
    assert "30 records would be written as orders-value v2, 2 dead letters" in to_html(report)
    moved.every.unpersist()
    with pytest.raises(JobFailed, match="record"):
        migrate(df.where("offset = 30"), subject=SUBJECT, registry=url, mode="FAILFAST").count_records()


def test_unframed_records_get_a_frame(spark: SparkSession, url: str) -> None:
    """Unframed payloads of a known schema become framed records of the newest version, and unframed again."""
    bare = spark.createDataFrame([(order(1, 1, n)[5:],) for n in range(5)], "value binary")
    rows = migrate(bare, subject=SUBJECT, registry=url, wire="unframed", schema=1, to_wire="confluent").good.collect()
    assert {bytes(row.value)[:5] for row in rows} == {b"\0\0\0\0\2"}
    framed = spark.createDataFrame(rows, "value binary")
    again = migrate(framed, subject=SUBJECT, registry=url, to_wire="unframed").good
    assert sorted(bytes(row.value) for row in again.collect()) == sorted(bytes(row.value)[5:] for row in rows)
    text = json.dumps(V1)
    by_text = migrate(bare, subject=SUBJECT, registry=url, wire="unframed", schema=text, to_wire="avro-single-object")
    assert {bytes(row.value)[:2] for row in by_text.good.collect()} == {b"\xc3\x01"}


def test_to_another_language(spark: SparkSession, url: str) -> None:
    """Avro is converted to JSON by field names, and losses are listed in advance.

    The conversion back needs all fields that the target requires.
    """
    df = spark.createDataFrame(make_records(), "key string, value binary, offset int")
    moved = migrate(df, subject=SUBJECT, registry=url, to_subject="orders-json")
    moved.every.persist()
    rows = {row.offset: row.value for row in moved.good.collect()}
    assert json.loads(bytes(rows[4])[5:]) == {"id": 4, "tags": ["a"]}
    report = moved.count_records()
    assert report.languages == ("AVRO", "JSON")
    assert {(loss.path, loss.what) for loss in report.losses} >= {("place", "FIELD"), ("note", "FIELD")}
    assert (report.records, report.dead) == (32, 2)
    assert report.codes == {"INVALID_DATA": 1, "UNKNOWN_SCHEMA_ID": 1}
    with pytest.raises(CannotConvert, match="place: the target requires it"):
        migrate(moved.good, subject="orders-json", registry=url, to_subject=SUBJECT)


def test_questions_that_make_no_sense(spark: SparkSession, url: str) -> None:
    """Unknown versions, columns and modes, and missing headers, are errors before any job."""
    df = spark.createDataFrame(make_records(), "key string, value binary, headers int")
    with pytest.raises(VersionNotFound):
        migrate(df, subject=SUBJECT, registry=url, to_version=9)
    for more, why in (
        ({"column": "nothing"}, "exactly one column"),
        ({"column": "key"}, "is string"),
        ({"mode": "PERMISSIVE"}, "no mode"),
        ({"wire": "confluent-header"}, "name their column"),
        ({"to_wire": "confluent-header"}, "have a column 'headers'"),
    ):
        with pytest.raises(Invalid, match=why):
            migrate(df, **{"subject": SUBJECT, "registry": url, **more})


class TestCommand:
    """The command `stele reencode`."""

    @pytest.fixture(autouse=True)
    def _shared_session(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give the command the session of the tests, which it cannot stop."""
        monkeypatch.setattr(type(spark), "stop", lambda session: None)

    def run(self, url: str, data: Path, *more: str) -> tuple[int, Any]:
        """Run the command and return its exit code, and the report or the error."""
        command = ["reencode", "--registry", url, "--data", str(data), "--subject", SUBJECT, "--engine", "python"]
        done = CliRunner().invoke(app, [*command, "-o", "json", *more])
        return done.exit_code, done.stderr if done.exit_code == 2 else json.loads(done.stdout)

    def test_written_beside_and_read_again(self, url: str, tmp_path: Path) -> None:
        """Records are counted, refused at their own location, and written beside with dead letters.

        They are verified by value, appended and overwritten.
        """
        keys, values, offsets = zip(*make_records(), strict=True)
        table = pa.table({"key": list(keys), "value": pa.array(values, pa.binary()), "offset": list(offsets)})
        old, out = tmp_path / "old", tmp_path / "new"
        old.mkdir()
        pq.write_table(table, old / "part.parquet")
        code, report = self.run(url, old, "--dry-run")
        assert (code, report["dead"], report["written"], out.exists()) == (1, 2, False, False)
        for wrong, why in (
            ((), "give --into"),
            (("--into", str(old)), "choose separate locations"),
            (("--into", str(old / "deeper")), "choose separate locations"),
            (("--into", str(out), "--append", "--overwrite"), "exclude"),
            (("--into", str(out), "--schema-version", "1"), "--wire unframed"),
        ):
            code, message = self.run(url, old, *wrong)
            assert (code, why in message) == (2, True), message
        code, report = self.run(url, old, "--into", str(out), "--verify-values")
        assert (code, report["dead"], report["written"]) == (1, 2, True)
        assert report["verified"] == {"records": 31, "read": 31, "there_before": 0, "values": True}
        assert sorted(pq.read_table(out)["offset"].to_pylist()) == [*range(30), 32]
        dead = pq.read_table(tmp_path / "new-dead").to_pylist()
        assert {row["offset"]: (row["error"]["schema_id"], row["error"]["code"]) for row in dead} == {
            30: ("1", "BAD_LENGTH"),
            31: ("99", "UNKNOWN_SCHEMA_ID"),
        }
        code, message = self.run(url, old, "--into", str(out))
        assert (code, "append to it or to overwrite it" in message) == (2, True)
        code, report = self.run(url, old, "--into", str(out), "--append")
        assert report["verified"] == {"records": 62, "read": 62, "there_before": 31, "values": None}
        code, report = self.run(url, old, "--into", str(out), "--overwrite", "--to-version", "1", "--no-verify")
        assert (report["version"], report["verified"], pq.read_table(out).num_rows) == (1, None, 21)
        assert report["dead"] == 12, "a long is no int, by the rules of Avro"
        assert any(loss["data"] for loss in report["losses"])

    def test_text_stays_base64(self, url: str, tmp_path: Path, spark: SparkSession) -> None:
        """JSON lines with base64 become JSON lines with base64, in another language. Without bad records exit is 0."""
        lines = [json.dumps({"offset": n, "value": b64encode(order(1, 1, n)).decode()}) for n in range(8)]
        (tmp_path / "old.json").write_text("\n".join(lines))
        out = tmp_path / "new"
        options = ["--format", "json", "--into", str(out), "--to-subject", "orders-json"]
        code, report = self.run(url, tmp_path / "old.json", *options)
        assert (code, report["verified"]["read"]) == (0, 8)
        written = spark.read.json(str(out)).selectExpr("offset", "unbase64(value) AS v").collect()
        assert {row.offset: json.loads(bytes(row.v)[5:])["id"] for row in written} == {n: n for n in range(8)}
