"""The log in one SQLite file: the default store. Any number of processes of one machine may share it."""

from __future__ import annotations

from stele.storage.chained_log import ChainedLog
from stele.storage.high_water_mark import HighWaterMark
from stele.storage.sqlite.file import mark_path, resolve_path
from stele.storage.sqlite.log import SqliteLog
from stele.storage.sqlite.url import parse_url

__all__ = ["SqliteLog", "open_url"]


async def open_url(url: str) -> ChainedLog:
    """Open `sqlite:///relative.db` or `sqlite:////absolute.db` (percent escapes allowed, options not).

    Raises `InvalidRequest` for any other shape, `StoreError` when the file cannot be opened and `DamagedLog` when it
    has lost records.
    """
    path = resolve_path(parse_url(url))
    return await ChainedLog.open(await SqliteLog.open(path), str(path), HighWaterMark(mark_path(path)))
