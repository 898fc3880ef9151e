"""Arcs of the story line: the older versions whose data the newest version reads, beyond its neighbour.

An arc leads from a version, or from a fold, to the newest active version. Its sign is the verdict. A fold with several
verdicts shows how many of its versions are read. Soft-deleted versions have no arc; the table has their verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from stele.core.findings import Verdict
from stele.pictures.links import PictureLinks
from stele.pictures.svg import VERDICT_TEXTS, Drawing, Point, edge_class, print_number
from stele.protocol.history import HistoryVersion, SubjectHistory

_LEAST_RISE: Final = 12
_RISE: Final = 1 / 15
"""How much higher an arc is for each pixel between its ends."""
_GAP: Final = 9
"""Free pixels on both sides of the top of an arc, for the sign."""
_WIDE_GAP: Final = 26


class DataReading(NamedTuple):
    """Verdicts on whether the newest version reads the data of some older ones."""

    newest: int
    versions: tuple[HistoryVersion, ...]

    @property
    def verdicts(self) -> set[Verdict | None]:
        """All verdicts on the versions."""
        return {version.newest_reads for version in self.versions}

    @property
    def read_count(self) -> int:
        """Number of versions whose data it reads."""
        return sum(version.newest_reads is Verdict.COMPATIBLE for version in self.versions)

    def describe(self) -> str:
        """Return a sentence for a tip."""
        first = self.versions[0]
        if len(self.versions) == 1:
            return f"Version {self.newest} reads data of version {first.version}: {VERDICT_TEXTS[first.newest_reads]}"
        numbers = f"{first.version} to {self.versions[-1].version}"
        return f"Version {self.newest} reads data of {self.read_count} of {len(self.versions)} versions from {numbers}"


def find_reading(history: SubjectHistory, versions: Sequence[HistoryVersion]) -> DataReading | None:
    """Return the verdicts that an arc from these versions shows, or None if there is no arc.

    There is none if the versions are deleted, are the newest one or its neighbour, or were not compared.
    """
    newest = next((row for row in reversed(history.versions) if row.version == history.newest), None)
    neighbour = newest.link.before if newest is not None and newest.link is not None else 0
    active = tuple(row for row in versions if not row.deleted and row.version != history.newest)
    if not any(row.newest_reads is not None and row.version != neighbour for row in active):
        return None
    return DataReading(history.newest, active)


def find_arc_top(start: Point, end: Point) -> float:
    """Return the vertical coordinate of the top of an arc between two points."""
    return min(start.y, end.y) - _LEAST_RISE - _RISE * abs(end.x - start.x)


def draw_arc(
    draw: Drawing, history: SubjectHistory, reading: DataReading, ends: tuple[Point, Point], links: PictureLinks
) -> None:
    """Draw an arc from the first point to the second, which is to its right, without an arrow head."""
    (left, bottom), (right, target) = ends
    middle, top = (left + right) / 2, find_arc_top(*ends)
    verdicts = reading.verdicts
    verdict = next(iter(verdicts)) if len(verdicts) == 1 else None
    gap = _GAP if len(verdicts) == 1 else _WIDE_GAP
    classes = edge_class(verdict) if len(verdicts) == 1 else ""
    subject, numbers = (history.namespace, history.subject), [row.version for row in reading.versions]
    is_single = len(numbers) == 1
    link = links.link_pair if is_single else links.link_fold
    href = link(*subject, numbers[0], reading.newest if is_single else numbers[-1])
    group = draw.add_group(draw.root, reading.describe(), href)
    width = print_number(middle - gap - left)
    sides = (
        f"M{_pair(left, bottom)} A{width} {print_number(bottom - top)} 0 0 1 {_pair(middle - gap, top)}",
        f"M{_pair(middle + gap, top)} A{width} {print_number(target - top)} 0 0 1 {_pair(right, target)}",
    )
    draw.add_path(group, " ".join(sides), f"p-edge p-arc {classes}".strip())
    if len(verdicts) == 1:
        draw.add_sign(group, Point(middle, top), verdict)
    else:
        draw.add_text(group, Point(middle, top + 4), f"{reading.read_count} of {len(numbers)}", "p-middle p-small")
    draw.add_rect(group, Point(middle - gap - 3, top - 8), Point(2 * gap + 6, 16), "p-hit", 6)


def describe_reading(history: SubjectHistory) -> str:
    """Return which data the newest version reads, in a few words; '' where nothing was compared."""
    others = [row for row in history.versions if row.version != history.newest and row.newest_reads is not None]
    if not others:
        return ""
    read = [row.newest_reads is Verdict.COMPATIBLE for row in others]
    if all(read):
        return f"version {history.newest} reads data of all others"
    till = next((others[index + 1].version for index in reversed(range(len(read) - 1)) if not read[index]), 0)
    since = f", of all since version {till}" if till and read[-1] else ""
    return f"version {history.newest} reads data of {sum(read)} of {len(read)} others{since}"


def _pair(x: float, y: float) -> str:
    return f"{print_number(x)} {print_number(y)}"
