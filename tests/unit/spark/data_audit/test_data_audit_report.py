"""The report's three shapes and its plots, without Spark."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.pictures import draw_story_line, tabulate_history
from stele.protocol.history import SubjectHistory
from stele.spark.data_audit.aggregation import add_counts, limit_kinds
from stele.spark.data_audit.report import (
    MOST_BARS,
    MOST_ROWS,
    AuditReport,
    Bars,
    Fact,
    Figure,
    ReportState,
    Section,
    Stack,
    bucket_days,
    choose_ticks,
    draw_chart,
    format_micros,
    layout_bars,
    layout_columns,
    pluralize,
    to_html,
    to_json,
    to_text,
)
from stele.spark.session import find_cause

EVIL = "<script>alert(1)</script> & [b]\"'"


class Answer(msgspec.Struct, frozen=True):
    """A result with a report, as jobs return one."""

    name: str = EVIL
    rows: int = 1

    def report(self) -> AuditReport:
        """Return its report."""
        table = Section("T", ("name", "n"), tuple((self.name, n) for n in range(self.rows)), note="N")
        days = {f"2026-01-0{day}": {self.name: 3} for day in range(1, 4)}
        chart = Section("C", bars=Bars("b", {self.name: 3}), chart=bucket_days(days, [self.name]))
        facts = (Fact("f", 12345),)
        return AuditReport(self.name, "fine", ReportState.GOOD, facts, (table, chart, Section("empty")))


class ExampleReport(msgspec.Struct, frozen=True):
    """A result whose report has the given parts."""

    state: ReportState = ReportState.NEUTRAL
    sections: tuple[Section, ...] = ()
    sources: dict[str, str] = {}
    remarks: tuple[str, ...] = ()

    def report(self) -> AuditReport:
        """Return its report."""
        return AuditReport("Told", "so it is", self.state, (), self.sections, self.sources, self.remarks)


class Names(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)


def test_a_page_stands_alone_and_escapes() -> None:
    """Names from data are escaped, plots are in the page, and nothing is fetched from elsewhere."""
    page = to_html(Answer())
    names = Names(page).names
    assert "script" not in names
    assert (names.count("svg"), names.count("table")) == (2, 2)
    assert {"link", "img", "iframe"}.isdisjoint(names)
    assert "://" not in page
    assert "12,345" in page
    assert ">empty<" not in page, "a section without content is not shown"


def test_a_picture_of_schemas_stands_on_the_page() -> None:
    """A section with a picture has its description and its table, and only then the page has the style of pictures."""
    history = SubjectHistory("", EVIL, "BACKWARD", ())
    figure = Figure(draw_story_line(history), tabulate_history(history))
    page = to_html(ExampleReport(sections=(Section("Versions", figure=figure),)))
    assert page.count('<table class="picture-table">') == 1
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg" class="stele-picture"') == 1
    assert "No version." in page
    assert ".stele-picture" in page
    assert EVIL not in page
    assert ".stele-picture" not in to_html(ExampleReport())


def test_remarks_stand_at_the_end() -> None:
    """Remarks are in the text, as its last line, and on the page."""
    report = ExampleReport(remarks=(EVIL,))
    assert f'<p class="note remark">{html.escape(EVIL, quote=False)}'.partition("&amp;")[0] in to_html(report)
    assert to_text(report).splitlines()[-1] == EVIL


def test_text_shows_names_as_they_are() -> None:
    """Text that looks like markup of the terminal library is printed unchanged."""
    text = to_text(Answer())
    assert EVIL in text
    assert "fine" in text


def test_json_is_the_answer() -> None:
    """The JSON is the typed result, not the tables."""
    assert json.loads(to_json(Answer())) == {"name": EVIL, "rows": 1}


def test_long_tables_say_what_they_leave_out() -> None:
    """The number of rows beyond the limit is shown."""
    answer = Answer("x", MOST_ROWS + 7)
    assert "7 more rows are in the JSON output" in to_html(answer)
    assert "7 more rows are in the JSON output" in to_text(answer)


def test_plots_are_well_formed_whatever_the_names() -> None:
    """Bars and columns are valid XML with a tool tip for every figure. Only the greatest of many names are drawn."""
    drawn = ET.fromstring(draw_chart(layout_bars(Bars(EVIL, {EVIL: 2, "b" * 90: 1}))))
    assert [it.text for it in drawn.iter("th")] == [EVIL, "b" * 90]
    assert [it.text for it in drawn.iter("td") if it.text] == ["2", "1"]
    many = ET.fromstring(draw_chart(layout_bars(Bars("x", {str(n): n for n in range(200)}))))
    assert len(list(many.iter("rect"))) == MOST_BARS
    stack = Stack("x", (EVIL, "b"), (("2026-01-01", {EVIL: 1}), ("2026-01-02", {"b": 2, EVIL: 2})))
    columns = ET.fromstring(draw_chart(layout_columns(stack)))
    assert len(list(columns.iter("title"))) == 3
    assert [it.text for it in columns.iter("span")] == ["4", "3", "2", "1", "0", "2026-01-01", "2026-01-02 UTC"]
    assert ET.fromstring(draw_chart(layout_bars(Bars("none", {})))) is not None


@given(st.integers(0, 10**15))
def test_axes_have_round_figures(most: int) -> None:
    """An axis goes from 0 to the greatest figure or beyond, in few equal steps of 1, 2 or 5 times a power of 10."""
    ticks = choose_ticks(most)
    steps = {upper - lower for upper, lower in pairwise(ticks)}
    assert ticks[-1] == 0
    assert ticks[0] >= most
    assert len(ticks) <= 6
    (step,) = steps
    assert str(step).rstrip("0") in {"1", "2", "5"}


def test_a_plot_of_few_columns_is_a_table() -> None:
    """Plots with two columns, or with one bar, are not drawn."""
    few = Stack("x", ("a",), (("1", {"a": 1}), ("2", {"a": 1}), ("3", {})))
    assert Section("S", ("n",), ((1,),), chart=few, bars=Bars("b", {"a": 1})).charts == []
    enough = Stack("x", ("a",), tuple((str(n), {"a": n}) for n in range(1, 4)))
    assert len(Section("S", chart=enough, bars=Bars("b", {"a": 1, "b": 2})).charts) == 2


def test_numbers_are_flush_right_under_their_heads() -> None:
    """A column of numbers, some of which are unknown, is right-aligned with its head, to the same decimal."""
    section = Section("S", ("name", "n", "part", "none"), (("a", 1, 0.5, None), ("b", None, 12.25, None)))
    page = to_html(ExampleReport(sections=(section,)))
    assert re.findall(r'<th scope="col" role="columnheader"( class="n")?>(\w+)', page) == [
        ("", "name"),
        (' class="n"', "n"),
        (' class="n"', "part"),
        ("", "none"),
    ]
    assert re.findall(r'class="n"><span>([^<]*)</span>', page) == ["1", "0.50", "", "12.25"]


def test_a_page_says_its_sources_and_its_date() -> None:
    """The sources of the figures and the date of the page are under the title; unknown sources are left out."""
    page = to_html(
        ExampleReport(sources={"source": "files in <x>"}),
        sources={"data": "a.parquet", "registry": ""},
        made_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    )
    sources = page[page.index('<dl class="sources">') : page.index("</header>")]
    assert re.findall(r"<dt>(.*?)</dt><dd>(?:<time [^>]*>)?(.*?)<", sources) == [
        ("source", "files in &lt;x&gt;"),
        ("data", "a.parquet"),
        ("created", "2026-01-02 03:04 UTC"),
    ]


@pytest.mark.parametrize("state", ReportState)
def test_a_state_is_more_than_a_colour(state: ReportState) -> None:
    """Each state has a class and a sign of its own."""
    signs = {each: re.findall(r'class="sign"[^>]*>(.)<', to_html(ExampleReport(state=each)))[0] for each in ReportState}
    assert len(set(signs.values())) == len(ReportState)
    assert f'<p class="state {state}" role="status">' in to_html(ExampleReport(state=state))


def test_a_schema_keeps_its_lines_and_can_be_copied() -> None:
    """A document is shown unchanged with a copy script.

    The page's policy allows the script by its hash, and other pages have no script.
    """
    text = '{\n  "a": "<b>"\n}'
    page = to_html(ExampleReport(sections=(Section("Schema", text=text),)))
    (block,) = re.findall(r'<pre id="(text-1)"[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert html.unescape(block[1]) == text
    assert 'data-copies="text-1">Copy</button>' in page
    assert text in to_text(ExampleReport(sections=(Section("Schema", text=text),)))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    for tag in ("script", "style"):
        (inline,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = b64encode(sha256(inline.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in html.unescape(policy)
    assert html.unescape(policy).startswith("default-src 'none'; ")
    assert "style=" not in page, "the policy allows no style in an element"
    assert "script" not in to_html(ExampleReport())


def test_days_become_few_columns() -> None:
    """A long time has wider columns, no record is lost, and days without records keep their place."""
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
    """Times before 1970 and times out of range do not fail."""
    assert format_micros(micros) == text


def test_words_and_counts() -> None:
    """One record is singular. Of many kinds the frequent ones stay, and the sum does not change."""
    assert (pluralize(1, "record"), pluralize(1200, "record")) == ("1 record", "1,200 records")
    assert limit_kinds({"a": 1, "b": 5, "c": 2}, 2) == {"b": 5, "other": 3}
    assert add_counts({"a": 1}, {"a": 1, "b": 1}) == {"a": 2, "b": 1}
    assert sum(limit_kinds({"other": 4, **{str(n): n for n in range(9)}}, 3).values()) == 40


def test_the_cause_of_a_failed_job() -> None:
    """The line with the cause is taken from Spark's long messages, without Stele's class names."""
    text = (
        "Job aborted\n  at x.y(Z)\nstele.errors.RegistryUnreachable: nobody answers\n\nJVM stacktrace:\njava.io.E: no"
    )
    assert find_cause(text) == "nobody answers"
    assert find_cause("[PATH_NOT_FOUND] Path does not exist\nmore") == "[PATH_NOT_FOUND] Path does not exist"
    assert find_cause("") == "Spark stopped without a message"
