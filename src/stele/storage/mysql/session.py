"""One connection to the database and the thread that uses it.

It connects when it is first used, and again after the connection broke.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

import pymysql
from pymysql.connections import Connection

from stele.errors import StoreError
from stele.storage.mysql.database import store_error
from stele.storage.polling import ConnectBackoff

__all__ = ["MysqlSession"]

T = TypeVar("T")

_LOCK_SECONDS: Final = 10
"""Seconds that a statement waits for a row that another transaction has written and not committed."""
_SETTINGS: Final = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    f"SET SESSION innodb_lock_wait_timeout = {_LOCK_SECONDS}",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES'",  # what does not fit is an error, and is never cut
)


class MysqlSession:
    """Runs jobs one after another. A job that has started continues when the task that requested it is cancelled.

    Args:
        place: Name of the store in messages.
        options: Options of the connection.
        name: Name of the thread.
        seconds: Timeout in seconds for each read and write on the connection.
    """

    def __init__(self, place: str, options: Mapping[str, Any], name: str, seconds: float = 15.0) -> None:
        self._place = place
        self._options = {**options, "autocommit": True, "read_timeout": seconds, "write_timeout": seconds}
        self._connection: Connection[Any] | None = None
        self._thread = ThreadPoolExecutor(1, name)
        self._backoff = ConnectBackoff()

    async def run(self, job: Callable[[Connection[Any]], T], *, is_repeatable: bool = True) -> T:
        """Run a job on the connection.

        A repeatable job is tried again on a new connection when the old one is lost. Raises `StoreError`.
        """
        return await asyncio.wrap_future(self._thread.submit(self._run_job, job, is_repeatable))

    def submit(self, job: Callable[[Connection[Any]], object]) -> None:
        """Queue a job after those that were submitted before. A `StoreError` of the job is ignored."""

        def run() -> None:
            with suppress(StoreError):
                self._run_job(job, is_repeatable=False)

        self._thread.submit(run)

    def _run_job(self, job: Callable[[Connection[Any]], T], is_repeatable: bool) -> T:
        while True:
            is_new = self._connection is None
            connection = self._connect()
            try:
                return job(connection)
            except (pymysql.OperationalError, pymysql.InterfaceError) as error:
                with suppress(pymysql.MySQLError):
                    if connection.open:
                        connection.rollback()
                is_gone = not connection.open
                if is_gone:
                    self._connection = None
                if is_new or not is_gone or not is_repeatable:
                    raise store_error(self._place, error) from error
            except pymysql.MySQLError as error:
                with suppress(pymysql.MySQLError):
                    connection.rollback()
                raise store_error(self._place, error) from error

    def _connect(self) -> Connection[Any]:
        if self._connection is not None and self._connection.open:
            return self._connection
        self._backoff.require_retry()
        try:
            connection = pymysql.connect(**self._options)
            with connection.cursor() as cursor:
                for setting in _SETTINGS:
                    cursor.execute(setting)
        except (pymysql.MySQLError, RuntimeError) as error:  # RuntimeError: a package for the password is missing
            wrapped = error if isinstance(error, pymysql.MySQLError) else pymysql.OperationalError(0, str(error))
            failure = store_error(self._place, wrapped)
            self._backoff.note_failure(failure)
            raise failure from error
        self._connection = connection
        self._backoff.note_success()
        return connection

    async def close(self) -> None:
        """Finish the running jobs, and disconnect."""
        done = self._thread.submit(self._disconnect)
        self._thread.shutdown(wait=False)
        await asyncio.shield(asyncio.wrap_future(done))

    def _disconnect(self) -> None:
        if self._connection is not None and self._connection.open:
            with suppress(pymysql.MySQLError):
                self._connection.close()
