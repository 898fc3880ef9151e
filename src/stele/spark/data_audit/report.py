"""Reports of an audit in three forms: text for terminals, JSON for programs, an HTML page with plots.

JSON is the typed answer itself; text and page are made of its `AuditReport`. The page's template escapes all values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import msgspec

from stele.spark.data_audit.charts import Chart, Stack, layout_bars, layout_columns
from stele.templates import render_template

if TYPE_CHECKING:
    from rich.console import Console

Cell: TypeAlias = "str | int | float | None"

MOST_ROWS: Final = 500
"""Rows of a table that are shown in text and on pages; JSON has all."""


class Fact(msgspec.Struct, frozen=True):
    """A figure at the top."""

    name: str
    value: str | int | float


class Bars(msgspec.Struct, frozen=True):
    """A plot of one figure by name; label says what the figure is."""

    label: str
    values: Mapping[str, int]


class Section(msgspec.Struct, frozen=True):
    """A table with a heading, and a plot above it; a section with neither rows nor plot is not shown.

    folded   pages show the table when it is asked for; the plot says most of it
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    note: str = ""
    bars: Bars | None = None
    chart: Stack | None = None
    folded: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.rows and not (self.bars and self.bars.values) and not (self.chart and self.chart.buckets)


class AuditReport(msgspec.Struct, frozen=True):
    """A report: verdict is one sentence, good whether it is good news."""

    title: str
    verdict: str
    good: bool
    facts: tuple[Fact, ...] = ()
    sections: tuple[Section, ...] = ()


class HasReport(Protocol):
    """An answer that can be shown; a `msgspec.Struct`."""

    def report(self) -> AuditReport:
        """The answer for people."""
        ...


def to_json(answer: HasReport) -> str:
    """The typed answer as an indented JSON document."""
    encoded: bytes = msgspec.json.encode(answer)
    return msgspec.json.format(encoded, indent=2).decode()


def print_text(answer: HasReport, console: Console) -> None:
    """The report as tables on a terminal."""
    from rich.table import Table
    from rich.text import Text

    report = answer.report()
    console.print(Text.assemble((report.title, "bold"), ": ", (report.verdict, "green" if report.good else "red")))
    console.print(Text(", ".join(f"{fact.name} {_format_cell(fact.value)}" for fact in report.facts)))
    for section in report.sections:
        if not section.rows:
            continue
        console.print()
        console.print(Text(section.title, "bold"))
        if section.note:
            console.print(Text(section.note, "dim"))
        table = Table(box=None, pad_edge=False)
        for name, numeric in zip(section.columns, _numeric_columns(section), strict=True):
            table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
        for row in section.rows[:MOST_ROWS]:
            table.add_row(*(Text(_format_cell(cell)) for cell in row))
        console.print(table)
        if len(section.rows) > MOST_ROWS:
            console.print(Text(_left_out_note(section)))


class _ShownSection(msgspec.Struct, frozen=True):
    """A section as the template of the page takes it: cells are texts."""

    title: str
    note: str
    charts: list[Chart]
    columns: tuple[str, ...]
    numeric: list[bool]
    rows: list[list[str]]
    left_out: str
    folded: bool


def to_html(answer: HasReport) -> str:
    """The report as one HTML page that needs nothing else: styles and plots are in it."""
    report = answer.report()
    return render_template(
        "stele.spark.data_audit",
        "report.html.j2",
        report=report,
        facts=[(fact.name, _format_cell(fact.value)) for fact in report.facts],
        sections=[_prepare_section(section) for section in report.sections if not section.is_empty],
    )


def _prepare_section(section: Section) -> _ShownSection:
    charts = []
    if section.bars and section.bars.values:
        charts.append(layout_bars(section.bars.label, section.bars.values))
    if section.chart and section.chart.buckets:
        charts.append(layout_columns(section.chart))
    return _ShownSection(
        title=section.title,
        note=section.note,
        charts=charts,
        columns=section.columns,
        numeric=_numeric_columns(section),
        rows=[[_format_cell(cell) for cell in row] for row in section.rows[:MOST_ROWS]],
        left_out=_left_out_note(section) if len(section.rows) > MOST_ROWS else "",
        folded=section.folded,
    )


def _numeric_columns(section: Section) -> list[bool]:
    """Which columns hold numbers only."""
    return [
        bool(section.rows) and all(isinstance(row[at], int | float) for row in section.rows)
        for at in range(len(section.columns))
    ]


def _left_out_note(section: Section) -> str:
    return f"{len(section.rows) - MOST_ROWS:,} more rows are in the JSON output"


def _format_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int | float) else cell


def format_micros(micros: int | None) -> str:
    """Microseconds since 1970 as RFC 3339 in UTC, to the second; '' for none, or for a time no calendar has."""
    if micros is None:
        return ""
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except OverflowError:
        return ""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def pluralize(count: int, what: str) -> str:
    """`1 record`, `1,200 records`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def bucket_days(days: Mapping[str, Mapping[str, int]], names: Iterable[str], most: int = 60) -> Stack:
    """Counts by day as a plot of at most so many columns, each of as many days; empty days have their room."""
    order = tuple(names)
    if not days:
        return Stack("records", order, ())
    first = datetime.fromisoformat(min(days)).date()
    length = (datetime.fromisoformat(max(days)).date() - first).days + 1
    width = -(-length // most)
    sums = [dict.fromkeys(order, 0) for _ in range(-(-length // width))]
    for day, counts in days.items():
        bucket = sums[(datetime.fromisoformat(day).date() - first).days // width]
        for name, count in counts.items():
            bucket[name] = bucket.get(name, 0) + count
    label = "records by day" if width == 1 else f"records by {width} days"
    starts = [str(first + timedelta(days=width * at)) for at in range(len(sums))]
    return Stack(label, order, tuple(zip(starts, sums, strict=True)))


def to_text(answer: Any) -> str:
    """The report as text without colours, as a notebook or a log shows it."""
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    print_text(answer, Console(file=out, width=160))
    return out.getvalue()
