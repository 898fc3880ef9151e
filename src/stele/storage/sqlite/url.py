"""The form of the URL of a SQLite store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from stele.errors import InvalidRequest

__all__ = ["parse_url"]


def parse_url(url: str) -> Path:
    """Return the path in a URL. Raises `InvalidRequest` for anything but `sqlite:///` and a path."""
    _, _, rest = url.partition(":")
    place = unquote(rest.removeprefix("///"))
    if not rest.startswith("///") or not place or place.endswith("/") or "?" in rest or "#" in rest or "\0" in place:
        raise InvalidRequest("A SQLite store has the form sqlite:///relative/path.db or sqlite:////absolute/path.db")
    if place == ":memory:":
        raise InvalidRequest("A SQLite store is a file; for a registry without one write 'memory:'")
    return Path(place)
