"""The atlas: all subjects of a namespace as dots, sized by their versions, with lines to the subjects they refer to.

Subjects with references stand in layers, a referenced subject left of those that refer to it. Each connected group has
an area of its own. Subjects without references follow in a list, grouped by the first part of their names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from stele.pictures.layered_layout import assign_layers, find_components, order_layers
from stele.pictures.links import NO_LINKS, PictureLinks
from stele.pictures.neighbourhood import Name, curve_between
from stele.pictures.svg import Drawing, KeptPart, Picture, Point, measure_columns, print_number
from stele.pictures.table import PictureTable, list_words
from stele.protocol.history import NamespaceAtlas, SubjectNode

MOST_NODES: Final = 300
"""Maximum number of subjects in one picture, those with references first; the others are counted."""

_WIDTH: Final = 1120
_CELL: Final = Point(208, 30)
_GAP: Final = 64
"""Pixels between two layers, in which the lines are drawn."""
_TALLEST: Final = 40
"""Maximum number of subjects above one another in a layer; more stand in further columns."""
_LETTERS: Final = 25
_LETTER: Final = 6.6
_MARGIN: Final = 20
_COLOURS: Final = 9
_FIRST_PART: Final = re.compile(r"[^.\-_/]+")


def draw_atlas(atlas: NamespaceAtlas, links: PictureLinks = NO_LINKS, *, most_nodes: int = MOST_NODES) -> Picture:
    """Return the atlas of a namespace.

    Args:
        atlas: Subjects and their references.
        links: Addresses of subjects.
        most_nodes: How many subjects are drawn at most.
    """
    return _Atlas(atlas, links, most_nodes).draw()


def tabulate_atlas(atlas: NamespaceAtlas) -> PictureTable:
    """Return the subjects of an atlas as a table, with what they refer to and how many refer to them."""
    uses: dict[Name, list[str]] = {}
    users: dict[Name, int] = {}
    for row in atlas.references:
        uses.setdefault(row.user, []).append(f"{row.used[1]} v{row.used_version}{' (stale)' if row.stale else ''}")
        users[row.used] = users.get(row.used, 0) + 1
    rows = [
        (
            node.subject,
            node.format,
            node.versions,
            node.latest,
            list_words(uses.get(node.name, [])),
            users.get(node.name, 0),
        )
        for node in atlas.nodes
    ]
    columns = ("subject", "format", "versions", "newest", "refers to", "referred to by")
    return PictureTable(f"Subjects of {_title_of(atlas)}", columns, tuple(rows), atlas.omitted)


def describe_atlas(atlas: NamespaceAtlas) -> str:
    """Return a sentence on an atlas: how many subjects there are, and how many have references."""
    joined = {name for row in atlas.references for name in (row.user, row.used)}
    total = len(atlas.nodes) + atlas.omitted
    alone = len(atlas.nodes) - len(joined)
    parts = [
        f"{total} subject{'s' * (total != 1)}",
        f"{len(atlas.references)} reference{'s' * (len(atlas.references) != 1)}",
        f"{alone} without any" if alone else "",
    ]
    return list_words(parts) + "."


def _title_of(atlas: NamespaceAtlas) -> str:
    return f"namespace {atlas.namespace}" if atlas.namespace else "the default namespace"


class _Atlas:
    def __init__(self, atlas: NamespaceAtlas, links: PictureLinks, most_nodes: int) -> None:
        self._atlas, self._links = atlas, links
        self._drawing = Drawing(f"Atlas of {_title_of(atlas)}", describe_atlas(atlas))
        known = {node.name for node in atlas.nodes}
        pairs = {(row.user, row.used): row for row in atlas.references if {row.user, row.used} <= known}
        joined = {name for pair in pairs for name in pair}
        nodes = sorted(atlas.nodes, key=lambda node: node.name not in joined)[:most_nodes]
        self._nodes = {node.name: node for node in nodes}
        self._references = {pair: row for pair, row in pairs.items() if set(pair) <= self._nodes.keys()}
        formats = sorted({node.format for node in nodes})
        self._colours = {name: number % _COLOURS for number, name in enumerate(formats)}
        self._places: dict[Name, Point] = {}

    def draw(self) -> Picture:
        draw = self._drawing
        if not self._nodes:
            draw.add_text(draw.root, Point(_MARGIN, 40), "No subject.", "p-quiet")
            return draw.finish(320, 64)
        components = find_components(list(self._nodes), self._references)
        bottom = self._place_components([names for names in components if len(names) > 1])
        alone = sorted(names[0] for names in components if len(names) == 1)
        bottom = self._place_list(alone, bottom, has_title=len(alone) < len(self._nodes))
        for (user, used), row in self._references.items():
            classes = "p-edge p-stale" if row.stale else "p-edge"
            tip = f"{user[1]} version {row.user_version} refers to {used[1]} version {row.used_version}"
            group = draw.add_group(draw.root, tip)
            path = curve_between(self._places[user], self._places[used], _CELL, _measure_node(self._nodes[used]))
            draw.add_path(group, path, classes)
        for name, place in self._places.items():
            self._draw_node(self._nodes[name], place)
        legend_end = self._draw_legend(bottom)
        right = max(place.x + _CELL.x for place in self._places.values())
        return draw.finish(max(right + _MARGIN, legend_end), bottom + 44)

    def _place_components(self, components: Sequence[Sequence[Name]]) -> float:
        """Place connected groups in rows from left to right, and return the vertical position of the end."""
        x, y, row_height = float(_MARGIN), float(_MARGIN), 0.0
        for names in components:
            inside = set(names)
            edges = [pair for pair in self._references if pair[0] in inside]
            layers = order_layers(assign_layers(names, edges), edges)
            columns = [-(-len(layer) // _TALLEST) for layer in layers]
            width = sum(columns) * _CELL.x + (len(layers) - 1) * _GAP + _GAP
            height = max(min(len(layer), _TALLEST) for layer in layers) * _CELL.y + 24
            if x > _MARGIN and x + width > _WIDTH:
                x, y, row_height = float(_MARGIN), y + row_height, 0.0
            left = x
            for layer, count in zip(layers, columns, strict=True):
                tall = -(-len(layer) // count)
                top = y + (height - 24 - tall * _CELL.y) / 2
                for number, name in enumerate(layer):
                    column, row = divmod(number, tall)
                    self._places[name] = Point(left + column * _CELL.x, top + row * _CELL.y)
                left += count * _CELL.x + _GAP
            x += width
            row_height = max(row_height, height)
        return y + row_height

    def _place_list(self, names: Sequence[Name], y: float, *, has_title: bool) -> float:
        """Place subjects without references in groups, and return the vertical position at which the list ends."""
        if not names:
            return y
        draw = self._drawing
        if has_title:
            draw.add_text(draw.root, Point(_MARGIN, y + 22), "Without references", "p-strong")
            y += 34
        per_row = int((_WIDTH - 2 * _MARGIN) // _CELL.x)
        groups = [(part, list(group)) for part, group in groupby(names, key=_first_part)]
        small = sorted(name for _, group in groups if len(group) < per_row for name in group)
        large = [(part, group) for part, group in groups if len(group) >= per_row]
        for part, group in [*large, *([("", small)] if small else [])]:
            if large:
                draw.add_text(draw.root, Point(_MARGIN, y + 16), part or "others", "p-small p-quiet", 60)
                y += 24
            for number, name in enumerate(group):
                row, column = divmod(number, per_row)
                self._places[name] = Point(_MARGIN + column * _CELL.x, y + row * _CELL.y)
            y += -(-len(group) // per_row) * _CELL.y + 8
        return y

    def _draw_node(self, node: SubjectNode, place: Point) -> None:
        draw, (x, y) = self._drawing, place
        tip = f"{node.subject}, {node.format}, {node.versions} version{'s' * (node.versions != 1)}"
        group = draw.add_group(draw.root, tip, self._links.link_subject(*node.name))
        radius = min(12.0, 6.5 + math.log2(max(1, node.versions)))
        at, middle = Point(x + 14 - radius, y + _CELL.y / 2 - radius), y + _CELL.y / 2
        draw.add_rect(group, Point(x, y + 4), Point(_measure_node(node), _CELL.y - 8), "p-ground", 6)
        classes = f"p-dot p-c{self._colours[node.format]}"
        draw.add_rect(group, at, Point(radius * 2, radius * 2), classes, radius)
        draw.add_text(group, Point(x + 14, middle + 3.5), node.format[:1].upper(), "p-on p-middle")
        draw.add_text(group, Point(x + 31, middle + 4), node.subject, "", _LETTERS, KeptPart.BOTH)

    def _draw_legend(self, y: float) -> float:
        """Draw the legend, and return the horizontal position at which it ends."""
        draw, x = self._drawing, float(_MARGIN)
        for name, colour in self._colours.items():
            draw.add_rect(draw.root, Point(x, y + 10), Point(14, 14), f"p-dot p-c{colour}", 7)
            draw.add_text(draw.root, Point(x + 7, y + 20.5), name[:1].upper(), "p-on p-middle")
            draw.add_text(draw.root, Point(x + 20, y + 21), name, "p-small p-quiet", 20)
            x += 44 + 6.5 * min(len(name), 20)
        if any(reference.stale for reference in self._references.values()):
            draw.add_path(draw.root, f"M{print_number(x)} {print_number(y + 17)} h22", "p-edge p-stale")
            text = "to an older version than the newest"
            draw.add_text(draw.root, Point(x + 28, y + 21), text, "p-small p-quiet")
            x += 44 + 6 * len(text)
        hidden = len(self._atlas.nodes) + self._atlas.omitted - len(self._nodes)
        words = ["a larger dot has more versions", f"{hidden} more subjects" if hidden else ""]
        text = list_words(words)
        draw.add_text(draw.root, Point(x, y + 21), text, "p-small p-quiet")
        return x + _LETTER * len(text) + _MARGIN


def _measure_node(node: SubjectNode) -> float:
    """Return about how many pixels a dot with its name takes."""
    return 34 + _LETTER * min(measure_columns(node.subject), _LETTERS)


def _first_part(name: Name) -> str:
    match = _FIRST_PART.match(name[1])
    return match[0] if match else name[1]
