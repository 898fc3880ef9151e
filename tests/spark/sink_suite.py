"""The tests that every kind of table must pass: one suite, run against each kind by a subclass."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType

from stele.errors import NotFound
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.schema_evolution import plan_changes
from stele.spark.pipeline.sinks import Sink, open_sink
from stele.spark.types.metadata import comment_of

NAME = "shop.things"

THINGS = """id bigint, text string, `odd. name``s` string, `größe` decimal(12, 2), at timestamp, wall timestamp_ntz,
 day date, raw binary, flag boolean, real double, tags array<string>,
 place struct<city: string, `geo.x`: struct<lat: double, lon: double>>,
 `lines` array<struct<sku: string, n: int>>, attrs map<string, struct<a: int, b: array<bigint>>>"""
"""Columns of most types, with unusual names."""


def things() -> list[dict[str, Any]]:
    """Return rows with nulls at every depth."""
    full = {
        "id": 1,
        "text": "größer",
        "odd. name`s": "x",
        "größe": Decimal("1234567890.12"),
        "at": datetime(2026, 1, 2, 3, 4, 5, 678901),  # noqa: DTZ001 - PySpark takes and gives the session's wall clock
        "wall": datetime(1969, 1, 2, 3, 4, 5, 678901),  # noqa: DTZ001 - of a wall clock
        "day": date(1600, 2, 29),
        "raw": bytearray(b"\0\xff"),
        "flag": True,
        "real": -0.5,
        "tags": ["a", None, ""],
        "place": {"city": "Oslo", "geo.x": {"lat": 59.9, "lon": None}},
        "lines": [{"sku": "s", "n": 2}, None, {"sku": None, "n": None}],
        "attrs": {"k": {"a": 1, "b": [1, None]}, "null": None},
    }
    return [
        full,
        {**dict.fromkeys(full), "id": 2},
        {**full, "id": 3, "tags": [], "place": {"city": None, "geo.x": None}, "lines": [], "attrs": {}},
        {**full, "id": 4, "place": None, "tags": None, "lines": None, "attrs": None},
    ]


class Step(NamedTuple):
    """A call at which a writer can crash: an attribute of a module or class, and the number of the call."""

    place: Any
    name: str
    call: int = 1


class Crash(Exception):
    """Raised to simulate the crash of a writer."""


@contextmanager
def dying(step: Step, *, before: bool) -> Iterator[None]:
    """Crash at a step, before or after its call."""
    original, calls = getattr(step.place, step.name), 0

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == step.call and before:
            raise Crash
        result = original(*arguments, **named)
        if calls == step.call:
            raise Crash
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step.place, step.name, call)
        yield


def numbers(spark: SparkSession, first: int, last: int) -> DataFrame:
    """Return rows with ids of a range, in two partitions."""
    return spark.range(first, last, 1, 2).selectExpr("id", "concat('text ', id) AS text")


def ids(table: Sink) -> list[int]:
    """Return the ids in the table, sorted, with repetitions."""
    return sorted(row.id for row in table.read_table().select("id").collect())


def grow(table: Sink, ddl: str, **more: Any) -> None:
    """Change the table to these columns, and check that the next plan is empty."""
    wanted = StructType.fromDDL(ddl)
    changes = plan_changes(table.load_columns(), wanted, table.capabilities, **more)
    assert not [change for change in changes if change.kind == "clash"]
    table.apply_changes([change for change in changes if change.kind != "left"], wanted)
    again = plan_changes(table.load_columns(), wanted, table.capabilities, **more)
    assert not [change for change in again if change.kind != "left"]


def comments(table: Sink) -> dict[str, str]:
    """Return the comments of a table's columns, at every depth."""
    columns = table.load_columns()
    assert columns is not None
    return dict(_comments_below(columns, ""))


