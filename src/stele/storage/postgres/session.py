"""One connection to the database. It connects when it is first used, and again after the connection broke."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection

from stele.errors import StoreTimeout
from stele.storage.polling import ConnectBackoff
from stele.storage.postgres.database import store_error

__all__ = ["PostgresSession"]

T = TypeVar("T")

_SECONDS: Final = 15.0
"""Default time limit of a job in seconds."""
_DURABLE: Final = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
"""Turns on `synchronous_commit` if it is off: after a lost tail, its ids would be assigned again.

Settings that are stronger than `on` stay.
"""

_SETTING: Final = "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = %s"
"""Sets one setting of the session. A setting that an older server does not know is skipped."""


class PostgresSession:
    """Runs jobs one after another. A job continues when the task that requested it is cancelled.

    Args:
        place: Name of the store in messages.
        options: Options of the connection, for libpq.
        settings: Settings of the session, for the server.
    """

    def __init__(self, place: str, options: Mapping[str, Any], settings: Mapping[str, str] | None = None) -> None:
        self._place = place
        self._options = options
        self._settings = settings or {}
        self._connection: AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()
        self._running: set[asyncio.Task[Any]] = set()
        self._backoff = ConnectBackoff()

    async def run(
        self,
        job: Callable[[AsyncConnection[Any]], Awaitable[T]],
        *,
        seconds: float = _SECONDS,
        is_repeatable: bool = True,
    ) -> T:
        """Run a job on the connection.

        A repeatable job is tried again on a new connection when the old one is lost. Raises `StoreError`;
        `StoreTimeout` when the job takes longer than `seconds`.
        """
        task = asyncio.create_task(self._run_in_turn(job, seconds, is_repeatable))
        self._running.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # retrieve the error: the caller may have been cancelled

    async def _run_in_turn(
        self, job: Callable[[AsyncConnection[Any]], Awaitable[T]], seconds: float, is_repeatable: bool
    ) -> T:
        async with self._lock:
            while True:
                is_new = self._connection is None
                connection = await self.connect()
                try:
                    async with asyncio.timeout(seconds):
                        return await job(connection)
                except TimeoutError:
                    await self._drop()
                    raise StoreTimeout(f"The store {self._place} gave no answer within {seconds:g} seconds") from None
                except psycopg.Error as error:
                    if not connection.closed:
                        raise store_error(self._place, error) from error
                    await self._drop()
                    if is_new or not is_repeatable:
                        raise store_error(self._place, error) from error

    async def connect(self) -> AsyncConnection[Any]:
        """Return the connection; open a new one where there is none.

        Raises `StoreError`. After a failed attempt it raises at once, for a while, without another attempt.
        """
        if self._connection is not None and not self._connection.closed:
            return self._connection
        self._backoff.require_retry()
        try:
            connection = await AsyncConnection.connect(**self._options, autocommit=True)
            try:
                await self._set_up(connection)
            except BaseException:
                await connection.close()
                raise
        except psycopg.Error as error:
            failure = store_error(self._place, error)
            self._backoff.note_failure(failure)
            raise failure from error
        self._connection = connection
        self._backoff.note_success()
        return connection

    async def _set_up(self, connection: AsyncConnection[Any]) -> None:
        await connection.execute(_DURABLE)
        for name, value in self._settings.items():
            await connection.execute(_SETTING, (value, name))

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """Finish the running job, and disconnect."""
        async with self._lock:
            await self._drop()
