"""Rows as text: a grid, an HTML table, lines of JSON, or CSV."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from stele.templates import render_template

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WIDEST: Final = 60
"""Maximum number of characters of a cell in a grid or an HTML table."""

_LONGEST: Final = 1000
"""Maximum number of characters of a value that has a line of its own."""
_WRAPPING: Final = Console()
"""Console that rich needs to break lines."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of a DataFrame; `more` is true if there are further rows."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    more: bool = False


def take_first_rows(df: DataFrame, most: int) -> FirstRows:
    """Return at most `most` rows of a batch DataFrame; 0 returns all. Raises what Spark raises."""
    taken = df.limit(most + 1).collect() if most else df.collect()
    rows = [tuple(row) for row in taken]
    return FirstRows(tuple(df.columns), rows[:most] if most else rows, more=bool(most) and len(rows) > most)


def format_grid(rows: FirstRows) -> str:
    """Return the rows as a grid under the column names, and a last line with the number of rows."""
    lines = [
        [_clean_cell(name) for name in rows.columns],
        *([_clean_cell(_value_text(each)) for each in row] for row in rows.rows),
    ]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    drawn = [" | ".join(set_cell_size(*pair) for pair in zip(line, widths, strict=True)).rstrip() for line in lines]
    drawn.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join([*drawn, _count_line(rows)])


def format_rows(rows: FirstRows, width: int) -> str:
    """Return a grid if it fits into `width` characters, else one block per row with one line per value."""
    grid = format_grid(rows)
    if not rows.rows or max(map(cell_len, grid.splitlines())) <= width:
        return grid
    names = [_clean_cell(name) for name in rows.columns]
    margin = max(map(cell_len, names))
    lines = []
    for number, row in enumerate(rows.rows, 1):
        lines.append(f"row {number}")
        for name, value in zip(names, row, strict=True):
            lines += _format_value(
                set_cell_size(name, margin), _clean_cell(_value_text(value, _LONGEST), _LONGEST), width
            )
    return "\n".join([*lines, _count_line(rows)])


def _format_value(name: str, value: str, width: int) -> Iterator[str]:
    """Yield the lines of a value after its name, broken between words if they are too long."""
    margin = f"  {name} | "
    room = max(width - cell_len(margin), 1)
    for line in Text(value).wrap(_WRAPPING, room, overflow="fold") or [Text()]:
        yield f"{margin}{line.plain}".rstrip()
        margin = f"  {' ' * cell_len(name)} | "


def format_html(first_rows: FirstRows) -> str:
    """Return the rows as an HTML table with all text escaped."""
    rows = [[_clean_cell(_value_text(each)) for each in row] for row in first_rows.rows]
    columns = [_clean_cell(name) for name in first_rows.columns]
    return render_template(
        "stele.spark.stream_sql", "rows.html.j2", columns=columns, rows=rows, count=_count_line(first_rows)
    )


def format_json_lines(rows: FirstRows) -> Iterator[str]:
    """Yield each row as one JSON object. A repeated column name gets a number as suffix; bytes are base64."""
    names = list(_distinct_names(rows.columns))
    for row in rows.rows:
        yield msgspec.json.encode(dict(zip(names, map(_json_value, row), strict=True))).decode()


def format_csv(rows: FirstRows, *, head: bool) -> str:
    """Return the rows as CSV, with a header line if `head` is set; null is empty, nested values are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if head:
        writer.writerow(rows.columns)
    writer.writerows([_csv_value(_json_value(each)) for each in row] for row in rows.rows)
    return out.getvalue()


def _count_line(rows: FirstRows) -> str:
    number = len(rows.rows)
    return f"({number} row{'s' * (number != 1)}{', and there are more' * rows.more})"


def _clean_cell(text: str, widest: int = WIDEST) -> str:
    """Return the text on one line, with control characters escaped, and cut to the maximum width."""
    clean = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text[: widest + 1])
    return clean if len(clean) <= widest else clean[: widest - 1] + "…"


def _value_text(value: Any, most_bytes: int = WIDEST) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case bytes() | bytearray():
            return f"X'{bytes(value[:most_bytes]).hex().upper()}'"
        case str() | int() | float() | Decimal() | date() | timedelta():
            return str(value)
    return msgspec.json.encode(_json_value(value)).decode()


def _json_value(value: Any) -> Any:
    """Return a Spark value in a form that JSON can hold."""
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            return value if -(2**63) <= value < 2**64 else str(value)
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case datetime() | date():
            return value.isoformat()
        case dict():
            return {key if isinstance(key, str) else _value_text(key): _json_value(each) for key, each in value.items()}
        case tuple() if hasattr(value, "__fields__"):
            return dict(zip(_distinct_names(value.__fields__), map(_json_value, value), strict=True))
        case list() | tuple():
            return [_json_value(each) for each in value]
    return str(value)


def _csv_value(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else value


def _distinct_names(names: Iterable[str]) -> Iterator[str]:
    taken: set[str] = set()
    for name in names:
        free, number = name, 2
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        taken.add(free)
        yield free
