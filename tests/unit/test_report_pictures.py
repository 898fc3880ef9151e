"""The pictures of reports in the documentation: from fixed answers, small, and on a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.report_pictures import HEIGHTS, MADE_AT, MOST_BYTES, PICTURES, make_pages

DOCS = PICTURES.parent


def test_pages_of_pictures_never_change_by_themselves() -> None:
    """The same answers give the same pages, with a fixed date."""
    pages = make_pages()
    assert pages == make_pages()
    assert set(pages) == set(HEIGHTS)
    assert all(f'datetime="{MADE_AT:%Y-%m-%dT%H:%M:%SZ}"' in page for page in pages.values())


@pytest.mark.parametrize("name", HEIGHTS)
def test_each_report_has_a_picture_on_a_page(name: str) -> None:
    """A picture is a small PNG file, and a how-to page shows it."""
    picture: Path = PICTURES / f"report-{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < MOST_BYTES
    link = f"../pictures/{picture.name}"
    assert any(link in page.read_text(encoding="utf-8") for page in (DOCS / "how-to").glob("*.md"))
