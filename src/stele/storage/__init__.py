"""Where the log states: one driver per kind of store, found by the scheme of a URL.

    memory:                     in this process, gone with it
    sqlite:///relative.db       one file, shared by all processes of a machine
    sqlite:////absolute.db

A driver keeps order and bytes (`stele.core.ports.Log`) and knows no rule of a registry. What `open_log` returns adds
checksums to it (`stele.storage.chained_log`). Every driver passes `stele.testing.log_suite`, alone and so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import cast

from stele.core.ports import Log
from stele.core.suggestions import suggest_name
from stele.errors import InvalidRequest

__all__ = ["DRIVERS", "find_driver", "open_log"]

DRIVERS: Mapping[str, str] = {
    "files": "stele.storage.files:open_url",
    "memory": "stele.storage.memory:open_url",
    "sqlite": "stele.storage.sqlite:open_url",
}
"""Scheme → `module:function`; the function takes the URL and is awaited for the `Log`. Imported when asked for."""


async def open_log(url: str) -> Log:
    """Open the log a URL names, creating it when there is none; the caller closes it.

    Raises `InvalidRequest` for an unknown scheme or a malformed URL, `StoreError` when the store cannot be opened and
    `NotInstalled` when its client library is missing. No message repeats the URL, which may hold a password.
    """
    module, _, function = find_driver(url).partition(":")
    opener = cast("Callable[[str], Awaitable[Log]]", getattr(import_module(module), function))
    return await opener(url)


def find_driver(url: str) -> str:
    """The row of `DRIVERS` for a URL. Raises `InvalidRequest` for an unknown scheme, and repeats no more than that."""
    scheme, colon, _ = url.partition(":")
    driver = DRIVERS.get(scheme.lower())
    if not colon or driver is None:
        kinds = ", ".join(f"{known}:" for known in sorted(DRIVERS))
        if not colon:
            hint = f"; did you mean sqlite:///{url}?" if url.endswith((".db", ".sqlite", ".sqlite3")) else ""
            raise InvalidRequest(f"the store has no scheme; known are {kinds}{hint}")
        raise InvalidRequest(f"'{scheme}:' is no kind of store; known are {kinds}{suggest_name(scheme, DRIVERS)}")
    return driver
