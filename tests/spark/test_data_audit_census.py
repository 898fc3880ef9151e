"""The census of stored records, with planted faults."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V1, V2, V3, datum, frame_record, order
from tests.support.server_process import serving
from typer.testing import CliRunner

from stele.cli.app import app
from stele.client import ResolvedSchema, Schema, SchemaRegistryClient, SchemaSnapshot
from stele.errors import Invalid, NotFound, SubjectNotFound
from stele.spark.data_audit import JobFailed
from stele.spark.data_audit import census as any_census
from stele.spark.data_audit.stored_records import read_records

census = partial(any_census, engine="python")  # needs no compilation
DAY = 86_400_000  # milliseconds
START = 1_700_000_000_000 // DAY * DAY


@pytest.fixture
def three(registry: LocalRegistry) -> LocalRegistry:
    """A registry with all three versions; ids are 1, 2, 3."""
    for document in (V1, V2, V3):
        registry.add(SUBJECT, document)
    return registry


def silent(number: int) -> bytes:
    """Return a record of version 3 whose note is null, and without places."""
    return frame_record(V3, {**datum(3, number), "note": None, "places": {}}, 3)


def make_records() -> list[tuple[int, bytes | None]]:
    """Return times and records: 6 of id 1, 3 of id 3, an unknown id, a damaged one, an unframed one, a tombstone."""
    rows: list[tuple[int, bytes | None]] = [(START + n * DAY, order(1, 1, n)) for n in range(5)]
    rows += [(START + 20 * DAY + n, silent(n)) for n in range(3)]
    rows.append((START + 1, order(1, 1, 7)[:-1]))
    rows += [(START, b"\0\0\0\0\x63zz"), (START, b"{}"), (START, None)]
    return rows


def frame(spark: SparkSession) -> DataFrame:
    """The stored records in two partitions."""
    return spark.createDataFrame(make_records(), "at long, value binary").repartition(2)


def test_counts_versions_and_faults(spark: SparkSession, three: LocalRegistry) -> None:
    """Every record is counted once, by id or as damaged, unknown, unframed or tombstone. Versions have verdicts."""
    result = census(frame(spark), subject=SUBJECT, registry=three.url, timestamp="at")
    assert (result.records, result.tombstones, result.subjects) == (11, 1, (SUBJECT,))
    assert [(it.id, it.known, it.places, it.records) for it in result.ids] == [
        ("1", True, (f"{SUBJECT} v1",), 6),
        ("3", True, (f"{SUBJECT} v3",), 3),
        ("99", False, (), 1),
    ]
    assert result.unknown_ids == ["99"]
    assert result.unframed == {"2 bytes are too few for a frame: magic byte and id take 5": 1}
    assert result.ids[0].unreadable == {"the record ends inside a value": 1}
    assert result.bytes == sum(len(value) for _, value in make_records() if value is not None)
    assert [(it.version, it.safe, it.records) for it in result.versions] == [(1, False, 6), (2, True, 0), (3, False, 3)]
    assert result.versions[0].why == "not safe: 6 records, last seen 2023-11-18T00:00:00Z"
    assert result.versions[1].why.startswith(
        "safe to delete: no record here needs it; 2 records here could not be distinguished"
    )
    assert not result.is_clean


def test_fields_are_those_of_the_records(spark: SparkSession, three: LocalRegistry) -> None:
    """A field that is null in all records is listed, also inside a record; a field that is set is not."""
    result = census(frame(spark), subject=SUBJECT, registry=three.url)
    one, three_ = result.ids[0], result.ids[1]
    assert {field.path: (field.present, field.of) for field in one.fields} == {
        "id": (5, 5),
        "place": (5, 5),
        "place.city": (5, 5),
        "tags": (5, 5),
        "tags[]": (4, 4),
    }
    assert three_.never_set == ["note"], "a map without entries is there, and its values have no room"
    assert {field.path: field.type for field in three_.fields}["places{}"] == "record"


def test_days_make_the_plot(spark: SparkSession, three: LocalRegistry) -> None:
    """Records are counted by day and id; the times of the first and the last one are exact."""
    result = census(frame(spark), subject=SUBJECT, registry=three.url, timestamp="at", fields=False)
    assert result.days["2023-11-14"] == {"1": 2, "99": 1}
    assert result.days["2023-12-04"] == {"3": 3}
    assert (result.ids[0].first, result.ids[0].last) == ("2023-11-14T00:00:00Z", "2023-11-18T00:00:00Z")
    assert result.ids[0].fields == (), "frames alone were looked at"


def test_without_a_subject_ids_say_where_they_are(spark: SparkSession, three: LocalRegistry) -> None:
    """Without a subject, ids are listed with their locations in a snapshot, and no version is judged."""
    schemas = tuple(
        ResolvedSchema(json.dumps(document), id=number, subject=SUBJECT, version=number)
        for number, document in enumerate((V1, V2, V3), 1)
    )
    result = census(frame(spark), registry=SchemaSnapshot(schemas))
    assert [(it.id, it.places) for it in result.ids][:2] == [("1", (f"{SUBJECT} v1",)), ("3", (f"{SUBJECT} v3",))]
    assert result.versions == ()
    del three


def test_formats_and_wires_beside_the_usual_ones(spark: SparkSession, registry: LocalRegistry) -> None:
    """JSON records with the guid in a header are counted by guid, and belong to the version with that guid."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}
    number = registry.add_text("docs-value", json.dumps(schema), "JSON")
    guid = b"\1" + UUID(registry.get_guid(number)).bytes
    rows = [(b'{"a": 1}', [("__value_schema_id", guid)]), (b'{"b": "x"}', [("__value_schema_id", guid)])]
    df = spark.createDataFrame(rows, "value binary, headers array<struct<key: string, value: binary>>")
    result = census(df, subject="docs-value", registry=registry.url, wire="confluent-header", headers="headers")
    assert [(it.id, it.records, it.never_set) for it in result.ids] == [(registry.get_guid(number), 2, ["b"])]
    assert sum(result.ids[0].unreadable.values()) == 1
    assert result.versions[0].records == 2


