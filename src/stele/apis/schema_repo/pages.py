"""The pages of the browser: plain HTML without scripts; everything that was sent by somebody is escaped. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import quote

HEADERS = {"content-security-policy": "default-src 'none'", "x-content-type-options": "nosniff"}
"""Headers of every page: should a text ever get out of its element, it could not run."""


def subjects_page(root: str, names: Iterable[str]) -> str:
    """All subjects with links to what there is about each; root is the path of the browser."""
    rows = [
        f"<tr><td>{escape(name)}</td>"
        + "".join(f"<td>{_link(f'{_below(root, name)}/{what}', what)}</td>" for what in ("all", "config", "latest"))
        + "</tr>"
        for name in names
    ]
    if not rows:
        return _page("Subjects", "<h2>There is no subject yet.</h2>")
    return _page("Subjects", f"<table><tr><th>subject</th><th colspan=3></th></tr>{''.join(rows)}</table>")


def schemas_page(root: str, name: str, rows: Iterable[tuple[str, str]]) -> str:
    """(id, text) of a subject's schemas, newest first, with links to each."""
    told = [
        f"<tr><td>{_link(f'{_below(root, name)}/id/{_quoted(schema_id)}', schema_id)}</td>"
        f"<td><pre>{escape(text)}</pre></td></tr>"
        for schema_id, text in rows
    ]
    if not told:
        return _page(name, "<h2>There is no schema yet.</h2>", root)
    return _page(name, f"<table><tr><th>id</th><th>schema</th></tr>{''.join(told)}</table>", root)


def text_page(root: str, title: str, text: str) -> str:
    """One text as it is."""
    return _page(title, f"<pre>{escape(text)}</pre>", root)


def _below(root: str, name: str) -> str:
    return f"{root}/{_quoted(name)}"


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _link(target: str, text: str) -> str:
    return f'<a href="{escape(target)}">{escape(text)}</a>'


def _page(title: str, body: str, root: str = "") -> str:
    back = f"<p>{_link(root, 'all subjects')}</p>" if root else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f"<body><h1>{escape(title)}</h1>{back}{body}</body></html>\n"
    )
