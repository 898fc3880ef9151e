"""The kinds of stores, found by the scheme of a URL, and the functions of each.

Other packages add kinds by the entry point group `stele.storage`: the entry point's name is the scheme, its value a
`StorageDriver`. A driver is imported when its scheme is first used.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from stele.core.ports import Log
from stele.core.suggestions import suggest_name
from stele.errors import InvalidRequest
from stele.storage.high_water_mark import HighWaterMark
from stele.storage.record_chain import Checksum

__all__ = [
    "GROUP",
    "StorageDriver",
    "StoreCondition",
    "StoreFiles",
    "StoredRecord",
    "find_driver",
    "find_mark",
    "hide_credentials",
    "list_schemes",
]

GROUP: Final = "stele.storage"
"""Name of the entry point group."""


class StoredRecord(NamedTuple):
    """The stored bytes at one place of the log; None when there are none, or none that can be read."""

    seq: int
    stored: bytes | None


class StoreFiles(Protocol):
    """The data of a store, damaged or not, while no registry has it open."""

    @property
    def place(self) -> str:
        """Name of the store in messages."""
        ...

    @property
    def is_chained(self) -> bool:
        """Whether records have checksums. Those of earlier releases have none."""
        ...

    def read_stored(self, until: int) -> Iterator[StoredRecord]:
        """Yield every place from 1 to the last record, at least to `until`.

        Raises `StoreError` when nothing can be read.
        """
        ...

    def write_anew(self, records: Iterable[bytes]) -> str:
        """Replace this log by a new one with these stored records. Returns the place where the old log is now."""
        ...

    def write_copy(self, file: Path) -> None:
        """Copy the current log into a SQLite file, also while servers use it.

        Raises `InvalidRequest`, `StoreError`.
        """
        ...


class StoreCondition(NamedTuple):
    """The condition of a store, determined without opening it.

    place          name of the store in messages
    exists         whether the store exists
    is_writable    whether this user may write to the store, or create it
    layout         version of its format; None: there is none yet
    newest_layout  the version that it has once this release has opened it
    size_bytes     size of its main file or tables
    journal_mode   how its database is written, where there is a choice; else ''
    free_bytes     free bytes of its disk; None where that cannot be known
    doubts         settings of its server that may lose acknowledged records, one sentence each
    """

    place: str
    exists: bool
    is_writable: bool
    layout: int | None
    newest_layout: int
    size_bytes: int
    journal_mode: str = ""
    free_bytes: int | None = None
    doubts: tuple[str, ...] = ()


class StorageDriver(NamedTuple):
    """A kind of store. Every function takes the URL; no message repeats it, since it may hold a password.

    open_log     coroutine function that returns the log, and creates it where there is none; raises `InvalidRequest`
                 for a malformed URL, `StoreError` when the store cannot be opened, `NotInstalled` when its client
                 library is missing. Checksums are added by `stele.storage.open_log`
    name_store   returns the name of the store in messages, the same for all processes that share it
    find_mark    returns the path of the high-water mark that all processes sharing the store use; None: each node keeps
                 its own, in its state directory
    open_files   returns the data that `stele log verify`, `repair` and `backup` work on; raises `InvalidRequest` when
                 there is no store
    inspect      returns the condition that `stele doctor` reports; nothing is created or changed
    is_durable   False for a store that is lost when its process ends
    choose_checksum  returns the kind of checksum for new records of an opened log; every release that opens such a
                 store can verify it
    """

    open_log: Callable[[str], Awaitable[Log]]
    name_store: Callable[[str], str]
    find_mark: Callable[[str], Path] | None = None
    open_files: Callable[[str], StoreFiles] | None = None
    inspect: Callable[[str], StoreCondition] | None = None
    is_durable: bool = True
    choose_checksum: Callable[[Any], Checksum] = lambda _: Checksum.SHA256


_OWN: Final = {
    "files": "stele.storage.files:DRIVER",
    "kafka": "stele.storage.kafka:DRIVER",
    "mariadb": "stele.storage.mysql:DRIVER",
    "memory": "stele.storage.memory:DRIVER",
    "mysql": "stele.storage.mysql:DRIVER",
    "postgres": "stele.storage.postgres:DRIVER",
    "postgresql": "stele.storage.postgres:DRIVER",
    "sqlite": "stele.storage.sqlite:DRIVER",
}
"""Drivers of this distribution, by scheme. Drivers of other distributions cannot replace them."""


def list_schemes() -> tuple[str, ...]:
    """Return the schemes of all installed drivers, sorted, without importing a driver."""
    return tuple(sorted(_find_entry_points()))


def find_driver(url: str) -> StorageDriver:
    """Return the driver for a URL.

    Raises `InvalidRequest` for an unknown scheme. The message repeats only the scheme of the URL.
    """
    scheme, colon, _ = url.partition(":")
    known = _find_entry_points()
    if not colon or scheme.lower() not in known:
        kinds = ", ".join(f"{name}:" for name in list_schemes())
        if not colon:
            hint = f"; did you mean sqlite:///{url}?" if url.endswith((".db", ".sqlite", ".sqlite3")) else ""
            raise InvalidRequest(f"the store has no scheme; known are {kinds}{hint}")
        raise InvalidRequest(f"'{scheme}:' is not a kind of store; known are {kinds}{suggest_name(scheme, known)}")
    return _load_driver(known[scheme.lower()])


def hide_credentials(url: str) -> str:
    """Return a URL without user, password and parameters, for messages."""
    return re.sub(r"://(?!/).*@", "://", url.partition("?")[0])


def find_mark(url: str, state_dir: Path | None) -> HighWaterMark | None:
    """Return the high-water mark of a store.

    Returns None where the store needs none, and where the node has no state directory for its own mark.
    """
    driver = find_driver(url)
    if not driver.is_durable:
        return None
    if driver.find_mark is not None:
        return HighWaterMark(driver.find_mark(url))
    if state_dir is None:
        return None
    name = driver.name_store(url)
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:80]
    return HighWaterMark(state_dir / f"{slug}-{sha256(name.encode()).hexdigest()[:8]}.mark", is_of_node=True)


@cache
def _find_entry_points() -> dict[str, EntryPoint]:
    """Return entry points by scheme; the first distribution that claims one gets it."""
    points = {scheme: EntryPoint(scheme, value, GROUP) for scheme, value in _OWN.items()}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name.lower(), point)
    return points


@cache
def _load_driver(point: EntryPoint) -> StorageDriver:
    try:
        driver = point.load()
    except (ImportError, AttributeError) as error:
        raise InvalidRequest(
            f"the driver of '{point.name.lower()}:' ({point.value}) cannot be loaded: {error}"
        ) from error
    if not isinstance(driver, StorageDriver):
        raise InvalidRequest(f"the driver of '{point.name.lower()}:' ({point.value}) is not a StorageDriver")
    return driver