def test_bad_questions(spark: SparkSession, three: LocalRegistry, tmp_path: Path) -> None:
    """Unknown columns and subjects, and folders without records, are errors before any job."""
    df = frame(spark)
    with pytest.raises(Invalid, match="no column 'nothing'"):
        census(df, "nothing", registry=three.url)
    with pytest.raises(Invalid, match="'at' is bigint"):
        census(df, "at", registry=three.url)
    with pytest.raises(Invalid, match="headers='headers'"):
        census(df, registry=three.url, wire="confluent-header")
    with pytest.raises(Invalid, match="a time column must hold timestamps"):
        census(df.withColumn("word", f.lit("x")), registry=three.url, timestamp="word")
    with pytest.raises(SubjectNotFound):
        census(df, registry=three.url, subject="nobody")
    with pytest.raises(NotFound, match="nothing at"):
        read_records(spark, str(tmp_path / "absent"))
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(JobFailed):
        read_records(spark, str(tmp_path / "text.parquet"))


def test_an_outage_fails_the_job(spark: SparkSession, three: LocalRegistry) -> None:
    """A registry that does not answer fails the job; its ids do not count as unknown."""
    three.break_down("/schemas/ids/99")
    with pytest.raises(JobFailed, match="on purpose"):
        census(frame(spark), subject=SUBJECT, registry=three.url, patience=0)


