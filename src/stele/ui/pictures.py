"""Pictures on pages: the links in them, and their markup."""

from __future__ import annotations

from markupsafe import Markup

from stele.pictures import Picture, PictureLinks, PictureTable
from stele.ui.pages import PageFrame


class PageLinks(PictureLinks):
    """Addresses of the pages to which a picture links.

    Args:
        frame: Frame of the page that shows the picture.
    """

    def __init__(self, frame: PageFrame) -> None:
        self._frame = frame

    def link_subject(self, namespace: str, subject: str) -> str:
        """Return the address of a subject's page."""
        return self._frame.subject_link(namespace, subject)

    def link_version(self, namespace: str, subject: str, version: int) -> str:
        """Return the address of a version's page."""
        return self._frame.subject_link(namespace, subject, version=version)

    def link_pair(self, namespace: str, subject: str, old: int, new: int) -> str:
        """Return the address of the page that compares two versions."""
        return self._frame.subject_link(namespace, subject, "compare", old=old, new=new)

    def link_fold(self, namespace: str, subject: str, first: int, last: int) -> str:
        """Return the address of the story line with a range of versions unfolded."""
        return self._frame.subject_link(namespace, subject, "history", unfold=f"{first}-{last}")

    def link_field(self, namespace: str, subject: str, path: str) -> str:
        """Return the address of the subject's fields, filtered by a path."""
        return self._frame.subject_link(namespace, subject, "fields", field=path)


def embed_picture(picture: Picture) -> Markup:
    """Return a picture as an element of a page. `stele.pictures` has already escaped its texts."""
    return Markup(picture.to_inline())  # noqa: S704 - printed by an XML library


def embed_table(table: PictureTable) -> Markup:
    """Return the table twin of a picture as an element of a page. Its template has already escaped its texts."""
    return Markup(table.to_html())  # noqa: S704 - made by a template that escapes
