"""Reports in three forms: text for terminals, JSON for programs, an HTML page with plots.

Plots are bars by name, or stacked columns over time, with an axis that has a unit. Layout is pure: it turns figures
into relative sizes and texts. `chart.html.j2` draws them; texts keep their size on any screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import msgspec

from stele.pictures import Picture, PictureTable, render_figure
from stele.pictures.table import take_rows
from stele.templates import render_template

if TYPE_CHECKING:
    from rich.console import Console

Cell: TypeAlias = "str | int | float | None"

NARROW: Final = 3
"""Maximum number of columns of a table that needs only half the width of a page."""
MOST_ROWS: Final = 500
"""Maximum number of rows of a table in text and on pages. JSON has all rows."""


class ReportState(StrEnum):
    """State of a verdict: neutral, good, or needs attention."""

    NEUTRAL = "neutral"
    GOOD = "good"
    ATTENTION = "attention"

    @classmethod
    def from_outcome(cls, *, good: bool) -> ReportState:
        """Return `GOOD` if the outcome is good, else `ATTENTION`."""
        return cls.GOOD if good else cls.ATTENTION


_SIGNS: Final = {ReportState.NEUTRAL: "•", ReportState.GOOD: "✓", ReportState.ATTENTION: "!"}
_STYLES: Final = {ReportState.NEUTRAL: "default", ReportState.GOOD: "green", ReportState.ATTENTION: "yellow"}


class Fact(msgspec.Struct, frozen=True):
    """A named figure at the top of a report."""

    name: str
    value: str | int | float


class Figure(msgspec.Struct, frozen=True):
    """A picture of schemas, and a table with the same content."""

    picture: Picture
    table: PictureTable


class Section(msgspec.Struct, frozen=True):
    """A table with a heading, a plot above it and a text below; a section with none of them is not shown.

    Attributes:
        title: The heading.
        columns: Names of the table's columns, with their units.
        rows: Its rows. A column of numbers is right-aligned.
        note: A remark that stands before the table.
        bars: A plot by name. It is not drawn for a single name.
        chart: A plot over time. It is not drawn for fewer than three columns.
        text: A document, such as a schema, shown as it is, with a button that copies it.
        figure: A picture of schemas with its table, on pages only.
        folded: Whether pages show the table only on request, because a plot shows most of it or because it is long.
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    note: str = ""
    bars: Bars | None = None
    chart: Stack | None = None
    text: str = ""
    figure: Figure | None = None
    folded: bool = False

    @property
    def charts(self) -> list[BarChart | ColumnChart]:
        """The plots that have enough figures to be drawn."""
        drawn: list[BarChart | ColumnChart] = []
        if self.bars and (len(self.bars.values) > 1 or (self.bars.values and not self.rows)):
            drawn.append(layout_bars(self.bars))
        if self.chart and self.chart.is_plot:
            drawn.append(layout_columns(self.chart))
        return drawn

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.rows and not self.text and not self.charts and self.figure is None


class AuditReport(msgspec.Struct, frozen=True):
    """A report that can be shown as text or as a page.

    Attributes:
        title: Its subject.
        verdict: One sentence.
        state: Whether the verdict is good.
        facts: Figures at the top.
        sections: Tables and plots.
        sources: Sources of the figures by name, such as the pipeline's source and checkpoint.
        remarks: Sentences at the end: what is not shown, and why.
    """

    title: str
    verdict: str
    state: ReportState = ReportState.NEUTRAL
    facts: tuple[Fact, ...] = ()
    sections: tuple[Section, ...] = ()
    sources: Mapping[str, str] = {}
    remarks: tuple[str, ...] = ()


class HasReport(Protocol):
    """A result that has a report; a `msgspec.Struct`."""

    def report(self) -> AuditReport:
        """Return the result as a report."""
        ...


def to_json(answer: HasReport) -> str:
    """Return the typed result as an indented JSON document."""
    encoded: bytes = msgspec.json.encode(answer)
    return msgspec.json.format(encoded, indent=2).decode()


