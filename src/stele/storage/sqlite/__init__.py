"""The log in one SQLite file: the default store. Any number of processes of one machine may share it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from stele.errors import InvalidRequest
from stele.storage.chained_log import ChainedLog
from stele.storage.high_water_mark import HighWaterMark
from stele.storage.sqlite.file import mark_path, resolve_path
from stele.storage.sqlite.log import SqliteLog

__all__ = ["SqliteLog", "open_url", "parse_url"]


async def open_url(url: str) -> ChainedLog:
    """Open `sqlite:///relative.db` or `sqlite:////absolute.db` (percent escapes allowed, options not).

    Raises `InvalidRequest` for any other shape, `StoreError` when the file cannot be opened and `DamagedLog` when it
    has lost records.
    """
    path = resolve_path(parse_url(url))
    return await ChainedLog.open(await SqliteLog.open(path), str(path), HighWaterMark(mark_path(path)))


def parse_url(url: str) -> Path:
    """Return the path in a URL. Raises `InvalidRequest` for anything but `sqlite:///` and a path."""
    _, _, rest = url.partition(":")
    place = unquote(rest.removeprefix("///"))
    if not rest.startswith("///") or not place or place.endswith("/") or "?" in rest or "#" in rest or "\0" in place:
        raise InvalidRequest("A SQLite store is written sqlite:///relative/path.db or sqlite:////absolute/path.db")
    if place == ":memory:":
        raise InvalidRequest("A SQLite store is a file; for a registry without one write 'memory:'")
    return Path(place)
