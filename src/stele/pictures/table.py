"""Table with the content of a picture: its text alternative on pages, in notebooks and in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from stele.pictures.svg import Picture
from stele.templates import render_template

Cell = str | int


class PictureTable(msgspec.Struct, frozen=True):
    """Rows of cells under headings.

    Attributes:
        caption: What the rows are.
        columns: Headings.
        rows: One cell under each heading; '' for nothing.
        hidden: How many rows were left out.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    hidden: int = 0

    def to_records(self) -> list[Mapping[str, Cell]]:
        """Return the rows as mappings from heading to cell."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_html(self) -> str:
        """Return a `table` element for a page with the shared stylesheet."""
        return render_template("stele.pictures", "table.html.j2", table=self)


def render_figure(picture: Picture, table: PictureTable, *, has_style: bool = False) -> str:
    """Return a `figure` element with a picture, its description, and its table, which is folded.

    Args:
        picture: The picture.
        table: The table with the same content.
        has_style: Whether the picture includes its stylesheet, for a page with another one.
    """
    svg = picture.to_document() if has_style else picture.to_inline()
    return render_template("stele.pictures", "figure.html.j2", picture=picture, table=table, svg=svg)


def take_rows(table: PictureTable, most: int) -> PictureTable:
    """Return a table with its first rows only, and with the number of the hidden ones."""
    if len(table.rows) <= most:
        return table
    hidden = table.hidden + len(table.rows) - most
    return msgspec.structs.replace(table, rows=table.rows[:most], hidden=hidden)


def print_day(millis: int) -> str:
    """Return the day of a time in milliseconds since 1970, in UTC."""
    return _to_datetime(millis).strftime("%Y-%m-%d")


def print_minute(millis: int) -> str:
    """Return a time in milliseconds since 1970 to the minute, in UTC."""
    return _to_datetime(millis).strftime("%Y-%m-%d %H:%M")


def _to_datetime(millis: int) -> datetime:
    latest = 253_402_300_799_000  # the last second of the year 9999
    return datetime.fromtimestamp(min(max(millis, 0), latest) / 1000, UTC)


def list_words(words: Sequence[str]) -> str:
    """Return words as one cell, without the empty ones."""
    return ", ".join(word for word in words if word)
