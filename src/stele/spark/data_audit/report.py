"""Reports of an audit in three forms: text for terminals, JSON for programs, an HTML page with plots (inline SVG)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import msgspec

from stele.templates import render_template

if TYPE_CHECKING:
    from rich.console import Console

COLOURS: Final = ("#3b6fb6", "#e0812c", "#4c9f70", "#b8475c", "#7b5ea7", "#8c6d4f", "#d1699f", "#7f7f7f", "#b3a82c")
"""Told apart in light and dark; the last ones are used again."""
MOST_BARS: Final = 40
_WIDTH, _LABEL, _BAR = 760, 180, 22  # pixels
_HEIGHT, _FOOT = 180, 22


class Stack(msgspec.Struct, frozen=True):
    """Counts by name in buckets of time, each under the text of its start."""

    label: str
    names: tuple[str, ...]
    buckets: tuple[tuple[str, dict[str, int]], ...]


class Label(msgspec.Struct, frozen=True):
    """A text in a plot, in pixels; it begins at x, or ends there."""

    text: str
    x: float
    y: float
    ends_at_x: bool = False


class Mark(msgspec.Struct, frozen=True):
    """A rectangle of a plot, in pixels, with the texts that belong to it; an empty tip is none."""

    tip: str
    x: float
    y: float
    width: float
    height: float
    colour: str
    texts: tuple[Label, ...] = ()


class Chart(msgspec.Struct, frozen=True):
    """A plot ready to be drawn: its size in pixels, its rectangles and its other texts."""

    label: str
    width: int
    height: int
    marks: tuple[Mark, ...]
    texts: tuple[Label, ...] = ()


def layout_bars(label: str, values: Mapping[str, int]) -> Chart:
    """Place horizontal bars, the greatest first; of many names only the first `MOST_BARS`."""
    ranked = sorted(values.items(), key=lambda item: -item[1])[:MOST_BARS]
    most = max((count for _, count in ranked), default=0) or 1
    room = _WIDTH - _LABEL - 90
    marks = []
    for row, (name, count) in enumerate(ranked):
        y, width = row * _BAR, max(1, round(room * count / most))
        texts = (
            Label(_shorten(name), _LABEL - 8, y + 15, ends_at_x=True),
            Label(f"{count:,}", _LABEL + width + 6, y + 15),
        )
        marks.append(Mark(f"{name}: {count:,}", _LABEL, y + 3, width, _BAR - 6, COLOURS[0], texts))
    return Chart(label, _WIDTH, len(ranked) * _BAR, tuple(marks))


def layout_columns(stack: Stack) -> Chart:
    """Place stacked columns with the names below them; the stack has at least one bucket."""
    sums = [sum(counts.values()) for _, counts in stack.buckets]
    most, step = max(sums, default=0) or 1, _WIDTH / max(len(sums), 1)
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(stack.names)}
    marks = []
    for at, (start, counts) in enumerate(stack.buckets):
        y = float(_HEIGHT)
        for name in stack.names:
            height = _HEIGHT * counts.get(name, 0) / most
            if not height:
                continue
            y -= height
            tip = f"{start}, {name}: {counts[name]:,}"
            marks.append(Mark(tip, at * step, y, max(step - 1, 1), height, colours[name]))
    starts = [start for start, _ in stack.buckets]
    texts = [Label(starts[0], 0, _HEIGHT + 16)]
    if len(starts) > 1:
        texts.append(Label(starts[-1], _WIDTH, _HEIGHT + 16, ends_at_x=True))
    legend = _layout_legend(stack.names[:MOST_BARS], colours)
    height = _HEIGHT + _FOOT + -(-len(legend) // 4) * _BAR
    label = f"{stack.label}; the highest column is {most:,}"
    return Chart(label, _WIDTH, height, (*marks, *legend), tuple(texts))


def draw_chart(chart: Chart) -> str:
    """Return a plot as a `figure` element."""
    return render_template("stele.spark.data_audit", "chart.html.j2", chart=chart)


def _layout_legend(names: tuple[str, ...], colours: Mapping[str, str]) -> list[Mark]:
    """Place a square and a name for each series, four in a row."""
    marks = []
    for at, name in enumerate(names):
        x, y = at % 4 * (_WIDTH // 4), _HEIGHT + _FOOT + at // 4 * _BAR
        marks.append(Mark("", x, y + 5, 12, 12, colours[name], (Label(_shorten(name), x + 18, y + 15),)))
    return marks


def _shorten(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


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
        """Return the answer for people."""
        ...


def to_json(answer: HasReport) -> str:
    """Return the typed answer as an indented JSON document."""
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
    """Return the report as one HTML page that needs nothing else: styles and plots are in it."""
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
    """Return the report as text without colours, as a notebook or a log shows it."""
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    print_text(answer, Console(file=out, width=160))
    return out.getvalue()
