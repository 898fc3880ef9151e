"""The story line: the versions of a subject from left to right, with the verdicts between neighbours.

A line between two versions has two lanes. The upper one points to the newer version, which reads old data; the lower
one points to the older version, which reads new data. Soft-deleted versions are drawn below the line. Runs of versions
that affect no reader are folded, and long histories fold their beginning; a fold names its content. Arcs above the line
show which older versions the newest one still reads. In rows that do not hold the newest version, the arcs lead to a
tag with its number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from stele.core.findings import Verdict
from stele.pictures.links import NO_LINKS, PictureLinks
from stele.pictures.reading_arcs import describe_reading, draw_arc, find_arc_top, find_reading
from stele.pictures.svg import VERDICT_TEXTS, Drawing, Picture, Point, edge_class, print_number
from stele.pictures.table import PictureTable, list_words, print_day, print_minute
from stele.protocol.history import HistoryVersion, SubjectHistory, VersionLink, count_broken

LEAST_FOLDED: Final = 4
"""Minimum number of consecutive harmless versions that are folded."""
MOST_STOPS: Final = 60
"""Maximum number of versions and folds in one picture; older versions become one fold."""

_STEP: Final = 120
_BOX: Final = Point(54, 30)
_FOLD_BOX: Final = Point(66, 30)
_LANE: Final = 7
"""Pixels from the middle of a line up and down to its two lanes."""
_ROW: Final = 92
_BELOW: Final = 74
"""Pixels from the line down to the versions that are soft-deleted."""
_MARGIN: Final = 24
_TOP: Final = 40
_LABEL_LETTERS: Final = 19
_PER_ROW: Final = 9
_TAG: Final = Point(44, 20)
"""Size of the tag that stands for the newest version in rows that do not hold it."""
_TAG_TOP: Final = 46
"""Distance in pixels from the line up to the top of a tag, so that the tag does not cover the end of the line."""
_TAG_SHIFT: Final = 8
"""Pixels from the last column of a row to the middle of its tag."""
_ARC_ROOM: Final = 12
"""Pixels above the highest arc of a row."""
_NO_LABELS: Final[Mapping[int, str]] = MappingProxyType({})


class Stop(NamedTuple):
    """A place on the line: one version, or several that are folded."""

    versions: tuple[HistoryVersion, ...]

    @property
    def first(self) -> HistoryVersion:
        """The oldest version."""
        return self.versions[0]

    @property
    def is_fold(self) -> bool:
        """Whether it stands for several versions."""
        return len(self.versions) > 1

    @property
    def is_below(self) -> bool:
        """Whether it is drawn below the line."""
        return not self.is_fold and self.first.deleted


class _Place(NamedTuple):
    """A stop with its row and the middle of its box."""

    stop: Stop
    row: int
    middle: Point

    @property
    def half(self) -> float:
        """Half the width of its box."""
        return (_FOLD_BOX if self.stop.is_fold else _BOX).x / 2


def fold_history(
    history: SubjectHistory,
    *,
    least_folded: int = LEAST_FOLDED,
    most_stops: int = MOST_STOPS,
    labelled: Collection[int] = (),
) -> list[Stop]:
    """Return the stops on the line, oldest first. Every version is in exactly one of them.

    Args:
        history: Versions with their links.
        least_folded: Minimum number of consecutive harmless versions in a fold; 0 folds none.
        most_stops: Maximum number of stops, at least 2.
        labelled: Numbers of versions that are never folded as harmless.
    """
    versions = history.versions
    stops: list[Stop] = []
    run: list[HistoryVersion] = []

    def end_run() -> None:
        if least_folded and len(run) >= least_folded:
            stops.append(Stop(tuple(run)))
        else:
            stops.extend(Stop((version,)) for version in run)
        run.clear()

    for version in versions:
        link = version.link
        stands_out = version.deleted or version.version == history.newest or version.version in labelled
        is_plain = link is not None and link.is_harmless and not stands_out
        if is_plain and link is not None and not (run and link.before != run[-1].version):
            run.append(version)
            continue
        end_run()
        if is_plain:
            run.append(version)
        else:
            stops.append(Stop((version,)))
    end_run()
    surplus = len(stops) - most_stops
    if surplus > 0:
        oldest = tuple(version for stop in stops[: surplus + 1] for version in stop.versions)
        stops[: surplus + 1] = [Stop(oldest)]
    return stops


def draw_story_line(
    history: SubjectHistory,
    links: PictureLinks = NO_LINKS,
    *,
    least_folded: int = LEAST_FOLDED,
    most_stops: int = MOST_STOPS,
    per_row: int = _PER_ROW,
    labels: Mapping[int, str] = _NO_LABELS,
) -> Picture:
    """Return the story line of a subject.

    Args:
        history: Versions with their links.
        links: Addresses of versions, comparisons and unfolded pictures.
        least_folded: Minimum number of consecutive harmless versions in a fold; 0 folds none.
        most_stops: Maximum number of versions and folds in the picture; older versions become one fold.
        per_row: Number of versions and folds in a row; the line continues in the next row.
        labels: Short texts that stand below versions, by their numbers.
    """
    stops = fold_history(history, least_folded=least_folded, most_stops=most_stops, labelled=labels.keys())
    return _StoryLine(history, links, stops, labels).draw(per_row)


def tabulate_history(
    history: SubjectHistory, *, labels: Mapping[int, str] = _NO_LABELS, heading: str = "use"
) -> PictureTable:
    """Return the content of the story line as a table: one row for each version, newest first.

    Args:
        history: Versions with their links.
        labels: Short texts about versions, by their numbers. They have a column of their own, unless there are none.
        heading: Heading of that column.
    """
    rows = [
        (
            version.version,
            print_minute(version.at),
            version.author,
            _describe_state(version, history),
            VERDICT_TEXTS[version.link.backward] if version.link else "",
            VERDICT_TEXTS[version.link.forward] if version.link else "",
            version.link.before if version.link else "",
            "" if version.version == history.newest else VERDICT_TEXTS[version.newest_reads],
            version.schema_id,
            version.note,
            *([labels.get(version.version, "")] if labels else ()),
        )
        for version in reversed(history.versions)
    ]
    columns: tuple[str, ...] = (
        "version",
        "registered (UTC)",
        "by",
        "state",
        "new reads old",
        "old reads new",
        "old",
        "latest reads it",
        "id",
        "note",
    )
    columns += (heading,) if labels else ()
    return PictureTable(f"Versions of {history.subject}", columns, tuple(rows), history.earlier)


def describe_history(history: SubjectHistory) -> str:
    """Return a sentence on a history: how many versions, how many broke, how many are deleted."""
    versions = history.versions
    if not versions:
        return "No version."
    broken = count_broken(versions)
    deleted = sum(version.deleted for version in versions)
    forced = sum(version.link is not None and version.link.forced for version in versions)
    count = len(versions) + history.earlier
    parts = [
        f"{count} version{'s' * (count != 1)} from {print_day(versions[0].at)} to {print_day(versions[-1].at)}",
        f"{broken} broke with the one before" if broken else "none broke with the one before",
        f"{forced} against the policy in force" if forced else "",
        f"{deleted} soft-deleted" if deleted else "",
        describe_reading(history),
        "" if history.complete else "some verdicts are not known yet",
    ]
    return list_words(parts) + "."


def _describe_state(version: HistoryVersion, history: SubjectHistory) -> str:
    return list_words(
        [
            "deleted" if version.deleted else "latest" if version.version == history.newest else "",
            "forced" if version.link is not None and version.link.forced else "",
        ]
    )


class _StoryLine:
    def __init__(
        self, history: SubjectHistory, links: PictureLinks, stops: Sequence[Stop], labels: Mapping[int, str]
    ) -> None:
        self._history, self._links, self._stops, self._labels = history, links, stops, labels
        self._drawing = Drawing(f"History of {history.subject}", describe_history(history))
        self._stop_of = {version.version: index for index, stop in enumerate(stops) for version in stop.versions}
        readings = ((stop, find_reading(history, stop.versions)) for stop in stops)
        self._readings = {stop: reading for stop, reading in readings if reading is not None}
        self._has_undecided = any(
            Verdict.UNDECIDED
            in (version.newest_reads, *((version.link.backward, version.link.forward) if version.link else ()))
            for version in history.versions
        )

    def draw(self, per_row: int) -> Picture:
        columns = max(1, min(per_row, len(self._stops)))
        width = max(_MARGIN * 2 + columns * _STEP, 560)
        places, height = self._lay_out(per_row, columns)
        root = self._drawing.root
        if not places:
            self._drawing.add_text(root, Point(_MARGIN, _TOP), "No version.", "p-quiet")
        for index in range(len(places)):
            self._draw_link(places, index, per_row)
        has_tags = self._draw_arcs(places, columns)
        for place in places:
            self._draw_stop(place)
        height = self._draw_legend(height)
        return self._drawing.finish(width + (_TAG_SHIFT if has_tags else 0), height)

    def _lay_out(self, per_row: int, columns: int) -> tuple[list[_Place], float]:
        """Return the places of all stops, and the vertical position at which the last row ends."""
        places: list[_Place] = []
        y: float = 0
        for row, start in enumerate(range(0, len(self._stops), per_row)):
            row_places = [
                _Place(stop, row, Point(_MARGIN + (column + 0.5) * _STEP, _BELOW if stop.is_below else 0))
                for column, stop in enumerate(self._stops[start : start + per_row])
            ]
            target = self._find_target(row_places, columns)
            tops = [find_arc_top(_top_of(place), target) for place in row_places if place.stop in self._readings]
            room = _ARC_ROOM - min(tops) if tops else 0
            y += max(room, _TOP) if row == 0 else room
            places += [place._replace(middle=Point(place.middle.x, place.middle.y + y)) for place in row_places]
            y += _ROW + (_BELOW if any(place.stop.is_below for place in row_places) else 0)
        return places, max(y - 14, _TOP + 16)

    # --- arcs -------------------------------------------------------------------------------------------------------

    def _find_target(self, places: Sequence[_Place], columns: int) -> Point:
        """Return the point where the arcs of a row end: the newest version, or a tag with its number at the right."""
        newest = next((place for place in places if self._holds_newest(place.stop)), None)
        if newest is not None:
            return _top_of(newest)
        line = next((place.middle.y for place in places if not place.stop.is_below), 0)
        return Point(_MARGIN + columns * _STEP + _TAG_SHIFT, line - _TAG_TOP)

    def _holds_newest(self, stop: Stop) -> bool:
        return not stop.is_fold and stop.first.version == self._history.newest

    def _draw_arcs(self, places: Sequence[_Place], columns: int) -> bool:
        """Draw the arcs of all rows; return whether one of them ends at a tag."""
        has_tags = False
        for row in sorted({place.row for place in places if place.stop in self._readings}):
            row_places = [place for place in places if place.row == row]
            target = self._find_target(row_places, columns)
            for place in row_places:
                reading = self._readings.get(place.stop)
                if reading is not None:
                    draw_arc(self._drawing, self._history, reading, (_top_of(place), target), self._links)
            x, y = print_number(target.x), print_number(target.y - 1)
            self._drawing.add_path(self._drawing.root, f"M{x} {y} l-3.5 -6 h7 z", "p-head")
            if not any(self._holds_newest(place.stop) for place in row_places):
                self._draw_tag(target)
                has_tags = True
        return has_tags

    def _draw_tag(self, top: Point) -> None:
        draw, newest = self._drawing, self._history.newest
        href = self._links.link_version(self._history.namespace, self._history.subject, newest)
        group = draw.add_group(draw.root, f"The latest version, {newest}", href)
        draw.add_rect(group, Point(top.x - _TAG.x / 2, top.y), _TAG, "p-box p-center", 6)
        draw.add_text(group, Point(top.x, top.y + 14), f"v{newest}", "p-middle p-small p-strong")

    # --- versions ---------------------------------------------------------------------------------------------------

    def _draw_stop(self, place: _Place) -> None:
        if place.stop.is_fold:
            self._draw_fold(place)
        else:
            self._draw_version(place, place.stop.first)

    def _draw_version(self, place: _Place, version: HistoryVersion) -> None:
        draw, (x, y) = self._drawing, place.middle
        subject = (self._history.namespace, self._history.subject)
        group = draw.add_group(
            draw.root, self._describe_version(version), self._links.link_version(*subject, version.version)
        )
        is_newest = version.version == self._history.newest
        classes = "p-box" + (" p-hollow" if version.deleted else " p-center" if is_newest else "")
        draw.add_rect(group, Point(x - _BOX.x / 2, y - _BOX.y / 2), _BOX, classes, 8)
        draw.add_text(group, Point(x, y + 4.5), f"v{version.version}", "p-middle p-strong")
        below = ["deleted" if version.deleted else "latest" if is_newest else "", print_day(version.at)]
        lines = [line for line in (*below, version.author) if line]
        label = self._labels.get(version.version, "")
        for number, line in enumerate([*lines, label] if label else lines):
            at = Point(x, y + _BOX.y / 2 + 14 + 13 * number)
            classes = "p-middle p-small" + (" p-label" if number == len(lines) else " p-quiet")
            draw.add_text(group, at, line, classes, _LABEL_LETTERS if number == len(lines) else 14)

    def _draw_fold(self, place: _Place) -> None:
        draw, (x, y) = self._drawing, place.middle
        versions = place.stop.versions
        broken = count_broken(versions)
        deleted = sum(version.deleted for version in versions)
        first, last = versions[0].version, versions[-1].version
        lines = [
            f"{len(versions)} versions",
            f"{broken} broke" if broken else "" if deleted else "harmless",
            f"{deleted} deleted" if deleted else "",
        ]
        href = self._links.link_fold(self._history.namespace, self._history.subject, first, last)
        tip = f"Versions {first} to {last}: {list_words(lines)}"
        group = draw.add_group(draw.root, tip, href)
        for shift in (3, 0):
            at = Point(x - _FOLD_BOX.x / 2 + shift, y - _FOLD_BOX.y / 2 + shift)
            draw.add_rect(group, at, _FOLD_BOX, "p-box p-fold", 8)
        draw.add_text(group, Point(x, y + 4.5), f"{first}–{last}", "p-middle")
        for number, line in enumerate(line for line in lines if line):
            at = Point(x, y + _BOX.y / 2 + 17 + 13 * number)
            draw.add_text(group, at, line, "p-middle p-small p-quiet")

    def _describe_version(self, version: HistoryVersion) -> str:
        parts = [
            f"Version {version.version}",
            "soft-deleted" if version.deleted else "",
            f"registered {print_minute(version.at)} UTC" + (f" by {version.author}" if version.author else ""),
            f"schema id {version.schema_id}",
            f"policy {version.policy}" if version.policy else "",
            ""
            if version.newest_reads is None
            else f"version {self._history.newest} reads its data: {VERDICT_TEXTS[version.newest_reads]}",
            self._labels.get(version.version, ""),
        ]
        return list_words(parts) + (f": {version.note}" if version.note else "")

    # --- lines ------------------------------------------------------------------------------------------------------

    def _draw_link(self, places: Sequence[_Place], index: int, per_row: int) -> None:
        """Draw the line from the version before to a stop."""
        place = places[index]
        link = place.stop.first.link
        if link is None:
            return
        source_index = self._stop_of.get(link.before)
        end = place.middle.x - place.half
        sign_x = end - (_STEP - _BOX.x) / 2
        y = place.middle.y
        if source_index is None:  # on an earlier page
            start = Point(end - (_STEP - _FOLD_BOX.x), y)
        else:
            source = places[source_index]
            start = Point(source.middle.x + source.half, source.middle.y)
            if source.row != place.row:
                self._draw_break(source, per_row)
                start = Point(_MARGIN / 3, y)
        before = self._find_version(link.before)
        changes_format = before is not None and before.format != place.stop.first.format
        self._draw_lanes(start, Point(end, y), sign_x, link, place.stop, changes_format)

    def _find_version(self, number: int) -> HistoryVersion | None:
        index = self._stop_of.get(number)
        if index is None:
            return None
        return next(version for version in self._stops[index].versions if version.version == number)

    def _draw_break(self, source: _Place, per_row: int) -> None:
        """Draw the end of a line that goes on in a later row."""
        x, y = source.middle
        end = _MARGIN * 1.6 + per_row * _STEP
        for lane in (-_LANE, _LANE):
            path = _line(Point(x + source.half, y + lane), Point(end, y + lane))
            self._drawing.add_path(self._drawing.root, path, "p-edge")

    def _draw_lanes(
        self, start: Point, end: Point, sign_x: float, link: VersionLink, stop: Stop, changes_format: bool
    ) -> None:
        draw = self._drawing
        subject = (self._history.namespace, self._history.subject)
        href = self._links.link_pair(*subject, link.before, stop.first.version)
        group = draw.add_group(draw.root, _describe_link(link, stop.first), href)
        lanes = (
            ((0, None),)
            if link.backward is None and link.forward is None
            else ((-_LANE, link.backward), (_LANE, link.forward))
        )
        for lane, verdict in lanes:
            self._draw_lane(group, start, end, sign_x, lane, verdict)
        label = "forced" if link.forced else "other format" if changes_format else ""
        if label:
            classes = f"p-middle p-small {'p-no' if link.forced else 'p-quiet'}"
            x = sign_x if start.y == end.y else end.x + _BOX.x / 2  # beside the turn
            draw.add_text(group, Point(x, end.y - 19), label, classes)
        draw.add_rect(group, Point(sign_x - 24, end.y - 16), Point(48, 32), "p-hit", 6)

    def _draw_lane(
        self, group: Element, start: Point, end: Point, sign_x: float, lane: float, verdict: Verdict | None
    ) -> None:
        """Draw one direction: the upper lane points to the newer version, the lower one to the older."""
        draw, classes, y = self._drawing, edge_class(verdict), end.y + lane
        points_left = lane > 0
        if start.y == end.y:
            before = f"M{_pair(start.x, y)} "
            if points_left:
                draw.add_arrow_head(group, Point(start.x + 1, y), classes, left=True)
        else:  # down to a deleted version
            turn = sign_x - 17 - lane * 0.55
            begin = start.x if sign_x - start.x < _STEP / 2 else turn - 4
            before = (
                f"M{_pair(begin, start.y + lane)} H{print_number(turn - 4)} q4 0 4 4 V{print_number(y - 4)} q0 4 4 4 "
            )
            if points_left:
                top = f"{_pair(turn, start.y + lane + 10)} l-3.5 6 h7 z"
                draw.add_path(group, f"M{top}", f"p-head {classes}".strip())
        path = f"{before}H{print_number(sign_x - 8)} M{_pair(sign_x + 8, y)} H{print_number(end.x - 4)}"
        draw.add_path(group, path, f"p-edge {classes}".strip())
        draw.add_sign(group, Point(sign_x, y), verdict)
        if lane < 0:
            draw.add_arrow_head(group, Point(end.x - 1, y), classes)

    # --- what the signs mean ----------------------------------------------------------------------------------------

    def _draw_legend(self, top: float) -> float:
        """Draw the legend, and return the vertical position at which it ends."""
        draw = self._drawing
        legend = draw.add_group(draw.root)
        y = top + 12
        x: float = _MARGIN
        for left, text in ((False, "new reads old data"), (True, "old reads new data")):
            draw.add_path(legend, _line(Point(x, y), Point(x + 22, y)), "p-edge")
            draw.add_arrow_head(legend, Point(x if left else x + 22, y), left=left)
            draw.add_text(legend, Point(x + 28, y + 4), text, "p-small p-quiet")
            x += 150
        signs: list[tuple[Verdict | None, str]] = [(Verdict.COMPATIBLE, "yes"), (Verdict.INCOMPATIBLE, "no")]
        if self._has_undecided:
            signs.append((Verdict.UNDECIDED, "undecided"))
        for verdict, text in signs:
            draw.add_sign(legend, Point(x + 5, y), verdict)
            draw.add_text(legend, Point(x + 14, y + 4), text, "p-small p-quiet")
            x += 26 + 7 * len(text)
        has_deleted = any(version.deleted for version in self._history.versions)
        if has_deleted or self._readings:
            y += 22
            x = _MARGIN
        if self._readings:
            draw.add_path(legend, f"M{_pair(x, y + 4)} a11 9 0 0 1 22 0", "p-edge p-arc")
            draw.add_text(legend, Point(x + 28, y + 4), "latest reads old data", "p-small p-quiet")
            x += 170
        if has_deleted:
            draw.add_rect(legend, Point(x, y - 7), Point(22, 14), "p-box p-hollow", 4)
            draw.add_text(legend, Point(x + 28, y + 4), "soft-deleted", "p-small p-quiet")
        earlier = self._history.earlier
        notes = [
            f"{earlier} earlier version{'s are' if earlier != 1 else ' is'} not shown" if earlier else "",
            "" if self._history.complete else "some verdicts are not known yet",
        ]
        if any(notes):
            y += 22
            draw.add_text(legend, Point(_MARGIN, y + 4), list_words(notes), "p-small p-quiet")
        return y + 20


def _describe_link(link: VersionLink, version: HistoryVersion) -> str:
    parts = [
        f"Version {version.version} reads data of version {link.before}: {VERDICT_TEXTS[link.backward]}",
        f"version {link.before} reads data of version {version.version}: {VERDICT_TEXTS[link.forward]}",
        f"against the policy {version.policy} in force then" if link.forced else "",
    ]
    more = link.findings - len(link.reasons)
    reasons = [*link.reasons, f"and {more} more" if more > 0 and link.reasons else ""]
    return "; ".join(part for part in (*parts, *reasons) if part)


def _top_of(place: _Place) -> Point:
    return Point(place.middle.x, place.middle.y - _BOX.y / 2)


def _line(start: Point, end: Point) -> str:
    return f"M{_pair(*start)} L{_pair(*end)}"


def _pair(x: float, y: float) -> str:
    return f"{print_number(x)} {print_number(y)}"
