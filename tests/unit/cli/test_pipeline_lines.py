"""The lines that `stele pipeline run` prints about batches."""

from __future__ import annotations

import pytest

from stele.cli import pipeline
from stele.spark.pipeline import BatchReport, ColumnChange, PipelineReport
from stele.spark.pipeline.schema_evolution import TableChange


def test_a_batch_in_one_line() -> None:
    """The line has rows by ascending id, versions, duration, rate, lag, and whether an earlier run began the batch."""
    batch = BatchReport(
        7,
        rows=1200,
        dead_letters=3,
        versions={"orders-value": 2},
        records={"10": 700, "9": 499, "": 1},
        replayed=True,
        seconds=2.0,
    )
    line = pipeline.batch_line(batch, 12)
    assert line.partition(" ")[2] == (
        "batch 7: 1,200 rows (id 9: 499, id 10: 700, id –: 1), 3 dead letters, orders-value v2, 2.0 s, 602 records/s, "
        "12 behind Kafka, begun by an earlier run"
    )


def test_an_empty_batch_and_very_many_ids() -> None:
    """Unknown figures are left out, and only the first ids are listed."""
    assert pipeline.batch_line(BatchReport(0)).partition(" ")[2] == "batch 0: 0 rows, 0 dead letters, 0.0 s"
    slow = pipeline.batch_line(BatchReport(0, rows=3, seconds=4.0))
    assert slow.endswith("0.8 records/s")
    many = pipeline.batch_line(BatchReport(0, records={str(number): 1 for number in range(30)}))
    assert "id 7: 1, 22 more)" in many


def test_the_sums_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary names all versions used, by subject; names that look like markup are printed unchanged."""
    pipeline.print_summary(PipelineReport(batches=2, rows=3, versions={"a-[red]value": (1, 2), "b-value": (4,)}))
    summary = capsys.readouterr().out
    assert "2 batches, 3 rows, 0 dead letters, 0 tombstones; versions used: a-[red]value 1, 2; b-value 4" in summary


def test_every_change_of_a_table_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Each change of a table has one line with the table's name: created, added, widened, renamed, commented."""
    changes = (
        ColumnChange("create", type="struct<id:int>"),
        ColumnChange("add", ("place", "country"), "string"),
        ColumnChange("widen", ("amount",), "bigint", "int"),
        ColumnChange("rename", ("note",), to="remark"),
        ColumnChange("comment", ("id",), comment="The [b]number[/b]"),
    )
    pipeline.print_summary(PipelineReport(changes=tuple(TableChange("shop.orders", each) for each in changes)))
    assert capsys.readouterr().out.splitlines()[1:] == [
        "shop.orders: table created",
        "shop.orders: column place.country added: string",
        "shop.orders: column amount: int → bigint",
        "shop.orders: column note renamed to remark",
        "shop.orders: column id has a new comment: The [b]number[/b]",
    ]
