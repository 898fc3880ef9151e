"""Plots as inline SVG: bars by name, and stacked columns over time. Every figure is also a tool tip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from stele.templates import render_template

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
