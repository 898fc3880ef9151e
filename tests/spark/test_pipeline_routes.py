"""Pipelines with several types of records, tables that rename and refuse, and replays of dead letters."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest
from pyspark.sql import SparkSession
from tests.spark.local_registry import LocalRegistry
from tests.spark.orders import SUBJECT, V1, V3, datum, drop, frame_record, order

from stele.errors import Conflict, Invalid, StoreError
from stele.spark.pipeline import (
    BatchReport,
    PipelineConfig,
    apply_plan,
    iceberg_dataframe,
    load_config,
    open_table,
    plan_pipeline,
    read_dead_letters,
    replay_dead_letters,
    run_pipeline,
)
from stele.spark.pipeline.sinks import iceberg

CUSTOMER = {"type": "record", "name": "Customer", "fields": [{"name": "name", "type": "string"}]}
TOML = """
checkpoint = "state"
[source]
path = "in"
registry = "{registry}"
{source}
[table]
catalog = "sqlite:///catalog.db"
warehouse = "warehouse"
{table}
"""


def config(folder: Path, registry: str, source: str = f'subject = "{SUBJECT}"', table: str = "") -> PipelineConfig:
    """Return a pipeline in a folder of its own, into shop.orders unless it has routes."""
    (folder / "in").mkdir(exist_ok=True)
    name = "" if "[[route]]" in table else 'name = "shop.orders"\n'
    (folder / "pipeline.toml").write_text(TOML.format(registry=registry, source=source, table=name + table))
    return load_config(folder / "pipeline.toml")


def rows(spark: SparkSession, settings: PipelineConfig, name: str = "shop.orders") -> list[dict[str, object]]:
    """Return the rows of a table."""
    table_rows = iceberg_dataframe(spark, open_table(settings.table, name)).collect()
    return [row.asDict(recursive=True) for row in table_rows]


def test_types_of_one_stream_have_tables_of_their_own(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path
) -> None:
    """Each record goes to the table of its type, one of no type to the dead letters; the totals are separate."""
    registry.add(SUBJECT, V1)
    registry.add("customers-value", CUSTOMER)
    registry.add("other", {"type": "record", "name": "Other", "fields": []})
    routes = f"""
[[route]]
subject = "{SUBJECT}"
table = "shop.orders"
[[route]]
subject = "customers-value"
table = "shop.customers"
"""
    settings = config(tmp_path, registry.url, source="", table='keep = ["source"]' + routes)
    strange = frame_record({"type": "record", "name": "Other", "fields": []}, {}, 3)
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1), frame_record(CUSTOMER, {"name": "Ann"}, 2), strange, None])
    report = run_pipeline(settings, spark=spark)
    assert (report.rows, report.dead_letters, report.tombstones) == (2, 1, 1)
    assert report.tables == {"shop.orders": 1, "shop.customers": 1}
    assert report.records == {"1": 1, "2": 1}
    assert [row["id"] for row in rows(spark, settings)] == [1]
    (customer,) = rows(spark, settings, "shop.customers")
    assert (customer["name"], customer["_stele_schema_id"], customer["_stele_version"]) == ("Ann", 2, 1)
    assert str(customer["_stele_source"]).endswith("in/a.parquet")
    (letter,) = read_dead_letters(settings, spark=spark).collect()
    assert (letter.value, letter.schema_id) == (strange, 3)
    assert "belongs to none of shop.orders, shop.customers" in letter.reason


def test_a_letter_is_replayed_once(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """A dead letter whose schema is registered later becomes a row once and is no longer open.

    Others stay open, and a condition selects dead letters.
    """
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url)
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1), order(3, 2, 2), b"junk"])
    assert run_pipeline(settings, spark=spark).dead_letters == 2
    assert replay_dead_letters(settings, spark=spark).rows == 0, "nothing is better yet"
    registry.add(SUBJECT, V3)
    assert replay_dead_letters(settings, spark=spark, where="schema_id IS NULL").rows == 0
    report = replay_dead_letters(settings, spark=spark)
    assert (report.rows, report.dead_letters, report.columns_added[:1]) == (1, 1, ("place.country",))
    assert replay_dead_letters(settings, spark=spark).rows == 0
    assert sorted((row["id"], row["note"]) for row in rows(spark, settings)) == [(1, None), (2, "note 2")]
    letters = read_dead_letters(settings, spark=spark).collect()
    assert {letter.value: letter.replayed_at is not None for letter in letters} == {
        order(3, 2, 2): True,
        b"junk": False,
    }
    with pytest.raises(Invalid, match="the condition 'no such' is not understood"):
        replay_dead_letters(settings, spark=spark, where="no such")


@pytest.mark.parametrize("place", ["marks", "rows"])
def test_a_replay_that_was_cut_short_is_finished(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A replay fails before a table has its rows; the next replay adds every dead letter to the table once."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url)
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1), order(3, 2, 2)])
    run_pipeline(settings, spark=spark)
    registry.add(SUBJECT, V3)
    commit = iceberg.commit_files
    broken = "shop.orders" if place == "rows" else "shop.orders_dead_letters_replayed"

    def failing(table: object, *rest: object) -> None:
        if ".".join(table.name()) == broken:  # type: ignore[attr-defined]  # a table of pyiceberg
            raise StoreError("the catalog is away")
        commit(table, *rest)  # type: ignore[arg-type]  # passed on

    with monkeypatch.context() as patch:
        patch.setattr(iceberg, "commit_files", failing)
        with pytest.raises(StoreError, match="the catalog is away"):
            replay_dead_letters(settings, spark=spark)
    assert [row["id"] for row in rows(spark, settings)] == [1]
    assert replay_dead_letters(settings, spark=spark).rows == 1
    assert sorted(row["id"] for row in rows(spark, settings)) == [1, 2]  # type: ignore[type-var]  # numbers


def test_an_id_that_was_unknown_is_asked_for_again(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path
) -> None:
    """If an unknown id is registered between two batches, its records are rows of the second batch."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url)
    drop(tmp_path / "in", "a.parquet", [order(1, 2, 1)])
    assert run_pipeline(settings, spark=spark).dead_letters == 1
    registry.add("other", V1 | {"doc": "a moment late"})
    drop(tmp_path / "in", "b.parquet", [order(1, 2, 2), order(1, 1, 3)])
    assert run_pipeline(settings, spark=spark).records == {"1": 1, "2": 1}
    assert replay_dead_letters(settings, spark=spark).rows == 1


