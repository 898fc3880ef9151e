"""The neighbourhood: a subject in the middle, the subjects it uses to the left, the subjects that use it to the right.

A line leads from a version to the version it refers to. A reference to a version older than the newest is dashed and
amber, and labelled as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stele.pictures.layered_layout import order_layers
from stele.pictures.links import NO_LINKS, PictureLinks
from stele.pictures.svg import Drawing, KeptPart, Picture, Point, print_number
from stele.pictures.table import PictureTable, list_words
from stele.protocol.history import Neighbourhood, SubjectNode, SubjectReference

MOST_IN_LAYER: Final = 12
"""Maximum number of subjects at one distance; the others are counted."""

_BOX: Final = Point(196, 42)
_STEP: Final = Point(276, 56)
_MARGIN: Final = 20
_TOP: Final = 44
_LETTERS: Final = 26

Name = tuple[str, str]


def format_name(name: Name) -> str:
    """Return a subject's name, with its namespace unless that is the default one."""
    namespace, subject = name
    return f"{namespace}:{subject}" if namespace else subject


def draw_neighbourhood(
    neighbourhood: Neighbourhood, links: PictureLinks = NO_LINKS, *, most_in_layer: int = MOST_IN_LAYER
) -> Picture:
    """Return the surroundings of a subject.

    Args:
        neighbourhood: Subjects and the references between them.
        links: Addresses of subjects.
        most_in_layer: How many subjects of one distance are drawn, those with stale references first.
    """
    return _Picture(neighbourhood, links, most_in_layer).draw()


def tabulate_neighbourhood(neighbourhood: Neighbourhood) -> PictureTable:
    """Return the references of a neighbourhood as a table."""
    latest = {node.name: node.latest for node in neighbourhood.nodes}
    rows = [
        (
            format_name(row.user),
            row.user_version,
            format_name(row.used),
            row.used_version,
            latest.get(row.used, 0),
            list_words(["stale" if row.stale else "", "past" if row.past else ""]),
        )
        for row in neighbourhood.references
    ]
    columns = ("subject", "version", "refers to", "in version", "newest version", "state")
    return PictureTable(f"Neighbours of {format_name(neighbourhood.center.name)}", columns, tuple(rows))


def describe_neighbourhood(neighbourhood: Neighbourhood) -> str:
    """Return a sentence on a neighbourhood: how many subjects it uses, how many use it, how many are stale."""
    uses = sum(node.distance < 0 for node in neighbourhood.nodes)
    users = sum(node.distance > 0 for node in neighbourhood.nodes)
    stale = len({row.user for row in neighbourhood.references if row.stale and not row.past})
    parts = [
        f"Uses {uses} subject{'s' * (uses != 1)}",
        f"is used by {users}",
        f"{stale} refer{'s' * (stale == 1)} to an older version than the newest" if stale else "",
        f"{neighbourhood.omitted} more are left out" if neighbourhood.omitted else "",
    ]
    return list_words(parts) + "."


