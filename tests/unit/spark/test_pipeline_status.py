"""Status and history of pipelines, from checkpoints that the tests write: no Spark runs, and no file is changed."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.client import ResolvedSchema, SchemaSnapshot
from stele.errors import StoreError
from stele.spark.data_audit.report import ReportState, to_html, to_json, to_text
from stele.spark.pipeline.config import PipelineConfig, SourceConfig, TableConfig
from stele.spark.pipeline.journal import BatchEntry, BatchJournal, BatchReport, pipeline_lock
from stele.spark.pipeline.schema_evolution import ColumnChange, TableChange
from stele.spark.pipeline.status import (
    MOST_COLUMNS,
    IdCount,
    PipelineHistory,
    TimeSlots,
    is_running,
    label_versions,
    load_pipeline_evolutions,
    read_history,
    read_status,
    records_per_second,
)
from stele.spark.registry import PinnedSchemas
from stele.testing.registry_box import RegistryBox

SUBJECT = "orders-value"
START = 1_700_000_000.0


def config(folder: Path) -> PipelineConfig:
    """Return a pipeline of files."""
    source = SourceConfig(path=str(folder / "in"), subject=SUBJECT)
    return PipelineConfig(str(folder / "state"), source, TableConfig(kind="parquet", name="shop.orders"))


def pin() -> PinnedSchemas:
    """Return two versions of the subject, pinned."""
    schemas = tuple(
        ResolvedSchema('"string"', subject=SUBJECT, version=number, id=number + 10, guid=f"guid-{number}")
        for number in (1, 2)
    )
    snapshot = SchemaSnapshot(schemas)
    return PinnedSchemas(SUBJECT, snapshot, snapshot.resolve_version(SUBJECT))


def batch(number: int, **more: object) -> BatchReport:
    """Return a batch report; each batch is a minute after the one before."""
    report = BatchReport(
        number,
        at=START + 60 * number,
        rows=10,
        dead_letters=2,
        tombstones=1,
        tables={"shop.orders": 10},
        versions={SUBJECT: 1 if number < 2 else 2},
        records={"11": 9, "99": 1},
        codes={"UNKNOWN_SCHEMA_ID": 2},
        reasons={"unknown schema id 7": 2},
        seconds=2.0,
    )
    return msgspec.structs.replace(report, **more)


def ran(folder: Path, *batches: BatchReport) -> PipelineConfig:
    """Return a pipeline that ran these batches."""
    settings_ = config(folder)
    journal = BatchJournal(settings_.checkpoint)
    for each in batches:
        entry = BatchEntry(each.batch, (pin(),))
        journal.save_entry(entry)
        journal.finish_batch(entry, each)
    return settings_


def test_a_pipeline_that_never_ran(tmp_path: Path) -> None:
    """A pipeline has a status before its first run, and reading it creates no folder."""
    status = read_status(config(tmp_path))
    assert (status.running, status.newest, status.totals.batches) == (False, None, 0)
    assert status.report().verdict == "no batch has finished yet"
    assert "no batch" in to_text(status)
    assert "<svg" not in to_html(read_history(config(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_what_it_did_and_where_it_is(tmp_path: Path) -> None:
    """The status has sums, the last batch, records by id with their versions, and dead letters by reason."""
    status = read_status(ran(tmp_path, *(batch(number) for number in range(3))))
    assert (status.totals.batches, status.totals.rows, status.totals.dead_letters) == (3, 30, 6)
    assert status.newest == batch(2)
    assert status.rate == 13 / 2
    assert status.ids == (IdCount("11", 27, SUBJECT, 1), IdCount("99", 3))
    assert status.reasons == {"unknown schema id 7": 6}
    text = to_text(status)
    assert "not running, last batch 2 at 2023-11-14T22:15:20Z, with 2 dead letters" in text
    assert status.report().state == ReportState.ATTENTION
    assert f"source files in {tmp_path / 'in'}, checkpoint {tmp_path / 'state'}" in text.splitlines()
    assert "unknown schema id 7" in text
    assert json.loads(to_json(status))["totals"]["tables"] == {"shop.orders": 30}


def test_a_finished_run_is_not_bad_news(tmp_path: Path) -> None:
    """A finished run is neutral, a running one is good, and the page names the source of the records."""
    settings_ = ran(tmp_path, batch(0, dead_letters=0, codes={}, reasons={}))
    assert read_status(settings_).report().state == ReportState.NEUTRAL
    with pipeline_lock(settings_.checkpoint):
        assert read_status(settings_).report().state == ReportState.GOOD
    page = to_html(read_history(settings_))
    assert f"<dd>files in {tmp_path / 'in'}</dd>" in page
    assert "Pipeline of shop.orders" in page


def test_changes_of_tables_are_in_status_and_report(tmp_path: Path) -> None:
    """Every change is listed with its batch, the newest first. Reports from before changes were recorded still load."""
    widened = TableChange("shop.orders", ColumnChange("widen", ("amount",), "bigint", "int"))
    settings_ = ran(tmp_path, batch(0), batch(1, changes=(widened,)))
    status = read_status(settings_)
    assert [(it.batch, it.table, it.change) for it in status.changes] == [
        (1, "shop.orders", "column amount: int → bigint")
    ]
    assert "column amount: int → bigint" in to_text(status)
    assert "column amount: int → bigint" in to_html(read_history(settings_))
    old = msgspec.json.decode(b'{"batch": 3, "rows": 1, "columns_added": ["note"]}', type=BatchReport)
    assert (old.columns_added, old.changes) == (("note",), ())


def test_few_batches_are_a_table(tmp_path: Path) -> None:
    """Fewer than three batches have no plots; their figures are in a table that is open."""
    text = to_html(read_history(ran(tmp_path, batch(0), batch(1))))
    assert Page(text).plots == []
    assert "details" not in Page(text).elements
    assert "Newest batches" in text


def test_looking_disturbs_nobody(tmp_path: Path) -> None:
    """The status shows whether a checkpoint is locked, and reading it does not keep a run from taking the lock."""
    folder = str(tmp_path / "state")
    assert is_running(folder) is False
    with pipeline_lock(folder):
        assert is_running(folder) is True
        assert is_running(folder) is True
    assert is_running(folder) is False
    with pipeline_lock(folder):
        pass
    assert is_running("s3://bucket/state") is None


def test_a_damaged_journal_is_an_error(tmp_path: Path) -> None:
    """Totals that cannot be read are an error, not zeros."""
    settings_ = ran(tmp_path, batch(0))
    (tmp_path / "state" / "stele" / "totals.json").write_text("{")
    with pytest.raises(StoreError, match="totals"):
        read_status(settings_)


def test_no_rate_without_work() -> None:
    """The rate is 0 without batches, or without durations."""
    assert records_per_second([]) == 0.0
    assert records_per_second([batch(0, seconds=0.0)]) == 0.0


class Page(HTMLParser):
    """Collects the elements of a page, and the names of its plots."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.plots: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag == "svg" and dict(attrs).get("aria-label"):
            self.plots.append(dict(attrs)["aria-label"] or "")


