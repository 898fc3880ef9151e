"""Field lifelines: one row for each field path, one column for each version, a bar from first to last version.

The colour of a bar stands for the type, whose name is printed on it if there is room. The bar of an optional field is
hollow. A diamond marks a version in which the field changed; a curve leads from an old name to the new one. If there
are many fields, those that exist in all versions and never changed are counted instead of drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element

from stele.pictures.links import NO_LINKS, PictureLinks
from stele.pictures.svg import Drawing, KeptPart, Picture, Point, measure_columns, print_number, shorten
from stele.pictures.table import PictureTable, list_words
from stele.protocol.history import FieldLifeline, FieldLifelines, FieldSpan

MOST_ROWS: Final = 60
"""Maximum number of field paths in one picture; the others are counted."""

_COLOURS: Final = 9
_ROW: Final = 24
_BAR: Final = 16
_LABELS: Final = 236
_LABEL_COLUMNS: Final = 30
_PLOT: Final = 760
_WIDEST: Final = 96
_NARROWEST_NUMBER: Final = 38
"""Width of a column in pixels below which some versions have no number above it."""
_LETTER: Final = 6.4
_TOP: Final = 44
_MARGIN: Final = 16


def select_fields(lifelines: FieldLifelines, most: int = MOST_ROWS) -> list[FieldLifeline]:
    """Return the fields that the picture shows, in their order; fields that never changed are left out first."""
    fields = lifelines.fields
    if len(fields) <= most:
        return list(fields)
    eventful = [number for number, field in enumerate(fields) if not _is_constant(field, lifelines.versions)]
    quiet = [number for number, field in enumerate(fields) if _is_constant(field, lifelines.versions)]
    return [fields[number] for number in sorted([*eventful, *quiet][:most])]


def draw_field_lifelines(
    lifelines: FieldLifelines, links: PictureLinks = NO_LINKS, *, most_rows: int = MOST_ROWS
) -> Picture:
    """Return the lifelines of a subject's fields.

    Args:
        lifelines: Fields with their spans.
        links: Addresses of fields and versions.
        most_rows: How many field paths are drawn; the others are counted.
    """
    return _Lifelines(lifelines, links, select_fields(lifelines, most_rows)).draw()


def tabulate_lifelines(lifelines: FieldLifelines) -> PictureTable:
    """Return what the lifelines show as a table: one row for each span."""
    newest = lifelines.versions[-1] if lifelines.versions else 0
    rows = [
        (
            field.path,
            span.first,
            "" if span.last == newest else span.last,
            span.type,
            span.default if span.default is not None else "",
            "yes" if span.optional else "" if span.optional is None else "no",
            field.renamed_from or "" if number == 0 else "",
            span.doc,
        )
        for field in lifelines.fields
        for number, span in enumerate(field.spans)
    ]
    columns = ("field", "since version", "until version", "type", "default", "optional", "renamed from", "doc")
    return PictureTable(f"Fields of {lifelines.subject}", columns, tuple(rows), lifelines.omitted)


def describe_lifelines(lifelines: FieldLifelines) -> str:
    """Return a sentence on the fields: how many, how many changed, how many are gone."""
    versions, fields = lifelines.versions, lifelines.fields
    if not versions or not fields:
        return "No field."
    removed = sum(field.spans[-1].last != versions[-1] for field in fields)
    changed = sum(len(field.spans) > 1 for field in fields)
    added = sum(field.spans[0].first != versions[0] for field in fields)
    total = len(fields) + lifelines.omitted
    parts = [
        f"{total} field path{'s' * (total != 1)} in {len(versions)} version{'s' * (len(versions) != 1)}",
        f"{added} came after the first version" if added else "",
        f"{changed} changed" if changed else "",
        f"{removed} were removed" if removed > 1 else "1 was removed" if removed else "",
        "" if lifelines.complete else "older versions were not read yet",
    ]
    return list_words(parts) + "."


def describe_change(before: FieldSpan, after: FieldSpan) -> str:
    """Return what changed between two spans of a field."""
    parts = [
        f"type {before.type} → {after.type}" if before.type != after.type else "",
        f"default {_name_default(before)} → {_name_default(after)}" if before.default != after.default else "",
        "optional now" if after.optional and before.optional is False else "",
        "required now" if after.optional is False and before.optional else "",
        "doc" if before.doc != after.doc else "",
    ]
    return list_words(parts) or "back again"


def _name_default(span: FieldSpan) -> str:
    return "none" if span.default is None else span.default


def _is_constant(field: FieldLifeline, versions: Sequence[int]) -> bool:
    return len(field.spans) == 1 and (field.spans[0].first, field.spans[0].last) == (versions[0], versions[-1])


class _Lifelines:
    def __init__(self, lifelines: FieldLifelines, links: PictureLinks, fields: Sequence[FieldLifeline]) -> None:
        self._lifelines, self._links, self._fields = lifelines, links, fields
        self._drawing = Drawing(f"Fields of {lifelines.subject}", describe_lifelines(lifelines))
        self._column = {number: index for index, number in enumerate(lifelines.versions)}
        self._step = min(_WIDEST, _PLOT / max(1, len(lifelines.versions)))
        self._rows = {field.path: row for row, field in enumerate(fields)}
        types = dict.fromkeys(span.type for field in fields for span in field.spans)
        self._colours = {name: number % _COLOURS for number, name in enumerate(types)}

    def draw(self) -> Picture:
        draw = self._drawing
        bottom = _TOP + _ROW * len(self._fields)
        width = _MARGIN * 2 + _LABELS + max(self._step * len(self._column), 260)
        if not self._fields:
            draw.add_text(draw.root, Point(_MARGIN, _TOP), "No field.", "p-quiet")
        for row in range(1, len(self._fields), 2):
            at = Point(_MARGIN / 2, _TOP + row * _ROW)
            draw.add_rect(draw.root, at, Point(width - _MARGIN, _ROW), "p-band", 4)
        self._draw_columns(bottom)
        for field in self._fields:
            self._draw_field(field)
        for field in self._fields:
            self._draw_rename(field)
        has_notes = self._draw_legend(bottom)
        return draw.finish(width, bottom + (62 if has_notes else 40))

    def _left_edge(self, number: int) -> float:
        return _MARGIN + _LABELS + self._column[number] * self._step

    def _middle(self, path: str) -> float:
        return _TOP + (self._rows[path] + 0.5) * _ROW

    def _draw_columns(self, bottom: float) -> None:
        draw = self._drawing
        every = max(1, math.ceil(_NARROWEST_NUMBER / self._step))
        end = _MARGIN + _LABELS + len(self._column) * self._step
        subject = (self._lifelines.namespace, self._lifelines.subject)
        for number, index in self._column.items():
            if index % every:
                continue
            x = self._left_edge(number)
            draw.add_path(draw.root, f"M{print_number(x)} {_TOP - 6} V{print_number(bottom)}", "p-grid")
            if every > 1 and x > end - _NARROWEST_NUMBER / 2 and index:
                continue
            href = self._links.link_version(*subject, number)
            group = draw.add_group(draw.root, f"Version {number}", href)
            is_wide = every == 1
            at = Point(x + self._step / 2 if is_wide else x, _TOP - 12)
            draw.add_text(group, at, f"v{number}", "p-small p-quiet p-middle" if is_wide else "p-small p-quiet")

    # --- one field --------------------------------------------------------------------------------------------------

    def _draw_field(self, field: FieldLifeline) -> None:
        draw, y = self._drawing, self._middle(field.path)
        is_gone = field.spans[-1].last != self._lifelines.versions[-1]
        href = self._links.link_field(self._lifelines.namespace, self._lifelines.subject, field.path)
        group = draw.add_group(draw.root, self._describe_field(field), href)
        classes = "p-path p-small" + (" p-quiet" if is_gone else "")
        draw.add_text(group, Point(_MARGIN, y + 4), field.path, classes, _LABEL_COLUMNS, KeptPart.END)
        runs = self._find_runs(field.spans)
        for run in runs:
            self._draw_run(group, run, y)
        for before, after in zip(field.spans, field.spans[1:], strict=False):
            if self._column[after.first] == self._column[before.last] + 1:
                notch = draw.add_group(group, f"{field.path}, version {after.first}: {describe_change(before, after)}")
                x = print_number(self._left_edge(after.first))
                draw.add_path(notch, f"M{x} {print_number(y - 6)} l5 6 l-5 6 l-5 -6 z", "p-notch")

    def _find_runs(self, spans: Sequence[FieldSpan]) -> list[list[FieldSpan]]:
        """Return the spans in groups; the spans of a group follow one another without a gap."""
        runs: list[list[FieldSpan]] = []
        for span in spans:
            if runs and self._column[span.first] == self._column[runs[-1][-1].last] + 1:
                runs[-1].append(span)
            else:
                runs.append([span])
        return runs

    def _draw_run(self, group: Element, run: Sequence[FieldSpan], y: float) -> None:
        draw = self._drawing
        inset = min(2.0, self._step / 6)
        for number, span in enumerate(run):
            begin = self._left_edge(span.first) + (inset if number == 0 else 0)
            end = self._left_edge(span.last) + self._step - (inset if number == len(run) - 1 else 0)
            colour = f"p-bar p-c{self._colours[span.type]}{' p-optional' if span.optional else ''}"
            at, size = Point(begin, y - _BAR / 2), Point(end - begin, _BAR)
            draw.add_rect(group, at, size, colour, 3 if len(run) == 1 else 0)
            is_new = number == 0 or run[number - 1].type != span.type
            room = int((end - begin - 14) / _LETTER)
            if is_new and room >= min(4, measure_columns(span.type)):
                label = shorten(span.type, room)
                at = Point(begin + (5 if number == 0 else 9), y + 4)
                draw.add_text(group, at, label, "p-small p-plain")

    def _draw_rename(self, field: FieldLifeline) -> None:
        """Draw the curve from the last version under the old name to the first one under the new name."""
        before = field.renamed_from
        if before is None or before not in self._rows:
            return
        draw = self._drawing
        x = self._left_edge(field.spans[0].first)
        start, end = self._middle(before), self._middle(field.path)
        group = draw.add_group(draw.root, f"{before} was renamed to {field.path} in version {field.spans[0].first}")
        bend = min(14.0, max(6.0, self._step / 2))
        path = (
            f"M{print_number(x - 2)} {print_number(start)} C{print_number(x + bend)} {print_number(start)}"
            f" {print_number(x - bend)} {print_number(end)} {print_number(x + 1)} {print_number(end)}"
        )
        draw.add_path(group, path, "p-edge p-rename")

    def _describe_field(self, field: FieldLifeline) -> str:
        newest = self._lifelines.versions[-1]
        parts = [f"{field.path}: {field.spans[-1].type}", f"since version {field.spans[0].first}"]
        if field.renamed_from is not None:
            parts.append(f"renamed from {field.renamed_from}")
        parts += [
            f"version {after.first}: {describe_change(before, after)}"
            for before, after in zip(field.spans, field.spans[1:], strict=False)
        ]
        if field.spans[-1].last != newest:
            parts.append(f"removed after version {field.spans[-1].last}")
        return list_words(parts)

    # --- what the signs mean ----------------------------------------------------------------------------------------

    def _draw_legend(self, bottom: float) -> bool:
        """Draw the legend, and notes below it. Return whether there are notes."""
        draw = self._drawing
        y: float = bottom + 20
        x: float = _MARGIN
        legend = draw.add_group(draw.root)
        if any(len(field.spans) > 1 for field in self._fields):
            draw.add_path(legend, f"M{print_number(x + 5)} {print_number(y - 6)} l5 6 l-5 6 l-5 -6 z", "p-notch")
            draw.add_text(legend, Point(x + 16, y + 4), "type, default, optionality or doc changed", "p-small p-quiet")
            x += 262
        if any(span.optional for field in self._fields for span in field.spans):
            draw.add_rect(legend, Point(x, y - 6), Point(22, 12), "p-bar p-optional p-c0", 3)
            draw.add_text(legend, Point(x + 28, y + 4), "optional", "p-small p-quiet")
            x += 92
        if any(field.renamed_from in self._rows for field in self._fields):
            path = f"M{print_number(x)} {print_number(y - 5)} c14 0 8 10 22 10"
            draw.add_path(legend, path, "p-edge p-rename")
            draw.add_text(legend, Point(x + 28, y + 4), "renamed", "p-small p-quiet")
            x += 90
        hidden = len(self._lifelines.fields) + self._lifelines.omitted - len(self._fields)
        earlier = self._lifelines.earlier
        notes = [
            f"{hidden} more field path{'s' * (hidden != 1)}" if hidden else "",
            f"{earlier} earlier version{'s are' if earlier != 1 else ' is'} not shown" if earlier else "",
        ]
        if any(notes):
            draw.add_text(legend, Point(_MARGIN, y + 24), list_words(notes), "p-small p-quiet")
        return any(notes)