def print_text(answer: HasReport, console: Console) -> None:
    """Print the report as tables on a terminal."""
    from rich.table import Table
    from rich.text import Text

    report = answer.report()
    console.print(Text.assemble((report.title, "bold"), ": ", (report.verdict, _STYLES[report.state])))
    sources = ", ".join(f"{name} {value}" for name, value in report.sources.items() if value)
    if sources:
        console.print(Text(sources, "dim"), soft_wrap=True)
    console.print(Text(", ".join(f"{fact.name} {_format_cell(fact.value)}" for fact in report.facts)))
    for section in report.sections:
        if not section.rows and not section.text:
            continue
        console.print()
        console.print(Text(section.title, "bold"))
        if section.note:
            console.print(Text(section.note, "dim"))
        if section.text:
            console.print(Text(section.text), soft_wrap=True)
        if not section.rows:
            continue
        table = Table(box=None, pad_edge=False)
        for name, numeric in zip(section.columns, _numeric_columns(section), strict=True):
            table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
        for row in _format_rows(section):
            table.add_row(*map(Text, row))
        console.print(table)
        if len(section.rows) > MOST_ROWS:
            console.print(Text(_left_out_note(section)))
    for remark in report.remarks:
        console.print()
        console.print(Text(remark, "dim"), soft_wrap=True)


class _ShownSection(msgspec.Struct, frozen=True):
    """A section in the form that the page's template takes: cells are texts."""

    title: str
    note: str
    charts: list[BarChart | ColumnChart]
    columns: tuple[str, ...]
    numeric: list[bool]
    rows: list[list[str]]
    left_out: str
    text: str
    figure: str
    folded: bool

    @property
    def is_narrow(self) -> bool:
        """Whether the section needs only half the width of a page."""
        if self.charts or self.figure:
            return self.folded
        return not self.text and len(self.columns) <= NARROW


def to_html(answer: HasReport, *, sources: Mapping[str, str] | None = None, made_at: datetime | None = None) -> str:
    """Return the report as one self-contained HTML page, with its style sheet, plots and script.

    Args:
        answer: The result that is reported.
        sources: Sources of the figures by name, such as `data` and `registry`, in addition to those of the report.
        made_at: When the result was made; now if left out.
    """
    report = answer.report()
    sections = [_prepare_section(section) for section in report.sections if not section.is_empty]
    return render_template(
        "stele.spark.data_audit",
        "report.html.j2",
        report=report,
        sign=_SIGNS[report.state],
        sources=[(name, value) for name, value in {**report.sources, **(sources or {})}.items() if value],
        made_at=(made_at or datetime.now(UTC)).astimezone(UTC),
        facts=[(fact.name, _format_cell(fact.value)) for fact in report.facts],
        sections=sections,
        copies=any(section.text for section in sections),
        pictures=any(section.figure for section in sections),
    )


def _prepare_section(section: Section) -> _ShownSection:
    return _ShownSection(
        title=section.title,
        note=section.note,
        charts=section.charts,
        columns=section.columns,
        numeric=_numeric_columns(section),
        rows=_format_rows(section),
        left_out=_left_out_note(section) if len(section.rows) > MOST_ROWS else "",
        text=section.text,
        figure=_render_figure(section.figure) if section.figure is not None else "",
        folded=section.folded,
    )


def _render_figure(figure: Figure) -> str:
    return render_figure(figure.picture, take_rows(figure.table, MOST_ROWS))


def _numeric_columns(section: Section) -> list[bool]:
    """Return for each column whether its cells are numbers or empty, with at least one number."""
    columns = [[row[at] for row in section.rows] for at in range(len(section.columns))]
    return [
        any(cell is not None for cell in column) and all(isinstance(cell, int | float | None) for cell in column)
        for column in columns
    ]


def _format_rows(section: Section) -> list[list[str]]:
    """Return the cells as texts, at most `MOST_ROWS` rows; numbers of a column have the same number of decimals."""
    rows = section.rows[:MOST_ROWS]
    decimals = [
        max((len(repr(row[at]).partition(".")[2]) for row in rows if isinstance(row[at], float)), default=0)
        for at in range(len(section.columns))
    ]
    return [[_format_cell(cell, places) for cell, places in zip(row, decimals, strict=True)] for row in rows]


def _left_out_note(section: Section) -> str:
    return f"{len(section.rows) - MOST_ROWS:,} more rows are in the JSON output"


def _format_cell(cell: Cell, decimals: int = 0) -> str:
    match cell:
        case None:
            return ""
        case int() | float():
            return f"{cell:,.{decimals}f}" if decimals else f"{cell:,}"
        case _:
            return cell