def test_the_page_has_plots_and_their_figures(tmp_path: Path) -> None:
    """Each plot has a name for screen readers, and its figures in a table below."""
    text = to_html(read_history(ran(tmp_path, *(batch(number) for number in range(5)))))
    page = Page(text)
    assert [label.partition(";")[0] for label in page.plots] == [
        "rows by 5 seconds",
        "records per second of work, by 5 seconds",
        "milliseconds of the longest batch, by 5 seconds",
        "good records by 5 seconds",
        "dead letters by 5 seconds",
    ]
    assert page.elements.count("details") == len(page.plots)
    assert "11 (orders-value v1)" in text
    assert "unknown_schema_id" in text
    assert "script" not in page.elements
    assert "link" not in page.elements


def with_registry(settings_: PipelineConfig, registry: str) -> PipelineConfig:
    """Return the same pipeline with another registry."""
    return msgspec.structs.replace(settings_, source=msgspec.structs.replace(settings_.source, registry=registry))


def test_the_page_draws_the_versions_that_batches_used(tmp_path: Path) -> None:
    """The story line shows which batches used which version, in the picture and in its table; fields are drawn, too."""
    base_settings = ran(tmp_path, *(batch(number) for number in range(5)))
    fields = [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}]
    texts = [json.dumps({"type": "record", "name": "R", "fields": fields[:count]}) for count in (1, 2)]
    with RegistryBox([(SUBJECT, text) for text in texts], port=0) as box:
        settings_ = with_registry(base_settings, box.url)
        page = to_html(read_history(settings_, load_pipeline_evolutions(settings_)))
    assert page.count('class="stele-picture"') == page.count('class="picture-table"') == 2
    assert [page.count(label) for label in (">batches 0–1<", ">batches 2–4<")] == [2, 2]
    assert '<th scope="col">batches</th>' in page
    assert "is not drawn" not in page


