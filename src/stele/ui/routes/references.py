"""References from and to a schema, as lists and as a picture, and the atlas of a namespace."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from stele.apis.http.access import Place, access
from stele.apis.http.requests import parse_whole_number
from stele.core.access import Operation
from stele.errors import NotFound
from stele.pictures import draw_atlas, draw_neighbourhood, tabulate_atlas, tabulate_neighbourhood
from stele.protocol.history import MOST_DEPTH, NamespaceAtlas, Neighbourhood
from stele.service.neighbours import get_atlas, get_neighbourhood
from stele.ui.pages import Page, PageFrame, PageRequest
from stele.ui.pictures import PageLinks, embed_picture, embed_table
from stele.ui.subject import SubjectHead, find_subject, make_tab


class ReferencesPage(msgspec.Struct, frozen=True):
    """A subject and its references in both directions; `neighbourhood` is None if the subject has no version."""

    head: SubjectHead
    depth: int
    neighbourhood: Neighbourhood | None


class AtlasPage(msgspec.Struct, frozen=True):
    """The subjects of a namespace; `namespaces` lists the namespaces to choose from."""

    namespace: str
    namespaces: Sequence[str]
    atlas: NamespaceAtlas


async def view_references(page: PageRequest) -> ReferencesPage:
    """Show the references from and to a schema, up to a depth."""
    subject_view = await find_subject(page)
    depth = parse_whole_number("depth", page.get_query("depth", "1"), 1, MOST_DEPTH)
    if subject_view.version is None:
        return ReferencesPage(subject_view.head, depth, None)
    number = subject_view.version.version_number
    around = await get_neighbourhood(page.registry, subject_view.key, number, depth=depth)
    return ReferencesPage(subject_view.head, depth, around)


async def view_atlas(page: PageRequest) -> AtlasPage:
    """Show all subjects of a namespace and their references."""
    rows = await page.site.subjects.list_rows()
    namespaces = sorted({row.namespace for row in rows})
    namespace_text = page.get_query("ns", namespaces[0] or "." if namespaces else ".")
    namespace = "" if namespace_text == "." else namespace_text
    if namespace and namespace not in namespaces:
        raise NotFound(f"there is no namespace '{namespace[:100]}'")
    return AtlasPage(namespace, namespaces, await get_atlas(page.registry, namespace))


def draw_references(page: ReferencesPage, frame: PageFrame) -> Markup:
    """Return the picture of a subject's references."""
    assert page.neighbourhood is not None
    return embed_picture(draw_neighbourhood(page.neighbourhood, PageLinks(frame)))


def print_references(page: ReferencesPage) -> Markup:
    """Return a subject's references as a table."""
    assert page.neighbourhood is not None
    return embed_table(tabulate_neighbourhood(page.neighbourhood))


def draw_subjects(page: AtlasPage, frame: PageFrame) -> Markup:
    """Return the picture of a namespace."""
    return embed_picture(draw_atlas(page.atlas, PageLinks(frame)))


def print_subjects(page: AtlasPage) -> Markup:
    """Return the subjects of a namespace as a table."""
    return embed_table(tabulate_atlas(page.atlas))


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    around = {"draw_references": draw_references, "print_references": print_references, "most_depth": MOST_DEPTH}
    return [
        make_tab("references", view_references, in_thread=True, **around),
        Page(
            "/ui/atlas",
            view_atlas,
            "atlas.html.j2",
            access(Operation.LIST, Place.LIST),
            menu="/atlas",
            helpers={"draw_subjects": draw_subjects, "print_subjects": print_subjects},
            in_thread=True,
        ),
    ]
