"""The history of a subject in pictures: story line, field lifelines, matrix; each with its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from stele.apis.http.requests import parse_whole_number
from stele.core.model import MAX_INT32, SubjectKey
from stele.core.policy import POLICIES, find_policy
from stele.errors import InvalidRequest
from stele.pictures import (
    Picture,
    PictureTable,
    draw_compatibility_matrix,
    draw_field_lifelines,
    draw_story_line,
    tabulate_history,
    tabulate_lifelines,
    tabulate_matrix,
)
from stele.protocol.history import MOST_VERSIONS, CompatibilityMatrix, FieldLifelines, SubjectHistory
from stele.service.history import get_history, get_matrix
from stele.service.lifelines import get_lifelines
from stele.ui.pages import Page, PageFrame, PageRequest
from stele.ui.pictures import PageLinks, embed_picture, embed_table
from stele.ui.subject import SubjectHead, find_subject, make_tab

PICTURES: Final = (("story", "Story line"), ("lifelines", "Field lifelines"), ("matrix", "Who reads whom"))
"""Pictures: name in the query and title."""
_BREAKING: Final = "breaking"
_LEAST_HARMLESS: Final = 2
"""Minimum number of consecutive harmless versions that are folded when only breaking ones are shown."""


class HistoryPage(msgspec.Struct, frozen=True):
    """The data of a picture.

    picture     name of the picture: `story`, `lifelines` or `matrix`; only the field with its data is not null
    field       path of the only field whose lifeline is shown; '' shows all
    unfold      range `first-last` of versions that are drawn one by one, with one on each side; '' draws all and folds
                some
    breaking    whether the story line shows only the versions that broke something
    policy      policy whose comparisons the matrix marks; '' is the one in force
    policies    policies to choose from
    """

    head: SubjectHead
    picture: str
    field: str
    unfold: str
    breaking: bool = False
    policy: str = ""
    policies: Sequence[str] = tuple(POLICIES)
    story: SubjectHistory | None = None
    lifelines: FieldLifelines | None = None
    matrix: CompatibilityMatrix | None = None


async def view_history(page: PageRequest) -> HistoryPage:
    """Show the history of a subject: its story line, the lifelines of its fields, or the compatibility matrix."""
    subject_view = await find_subject(page)
    picture, field = page.get_query("picture", "story"), page.get_query("field")
    if picture not in dict(PICTURES):
        raise InvalidRequest(f"picture must be one of {', '.join(dict(PICTURES))}")
    policy = page.get_query("policy")
    bare = HistoryPage(
        subject_view.head, picture, field, page.get_query("unfold"), page.get_query("only") == _BREAKING, policy
    )
    if subject_view.version is None:
        return bare
    match picture:
        case "story":
            return msgspec.structs.replace(bare, story=await _find_story(page, subject_view.key))
        case "matrix":
            return msgspec.structs.replace(bare, matrix=await _find_matrix(page, subject_view.key, policy))
        case _:
            lifelines = await get_lifelines(page.registry, subject_view.key)
            if field:
                fields = tuple(each for each in lifelines.fields if each.path == field)
                lifelines = msgspec.structs.replace(lifelines, fields=fields)
            return msgspec.structs.replace(bare, lifelines=lifelines)


async def _find_matrix(page: PageRequest, key: SubjectKey, policy: str) -> CompatibilityMatrix:
    """Return the matrix in which the comparisons that a policy requires are marked. Raises `UnknownPolicy`."""
    return await get_matrix(page.registry, key, policy=find_policy(policy) if policy else None)


async def _find_story(page: PageRequest, key: SubjectKey) -> SubjectHistory:
    """Return the part of the story line that the query names: before a version, around a fold, or the newest."""
    unfold, before_text = page.get_query("unfold"), page.get_query("before")
    if unfold:
        first, _, last = unfold.partition("-")
        lower = parse_whole_number("unfold", first, 1, MAX_INT32)
        upper = parse_whole_number("unfold", last, lower, MAX_INT32)
        limit = min(upper - lower + 3, MOST_VERSIONS)
        return await get_history(page.registry, key, before=min(upper + 2, MAX_INT32), limit=limit)
    before = parse_whole_number("before", before_text, 1, MAX_INT32) if before_text else None
    return await get_history(page.registry, key, before=before)


def draw_picture(page: HistoryPage, frame: PageFrame) -> Markup:
    """Return the picture of a page."""
    links = PageLinks(frame)
    picture: Picture
    if page.story is not None:
        if page.breaking:
            picture = draw_story_line(page.story, links, least_folded=_LEAST_HARMLESS)
        elif page.unfold:
            picture = draw_story_line(page.story, links, least_folded=0, most_stops=len(page.story.versions) + 2)
        else:
            picture = draw_story_line(page.story, links)
    elif page.lifelines is not None:
        picture = draw_field_lifelines(page.lifelines, links)
    else:
        assert page.matrix is not None
        picture = draw_compatibility_matrix(page.matrix, links)
    return embed_picture(picture)


def _select_breaking(story: SubjectHistory) -> SubjectHistory:
    """Return a history without the versions that broke no reader."""
    versions = tuple(version for version in story.versions if version.link is not None and not version.link.is_harmless)
    return msgspec.structs.replace(story, versions=versions)


def print_table(page: HistoryPage) -> Markup:
    """Return the table with the same content as the picture of a page."""
    table: PictureTable
    if page.story is not None:
        table = tabulate_history(_select_breaking(page.story) if page.breaking else page.story)
    elif page.lifelines is not None:
        table = tabulate_lifelines(page.lifelines)
    else:
        assert page.matrix is not None
        table = tabulate_matrix(page.matrix)
    return embed_table(table)


def list_pages() -> Sequence[Page]:
    """Return the pages of this module."""
    helpers = {"draw_picture": draw_picture, "print_table": print_table, "pictures": PICTURES}
    return [make_tab("history", view_history, in_thread=True, **helpers)]
