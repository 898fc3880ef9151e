"""The pages of the browser: plain HTML without scripts, from the templates beside. Everything shown is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stele.templates import render_template

HEADERS = {"content-security-policy": "default-src 'none'", "x-content-type-options": "nosniff"}
"""Headers of every page: should a text ever get out of its element, it could not run."""
_PACKAGE = "stele.apis.schema_repo"


def render_subjects(root: str, names: Sequence[str]) -> str:
    """Return the page of all subjects, with links to the views of each; root is the path of the browser."""
    return render_template(
        _PACKAGE, "subjects.html.j2", title="Subjects", root=root, names=names, show_index_link=False
    )


def render_schemas(root: str, name: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return the page of a subject's schemas from pairs of id and text, with a link to each."""
    return render_template(_PACKAGE, "schemas.html.j2", title=name, root=root, rows=list(rows), show_index_link=True)


def render_text(root: str, title: str, text: str) -> str:
    """Return the page of one text as it is."""
    return render_template(_PACKAGE, "text.html.j2", title=title, root=root, text=text, show_index_link=True)