class _Picture:
    def __init__(self, neighbourhood: Neighbourhood, links: PictureLinks, most_in_layer: int) -> None:
        self._links, self._neighbourhood = links, neighbourhood
        name = format_name(neighbourhood.center.name)
        self._drawing = Drawing(f"Neighbours of {name}", describe_neighbourhood(neighbourhood))
        self._nodes = {node.name: node for node in neighbourhood.nodes}
        self._uses = {
            row.user: row
            for row in neighbourhood.references
            if self._nodes[row.user].distance > max(0, self._nodes[row.used].distance)
        }
        self._stale = {row.user for row in self._uses.values() if row.stale and not row.past}
        self._outdated = {row.used for row in neighbourhood.references if row.stale and not row.past}
        self._layers, self._hidden = self._choose_nodes(most_in_layer)
        self._places: dict[Name, Point] = {}

    def _choose_nodes(self, most: int) -> tuple[list[list[Name]], dict[int, list[Name]]]:
        """Return the names of each layer in order, and the subjects that each distance hides."""
        by_distance: dict[int, list[SubjectNode]] = {}
        for node in self._neighbourhood.nodes:
            by_distance.setdefault(node.distance, []).append(node)
        layers: dict[Name, int] = {}
        hidden: dict[int, list[Name]] = {}
        for distance in range(min(by_distance), max(by_distance) + 1):
            nodes = by_distance.get(distance, [])
            nodes.sort(key=lambda node: (node.name not in self._stale, node.name))
            layers |= {node.name: distance for node in nodes[:most]}
            hidden[distance] = [node.name for node in nodes[most:]]
        edges = [
            (row.user, row.used) for row in self._neighbourhood.references if {row.user, row.used} <= layers.keys()
        ]
        return order_layers(layers, edges), hidden

    def draw(self) -> Picture:
        draw = self._drawing
        lowest = min(self._hidden)
        counts = [len(row) + bool(self._hidden[lowest + number]) for number, row in enumerate(self._layers)]
        height = max(counts) * _STEP.y
        for number, row in enumerate(self._layers):
            x = _MARGIN + number * _STEP.x
            y = _TOP + (height - counts[number] * _STEP.y) / 2
            self._places |= {name: Point(x, y + place * _STEP.y) for place, name in enumerate(row)}
            # The lines of hidden subjects lead to the box that counts them.
            self._places |= dict.fromkeys(self._hidden[lowest + number], Point(x, y + len(row) * _STEP.y))
            self._draw_heading(lowest + number, x)
        drawn: set[tuple[Point, Point]] = set()
        for reference in self._neighbourhood.references:
            ends = self._places[reference.user], self._places[reference.used]
            if ends not in drawn:
                drawn.add(ends)
                self._draw_reference(reference, *ends)
        for number, row in enumerate(self._layers):
            for name in row:
                self._draw_node(self._nodes[name])
            self._draw_count(self._hidden[lowest + number])
        self._draw_legend(_TOP + height)
        width = _MARGIN * 2 + (len(self._layers) - 1) * _STEP.x + _BOX.x
        return draw.finish(max(width, 520), _TOP + height + 40)

    def _draw_heading(self, distance: int, x: float) -> None:
        text = {-1: "uses", 1: "used by"}.get(distance, "")
        if text:
            at = Point(x + _BOX.x / 2, 24)
            self._drawing.add_text(self._drawing.root, at, text, "p-middle p-small p-quiet")

    def _draw_count(self, hidden: Sequence[Name]) -> None:
        if hidden:
            draw, (x, y) = self._drawing, self._places[hidden[0]]
            draw.add_rect(draw.root, Point(x, y), _BOX, "p-box p-fold", 7)
            draw.add_text(draw.root, Point(x + _BOX.x / 2, y + 25), f"{len(hidden)} more", "p-middle p-quiet")

    def _draw_node(self, node: SubjectNode) -> None:
        draw, (x, y) = self._drawing, self._places[node.name]
        is_center = node.name == self._neighbourhood.center.name
        is_stale = node.name in self._stale
        is_outdated = node.distance < 0 and node.name in self._outdated
        group = draw.add_group(draw.root, self._describe_node(node), self._links.link_subject(*node.name))
        classes = "p-box" + (" p-center" if is_center else " p-stale" if is_stale or is_outdated else "")
        draw.add_rect(group, Point(x, y), _BOX, classes, 7)
        strong = "p-strong" if is_center else ""
        draw.add_text(group, Point(x + 10, y + 18), format_name(node.name), strong, _LETTERS, KeptPart.BOTH)
        quiet = "p-small p-doubt" if is_stale or is_outdated else "p-small p-quiet"
        draw.add_text(group, Point(x + 10, y + 33), self._describe_use(node), quiet, 31)

    def _describe_use(self, node: SubjectNode) -> str:
        """Return the line below a subject's name: its version, and the version that it uses."""
        lagging = f" of {node.latest}" if node.latest > node.version else ""
        use = self._uses.get(node.name)
        if use is None:
            return f"v{node.version}{lagging} · {node.format}"
        newest = self._nodes[use.used].latest
        version = f"v{use.used_version}{f' of {newest}' if use.stale else ''}"
        return f"v{node.version}{lagging} · {'used' if use.past else 'uses'} {version}"

    def _describe_node(self, node: SubjectNode) -> str:
        use = self._uses.get(node.name)
        parts = [
            f"{format_name(node.name)}, version {node.version}",
            node.format,
            f"newest version {node.latest}" if node.latest != node.version else "",
            "" if use is None else _describe_reference(use),
        ]
        return list_words(parts)

    def _draw_reference(self, reference: SubjectReference, user: Point, used: Point) -> None:
        draw = self._drawing
        classes = "p-past" if reference.past else "p-stale" if reference.stale else ""
        group = draw.add_group(draw.root, _describe_reference(reference))
        draw.add_path(group, curve_between(user, used, _BOX), f"p-edge {classes}".strip())
        is_left = used.x < user.x
        head = Point(used.x + (_BOX.x if is_left else 0), used.y + _BOX.y / 2)
        draw.add_arrow_head(group, head, "p-stale" if classes == "p-stale" else "", left=is_left)

    def _draw_legend(self, y: float) -> None:
        draw, x = self._drawing, float(_MARGIN)
        y += 16
        draw.add_path(draw.root, f"M{print_number(x + 4)} {print_number(y)} h20", "p-edge")
        draw.add_arrow_head(draw.root, Point(x, y), left=True)
        draw.add_text(draw.root, Point(x + 30, y + 4), "refers to a version", "p-small p-quiet")
        if self._outdated:
            x += 160
            draw.add_rect(draw.root, Point(x, y - 7), Point(24, 14), "p-box p-stale", 4)
            draw.add_text(
                draw.root, Point(x + 30, y + 4), "stale: an older version than the newest is in use", "p-small p-quiet"
            )


def _describe_reference(reference: SubjectReference) -> str:
    user, used = format_name(reference.user), format_name(reference.used)
    parts = [
        f"{user} version {reference.user_version} refers to {used} version {reference.used_version}",
        "an older version than the newest" if reference.stale else "",
        "the newest version does not" if reference.past else "",
    ]
    return list_words(parts)


def curve_between(user: Point, used: Point, box: Point, width: float | None = None) -> str:
    """Return the path data of a curve from a box to the box it refers to, which usually stands to its left.

    If that box is not to the left, the curve goes around. `width` is the width of that box, if it differs from `box.x`.
    """
    start, end = user.y + box.y / 2, used.y + box.y / 2
    if used.x < user.x:
        first, last = user.x, used.x + (box.x if width is None else width) + 4
        bend = max(30.0, (first - last) / 2)
        numbers: Sequence[float] = (first, start, first - bend, start, last + bend, end, last, end)
    else:
        first, last = user.x, used.x - 4
        numbers = (first, start, first - 50, start, last - 50, end, last, end)
    x0, y0, *rest = (print_number(number) for number in numbers)
    return f"M{x0} {y0} C{' '.join(rest)}"
