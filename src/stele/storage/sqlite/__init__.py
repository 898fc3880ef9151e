"""The log in one SQLite file: the default store. Any number of processes of one machine may share it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from stele.storage.drivers import StorageDriver
from stele.storage.record_chain import Checksum
from stele.storage.sqlite.file import SHA256_LAYOUT, mark_path, resolve_path
from stele.storage.sqlite.inspection import inspect_file
from stele.storage.sqlite.log import SqliteLog
from stele.storage.sqlite.maintenance import SqliteFiles
from stele.storage.sqlite.url import parse_url

__all__ = ["DRIVER", "SqliteLog"]


async def _open_url(url: str) -> SqliteLog:
    return await SqliteLog.open(_find_file(url))


def _find_file(url: str) -> Path:
    """Return the file of `sqlite:///relative.db` or `sqlite:////absolute.db` (percent escapes allowed, options not)."""
    return resolve_path(parse_url(url))


def _choose_checksum(log: SqliteLog) -> Checksum:
    return Checksum.SHA256 if log.layout == SHA256_LAYOUT else Checksum.XXH3


DRIVER: Final = StorageDriver(
    open_log=_open_url,
    name_store=lambda url: str(_find_file(url)),
    find_mark=lambda url: mark_path(_find_file(url)),
    open_files=SqliteFiles,
    inspect=inspect_file,
    choose_checksum=_choose_checksum,
)
