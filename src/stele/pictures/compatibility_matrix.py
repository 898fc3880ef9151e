"""The compatibility matrix: which version reads data of which. A frame marks the pairs that a policy requires."""

from __future__ import annotations

from typing import Final

from stele.core.findings import Verdict
from stele.pictures.links import NO_LINKS, PictureLinks
from stele.pictures.svg import VERDICT_TEXTS, Drawing, Picture, Point, clean_text, shorten
from stele.pictures.table import PictureTable, list_words
from stele.protocol.history import CompatibilityMatrix

_CELL: Final = 24
_LEFT: Final = 62
_TOP: Final = 56
_MARGIN: Final = 16
_CELL_CLASSES: Final = {
    Verdict.COMPATIBLE: "p-cell p-yes",
    Verdict.INCOMPATIBLE: "p-cell p-no",
    Verdict.UNDECIDED: "p-cell p-doubt",
    None: "p-cell",
}


def draw_compatibility_matrix(matrix: CompatibilityMatrix, links: PictureLinks = NO_LINKS) -> Picture:
    """Return the matrix of a subject's versions: a row for each reader, a column for each writer."""
    draw = Drawing(f"Which version of {matrix.subject} reads which", describe_matrix(matrix))
    size = len(matrix.versions)
    if not size:
        draw.add_text(draw.root, Point(_MARGIN, _TOP), "No active version.", "p-quiet")
        return draw.finish(320, _TOP + 24)
    draw.add_text(draw.root, Point(_LEFT, 18), "data written with", "p-small p-quiet")
    draw.add_text(draw.root, Point(_MARGIN, _TOP - 8), "read by", "p-small p-quiet")
    subject = (matrix.namespace, matrix.subject)
    for index, number in enumerate(matrix.versions):
        at = Point(_LEFT + (index + 0.5) * _CELL, _TOP - 8)
        group = draw.add_group(draw.root, f"Version {number}", links.link_version(*subject, number))
        draw.add_text(group, at, str(number), "p-small p-middle")
        draw.add_text(draw.root, Point(_LEFT - 8, _TOP + (index + 0.5) * _CELL + 4), f"v{number}", "p-small p-end")
    demands = set(matrix.demands)
    for row, reader in enumerate(matrix.versions):
        for column, writer in enumerate(matrix.versions):
            verdict = matrix.reads[row][column]
            x, y = _LEFT + column * _CELL, _TOP + row * _CELL
            if reader == writer:
                draw.add_rect(draw.root, Point(x + 1, y + 1), Point(_CELL - 2, _CELL - 2), "p-cell p-self", 3)
                continue
            old, new = sorted((reader, writer))
            tip = f"Version {reader} reads data of version {writer}: {VERDICT_TEXTS[verdict]}"
            group = draw.add_group(draw.root, tip, links.link_pair(*subject, old, new))
            draw.add_rect(group, Point(x + 1, y + 1), Point(_CELL - 2, _CELL - 2), _CELL_CLASSES[verdict], 3)
            draw.add_sign(group, Point(x + _CELL / 2, y + _CELL / 2), verdict)
            if (reader, writer) in demands:
                draw.add_rect(group, Point(x + 2, y + 2), Point(_CELL - 4, _CELL - 4), "p-demand", 3)
    bottom = _TOP + size * _CELL
    legend_end = _draw_legend(draw, matrix, bottom)
    return draw.finish(max(_LEFT + size * _CELL, legend_end) + _MARGIN, bottom + (62 if matrix.earlier else 40))


def tabulate_matrix(matrix: CompatibilityMatrix) -> PictureTable:
    """Return the matrix as a table: a row for each reader, a column for each writer."""
    rows = [
        (f"v{reader} reads", *("" if reader == writer else VERDICT_TEXTS[verdict] for writer, verdict in cells))
        for reader, cells in zip(
            matrix.versions, (zip(matrix.versions, row, strict=True) for row in matrix.reads), strict=True
        )
    ]
    columns = ("reader", *(f"v{number}" for number in matrix.versions))
    return PictureTable(f"Which version of {matrix.subject} reads which", columns, tuple(rows))


def describe_matrix(matrix: CompatibilityMatrix) -> str:
    """Return a sentence on a matrix: the number of pairs, and how many of them are compatible."""
    size = len(matrix.versions)
    if not size:
        return "No active version."
    pairs = [matrix.reads[row][column] for row in range(size) for column in range(size) if row != column]
    newest = sum(verdict is Verdict.COMPATIBLE for verdict in matrix.reads[-1])
    parts = [
        f"{size} version{'s' * (size != 1)}",
        f"{sum(verdict is Verdict.COMPATIBLE for verdict in pairs)} of {len(pairs)} pairs read",
        f"version {matrix.versions[-1]} reads {newest} of {size}",
        "" if matrix.complete else "some verdicts are not known yet",
    ]
    return list_words(parts) + "."


def _draw_legend(draw: Drawing, matrix: CompatibilityMatrix, bottom: float) -> float:
    """Draw the legend, and return the horizontal position at which it ends."""
    x, y = float(_MARGIN), bottom + 20
    verdicts = {
        verdict for row, cells in enumerate(matrix.reads) for column, verdict in enumerate(cells) if row != column
    }
    for verdict in (Verdict.COMPATIBLE, Verdict.INCOMPATIBLE, Verdict.UNDECIDED, None):
        if verdict in verdicts:
            text = VERDICT_TEXTS[verdict]
            draw.add_sign(draw.root, Point(x + 5, y), verdict)
            draw.add_text(draw.root, Point(x + 14, y + 4), text, "p-small p-quiet")
            x += 28 + 6.5 * len(text)
    if matrix.demands:
        draw.add_rect(draw.root, Point(x, y - 8), Point(16, 16), "p-demand", 3)
        text = shorten(f"asked for by {clean_text(matrix.policy)}", 40)
        draw.add_text(draw.root, Point(x + 22, y + 4), text, "p-small p-quiet")
        x += 22 + 6.5 * len(text)
    if matrix.earlier:
        text = f"{matrix.earlier} earlier version{'s are' if matrix.earlier != 1 else ' is'} not shown"
        draw.add_text(draw.root, Point(_MARGIN, y + 24), text, "p-small p-quiet")
    return x
