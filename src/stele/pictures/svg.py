"""Writes SVG: elements whose texts and attributes are escaped, with one stylesheet and no script.

A picture names its colours by classes of `templates/shared/pictures.css`. A file holds that stylesheet; a page has it
among its own, because a Content-Security-Policy may forbid a style inside a picture. The same elements give the same
bytes.
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from functools import cache
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

import msgspec

from stele.core.findings import Verdict
from stele.templates import render_template

_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_INVISIBLE: Final = re.compile("[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that would hide or turn round the text beside them: they are shown by their numbers."""

_SIGNS: Final = {
    Verdict.COMPATIBLE: ("p-yes", "M-4 0.5 L-1.2 3.5 L4.5 -3.5"),
    Verdict.INCOMPATIBLE: ("p-no", "M-3.5 -3.5 L3.5 3.5 M-3.5 3.5 L3.5 -3.5"),
    Verdict.UNDECIDED: ("p-doubt", "M-4.5 1 C-3 -3.5 -1 -2 0 0 C1 2 3 3.5 4.5 -1"),
    None: ("p-none", "M-2.5 0 L2.5 0"),
}
VERDICT_TEXTS: Final = {
    Verdict.COMPATIBLE: "yes",
    Verdict.INCOMPATIBLE: "no",
    Verdict.UNDECIDED: "undecided",
    None: "not compared",
}
"""What a verdict is called in tables, legends and tips."""


class Point(NamedTuple):
    """A place in a picture, in pixels from the top left."""

    x: float
    y: float


class Picture(msgspec.Struct, frozen=True):
    """A drawing with its text alternative.

    Attributes:
        title: What the picture is of, in a few words.
        description: What it shows, in a sentence or two: for whoever does not see it.
        width: In pixels.
        height: In pixels.
        body: The elements inside, as text.
        has_links: Whether something in it leads elsewhere.
    """

    title: str
    description: str
    width: int
    height: int
    body: str
    has_links: bool

    def to_inline(self) -> str:
        """Return the `svg` element for a page that has `read_stylesheet` among its styles."""
        return render_template("stele.pictures", "picture.svg.j2", picture=self, has_style=False)

    def to_document(self) -> str:
        """Return the `svg` element with its stylesheet and a ground: for a file, or a page with other styles."""
        return render_template("stele.pictures", "picture.svg.j2", picture=self, has_style=True)

    def _repr_html_(self) -> str:
        return self.to_document()


@cache
def read_stylesheet() -> str:
    """Return the stylesheet of all pictures; its rules concern nothing outside them."""
    return render_template("stele.pictures", "shared/pictures.css")


