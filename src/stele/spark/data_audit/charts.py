"""Plots of a report: figures by name as bars, figures over time as stacked columns, with an axis that has a unit.

A layout is pure: figures in, shares and texts out. `chart.html.j2` draws it; texts keep their size on any screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from stele.templates import render_template

COLOURS: Final = 9
"""Classes of the stylesheet, `s0` to `s8`, told apart in light and dark; further series use them again."""
MOST_BARS: Final = 40
LEAST_COLUMNS: Final = 3
"""Columns with a figure below which a plot says less than its table."""
MOST_TICKS: Final = 5
FULL: Final = 1000
"""The length of an axis in the units of the drawing, which is stretched to the room there is."""


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
        buckets: The text of a bucket's start in UTC, and counts by name.
    """

    label: str
    names: tuple[str, ...]
    buckets: tuple[tuple[str, dict[str, int]], ...]

    @property
    def is_plot(self) -> bool:
        """Whether enough buckets have a figure for a plot to say more than a table."""
        return sum(any(counts.values()) for _, counts in self.buckets) >= LEAST_COLUMNS


class Bar(msgspec.Struct, frozen=True):
    """A bar with its name and figure; its length in the units of the drawing."""

    name: str
    value: str
    length: int


class BarChart(msgspec.Struct, frozen=True):
    """Bars ready to be drawn."""

    label: str
    bars: tuple[Bar, ...]


class Block(msgspec.Struct, frozen=True):
    """A rectangle of a column, in the units of the drawing, from the top left; series is the number of its colour."""

    tip: str
    x: float
    y: float
    width: float
    height: float
    series: int


class ColumnChart(msgspec.Struct, frozen=True):
    """Stacked columns ready to be drawn.

    Attributes:
        label: Of the vertical axis: what is shown, with its unit.
        ticks: Texts at the vertical axis, from the top to 0, at equal distances.
        starts: Texts at the horizontal axis, from the left to the right.
        blocks: The rectangles.
        legend: Number of the colour and name of each series; none where there is one series only.
    """

    label: str
    ticks: tuple[str, ...]
    starts: tuple[str, ...]
    blocks: tuple[Block, ...]
    legend: tuple[tuple[int, str], ...]


def layout_bars(bars: Bars) -> BarChart:
    """Place horizontal bars, the greatest first; of many names only the first `MOST_BARS`."""
    ranked = sorted(bars.values.items(), key=lambda item: -item[1])[:MOST_BARS]
    most = max((count for _, count in ranked), default=0) or 1
    return BarChart(
        bars.label,
        tuple(Bar(name, f"{count:,}", max(1, round(FULL * count / most))) for name, count in ranked),
    )


def layout_columns(stack: Stack) -> ColumnChart:
    """Place stacked columns under an axis with round figures; the stack has at least one bucket."""
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
    shown = starts if len(starts) <= LEAST_COLUMNS else [starts[0], starts[len(starts) // 2], starts[-1]]
    legend = tuple((number % COLOURS, name) for number, name in enumerate(stack.names[:MOST_BARS]))
    return ColumnChart(
        stack.label,
        tuple(f"{tick:,}" for tick in ticks),
        tuple(shown),
        tuple(blocks),
        legend if len(legend) > 1 else (),
    )


def choose_ticks(most: int) -> list[int]:
    """Return round figures at equal distances, from one that is not below the greatest figure down to 0."""
    step = 1
    while step * (MOST_TICKS - 1) < most:
        # 1, 2, 5, 10, 20, 50 …
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    top = max(1, -(-most // step))
    return [step * number for number in range(top, -1, -1)]


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


def draw_chart(chart: BarChart | ColumnChart) -> str:
    """Return a plot as a `figure` element for a page with the shared stylesheet."""
    return render_template("stele.spark.data_audit", "chart.html.j2", chart=chart)
