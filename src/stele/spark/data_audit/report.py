"""One model for every report, and the three ways it is shown: text for terminals, JSON for programs, a page with plots.

JSON is the typed answer itself; text and page are made of its `Report`. All that comes from data or schemas is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import msgspec

from stele.spark.data_audit.charts import Stack, bars, columns

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
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.rows and not (self.bars and self.bars.values) and not (self.chart and self.chart.buckets)


class Report(msgspec.Struct, frozen=True):
    """A report: verdict is one sentence, good whether it is good news."""

    title: str
    verdict: str
    good: bool
    facts: tuple[Fact, ...] = ()
    sections: tuple[Section, ...] = ()


class Reported(Protocol):
    """An answer that can be shown; a `msgspec.Struct`."""

    def report(self) -> Report:
        """The answer for people."""
        ...


def to_json(answer: Reported) -> str:
    """The typed answer as an indented JSON document."""
    encoded: bytes = msgspec.json.encode(answer)
    return msgspec.json.format(encoded, indent=2).decode()


def print_text(answer: Reported, console: Console) -> None:
    """The report as tables on a terminal."""
    from rich.table import Table
    from rich.text import Text

    report = answer.report()
    console.print(Text.assemble((report.title, "bold"), ": ", (report.verdict, "green" if report.good else "red")))
    console.print(Text(", ".join(f"{fact.name} {_shown(fact.value)}" for fact in report.facts)))
    for section in report.sections:
        if not section.rows:
            continue
        console.print()
        console.print(Text(section.title, "bold"))
        if section.note:
            console.print(Text(section.note, "dim"))
        table = Table(box=None, pad_edge=False)
        for name, numeric in zip(section.columns, _numeric(section), strict=True):
            table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
        for row in section.rows[:MOST_ROWS]:
            table.add_row(*(Text(_shown(cell)) for cell in row))
        console.print(table)
        if len(section.rows) > MOST_ROWS:
            console.print(Text(_rest(section)))


def to_html(answer: Reported) -> str:
    """The report as one HTML page that needs nothing else: styles and plots are in it."""
    report = answer.report()
    facts = "".join(f"<div><dt>{escape(it.name)}</dt><dd>{escape(_shown(it.value))}</dd></div>" for it in report.facts)
    body = "".join(_section(section) for section in report.sections if not section.empty)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{escape(report.title)}</h1>"
        f'<p class="{"good" if report.good else "bad"}" role="status">{escape(report.verdict)}</p>'
        f"<dl>{facts}</dl>{body}</main></body></html>\n"
    )


def _section(section: Section) -> str:
    parts = [f"<section><h2>{escape(section.title)}</h2>"]
    if section.note:
        parts.append(f"<p>{escape(section.note)}</p>")
    if section.bars and section.bars.values:
        parts.append(bars(section.bars.label, section.bars.values))
    if section.chart and section.chart.buckets:
        parts.append(columns(section.chart))
    if section.rows:
        numeric = _numeric(section)
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in section.columns)
        rows = "".join(f"<tr>{_cells(row, numeric)}</tr>" for row in section.rows[:MOST_ROWS])
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        parts.append(f"<details><summary>Figures</summary>{table}</details>" if section.folded else table)
    if len(section.rows) > MOST_ROWS:
        parts.append(f"<p>{escape(_rest(section))}</p>")
    return "".join([*parts, "</section>"])


def _cells(row: Sequence[Cell], numeric: Sequence[bool]) -> str:
    return "".join(
        f"<td class='{'n' if right else 't'}'>{escape(_shown(cell))}</td>"
        for cell, right in zip(row, numeric, strict=True)
    )


def _numeric(section: Section) -> list[bool]:
    """Which columns hold numbers only."""
    return [
        bool(section.rows) and all(isinstance(row[at], int | float) for row in section.rows)
        for at in range(len(section.columns))
    ]


def _rest(section: Section) -> str:
    return f"{len(section.rows) - MOST_ROWS:,} more rows are in the JSON output"


def _shown(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int | float) else cell


def moment(micros: int | None) -> str:
    """Microseconds since 1970 as RFC 3339 in UTC, to the second; '' for none, or for a time no calendar has."""
    if micros is None:
        return ""
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except OverflowError:
        return ""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def several(count: int, what: str) -> str:
    """`1 record`, `1,200 records`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def spread(days: Mapping[str, Mapping[str, int]], names: Iterable[str], most: int = 60) -> Stack:
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


_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:0}main{max-width:72rem;margin:auto;"
    "padding:1.5rem}h1{margin:0 0 .5rem}h2{margin:2rem 0 .5rem;font-size:1.15rem}dl{display:flex;flex-wrap:wrap;"
    "gap:1.5rem;margin:1rem 0}dt{opacity:.7;font-size:.85rem}dd{margin:0;font-size:1.3rem}table{border-collapse:"
    "collapse;width:100%}th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #8884;"
    "vertical-align:top;overflow-wrap:anywhere}th{font-size:.85rem;opacity:.7}td.n{text-align:right;"
    "font-variant-numeric:tabular-nums}.good,.bad{border-left:.3rem solid;padding:.4rem .8rem}.good{border-color:"
    "#1a7f37;background:#1a7f3718}.bad{border-color:#c62828;background:#c6282818}svg{max-width:100%;height:auto}"
    "svg text{font:12px system-ui,sans-serif;fill:currentColor}"
)


def shown(answer: Any) -> str:
    """The report as text without colours, as a notebook or a log shows it."""
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    print_text(answer, Console(file=out, width=160))
    return out.getvalue()
