"""How clients of each dialect see a version: ids, names and paths in the terms of the dialect."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stele.ui.options import ClientView
from stele.ui.pages import Page, PageRequest
from stele.ui.subject import SubjectHead, find_subject, make_tab


class ClientsPage(msgspec.Struct, frozen=True):
    """A version as clients of each dialect see it; base is the URI that precedes their paths."""

    head: SubjectHead
    base: str
    views: Sequence[ClientView]


async def view_clients(page: PageRequest) -> ClientsPage:
    """Show the names that clients of each dialect use for a version, and the path under which they read it."""
    subject_view = await find_subject(page)
    version = subject_view.version
    views = page.options.describe_version(subject_view.state, version) if version is not None else ()
    return ClientsPage(subject_view.head, page.base_uri, views)


def list_pages() -> list[Page]:
    """Return the pages of this module."""
    return [make_tab("clients", view_clients)]
