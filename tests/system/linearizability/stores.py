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
"""A node over files gives answers to ids again for so long without asking (`server.answer_cache`)."""
IMMUTABLE_LAG_SECONDS: Final = 30.0
"""A node that a store tells of changes answers from memory what never changes but by a deletion.

It does so also while it is cut off.
"""


class Store(NamedTuple):
    """A store that runs.

    url      what `stele serve --store` is given
    ports    TCP ports of 127.0.0.1 on which nodes reach it
    restart  ends it without warning and starts it again; None where nothing runs
    lag      seconds by which answers to ids and exact versions may be behind, since they come from memory
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
