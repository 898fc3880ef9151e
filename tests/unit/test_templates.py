"""HTML pages from templates."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest

import stele
from stele.templates import render_template

ROOT = Path(stele.__file__).parent


def test_values_are_escaped_and_names_encoded() -> None:
    """A value cannot become markup, and a name with a slash stays one segment of a link."""
    page = render_template(
        "stele.apis.schema_repo", "subjects.html.j2", title="<i>", root="/r", names=["a/<b>"], show_index_link=False
    )
    assert "<b>" not in page
    assert "<i>" not in page
    assert 'href="/r/a%2F%3Cb%3E/all"' in page


def test_a_missing_value_is_an_error() -> None:
    """A missing value and a missing template raise an error."""
    with pytest.raises(jinja2.UndefinedError):
        render_template("stele.apis.schema_repo", "text.html.j2", title="t", root="/r", show_index_link=False)
    with pytest.raises(jinja2.TemplateNotFound):
        render_template("stele.apis.schema_repo", "absent.html.j2")


def test_no_html_is_built_by_hand() -> None:
    """All HTML comes from templates: no module builds elements as strings or escapes values itself."""
    by_hand = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if any(
            sign in path.read_text(encoding="utf-8") for sign in ("</table>", "</html>", "</svg>", "from html import")
        )
    ]
    assert by_hand == []


def _contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2.1, from 1 to 21."""

    def luminance(colour: str) -> float:
        digits = colour.lstrip("#")
        pairs = [digits[at : at + 2] for at in (0, 2, 4)] if len(digits) == 6 else [each * 2 for each in digits]
        shares = [int(pair, 16) / 255 for pair in pairs]
        red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_can_be_told_apart(theme: str) -> None:
    """In both themes, text has a contrast of at least 4.5 with its background, and plots have at least 3."""
    style = (ROOT / "templates" / "shared" / "style.css").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w+);", each)) for each in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    )
    assert light.keys() == dark.keys()
    colours = light if theme == "light" else dark
    texts = [("ink", "page"), ("ink", "panel"), ("quiet", "page"), ("quiet", "panel"), ("s0", "page")]
    texts += [(state, f"{state}-panel") for state in ("good", "attention", "neutral")]
    weak = {pair: _contrast(colours[pair[0]], colours[pair[1]]) for pair in texts}
    assert [pair for pair, contrast in weak.items() if contrast < 4.5] == []
    series = {name: _contrast(colours[name], colours["page"]) for name in colours if re.fullmatch(r"s\d", name)}
    assert {name: round(contrast, 2) for name, contrast in series.items() if contrast < 3} == {}