def format_micros(micros: int | None) -> str:
    """Return microseconds since 1970 as RFC 3339 in UTC, to the second; '' for None and for a time out of range."""
    if micros is None:
        return ""
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except OverflowError:
        return ""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def pluralize(count: int, what: str) -> str:
    """Return a count with its noun: `1 record`, `1,200 records`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def to_text(answer: Any) -> str:
    """Return the report as text without colours, for notebooks and logs."""
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    print_text(answer, Console(file=out, width=160))
    return out.getvalue()


COLOURS: Final = 9
"""Number of colour classes in the stylesheet, `s0` to `s8`; further series use them again."""
MOST_BARS: Final = 40
LEAST_COLUMNS: Final = 3
"""Minimum number of columns with a figure for which a plot is drawn."""
MOST_TICKS: Final = 5
FULL: Final = 1000
"""Length of an axis in drawing units. The drawing is scaled to the available space."""


class Bars(msgspec.Struct, frozen=True):
    """One figure by name.

    Attributes:
        label: What the figure is, with its unit.
        values: The figure by name.
    """

    label: str
    values: Mapping[str, int]


class Stack(msgspec.Struct, frozen=True):
    """Counts by name in buckets of time.

    Attributes:
        label: What is counted, in which unit, and how long a bucket is.
        names: The series, in the order in which they are stacked.
        buckets: The text of each bucket's start in UTC, and its counts by name.
    """

    label: str
    names: tuple[str, ...]
    buckets: tuple[tuple[str, dict[str, int]], ...]

    @property
    def is_plot(self) -> bool:
        """Whether enough buckets have a figure for a plot."""
        return sum(any(counts.values()) for _, counts in self.buckets) >= LEAST_COLUMNS


class Bar(msgspec.Struct, frozen=True):
    """A bar with its name and figure; its length is in drawing units."""

    name: str
    value: str
    length: int


class BarChart(msgspec.Struct, frozen=True):
    """Bars ready to be drawn."""

    label: str
    bars: tuple[Bar, ...]


class Block(msgspec.Struct, frozen=True):
    """A rectangle of a column, in drawing units from the top left; `series` is the number of its colour."""

    tip: str
    x: float
    y: float
    width: float
    height: float
    series: int


class ColumnChart(msgspec.Struct, frozen=True):
    """Stacked columns ready to be drawn.

    Attributes:
        label: Label of the vertical axis: what is shown, with its unit.
        ticks: Texts at the vertical axis, from the top to 0, at equal distances.
        starts: Texts at the horizontal axis, from the left to the right.
        blocks: The rectangles.
        legend: Number of the colour and name of each series; empty for a single series.
    """

    label: str
    ticks: tuple[str, ...]
    starts: tuple[str, ...]
    blocks: tuple[Block, ...]
    legend: tuple[tuple[int, str], ...]


def layout_bars(bars: Bars) -> BarChart:
    """Return the layout of horizontal bars, the greatest first, at most `MOST_BARS` of them."""
    ranked = sorted(bars.values.items(), key=lambda item: -item[1])[:MOST_BARS]
    most = max((count for _, count in ranked), default=0) or 1
    return BarChart(
        bars.label,
        tuple(Bar(name, f"{count:,}", max(1, round(FULL * count / most))) for name, count in ranked),
    )


def layout_columns(stack: Stack) -> ColumnChart:
    """Return the layout of stacked columns under an axis with round figures. The stack has at least one bucket."""
    ticks = choose_ticks(max(sum(counts.values()) for _, counts in stack.buckets))
    step, gap = FULL / len(stack.buckets), 0.15
    blocks = []
    for at, (start, counts) in enumerate(stack.buckets):
        y = float(FULL)
        for number, name in enumerate(stack.names):
            height = FULL * counts.get(name, 0) / ticks[0]
            if height:
                y -= height
                tip = f"{start}, {name}: {counts[name]:,}"
                x = (at + gap / 2) * step
                blocks.append(Block(tip, x, y, step * (1 - gap), height, number % COLOURS))
    starts = [start for start, _ in stack.buckets]
    labels = starts if len(starts) <= LEAST_COLUMNS else [starts[0], starts[len(starts) // 2], starts[-1]]
    legend = tuple((number % COLOURS, name) for number, name in enumerate(stack.names[:MOST_BARS]))
    return ColumnChart(
        stack.label,
        tuple(f"{tick:,}" for tick in ticks),
        tuple(labels),
        tuple(blocks),
        legend if len(legend) > 1 else (),
    )


def choose_ticks(most: int) -> list[int]:
    """Return round figures at equal distances, from at least the greatest figure down to 0."""
    step = 1
    while step * (MOST_TICKS - 1) < most:
        # 1, 2, 5, 10, 20, 50 …
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    top = max(1, -(-most // step))
    return [step * number for number in range(top, -1, -1)]


def bucket_days(days: Mapping[str, Mapping[str, int]], names: Iterable[str], most: int = 60) -> Stack:
    """Return the counts by day as a plot with at most `most` columns of equal length.

    Days without records keep their place on the axis.
    """
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


def draw_chart(chart: BarChart | ColumnChart) -> str:
    """Return a plot as a `figure` element for a page with the shared stylesheet."""
    return render_template("stele.spark.data_audit", "chart.html.j2", chart=chart)
