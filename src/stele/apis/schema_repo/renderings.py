"""Bodies of answers, character by character: plain text, JSON, Java properties, HTML pages. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from stele.templates import render_template

MANY_LINES = (
    "ERROR: A schema of this subject has several lines, so this list cannot be told apart line by line. "
    "Ask for application/json instead.\n"
)


def format_lines(names: Iterable[str]) -> str:
    """Return one name per line, each with its line end."""
    return "".join(f"{name}\n" for name in names)


def format_entry(name: str, text: str) -> str:
    """Return an id and its schema."""
    return f"{name}\t{text}"


def format_entries(rows: Iterable[tuple[str, str]]) -> str:
    """Return ids and their schemas, one per line, after a warning if a schema has several lines."""
    rows = list(rows)
    warning = MANY_LINES if any("\n" in text or "\r" in text for _, text in rows) else ""
    return warning + format_lines(format_entry(name, text) for name, text in rows)


def encode_names(names: Iterable[str]) -> bytes:
    """Return subjects as JSON."""
    return _pretty_json([{"name": name} for name in names])


def encode_entries(rows: Iterable[tuple[str, str]]) -> bytes:
    """Return ids and their schemas as JSON."""
    return _pretty_json([{"id": name, "schema": text} for name, text in rows])


def _pretty_json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


# --- properties -----------------------------------------------------------------------------------------------------

_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_SPECIAL = re.compile(r"[\\=:#!\t\n\r\f]|[^\x20-\x7e]")


def format_properties(title: str, members: Mapping[str, str], seconds: float) -> str:
    """Return members as `java.util.Properties` stores them: a title, the date, sorted lines.

    Args:
        title: Comment in the first line.
        members: Keys and values.
        seconds: Date in seconds since 1970.
    """
    date = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(seconds))
    told = (f"{_escape_key(key)}={_escape_value(value)}\n" for key, value in sorted(members.items()))
    return f"#{title}\n#{date}\n" + "".join(told)


def _escape_key(text: str) -> str:
    return _SPECIAL.sub(_escape_character, text).replace(" ", "\\ ")


def _escape_value(text: str) -> str:
    """Return a value in its escaped form; of its blanks only leading ones need it."""
    told = _SPECIAL.sub(_escape_character, text)
    return f"\\{told}" if told.startswith(" ") else told


def _escape_character(found: re.Match[str]) -> str:
    char = found[0]
    if char in _NAMED:
        return _NAMED[char]
    if " " <= char <= "~":
        return f"\\{char}"
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))


# --- pages -----------------------------------------------------------------------------------------------------------

PAGE_HEADERS = {"content-security-policy": "default-src 'none'", "x-content-type-options": "nosniff"}
"""Headers of every page: a text that ever got out of its element could not run."""
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