def test_renamed_fields_rename_their_columns(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """An alias renames the column with its old rows, and `add` adds a new one. The plan shows both in advance."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url, table='changes = "ask"')
    (plan, letters) = plan_pipeline(settings, spark=spark)
    assert [change.kind for change in (*plan.changes, *letters.changes)] == ["create", "create"]
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1)])
    with pytest.raises(Conflict, match=r"plan FILE --apply`: shop\.orders: create the table"):
        run_pipeline(settings, spark=spark)
    apply_plan(settings, spark=spark)
    run_pipeline(settings, spark=spark)
    renamed = msgspec.json.decode(msgspec.json.encode(V1))
    renamed["fields"][0] |= {"name": "number", "aliases": ["id"]}
    renamed["fields"][1]["type"]["fields"][0] |= {"name": "town", "aliases": ["city"]}
    registry.add(SUBJECT, renamed)
    changes = [str(change) for change in plan_pipeline(settings, spark=spark)[0].changes]
    assert changes == ["rename column id to number", "rename column place.city to town"]
    other = msgspec.structs.replace(settings, table=msgspec.structs.replace(settings.table, renames="add"))
    assert [str(change) for change in plan_pipeline(other, spark=spark)[0].changes] == [
        "add column number int",
        "add column place.town string",
        "keep column place.city, which is no longer in the schema: null from now on",
        "keep column id, which is no longer in the schema: null from now on",
    ]
    apply_plan(settings, spark=spark)
    value = datum(1, 2)
    value = {"number": 2, "place": {"town": "here"}, "tags": value["tags"]}
    drop(tmp_path / "in", "b.parquet", [frame_record(renamed, value, 2), order(1, 1, 3)])
    run_pipeline(settings, spark=spark)
    towns = sorted((row["number"], row["place"]["town"]) for row in rows(spark, settings))  # type: ignore[index]  # structs
    assert towns == [(1, "city 1"), (2, "here"), (3, "city 3")]


def test_a_field_that_left_may_stop_the_run(spark: SparkSession, registry: LocalRegistry, tmp_path: Path) -> None:
    """With `drops = refuse` the run stops at the version without the field, and names the field."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url, table='drops = "refuse"')
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1)])
    run_pipeline(settings, spark=spark)
    registry.add(SUBJECT, V1 | {"fields": V1["fields"][:2]})
    drop(tmp_path / "in", "b.parquet", [order(1, 1, 2)])
    with pytest.raises(Conflict, match="column tags: it is no longer in the schema"):
        run_pipeline(settings, spark=spark)
    assert [row["id"] for row in rows(spark, settings)] == [1]


def test_a_batch_that_failed_in_its_second_table_is_judged_as_before(
    spark: SparkSession, registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record with an unknown id stays only a dead letter, even if its schema is registered before the retry."""
    registry.add(SUBJECT, V1)
    settings = config(tmp_path, registry.url)
    drop(tmp_path / "in", "a.parquet", [order(1, 1, 1), order(1, 2, 9)])
    commit, calls = iceberg.commit_files, iter(range(9))

    def second_fails(*arguments: object) -> None:
        if next(calls) == 1:
            raise StoreError("the catalog is away")
        commit(*arguments)  # type: ignore[arg-type]  # passed on

    with monkeypatch.context() as patch:
        patch.setattr(iceberg, "commit_files", Mock(side_effect=second_fails))
        with pytest.raises(StoreError, match="the catalog is away"):
            run_pipeline(settings, spark=spark)
    registry.add("other", V1 | {"doc": "known too late"})
    reports: list[BatchReport] = []
    run_pipeline(settings, spark=spark, progress=reports.append)
    assert [(report.batch, report.rows, report.dead_letters, report.replayed) for report in reports] == [
        (0, 1, 1, True)
    ]
    assert [row["id"] for row in rows(spark, settings)] == [1]
    assert read_dead_letters(settings, spark=spark).count() == 1
