"""The log in a folder of readable files, for the processes of one host. Network file systems that lock will do.

A record is one line of ASCII: `less`, `grep` and a version control system can read what the registry holds.
"""

from __future__ import annotations

from stele.storage.chained_log import ChainedLog
from stele.storage.files.folder import MARK_NAME, resolve_folder
from stele.storage.files.log import FilesLog
from stele.storage.files.url import parse_url
from stele.storage.high_water_mark import HighWaterMark

__all__ = ["FilesLog", "open_url"]


async def open_url(url: str) -> ChainedLog:
    """Open `files:///relative/folder` or `files:////absolute/folder` (percent escapes allowed, options not).

    Raises `InvalidRequest` for any other shape, `StoreError` when the folder cannot be used and `DamagedLog` when it
    has lost records.
    """
    folder = resolve_folder(parse_url(url))
    return await ChainedLog.open(await FilesLog.open(folder), str(folder), HighWaterMark(folder / MARK_NAME))
