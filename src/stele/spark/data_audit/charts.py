"""Plots as inline SVG: bars by name, and stacked columns over time. Every figure is also a tool tip."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final

import msgspec

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


def bars(label: str, values: Mapping[str, int]) -> str:
    """Horizontal bars, the greatest first; of many names only the first ones."""
    ranked = sorted(values.items(), key=lambda item: -item[1])[:MOST_BARS]
    most = max((count for _, count in ranked), default=0) or 1
    room = _WIDTH - _LABEL - 90
    parts = []
    for row, (name, count) in enumerate(ranked):
        y, width = row * _BAR, max(1, round(room * count / most))
        parts.append(
            f"<g><title>{escape(name)}: {count:,}</title>"
            f'<text x="{_LABEL - 8}" y="{y + 15}" text-anchor="end">{escape(_short(name))}</text>'
            f'<rect x="{_LABEL}" y="{y + 3}" width="{width}" height="{_BAR - 6}" fill="{COLOURS[0]}"/>'
            f'<text x="{_LABEL + width + 6}" y="{y + 15}">{count:,}</text></g>'
        )
    return _drawn(label, _WIDTH, len(ranked) * _BAR, "".join(parts))


def columns(stack: Stack) -> str:
    """Stacked columns with the names below."""
    sums = [sum(counts.values()) for _, counts in stack.buckets]
    most, step = max(sums, default=0) or 1, _WIDTH / max(len(sums), 1)
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(stack.names)}
    parts = []
    for at, (start, counts) in enumerate(stack.buckets):
        y = float(_HEIGHT)
        for name in stack.names:
            height = _HEIGHT * counts.get(name, 0) / most
            if not height:
                continue
            y -= height
            parts.append(
                f'<rect x="{at * step:.1f}" y="{y:.1f}" width="{max(step - 1, 1):.1f}" height="{height:.1f}" '
                f'fill="{colours[name]}"><title>{escape(start)}, {escape(name)}: {counts[name]:,}</title></rect>'
            )
    starts = [start for start, _ in stack.buckets]
    parts.append(f'<text x="0" y="{_HEIGHT + 16}">{escape(starts[0])}</text>')
    if len(starts) > 1:
        parts.append(f'<text x="{_WIDTH}" y="{_HEIGHT + 16}" text-anchor="end">{escape(starts[-1])}</text>')
    legend, rows = _legend(stack.names, colours)
    label = f"{stack.label}; the highest column is {most:,}"
    return _drawn(label, _WIDTH, _HEIGHT + _FOOT + rows * _BAR, "".join([*parts, legend]))


def _legend(names: tuple[str, ...], colours: Mapping[str, str]) -> tuple[str, int]:
    """Four names a row; how many rows."""
    shown = names[:MOST_BARS]
    parts = []
    for at, name in enumerate(shown):
        x, y = at % 4 * (_WIDTH // 4), _HEIGHT + _FOOT + at // 4 * _BAR
        parts.append(
            f'<rect x="{x}" y="{y + 5}" width="12" height="12" fill="{colours[name]}"/>'
            f'<text x="{x + 18}" y="{y + 15}">{escape(_short(name))}</text>'
        )
    return "".join(parts), -(-len(shown) // 4)


def _drawn(label: str, width: int, height: int, body: str) -> str:
    return (
        f'<figure style="margin:0"><figcaption>{escape(label)}</figcaption>'
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{escape(label)}">'
        f"{body}</svg></figure>"
    )


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"
