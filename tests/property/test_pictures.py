"""Pictures of any answer: every element is drawn once, none overlaps another, and folds have the right counts."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.history_answers import make_atlas, make_history, make_lifelines, make_neighbourhood

from stele.core.findings import Verdict
from stele.pictures import draw_atlas, draw_field_lifelines, draw_neighbourhood, draw_story_line
from stele.pictures.field_lifelines import select_fields
from stele.pictures.layered_layout import assign_layers, order_layers
from stele.pictures.story_line import fold_history
from stele.protocol.history import SubjectHistory, count_broken

SVG = "{http://www.w3.org/2000/svg}"
VERDICTS = st.sampled_from([Verdict.COMPATIBLE, Verdict.COMPATIBLE, Verdict.COMPATIBLE, Verdict.INCOMPATIBLE, None])


@st.composite
def histories(draw: st.DrawFn) -> SubjectHistory:
    """Histories of up to 60 versions, some of them soft-deleted."""
    verdicts = draw(st.lists(st.tuples(VERDICTS, VERDICTS), max_size=60))
    deleted = draw(st.frozensets(st.integers(1, 60), max_size=8))
    return make_history(verdicts, deleted)


def _boxes(body: str, kind: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of the rectangles of a kind."""
    boxes = []
    for rect in ET.fromstring(body).iter("rect"):
        if kind in (rect.get("class") or "").split():
            x, y, width, height = (float(rect.get(name) or 0) for name in ("x", "y", "width", "height"))
            boxes.append((x, y, x + width, y + height))
    return boxes


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@settings(max_examples=60, deadline=None)
@given(histories(), st.integers(0, 6), st.integers(2, 30))
def test_every_version_has_one_place(history: SubjectHistory, least: int, most: int) -> None:
    """Folding omits no version, keeps their order, and counts the breaking ones."""
    stops = fold_history(history, least_folded=least, most_stops=most)
    assert [version for stop in stops for version in stop.versions] == list(history.versions)
    assert len(stops) <= most
    assert sum(count_broken(stop.versions) for stop in stops) == count_broken(history.versions)
    newest = [version.version for version in history.versions if not version.deleted][-1:]
    assert all(not stop.is_fold or stop.versions[-1].version not in newest for stop in stops)


@settings(max_examples=40, deadline=None)
@given(histories())
def test_versions_lie_side_by_side(history: SubjectHistory) -> None:
    """The boxes of versions do not overlap, and lie inside the picture."""
    picture = draw_story_line(history, least_folded=0, most_stops=1000)
    boxes = [box for box in _boxes(picture.body, "p-box") if box[2] - box[0] > 40]  # the legend's are smaller
    assert len(boxes) == len(history.versions)
    assert not [pair for pair in combinations(boxes, 2) if _overlap(*pair)]
    assert all(box[0] >= 0 and box[2] <= picture.width and box[3] <= picture.height for box in boxes)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 99), st.integers(1, 50))
def test_every_field_has_one_row(versions: int, fields: int, seed: int, most: int) -> None:
    """Fields keep their order; what is left out is counted; bars do not overlap."""
    lifelines = make_lifelines(versions, fields, seed)
    visible_fields = select_fields(lifelines, most)
    assert visible_fields == [field for field in lifelines.fields if field in visible_fields]
    assert len(visible_fields) == min(most, fields)
    picture = draw_field_lifelines(lifelines, most_rows=most)
    texts = [text.text or "" for text in ET.fromstring(picture.body).iter("text")]
    for field in lifelines.fields:
        assert texts.count(field.path) == (field in visible_fields)
    hidden = fields - len(visible_fields)
    assert (f"{hidden} more field path{'s' * (hidden != 1)}" in texts) == (hidden > 0)
    bars = [(x + 0.06, y, right - 0.06, bottom) for x, y, right, bottom in _boxes(picture.body, "p-bar")]
    assert len(bars) == sum(len(field.spans) for field in visible_fields)
    assert not [pair for pair in combinations(bars, 2) if _overlap(*pair)]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 15))
def test_every_neighbour_is_drawn_or_counted(used: int, users: int, most: int) -> None:
    """Each distance draws a limited number of subjects and counts the others; boxes do not overlap."""
    picture = draw_neighbourhood(make_neighbourhood(used, users), most_in_layer=most)
    texts = [text.text or "" for text in ET.fromstring(picture.body).iter("text")]
    for count, word in ((used, "used"), (users, "user")):
        assert sum(text.startswith(word) and text[4:].isdigit() for text in texts) == min(count, most)
        if count > most:
            assert f"{count - most} more" in texts
    boxes = [box for box in _boxes(picture.body, "p-box") if box[2] - box[0] > 40]
    assert not [pair for pair in combinations(boxes, 2) if _overlap(*pair)]


GRAPHS = st.integers(1, 30).flatmap(
    lambda size: st.tuples(
        st.just(size), st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=60, unique=True)
    )
)


@settings(max_examples=60, deadline=None)
@given(GRAPHS)
def test_layers_hold_every_node_once(graph: tuple[int, list[tuple[int, int]]]) -> None:
    """Each node is in one layer, also with cycles; without cycles it is behind all nodes that it uses."""
    size, edges = graph
    layers = assign_layers(range(size), edges)
    assert sorted(node for row in order_layers(layers, edges) for node in row) == list(range(size))
    downward = [(max(pair), min(pair)) for pair in edges if pair[0] != pair[1]]
    layers = assign_layers(range(size), downward)
    assert all(layers[user] > layers[used] for user, used in downward)


@settings(max_examples=30, deadline=None)
@given(GRAPHS)
def test_every_subject_of_an_atlas_is_drawn_once(graph: tuple[int, list[tuple[int, int]]]) -> None:
    """Each subject has one dot, and no two names overlap."""
    size, pairs = graph
    names = [f"team{number % 3}.subject{number}" for number in range(size)]
    picture = draw_atlas(make_atlas(names, pairs))
    texts = [text.text or "" for text in ET.fromstring(picture.body).iter("text")]
    assert all(texts.count(name) == 1 for name in names)
    grounds = _boxes(picture.body, "p-ground")
    assert len(grounds) == size
    assert not [pair for pair in combinations(grounds, 2) if _overlap(*pair)]
