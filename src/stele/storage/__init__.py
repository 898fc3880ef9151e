"""Stores the log: one driver per kind of store, found by the scheme of a URL (`stele.storage.drivers`).

    memory:                     in this process, lost when it ends
    sqlite:///relative.db       one file, shared by all processes of a machine
    sqlite:////absolute.db
    files:///relative/folder    readable files in a folder, shared by all processes of a machine
    files:////absolute/folder

A driver keeps the order and the bytes of records (`stele.core.ports.Log`) and knows no rule of a registry. `open_log`
adds checksums to it (`stele.storage.chained_log`). Every driver passes `stele.testing.log_suite`, with checksums and
without them.
"""

from __future__ import annotations

from pathlib import Path

from stele.storage.chained_log import ChainedLog
from stele.storage.drivers import find_driver, find_mark

__all__ = ["find_driver", "open_log"]


async def open_log(url: str, state_dir: Path | None = None) -> ChainedLog:
    """Open the log a URL names, creating it when there is none; the caller closes it.

    Args:
        url: URL of the store.
        state_dir: Directory where this node records how far the log of a server had come, so that it detects a log that
            went back. None turns this off. A store in files keeps that record beside its files.

    Raises `InvalidRequest` for an unknown scheme or a malformed URL, `StoreError` when the store cannot be opened,
    `DamagedLog` when it has lost records, and `NotInstalled` when its client library is missing. No message repeats the
    URL, which may hold a password.
    """
    driver = find_driver(url)
    log = await driver.open_log(url)
    return await ChainedLog.open(log, driver.name_store(url), find_mark(url, state_dir), driver.choose_checksum(log))
