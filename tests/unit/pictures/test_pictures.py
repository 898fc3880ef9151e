"""Pictures: well-formed, safe, reproducible, and readable without colours."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace
from tests.support.history_answers import (
    make_atlas,
    make_history,
    make_lifelines,
    make_neighbourhood,
    make_node,
)
from tools.history_pictures import FOLDER, draw_pictures

from stele.core.findings import Verdict
from stele.pictures import (
    Picture,
    PictureLinks,
    draw_atlas,
    draw_compatibility_matrix,
    draw_field_lifelines,
    draw_neighbourhood,
    draw_story_line,
    read_stylesheet,
    render_figure,
    tabulate_history,
    tabulate_lifelines,
    tabulate_matrix,
)
from stele.pictures.svg import KeptPart, clean_text, measure_columns, shorten
from stele.pictures.table import print_day, take_rows
from stele.protocol.history import CompatibilityMatrix, FieldLifeline, FieldLifelines, FieldSpan, Neighbourhood

YES, NO, DOUBT = Verdict.COMPATIBLE, Verdict.INCOMPATIBLE, Verdict.UNDECIDED
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script>\"'&\u202e\x00\ud800" + "long" * 2500
"""A name with markup, a direction override, characters that XML forbids, and 10,000 more characters."""

HISTORY = make_history([(None, None), (YES, YES), (NO, YES), (YES, DOUBT), (None, None)], frozenset({3}))
MATRIX = CompatibilityMatrix("", "orders", (1, 2), ((YES, NO), (DOUBT, YES)), "BACKWARD", ((2, 1),))


def _rename_everything(name: str) -> dict[str, Picture]:
    """Return every picture, with the given name in all places of names."""
    history = replace(
        HISTORY,
        subject=name,
        versions=tuple(replace(row, author=name, note=name, format=name) for row in HISTORY.versions),
    )
    line = FieldLifeline(name, (FieldSpan(1, 1, name, name, name), FieldSpan(2, 2, "int")), name)
    node = replace(make_node(name), format=name)
    return {
        "story": draw_story_line(history),
        "fields": draw_field_lifelines(FieldLifelines(name, name, (1, 2), (line,))),
        "matrix": draw_compatibility_matrix(replace(MATRIX, subject=name, policy=name)),
        "neighbours": draw_neighbourhood(Neighbourhood(node, (node,), ())),
        "atlas": draw_atlas(replace(make_atlas([name, "b"], [(1, 0)]), namespace=name)),
    }


@pytest.mark.parametrize("kind", ["story", "fields", "matrix", "neighbours", "atlas"])
def test_names_are_shown_as_text(kind: str) -> None:
    """Markup in a name is text, characters that XML forbids are replaced, and a long name is cut."""
    picture = _rename_everything(HOSTILE)[kind]
    for text in (picture.to_document(), picture.to_inline()):
        root = ET.fromstring(text)
        assert not list(root.iter(f"{SVG}script"))
        assert "\u202e" not in text
        labels = [element.text or "" for element in root.iter(f"{SVG}text")]
        assert max(map(len, labels)) < 100
        assert root.findtext(f"{SVG}title")


@pytest.mark.parametrize("kind", ["story", "fields", "matrix", "neighbours", "atlas"])
def test_pictures_run_and_load_nothing(kind: str) -> None:
    """A picture has no script, no handler, no inline style and no address of its own."""
    text = _rename_everything("orders")[kind].to_document()
    root = ET.fromstring(text)
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in {"svg", "title", "desc", "style", "g", "rect", "path", "text"}
        assert not {name for name in element.attrib if name.startswith("on") or name in {"style", "href"}}
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)


def test_a_picture_says_what_it_is() -> None:
    """A picture has a name and a description; with links its role is a group, because an image would hide them."""

    class Links(PictureLinks):
        def link_version(self, namespace: str, subject: str, version: int) -> str | None:
            return f"/ui/{subject}/{version}?a=1&b={namespace}"

    plain = ET.fromstring(draw_story_line(HISTORY).to_inline())
    assert (plain.get("role"), plain.get("aria-label")) == ("img", "History of orders")
    described = plain.findtext(f"{SVG}desc") or ""
    assert described.startswith("5 versions from 1970-01-02 to 1970-01-06, 1 broke with the one before")
    linked = ET.fromstring(draw_story_line(HISTORY, Links()).to_inline())
    assert linked.get("role") == "group"
    links = list(linked.iter(f"{SVG}a"))
    assert [link.get("href") for link in links] == [f"/ui/orders/{n}?a=1&b=" for n in range(1, 6)]
    assert all(link.get("aria-label") for link in links)


def test_the_style_stands_in_documents_only() -> None:
    """A file includes its style; an inline picture does not, because the policy of a page may forbid it."""
    picture = draw_story_line(HISTORY)
    assert read_stylesheet() in picture.to_document()
    assert "<style" not in picture.to_inline()
    selectors = re.findall(r"^ *([^@{}\n]+)\{", read_stylesheet(), re.MULTILINE)
    assert all(selector.strip().startswith(".stele-picture") for selector in selectors)


@pytest.mark.parametrize("draw", [lambda: draw_story_line(HISTORY), lambda: draw_field_lifelines(make_lifelines(9, 9))])
def test_the_same_answer_gives_the_same_bytes(draw: Callable[[], Picture]) -> None:
    """A picture does not depend on the time, on chance, or on the order in memory."""
    assert draw().to_document() == draw().to_document()


def test_verdicts_are_told_by_signs() -> None:
    """Each verdict has a shape of its own in addition to its colour."""
    body = draw_compatibility_matrix(MATRIX).body
    shapes = dict(re.findall(r'class="p-sign (p-\w+)"[^>]* d="([^"]+)"', body))
    assert shapes.keys() == {"p-no", "p-doubt"}
    assert len(set(shapes.values())) == 2
    assert body.count("p-demand") == 2  # the cell, and the legend


def test_a_deleted_version_is_hollow_and_named() -> None:
    """A soft-deleted version has another outline and the word "deleted"; a forced version is labelled, too."""
    body = draw_story_line(HISTORY).body
    assert "p-hollow" in body
    assert ">deleted<" in body
    assert ">forced<" in body
    assert ">latest<" in body


def test_arcs_say_what_the_newest_version_reads() -> None:
    """Every older active version except the neighbour has an arc with a tooltip; text and table agree with it."""
    history = make_history([(YES, YES)] * 6, frozenset({4}), newest_reads=[NO, YES, DOUBT, NO, YES, None])
    picture = draw_story_line(history, least_folded=0)
    tips = re.findall(r"<title>(Version 6 reads data of [^<;]*)</title>", picture.body)
    assert tips == [
        "Version 6 reads data of version 1: no",
        "Version 6 reads data of version 2: yes",
        "Version 6 reads data of version 3: undecided",
    ]
    assert picture.body.count("p-edge p-arc") == 4  # three, and the legend
    assert "version 6 reads data of 2 of 5 others, of all since version 5" in picture.description
    assert [row["latest reads it"] for row in tabulate_history(history).to_records()] == [
        "",
        "yes",
        "no",
        "undecided",
        "yes",
        "no",
    ]
    everything = make_history([(YES, YES)] * 3, newest_reads=[YES, YES, None])
    assert "version 3 reads data of all others" in draw_story_line(everything).description
    assert "p-arc" not in draw_story_line(make_history([(YES, YES)] * 2, newest_reads=[YES, None])).body


def test_arcs_of_earlier_rows_and_folds_lead_to_a_tag() -> None:
    """A row without the newest version has a tag with its number; the arc of a mixed fold has a count."""
    reads = [NO, NO, *[YES] * 8, None]
    story = draw_story_line(make_history([(NO, YES)] * 11, newest_reads=reads), per_row=4)
    assert story.body.count(">v11<") == 3  # two tags, and the version
    folded = draw_story_line(make_history([(YES, YES)] * 11, newest_reads=reads))
    assert ">8 of 9<" in folded.body
    assert "Version 11 reads data of 8 of 9 versions from 2 to 10" in folded.body
    part = make_history([(YES, YES)] * 3, newest_reads=[YES, NO, YES])
    assert ">v9<" in draw_story_line(replace(part, newest=9)).body


def test_stale_users_come_first_and_say_so() -> None:
    """A subject that refers to an older version is drawn above the others, dashed, with both version numbers."""
    around = make_neighbourhood(1, 30, stale=True)
    body = draw_neighbourhood(around, most_in_layer=5).body
    assert body.count("p-box p-stale") == 6  # five, and the legend
    assert "uses v2 of 3" in body
    assert ">25 more<" in body


def test_tables_say_the_same() -> None:
    """Each picture has a table twin, with words for signs."""
    table = tabulate_history(HISTORY)
    assert [row[0] for row in table.rows] == [5, 4, 3, 2, 1]
    assert dict(table.to_records()[2]) == {
        "version": 3,
        "registered (UTC)": "1970-01-04 00:00",
        "by": "ann",
        "state": "deleted, forced",
        "new reads old": "no",
        "old reads new": "yes",
        "old": 2,
        "latest reads it": "not compared",
        "id": 103,
        "note": "",
    }
    assert tabulate_matrix(MATRIX).rows == (("v1 reads", "", "no"), ("v2 reads", "undecided", ""))
    spans = tabulate_lifelines(make_lifelines(5, 3)).rows
    assert len(spans) == sum(len(line.spans) for line in make_lifelines(5, 3).fields)


def test_a_figure_has_picture_and_table() -> None:
    """A figure has the picture with its description, and the folded table."""
    table = take_rows(tabulate_history(HISTORY), 2)
    page = render_figure(draw_story_line(HISTORY), table)
    assert (page.count("<svg"), page.count("<table"), page.count("<tr>")) == (1, 1, 4)
    assert "… 3 more" in page


def test_nothing_is_drawn_as_nothing() -> None:
    """A subject without versions, fields or neighbours has a picture that says so."""
    nothing = replace(HISTORY, versions=())
    empty = FieldLifelines("", "orders", (), ())
    matrix = CompatibilityMatrix("", "orders", (), ())
    pictures = (draw_story_line(nothing), draw_field_lifelines(empty), draw_compatibility_matrix(matrix))
    for picture in (*pictures, draw_atlas(make_atlas([], []))):
        assert "No " in picture.body
        ET.fromstring(picture.to_document())


def test_texts_are_cut_by_columns() -> None:
    """Wide letters count as two columns; a cut text keeps its beginning, its end, or both."""
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcdef", 4, KeptPart.END) == "…def"
    assert shorten("abcdefghij", 6, KeptPart.BOTH) == "ab…hij"
    assert shorten("版本版本", 5) == "版本…"
    assert measure_columns("版a") == 3
    assert clean_text("a\u202eb\x00") == "a⟨U+202E⟩b\ufffd"


def test_times_beyond_the_calendar_are_drawn() -> None:
    """Times after the year 9999, which an import may contain, can be drawn."""
    assert print_day(2**56) == "9999-12-31"


def test_pictures_of_the_documentation_are_those_of_the_code() -> None:
    """The files are what `python -m tools.history_pictures` draws now, and a page shows each."""
    page = (FOLDER.parent / "how-to" / "history.md").read_text(encoding="utf-8")
    for name, text in draw_pictures().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, "run: python -m tools.history_pictures"
        assert f"../pictures/{name}" in page
