"""The log in one SQLite file: the default store. Any number of processes of one machine may share it."""

from __future__ import annotations

from urllib.parse import unquote

from stele.errors import InvalidRequest
from stele.storage.sqlite.log import SqliteLog

__all__ = ["SqliteLog", "open_url"]


async def open_url(url: str) -> SqliteLog:
    """Open `sqlite:///relative.db` or `sqlite:////absolute.db` (percent escapes allowed, options not).

    Raises `InvalidRequest` for any other shape and `StoreError` when the file cannot be opened.
    """
    _, _, rest = url.partition(":")
    place = unquote(rest.removeprefix("///"))
    if not rest.startswith("///") or not place or place.endswith("/") or "?" in rest or "#" in rest or "\0" in place:
        raise InvalidRequest("A SQLite store is written sqlite:///relative/path.db or sqlite:////absolute/path.db")
    if place == ":memory:":
        raise InvalidRequest("A SQLite store is a file; for a registry without one write 'memory:'")
    return await SqliteLog.open(place)