class TestCommand:
    """The command `stele census`."""

    @pytest.fixture(autouse=True)
    def _shared_session(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give the command the session of the tests, which it cannot stop."""
        monkeypatch.setattr(type(spark), "stop", lambda session: None)

    def test_text_json_and_html(self, three: LocalRegistry, tmp_path: Path) -> None:
        """Parquet files are counted, and text, JSON and HTML have the same figures, the page in a file of its own."""
        times, values = zip(*make_records(), strict=True)
        table = pa.table(
            {"value": pa.array(values, pa.binary()), "at": [datetime.fromtimestamp(t / 1000, UTC) for t in times]}
        )
        pq.write_table(table, tmp_path / "records.parquet")
        page = tmp_path / "census.html"
        command = ["census", "--registry", three.url, "--data", str(tmp_path / "records.parquet"), "--subject", SUBJECT]
        command += ["--engine", "python"]
        json_result = CliRunner().invoke(app, [*command, "--timestamp", "at", "-o", "json"])
        assert json_result.exit_code == 0, json_result.output
        answer = json.loads(json_result.stdout)
        assert [it["safe"] for it in answer["versions"]] == [False, True, False]
        text = CliRunner().invoke(app, [*command, "--no-fields"])
        assert text.exit_code == 0
        assert "safe to delete" in text.stdout
        written = CliRunner().invoke(app, [*command, "--timestamp", "at", "-o", "html", "--to", str(page)])
        assert (written.exit_code, written.stdout) == (0, "")
        html = page.read_text()
        assert html.count("<figure") == 4
        assert (html.count('class="stele-picture"'), html.count('class="picture-table"')) == (2, 2)
        assert [it["subject"] for it in answer["evolutions"]] == [SUBJECT]
        assert "not safe: 6 records, last seen 2023-11-18T00:00:00Z" in html

    def test_recorded_for_deletions(self, tmp_path: Path) -> None:
        """`--record` sends the census to a registry, which then warns about deletions.

        A census of a part of a place is marked as such.
        """
        server_folder = tmp_path / "server"
        server_folder.mkdir()
        with serving("--store", "memory:", folder=server_folder) as server, SchemaRegistryClient(server.url) as client:
            number = client.register(f":.shop:{SUBJECT}", Schema(json.dumps(V1))).id
            client.register(f":.shop:{SUBJECT}", Schema(json.dumps(V2)))
            rows = [(START + n * DAY, order(1, number, n)) for n in range(4)] + [(START, b"\0\0\0\0\x63zz")]
            times, values = zip(*rows, strict=True)
            table = pa.table(
                {
                    "value": pa.array(values, pa.binary()),
                    "at": [datetime.fromtimestamp(t / 1000, UTC) for t in times],
                }
            )
            pq.write_table(table, tmp_path / "records.parquet")
            command = ["census", "--registry", server.url, "--data", str(tmp_path / "records.parquet")]
            command += ["--subject", f":.shop:{SUBJECT}", "--timestamp", "at", "--no-fields", "-o", "json"]
            assert CliRunner().invoke(app, [*command, "--place", "x"]).exit_code == 2
            done = CliRunner().invoke(app, [*command, "--record", "--place", "topic orders", "--part"])
            assert done.exit_code == 0, done.output
            (place,) = client.usage()
            assert (place.place, place.whole, place.records) == ("topic orders", False, 5)
            (usage,) = place.seen
            assert (usage.namespace, usage.subject, usage.version, usage.schema_id) == ("shop", SUBJECT, 1, number)
            assert (usage.records, usage.first_seen, usage.last_seen) == (4, START, START + 3 * DAY)
            assert CliRunner().invoke(app, [*command, "--record"]).exit_code == 0
            assert [it.place for it in client.usage()] == [str(tmp_path / "records.parquet"), "topic orders"]
            warnings = client.preview_deletion(f":.shop:{SUBJECT}", 1).warnings
            assert [(it.records, it.whole) for it in warnings] == [(4, True), (4, False)]
            assert client.preview_deletion(f":.shop:{SUBJECT}", 2).warnings == ()

    def test_base64_in_json_lines(self, three: LocalRegistry, tmp_path: Path) -> None:
        """Records in JSON lines are base64, and partition and offset are their positions."""
        lines = [
            json.dumps({"partition": 0, "offset": n, "value": None if value is None else b64encode(value).decode()})
            for n, (_, value) in enumerate(make_records())
        ]
        (tmp_path / "dump.json").write_text("\n".join(lines))
        command = ["census", "--registry", three.url, "--data", str(tmp_path / "dump.json"), "--format", "json"]
        done = CliRunner().invoke(app, [*command, "-o", "json", "--no-fields"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["records"] == 11

    def test_what_cannot_be_read_is_exit_code_2(self, three: LocalRegistry, tmp_path: Path) -> None:
        """A missing path and an invalid snapshot end with exit code 2 and a message."""
        done = CliRunner().invoke(app, ["census", "--registry", three.url, "--data", str(tmp_path / "absent")])
        assert done.exit_code == 2
        assert "nothing at" in done.stderr
        (tmp_path / "snapshot.json").write_text("[")
        drop = ["census", "--registry", three.url, "--data", str(tmp_path)]
        done = CliRunner().invoke(app, drop)
        assert (done.exit_code, done.stdout) == (2, "")
        assert CliRunner().invoke(app, [*drop, "--registry", str(tmp_path / "snapshot.json")]).exit_code == 2
