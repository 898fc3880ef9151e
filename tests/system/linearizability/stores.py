"""The stores that a cluster is tested over."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.kafka import KafkaBroker
from tests.support.mariadb import mariadb
from tests.support.postgres import postgres

LOCAL_LAG_SECONDS: Final = 0.001
"""Time in seconds for which a node over a local store repeats answers to ids from `server.answer_cache`."""
IMMUTABLE_LAG_SECONDS: Final = 30.0
"""Time in seconds for which a node over a remote store repeats answers that only a deletion can change.

It does so also while it is cut off from the store.
"""


class Store(NamedTuple):
    """A running store.

    url      value of `stele serve --store`
    ports    TCP ports of 127.0.0.1 at which nodes reach it
    restart  kills it and starts it again; None if it is no process
    lag      largest lag of answers to ids and exact versions, in seconds, because they come from memory
    """

    url: str
    ports: tuple[int, ...] = ()
    restart: Callable[[], None] | None = None
    lag: float = LOCAL_LAG_SECONDS


@contextmanager
def _open_sqlite(folder: Path) -> Iterator[Store]:
    yield Store(f"sqlite:///{folder}/log.db")


@contextmanager
def _open_files(folder: Path) -> Iterator[Store]:
    yield Store(f"files:///{folder}/log")


@contextmanager
def _open_postgres(_: Path) -> Iterator[Store]:
    with postgres("packaged") as server:

        def restart() -> None:
            server.stop(signal.SIGQUIT)
            server.start()

        yield Store(server.url(server.create_database()), (server.port,), restart, IMMUTABLE_LAG_SECONDS)


@contextmanager
def _open_kafka(folder: Path) -> Iterator[Store]:
    place = folder / "broker"
    place.mkdir()
    with KafkaBroker(place) as broker:
        port = int(broker.address.rpartition(":")[2])
        yield Store(f"kafka://{broker.address}/stele", (port,), broker.restart, IMMUTABLE_LAG_SECONDS)


@contextmanager
def _open_mysql(_: Path) -> Iterator[Store]:
    with mariadb() as server:

        def restart() -> None:
            server.stop(signal.SIGKILL)
            server.start()

        yield Store(server.url(server.create_database()), (server.port,), restart, IMMUTABLE_LAG_SECONDS)


STORES: Final[Mapping[str, Callable[[Path], AbstractContextManager[Store]]]] = {
    "sqlite": _open_sqlite,
    "files": _open_files,
    "postgres": _open_postgres,
    "mysql": _open_mysql,
    "kafka": _open_kafka,
}
"""Opens a store in a folder, by the scheme of its URL."""
