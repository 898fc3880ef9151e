"""The log in a database of MySQL 8 or MariaDB: any number of nodes on any number of machines may share it."""

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
        if error.name != "pymysql":
            raise
        raise NotInstalled("PyMySQL", "mysql") from None


async def _open_url(url: str) -> Log:
    with _require_client():
        from stele.storage.mysql.log import MysqlLog
    return await MysqlLog.open(url)


def _open_tables(url: str) -> StoreFiles:
    with _require_client():
        from stele.storage.mysql.maintenance import MysqlTables
    return MysqlTables(url)


def _inspect_tables(url: str) -> StoreCondition:
    with _require_client():
        from stele.storage.mysql.maintenance import inspect_tables
    return inspect_tables(url)


DRIVER: Final = StorageDriver(_open_url, hide_credentials, open_files=_open_tables, inspect=_inspect_tables)
