"""HTML pages from templates."""

from __future__ import annotations

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
    """A template never shows nothing where a value is missing."""
    with pytest.raises(jinja2.UndefinedError):
        render_template("stele.apis.schema_repo", "text.html.j2", title="t", root="/r", show_index_link=False)
    with pytest.raises(jinja2.TemplateNotFound):
        render_template("stele.apis.schema_repo", "absent.html.j2")


def test_no_html_is_built_by_hand() -> None:
    """Pages come from templates: no module writes elements into strings or escapes them itself."""
    by_hand = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if any(
            sign in path.read_text(encoding="utf-8") for sign in ("</table>", "</html>", "</svg>", "from html import")
        )
    ]
    assert by_hand == []
