"""The report's three shapes and its plots, without Spark."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import msgspec
import pytest

from stele.spark.data_audit.aggregation import add_counts, limit_kinds
from stele.spark.data_audit.report import (
    MOST_BARS,
    MOST_ROWS,
    AuditReport,
    Bars,
    Fact,
    Section,
    Stack,
    bucket_days,
    draw_chart,
    format_micros,
    layout_bars,
    layout_columns,
    pluralize,
    to_html,
    to_json,
    to_text,
)
from stele.spark.failures import find_cause

EVIL = "<script>alert(1)</script> & [b]\"'"


class Answer(msgspec.Struct, frozen=True):
    """An answer as jobs give one."""

    name: str = EVIL
    rows: int = 1

    def report(self) -> AuditReport:
        """Its report."""
        table = Section("T", ("name", "n"), tuple((self.name, n) for n in range(self.rows)), note="N")
        chart = Section(
            "C", bars=Bars("b", {self.name: 3}), chart=bucket_days({"2026-01-01": {self.name: 3}}, [self.name])
        )
        return AuditReport(self.name, "fine", True, (Fact("f", 12345),), (table, chart, Section("empty")))


class Names(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)


def test_a_page_stands_alone_and_escapes() -> None:
    """Names from data do no harm, plots are in the page, and nothing is fetched from elsewhere."""
    page = to_html(Answer())
    names = Names(page).names
    assert "script" not in names
    assert (names.count("svg"), names.count("table")) == (2, 1)
    assert {"link", "img", "iframe"}.isdisjoint(names)
    assert "http" not in page
    assert "12,345" in page
    assert ">empty<" not in page, "a section without content is not shown"


def test_text_shows_names_as_they_are() -> None:
    """What looks like markup of the terminal library is shown."""
    text = to_text(Answer())
    assert EVIL in text
    assert "fine" in text


def test_json_is_the_answer() -> None:
    """Programs get the typed answer, not the tables."""
    assert json.loads(to_json(Answer())) == {"name": EVIL, "rows": 1}


def test_long_tables_say_what_they_leave_out() -> None:
    """More rows than a page takes are counted."""
    answer = Answer("x", MOST_ROWS + 7)
    assert "7 more rows are in the JSON output" in to_html(answer)
    assert "7 more rows are in the JSON output" in to_text(answer)


def test_plots_are_well_formed_whatever_the_names() -> None:
    """Bars and columns are XML, with a tool tip for every figure; of many names the greatest are drawn."""
    drawn = ET.fromstring(draw_chart(layout_bars(EVIL, {EVIL: 2, "b" * 90: 1})))
    assert [it.text for it in drawn.iter("title")] == [f"{EVIL}: 2", f"{'b' * 90}: 1"]
    many = ET.fromstring(draw_chart(layout_bars("x", {str(n): n for n in range(200)})))
    assert len(list(many.iter("rect"))) == MOST_BARS
    stack = Stack("x", (EVIL, "b"), (("2026-01-01", {EVIL: 1}), ("2026-01-02", {"b": 2, EVIL: 2})))
    assert len(list(ET.fromstring(draw_chart(layout_columns(stack))).iter("title"))) == 3
    assert ET.fromstring(draw_chart(layout_bars("none", {}))) is not None


def test_days_become_few_columns() -> None:
    """A long time has wider columns, no record is lost, and empty days keep their room."""
    stack = bucket_days({"2020-01-01": {"1": 5}, "2022-12-31": {"1": 2, "2": 3}}, ["1", "2"])
    assert len(stack.buckets) <= 60
    assert sum(sum(counts.values()) for _, counts in stack.buckets) == 10
    assert stack.buckets[0][0] == "2020-01-01"
    assert len(bucket_days({"2026-01-01": {"1": 1}, "2026-01-04": {"1": 1}}, ["1"]).buckets) == 4
    assert bucket_days({}, []).buckets == ()


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"), (None, ""), (2**63 - 1, "")],
)
def test_moments(micros: int | None, text: str) -> None:
    """Times before 1970 and those no calendar has do not fail."""
    assert format_micros(micros) == text


def test_words_and_counts() -> None:
    """One record is singular; of many kinds the frequent stay and nothing is lost."""
    assert (pluralize(1, "record"), pluralize(1200, "record")) == ("1 record", "1,200 records")
    assert limit_kinds({"a": 1, "b": 5, "c": 2}, 2) == {"b": 5, "other": 3}
    assert add_counts({"a": 1}, {"a": 1, "b": 1}) == {"a": 2, "b": 1}
    assert sum(limit_kinds({"other": 4, **{str(n): n for n in range(9)}}, 3).values()) == 40


def test_the_cause_of_a_failed_job() -> None:
    """Of Spark's pages of text the line that says what happened is told, without class names of ours."""
    text = (
        "Job aborted\n  at x.y(Z)\nstele.errors.RegistryUnreachable: nobody answers\n\nJVM stacktrace:\njava.io.E: no"
    )
    assert find_cause(text) == "nobody answers"
    assert find_cause("[PATH_NOT_FOUND] Path does not exist\nmore") == "[PATH_NOT_FOUND] Path does not exist"
    assert find_cause("") == "Spark stopped without a message"
