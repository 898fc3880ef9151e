"""Plain text, JSON and Java properties: the bodies these dialects answer with, character by character. Pure."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping

import msgspec

MANY_LINES = (
    "ERROR: A schema of this subject has several lines, so this list cannot be told apart line by line. "
    "Ask for application/json instead.\n"
)


def lines(names: Iterable[str]) -> str:
    """One name per line, each with its end."""
    return "".join(f"{name}\n" for name in names)


def entry(name: str, text: str) -> str:
    """An id and its schema."""
    return f"{name}\t{text}"


def entries(rows: Iterable[tuple[str, str]]) -> str:
    """Ids and their schemas, one per line; led by a warning when a schema has several lines."""
    rows = list(rows)
    warning = MANY_LINES if any("\n" in text or "\r" in text for _, text in rows) else ""
    return warning + lines(entry(name, text) for name, text in rows)


def names_json(names: Iterable[str]) -> bytes:
    """Subjects as JSON."""
    return _pretty([{"name": name} for name in names])


def entries_json(rows: Iterable[tuple[str, str]]) -> bytes:
    """Ids and their schemas as JSON."""
    return _pretty([{"id": name, "schema": text} for name, text in rows])


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


# --- properties -----------------------------------------------------------------------------------------------------

_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_SPECIAL = re.compile(r"[\\=:#!\t\n\r\f]|[^\x20-\x7e]")


def properties(title: str, members: Mapping[str, str], seconds: float) -> str:
    """Members as `java.util.Properties` stores them: a comment, the date (seconds since 1970), sorted lines."""
    date = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(seconds))
    told = (f"{_key(key)}={_value(value)}\n" for key, value in sorted(members.items()))
    return f"#{title}\n#{date}\n" + "".join(told)


def _key(text: str) -> str:
    return _SPECIAL.sub(_escaped, text).replace(" ", "\\ ")


def _value(text: str) -> str:
    """A value: of its spaces only those it begins with would be lost."""
    told = _SPECIAL.sub(_escaped, text)
    return f"\\{told}" if told.startswith(" ") else told


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if char in _NAMED:
        return _NAMED[char]
    if " " <= char <= "~":
        return f"\\{char}"
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
