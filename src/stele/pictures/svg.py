"""Writes SVG: elements whose texts and attributes are escaped, with one stylesheet and no script.

The colours of a picture are classes of `templates/shared/pictures.css`. An SVG file includes that stylesheet; a page
includes it among its own styles, because a Content-Security-Policy may forbid styles inside a picture. Equal elements
result in equal bytes.
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
"""Invisible characters, and characters that change the direction of text. Their code points are shown instead."""

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
"""Names of verdicts in tables, legends and tooltips."""


class Point(NamedTuple):
    """A place in a picture, in pixels from the top left."""

    x: float
    y: float


class Picture(msgspec.Struct, frozen=True):
    """A drawing with its text alternative.

    Attributes:
        title: Title of a few words.
        description: Text alternative of one or two sentences, for readers who cannot see the picture.
        width: In pixels.
        height: In pixels.
        body: Inner elements, as text.
        has_links: Whether the picture contains links.
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
        """Return the `svg` element with its stylesheet and a background, for a file or a page with other styles."""
        return render_template("stele.pictures", "picture.svg.j2", picture=self, has_style=True)

    def _repr_html_(self) -> str:
        return self.to_document()


@cache
def read_stylesheet() -> str:
    """Return the stylesheet of all pictures. Its rules affect nothing outside them."""
    return render_template("stele.pictures", "shared/pictures.css")


class Drawing:
    """Collects the elements of one picture."""

    def __init__(self, title: str, description: str) -> None:
        self._title, self._description = clean_text(title), clean_text(description)
        self._root = ET.Element("g")
        self._has_links = False

    @property
    def root(self) -> ET.Element:
        """The element that contains all others."""
        return self._root

    def add_group(self, parent: ET.Element, tip: str = "", href: str | None = None) -> ET.Element:
        """Add a group of elements.

        Args:
            parent: Element to add it to.
            tip: Tooltip, which screen readers read out.
            href: Address of its link; None for no link.
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
            at: Beginning, end or middle of its base line, depending on the classes.
            text: The text.
            classes: Classes of the stylesheet.
            most: Maximum width in columns; 0 for no limit. The tooltip of a cut text has the whole text.
            part: The part of a cut text that stays; None: the beginning.
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
        """Add the head of an arrow that ends at a point and points to the right or to the left."""
        back = 6 if left else -6
        x, y = print_number(at.x), print_number(at.y)
        self.add_path(parent, f"M{x} {y} l{back} -3.5 v7 z", f"p-head {classes}".strip())

    def finish(self, width: float, height: float) -> Picture:
        """Return the picture of all that was added."""
        body = ET.tostring(self._root, encoding="unicode")
        return Picture(self._title, self._description, round(width), round(height), body, self._has_links)


def edge_class(verdict: Verdict | None) -> str:
    """Return the CSS class of a line with a verdict."""
    if verdict is Verdict.INCOMPATIBLE:
        return "p-broken"
    return "" if verdict is Verdict.COMPATIBLE else "p-unknown"


def clean_text(text: str) -> str:
    """Return a text that XML can hold. Characters that are invisible or change direction become code points."""
    if text.isascii() and text.isprintable():
        return text
    text = _NOT_XML.sub("\ufffd", text)
    return _INVISIBLE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def measure_columns(text: str) -> int:
    """Return the width of a text in columns; a wide letter takes two."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


class KeptPart(Enum):
    """The part of a text that stays when the text is cut."""

    BEGINNING = "beginning"
    END = "end"
    BOTH = "both"


def shorten(text: str, most: int, part: KeptPart = KeptPart.BEGINNING) -> str:
    """Return a text cut to a maximum width in columns; `…` replaces what is cut."""
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
