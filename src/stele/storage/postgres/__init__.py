"""The log in a PostgreSQL database: any number of nodes on any number of machines may share it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from stele.core.ports import Log
from stele.errors import NotInstalled
from stele.storage.drivers import StorageDriver, StoreCondition, StoreFiles, hide_credentials

__all__ = ["DRIVER"]


@contextmanager
def _require_client() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise NotInstalled("psycopg", "postgres") from None


async def _open_url(url: str) -> Log:
    with _require_client():
        from stele.storage.postgres.log import PostgresLog
    return await PostgresLog.open(url)


def _open_tables(url: str) -> StoreFiles:
    with _require_client():
        from stele.storage.postgres.maintenance import PostgresTables
    return PostgresTables(url)


def _inspect_tables(url: str) -> StoreCondition:
    with _require_client():
        from stele.storage.postgres.maintenance import inspect_tables
    return inspect_tables(url)


DRIVER: Final = StorageDriver(_open_url, hide_credentials, open_files=_open_tables, inspect=_inspect_tables)
