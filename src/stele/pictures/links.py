"""Links of a picture. The code that shows a picture provides the addresses of its pages."""

from __future__ import annotations


class PictureLinks:
    """Addresses of the things in a picture; None means no link. This class returns None for everything.

    A page overrides the methods for which it has addresses. Addresses are used as they are, so texts in them must be
    escaped.
    """

    def link_subject(self, namespace: str, subject: str) -> str | None:
        """Return the address of a subject."""
        del namespace, subject
        return None

    def link_version(self, namespace: str, subject: str, version: int) -> str | None:
        """Return the address of a version."""
        del namespace, subject, version
        return None

    def link_pair(self, namespace: str, subject: str, old: int, new: int) -> str | None:
        """Return the address of the comparison of two versions."""
        del namespace, subject, old, new
        return None

    def link_fold(self, namespace: str, subject: str, first: int, last: int) -> str | None:
        """Return the address of the picture in which versions are not folded."""
        del namespace, subject, first, last
        return None

    def link_field(self, namespace: str, subject: str, path: str) -> str | None:
        """Return the address of a field."""
        del namespace, subject, path
        return None


NO_LINKS = PictureLinks()