def test_a_page_without_its_registry_says_so(tmp_path: Path) -> None:
    """With a registry that does not answer, a snapshot or a missing file, the page has a reason instead of pictures."""
    settings_ = ran(tmp_path, batch(0))
    snapshot = tmp_path / "pinned.json"
    pin().snapshot.save(snapshot)
    for registry, reason in (
        ("http://127.0.0.1:9", "the registry does not answer: "),
        (str(snapshot), "a snapshot holds no history."),
        (str(tmp_path / "none.json"), f"{tmp_path / 'none.json'} cannot be read: "),
    ):
        page = to_html(read_history(settings_, load_pipeline_evolutions(with_registry(settings_, registry))))
        assert f"The history of {SUBJECT} is not drawn: {reason}" in page
        assert "stele-picture" not in page


def test_a_version_names_its_batches() -> None:
    """A label names one batch, a range, or several ranges if tables went back. Subjects are separate."""
    used = [{"a": 1}, {"a": 1, "b": 1}, {"a": 2}, {"b": 1}, {"a": 1}]
    batches = [BatchReport(number, versions=versions) for number, versions in enumerate(used)]
    assert label_versions(batches) == {"a": {1: "batches 0–1, 4", 2: "batch 2"}, "b": {1: "batches 1–3"}}


def test_a_clean_pipeline_has_no_plot_of_dead_letters(tmp_path: Path) -> None:
    """A figure that is always 0 has no plot."""
    clean = [batch(number, dead_letters=0, reasons={}, codes={}) for number in range(3)]
    text = to_html(read_history(ran(tmp_path, *clean)))
    assert "Dead letters by kind" not in text
    assert len(Page(text).plots) == 4


def test_many_series_are_gathered(tmp_path: Path) -> None:
    """A plot of very many ids shows the greatest, and the sum of all others."""
    many = [batch(at, records={str(number): number for number in range(1, 41)}, rows=820) for at in range(3)]
    ids = next(
        it
        for it in PipelineHistory(read_status(ran(tmp_path, *many)), tuple(many)).report().sections
        if it.title.startswith("Sch")
    )
    assert ids.columns[0] == "from"
    assert len(ids.columns) == 1 + 8 + 1
    assert ids.columns[-1] == "other"
    assert sum(count for count in ids.rows[0][1:] if isinstance(count, int)) == 820


@settings(max_examples=scale_examples(60), deadline=None)
@given(st.lists(st.floats(0, 4e9), min_size=1, max_size=30))
def test_slots_hold_every_batch(times: list[float]) -> None:
    """Batches at any distance fit into few slots of equal length, and each is counted once, in order."""
    slots = TimeSlots([batch(number, at=at) for number, at in enumerate(times)])
    counted = slots.sum_counts(lambda each: {"rows": each.rows})
    assert 1 <= len(counted) <= MOST_COLUMNS + 1
    assert sum(counts.get("rows", 0) for _, counts in counted) == 10 * len(times)
    assert [start for start, _ in counted] == sorted(start for start, _ in counted)
    assert counted[0][1]
    assert counted[-1][1]