def _comments_below(kind: DataType, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(kind, ArrayType):
        yield from _comments_below(kind.elementType, f"{path}element.")
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield path + field.name, comment_of(field)
            yield from _comments_below(field.dataType, f"{path}{field.name}.")


class SinkSuite:
    """The tests. A subclass defines the table and the calls at which its writer can crash."""

    steps: Sequence[Step]
    ddl = "id bigint, text string"
    atomic = True
    """Whether readers see either all rows of a batch or none."""
    session: Mapping[str, str] = {}
    """Settings of a session in another process."""

    @pytest.fixture
    def config(self, tmp_path: Path) -> TableConfig:
        """The configuration of a table of this kind, in a folder or catalogue of its own."""
        raise NotImplementedError

    @pytest.fixture
    def open_table(self, spark: SparkSession, config: TableConfig) -> Callable[[], Sink]:
        """A function that opens the table again, as another process does."""
        return lambda: open_sink(spark, config, NAME)

    def test_a_table_is_made_and_holds_what_it_was_given(
        self, spark: SparkSession, open_table: Callable[[], Sink]
    ) -> None:
        """Columns of all types and names return the written values, with nulls at every depth.

        Before its creation the table does not exist.
        """
        table = open_table()
        assert table.name == NAME
        assert table.load_columns() is None
        with pytest.raises(NotFound):
            table.read_table()
        grow(table, THINGS)
        columns = open_table().load_columns()
        assert columns is not None
        assert columns.simpleString() == StructType.fromDDL(THINGS).simpleString()
        table.append_batch(spark.createDataFrame([tuple(row.values()) for row in things()], columns), "app", 0)
        rows = table.read_table().orderBy("id").collect()
        assert [row.asDict(recursive=True) for row in rows] == things()
        assert open_table().read_table().count() == len(things())

    def test_a_batch_is_in_the_table_once(self, spark: SparkSession, open_table: Callable[[], Sink]) -> None:
        """A repeated batch adds no rows, also if it is the first one. The same batch of another pipeline adds rows."""
        table = open_table()
        grow(table, self.ddl)
        for batch in range(3):
            rows = numbers(spark, 10 * batch, 10 * batch + 10)
            table.append_batch(rows, "one", batch)
            table.append_batch(rows, "one", batch)
            open_table().append_batch(rows, "one", batch)
        table.append_batch(numbers(spark, 100, 105), "two", 0)
        open_table().append_batch(numbers(spark, 100, 105), "two", 0)
        open_table().append_batch(numbers(spark, 20, 30), "one", 2)
        assert ids(table) == [*range(30), *range(100, 105)]
        assert ids(open_table()) == ids(table)

    def test_an_empty_batch_is_no_commit(self, spark: SparkSession, open_table: Callable[[], Sink]) -> None:
        """A batch without rows makes no commit, and the next batch is in the table once."""
        table = open_table()
        grow(table, self.ddl)
        before = self.history(table)
        table.append_batch(numbers(spark, 0, 5).where("id < 0"), "app", 0)
        table.append_batch(numbers(spark, 0, 5).where("id < 0"), "app", 0)
        assert self.history(table) == before
        table.append_batch(numbers(spark, 0, 5), "app", 1)
        table.append_batch(numbers(spark, 0, 5), "app", 1)
        assert ids(table) == [*range(5)]
        assert self.history(table) == before + 1

    def history(self, table: Sink) -> int:
        """Return the number of commits of rows."""
        raise NotImplementedError

    def test_columns_are_added_and_widened_at_every_depth(
        self, spark: SparkSession, open_table: Callable[[], Sink]
    ) -> None:
        """Old rows have null in new columns and keep their numbers in wider ones, also in structs, lists and maps."""
        table = open_table()
        grow(
            table,
            "id int, f float, d decimal(6, 2), place struct<city: string, n: int>, "
            "l array<struct<x: int>>, m map<string, struct<x: float>>, gone string",
        )
        columns = table.load_columns()
        assert columns is not None
        old = (1, 0.5, Decimal("1.25"), ("Oslo", 7), [(3,), None], {"k": (1.5,)}, "still")
        table.append_batch(spark.createDataFrame([old], columns), "app", 0)
        grow(
            table,
            "id bigint, f double, d decimal(9, 2), place struct<city: string, n: bigint, `new one`: struct<a: int>>, "
            "l array<struct<x: bigint, y: date>>, m map<string, struct<x: double, y: string>>, `to.p` array<string>",
        )
        columns = open_table().load_columns()
        assert columns is not None
        big = 1 << 40
        new = {
            "id": big,
            "f": 0.1,
            "d": Decimal("1234567.25"),
            "place": {"city": "Bergen", "n": big, "new one": {"a": 1}},
            "l": [{"x": big, "y": date(2026, 1, 1)}],
            "m": {"k": {"x": 0.1, "y": "y"}},
            "gone": None,
            "to.p": ["t"],
        }
        table.append_batch(spark.createDataFrame([tuple(new[name] for name in columns.names)], columns), "app", 1)
        first, second = (row.asDict(recursive=True) for row in table.read_table().orderBy("id").collect())
        assert second == new
        assert first == {
            "id": 1,
            "f": 0.5,
            "d": Decimal("1.25"),
            "place": {"city": "Oslo", "n": 7, "new one": None},
            "l": [{"x": 3, "y": None}, None],
            "m": {"k": {"x": 1.5, "y": None}},
            "gone": "still",
            "to.p": None,
        }

    def test_comments_follow_the_schema(self, open_table: Callable[[], Sink]) -> None:
        """New columns have their comments, and changed comments replace old ones at every depth.

        An empty comment changes none.
        """
        grow(open_table(), "id bigint COMMENT 'Key', place struct<city: string COMMENT 'It''s a \\\\ \"town\"'>")
        assert comments(open_table()) == {"id": "Key", "place": "", "place.city": 'It\'s a \\ "town"'}
        wanted = (
            "id bigint COMMENT 'Number', place struct<city: string COMMENT 'Town', zip: int COMMENT 'Code'> "
            "COMMENT 'Where', n int COMMENT 'Count', l array<struct<x: int COMMENT 'Inside'>>"
        )
        grow(open_table(), wanted)
        after = {
            "id": "Number",
            "place": "Where",
            "place.city": "Town",
            "place.zip": "Code",
            "n": "Count",
            "l": "",
            "l.element.x": "Inside",
        }
        assert comments(open_table()) == after
        grow(open_table(), wanted.replace("Inside", "Within").replace("COMMENT 'Number'", ""))
        assert comments(open_table()) == {**after, "l.element.x": "Within"}

    def test_renamed_columns_keep_their_values(self, spark: SparkSession, open_table: Callable[[], Sink]) -> None:
        """A column takes its field's new name, also inside a renamed struct.

        A table that cannot rename columns gets a new one.
        """
        table = open_table()
        grow(table, "id bigint, old string, place struct<`ci.ty`: string>, l array<struct<a: int>>")
        columns = table.load_columns()
        assert columns is not None
        table.append_batch(spark.createDataFrame([(1, "x", ("Oslo",), [(1,)])], columns), "app", 0)
        former = {
            ("new",): ("old",),
            ("spot",): ("place",),
            ("spot", "town"): ("ci.ty",),
            ("l", "b"): ("a",),
        }
        wanted = "id bigint, new string, spot struct<town: string, zip: int>, l array<struct<b: int>>"
        if not table.capabilities.rename:
            grow(table, wanted, former=former, renames="rename")
            row = table.read_table().collect()[0]
            assert (row.old, row.new, row.place[0], row.spot) == ("x", None, "Oslo", None)
            return
        grow(table, wanted, former=former)
        columns = open_table().load_columns()
        assert columns is not None
        assert columns.names == ["id", "new", "spot", "l"]
        table.append_batch(spark.createDataFrame([(2, "y", ("Bergen", 5), [(2,)])], columns), "app", 1)
        rows = [row.asDict(recursive=True) for row in table.read_table().orderBy("id").collect()]
        assert rows == [
            {"id": 1, "new": "x", "spot": {"town": "Oslo", "zip": None}, "l": [{"b": 1}]},
            {"id": 2, "new": "y", "spot": {"town": "Bergen", "zip": 5}, "l": [{"b": 2}]},
        ]

    def test_changes_others_made_meanwhile_are_no_error(
        self, spark: SparkSession, open_table: Callable[[], Sink]
    ) -> None:
        """An outdated plan applies only its missing changes, and writers see new columns."""
        one, other = open_table(), open_table()
        wanted = StructType.fromDDL("id bigint, text string, place struct<city: string>")
        first = plan_changes(None, wanted, one.capabilities)
        one.apply_changes(first, wanted)
        other.apply_changes(
            first, StructType.fromDDL("id bigint, text string, more int, place struct<city: string, n: int>")
        )
        columns = one.load_columns()
        assert columns is not None
        assert columns.simpleString() == "struct<id:bigint,text:string,place:struct<city:string,n:int>,more:int>"
        late = StructType.fromDDL("id bigint, text string, late int")
        changes = plan_changes(one.load_columns(), late, one.capabilities)
        one.apply_changes(changes, late)
        other.apply_changes(changes, late)
        columns = one.load_columns()
        assert columns is not None
        rows = spark.createDataFrame([(1, "a", None, None, 2)], columns)
        grow(other, "id bigint, later int")
        one.append_batch(rows, "app", 0)
        assert one.read_table().select("id", "text", "late", "later").collect()[0][:] == (1, "a", 2, None)

    def test_a_writer_may_die_at_any_step(self, spark: SparkSession, open_table: Callable[[], Sink]) -> None:
        """After a crash at any call, the repeated batch and the next one are in the table once."""
        table, batch = open_table(), 0
        grow(table, self.ddl)
        for step in self.steps:
            for before in (True, False):
                rows = numbers(spark, 10 * batch, 10 * batch + 4)
                with dying(step, before=before), pytest.raises(Crash):
                    open_table().append_batch(rows, "app", batch)
                if self.atomic:
                    assert ids(table) in (self.whole(batch), self.whole(batch + 1)), (step, before)
                open_table().append_batch(rows, "app", batch)
                assert ids(table) == self.whole(batch + 1), (step, before)
                batch += 1
        self.left_over(table)

    @staticmethod
    def whole(batches: int) -> list[int]:
        """Return the ids of whole batches."""
        return [10 * batch + number for batch in range(batches) for number in range(4)]

    def left_over(self, table: Sink) -> None:
        """Check that crashed writers left no files."""

    def test_several_pipelines_write_at_once(self, spark: SparkSession, open_table: Callable[[], Sink]) -> None:
        """Two applications append to one table while a third adds columns to it; no row is lost or doubled."""
        grow(open_table(), self.ddl)

        def work(first: int) -> None:
            for batch in range(3):
                table = open_table()
                table.append_batch(numbers(spark, first + 10 * batch, first + 10 * batch + 3), f"app{first}", batch)

        def widen() -> None:
            for number in range(2):
                grow(open_table(), f"{self.ddl}, more{number} int")

        with ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(work, 0), pool.submit(work, 1000), pool.submit(widen)]:
                done.result()
        table = open_table()
        assert ids(table) == sorted(at + 10 * batch + n for at in (0, 1000) for batch in range(3) for n in range(3))
        columns = table.load_columns()
        assert columns is not None
        assert set(columns.names) == {"id", "text", "more0", "more1"}

    @pytest.mark.slow
    @pytest.mark.timeout(600)
    def test_a_writer_killed_half_way(
        self, spark: SparkSession, config: TableConfig, open_table: Callable[[], Sink]
    ) -> None:
        """Driver and JVM are killed while a task writes and another task's file is written.

        The repeated batch is in the table once.
        """
        table = open_table()
        grow(table, self.ddl)
        table.append_batch(numbers(spark, 0, 4), "app", 0)
        command = [sys.executable, "-c", CHILD, msgspec.json.encode([self.session, config, NAME]).decode()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False, env=dict(os.environ))
        assert done.returncode == -9, done.stderr[-3000:]
        assert ids(open_table()) == self.whole(1)
        for batch in (1, 2):
            open_table().append_batch(numbers(spark, 10 * batch, 10 * batch + 4), "app", batch)
        assert ids(open_table()) == self.whole(3)
        self.left_over(table)


CHILD = """
import json, os, signal, sys
import msgspec
from stele.spark import local_session
from stele.spark.pipeline.config import TableConfig
from stele.spark.pipeline.sinks import open_sink

conf, config, name = json.loads(sys.argv[1])
spark = local_session("killed", 1, **conf)
machine, driver = spark._jvm.java.lang.ProcessHandle.current().pid(), os.getpid()

def deadly(batches):
    for batch in batches:
        yield batch
        if max(batch.column("id").to_pylist()) == 13:
            os.kill(machine, signal.SIGSTOP)  # neither notices that the other one dies
            os.kill(driver, signal.SIGKILL)
            os.kill(machine, signal.SIGKILL)

rows = spark.range(10, 14, 1, 2).selectExpr("id", "concat('text ', id) AS text")
table = open_sink(spark, msgspec.convert(config, TableConfig), name)
table.append_batch(rows.mapInArrow(deadly, rows.schema), "app", 1)
"""