class Drawing:
    """Collects the elements of one picture."""

    def __init__(self, title: str, description: str) -> None:
        self._title, self._description = clean_text(title), clean_text(description)
        self._root = ET.Element("g")
        self._has_links = False

    @property
    def root(self) -> ET.Element:
        """The element around all others."""
        return self._root

    def add_group(self, parent: ET.Element, tip: str = "", href: str | None = None) -> ET.Element:
        """Add a group of elements.

        Args:
            parent: Element to add it to.
            tip: What it stands for: shown when the pointer rests on it, and read out.
            href: Address it leads to; None: nowhere.
        """
        attributes = {}
        if href is not None:
            self._has_links = True
            attributes = {"href": clean_text(href), "aria-label": clean_text(tip)}
        group = ET.SubElement(parent, "g" if href is None else "a", attributes)
        if tip:
            ET.SubElement(group, "title").text = clean_text(tip)
        return group

    def add_text(
        self, parent: ET.Element, at: Point, text: str, classes: str = "", most: int = 0, part: KeptPart | None = None
    ) -> None:
        """Add a line of text.

        Args:
            parent: Element to add it to.
            at: Where its base line begins, ends or has its middle, as the classes say.
            text: The text.
            classes: Classes of the stylesheet.
            most: Columns of letters after which it is cut; 0: none. What is cut is told by a tip.
            part: Which part stays then; None: the beginning.
        """
        whole = clean_text(text)
        visible_text = shorten(whole, most, part or KeptPart.BEGINNING) if most else whole
        attributes = {"x": print_number(at.x), "y": print_number(at.y)} | ({"class": classes} if classes else {})
        element = ET.SubElement(parent, "text", attributes)
        element.text = visible_text
        if visible_text != whole:
            ET.SubElement(element, "title").text = whole

    def add_rect(self, parent: ET.Element, at: Point, size: Point, classes: str, radius: float = 0) -> ET.Element:
        """Add a rectangle by its top left corner and its size."""
        attributes = {
            "class": classes,
            "x": print_number(at.x),
            "y": print_number(at.y),
            "width": print_number(size.x),
            "height": print_number(size.y),
        }
        if radius:
            attributes["rx"] = print_number(radius)
        return ET.SubElement(parent, "rect", attributes)

    def add_path(self, parent: ET.Element, data: str, classes: str) -> None:
        """Add a line or shape by its path data."""
        ET.SubElement(parent, "path", {"class": classes, "d": data})

    def add_sign(self, parent: ET.Element, at: Point, verdict: Verdict | None) -> None:
        """Add the sign of a verdict: a check mark, a cross, a wave, or a dash where nothing was compared."""
        kind, data = _SIGNS[verdict]
        place = f"translate({print_number(at.x)} {print_number(at.y)})"
        ET.SubElement(parent, "path", {"class": f"p-sign {kind}", "transform": place, "d": data})

    def add_arrow_head(self, parent: ET.Element, at: Point, classes: str = "", *, left: bool = False) -> None:
        """Add the head of an arrow that ends at a point, flying to the right or to the left."""
        back = 6 if left else -6
        x, y = print_number(at.x), print_number(at.y)
        self.add_path(parent, f"M{x} {y} l{back} -3.5 v7 z", f"p-head {classes}".strip())

    def finish(self, width: float, height: float) -> Picture:
        """Return the picture of all that was added."""
        body = ET.tostring(self._root, encoding="unicode")
        return Picture(self._title, self._description, round(width), round(height), body, self._has_links)


def edge_class(verdict: Verdict | None) -> str:
    """Return the class of a line that stands for a verdict."""
    if verdict is Verdict.INCOMPATIBLE:
        return "p-broken"
    return "" if verdict is Verdict.COMPATIBLE else "p-unknown"


def clean_text(text: str) -> str:
    """Return a text that XML can hold, in which characters that change the direction of others are shown by number."""
    if text.isascii() and text.isprintable():
        return text
    text = _NOT_XML.sub("\ufffd", text)
    return _INVISIBLE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def measure_columns(text: str) -> int:
    """Return how many columns of letters a text takes: two for a wide letter."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


class KeptPart(Enum):
    """Which part of a text stays when it is cut."""

    BEGINNING = "beginning"
    END = "end"
    BOTH = "both"


def shorten(text: str, most: int, part: KeptPart = KeptPart.BEGINNING) -> str:
    """Return a part of a text that takes at most so many columns; what is cut shows as `…`."""
    if len(text) <= most and measure_columns(text) <= most:
        return text
    room = max(most - 1, 0)
    if part is KeptPart.BEGINNING:
        return f"{_take_columns(text, room)}…"
    if part is KeptPart.END:
        return f"…{_take_columns(text[::-1], room)[::-1]}"
    start = _take_columns(text, room * 2 // 5)
    return f"{start}…{_take_columns(text[::-1], room - measure_columns(start))[::-1]}"


def _take_columns(text: str, most: int) -> str:
    """Return the beginning of a text that takes at most so many columns."""
    part = text[:most]
    while measure_columns(part) > most:
        part = part[:-1]
    return part


def print_number(number: float) -> str:
    """Return a coordinate with at most one decimal place."""
    return f"{round(number, 1):g}" if abs(number) < 100_000 else str(round(number))
