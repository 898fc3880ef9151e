"""The log in a folder of readable files, for the processes of one host. Network file systems with locks work too.

A record is one line of ASCII: `less`, `grep` and a version control system can read what the registry holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from stele.storage.drivers import StorageDriver
from stele.storage.files.folder import MARK_NAME, resolve_folder
from stele.storage.files.log import FilesLog
from stele.storage.files.maintenance import StoreFolder, inspect_folder
from stele.storage.files.url import parse_url

__all__ = ["DRIVER", "FilesLog"]


async def _open_url(url: str) -> FilesLog:
    return await FilesLog.open(_find_folder(url))


def _find_folder(url: str) -> Path:
    """Return the folder of `files:///relative/folder` or `files:////absolute/folder` (percent escapes, no options)."""
    return resolve_folder(parse_url(url))


DRIVER: Final = StorageDriver(
    open_log=_open_url,
    name_store=lambda url: str(_find_folder(url)),
    find_mark=lambda url: _find_folder(url) / MARK_NAME,
    open_files=StoreFolder,
    inspect=inspect_folder,
)
