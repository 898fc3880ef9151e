"""Inspects a database without opening it for writing: nothing is created, locked or changed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from stele.errors import StoreError
from stele.storage.drivers import StoreCondition
from stele.storage.sqlite.file import SCHEMA_VERSION, SHA256_LAYOUT, query_value, resolve_path, store_error
from stele.storage.sqlite.prepare import read_layout
from stele.storage.sqlite.url import parse_url

__all__ = ["inspect_file"]


def inspect_file(url: str) -> StoreCondition:
    """Return the condition of the store of a URL. Raises `InvalidRequest` for a malformed URL, `StoreError`."""
    path = resolve_path(parse_url(url))
    folder = next(place for place in (path.parent, *path.parents) if place.is_dir())
    disk = os.statvfs(folder)
    layout, journal_mode = _read_header(path) if path.is_file() and path.stat().st_size else (None, "")
    return StoreCondition(
        place=str(path),
        exists=path.exists(),
        is_writable=os.access(folder, os.W_OK | os.X_OK) and (not path.exists() or os.access(path, os.R_OK | os.W_OK)),
        layout=layout,
        newest_layout=layout if layout == SHA256_LAYOUT else SCHEMA_VERSION,
        journal_mode=journal_mode,
        size_bytes=path.stat().st_size if path.is_file() else 0,
        free_bytes=disk.f_bavail * disk.f_frsize,
    )


def _read_header(path: Path) -> tuple[int | None, str]:
    """Return layout and journal mode. Raises `StoreError` for a file that is not a store."""
    # SQLite must read a write-ahead log, if there is one. Otherwise it opens the file as immutable and creates none.
    has_wal = all(path.with_name(path.name + ending).exists() for ending in ("-wal", "-shm"))
    address = f"file:{quote(str(path))}?{'mode=ro' if has_wal else 'immutable=1'}"
    try:
        with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
            layout = read_layout(path, connection)
            mode = str(query_value(connection, "PRAGMA journal_mode"))
    except sqlite3.Error as error:
        raise store_error(path, error) from error
    if layout is None:
        raise StoreError(f"{path} is a database without a log; name another file")
    # SQLite reports no journal for an immutable file. Bytes 18 and 19 of the header hold its real mode.
    with path.open("rb") as file:
        versions = file.read(20)[18:20]
    return layout, "wal" if versions == b"\x02\x02" else mode
