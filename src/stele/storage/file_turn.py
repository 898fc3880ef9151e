"""Lets one writer at a time write, among all processes that share a log: a lock on its own file.

Only fairness depends on it, so the wait for a turn is limited: when the holder hangs, the others continue without a
turn, and the primary key of the log decides as it always does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import FileIO
from pathlib import Path

from stele.errors import StoreError
from stele.storage.file_lock import lock_file, unlock_file
from stele.storage.job_thread import JobThread

__all__ = ["FileTurn"]


class FileTurn:
    """Turns of one handle. Tasks of one handle wait in order of arrival; the kernel orders handles and processes.

    A free lock is taken at once. A daemon thread (at most one per handle) does the waiting, so that neither the event
    loop nor the end of the process is blocked. When a task is cancelled, the thread's request continues: the next task
    takes it over; without a next task the lock is released as soon as it is granted.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._queue = asyncio.Lock()
        self._free: FileIO | None = None
        """The lock file while this handle has no turn: opening it takes longer than locking it."""
        self._thread = JobThread("stele-turn")
        self._heir: asyncio.Future[FileIO | None] | None = None
        self._asking = False
        self._overdue = False
        self._closed = False

    @asynccontextmanager
    async def hold_turn(self) -> AsyncIterator[None]:
        """Wait for the turn, at most `patience` seconds, and keep it for the block. Not re-entrant."""
        async with self._queue:
            lock = await self._take_lock()
            try:
                yield
            finally:
                if lock is not None:
                    self._release_lock(lock)

    def close(self) -> None:
        """Release the file and the thread. A turn that is held stays held until its end."""
        self._closed = True
        self._thread.end()
        if self._free is not None:
            self._free.close()
            self._free = None

    async def _take_lock(self) -> FileIO | None:
        """Return the locked file, or None to continue without a turn."""
        lock = self._open_file()
        try:
            lock_file(lock.fileno(), is_waiting=False)
        except BlockingIOError:
            return await self._wait_for_lock(lock)
        except OSError as error:
            lock.close()
            raise StoreError(f"The lock file {self._path} cannot be locked ({error.strerror})") from error
        return lock

    def _open_file(self) -> FileIO:
        """Return the lock file, unlocked. Opens it again when it was deleted."""
        lock, self._free = self._free, None
        if lock is not None:
            if os.fstat(lock.fileno()).st_nlink:
                return lock
            lock.close()
        try:
            return FileIO(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "a")
        except OSError as error:
            raise StoreError(f"The lock file {self._path} cannot be opened ({error.strerror})") from error

    async def _wait_for_lock(self, lock: FileIO) -> FileIO | None:
        loop = asyncio.get_running_loop()
        if self._asking:
            lock.close()
        else:
            self._asking = True
            self._thread.start_job(self._lock_in_thread, loop, lock)
        if self._overdue:
            return None
        self._heir = heir = loop.create_future()
        try:
            async with asyncio.timeout(self._patience):
                return await self._pass_lock(heir)
        except TimeoutError:
            self._overdue = True
            return None
        finally:
            self._heir = None

    def _lock_in_thread(self, loop: asyncio.AbstractEventLoop, lock: FileIO) -> None:
        """Block this thread until the lock is granted, then pass the lock to the event loop."""
        granted: FileIO | None = lock
        try:
            lock_file(lock.fileno(), is_waiting=True)
        except OSError:  # the kernel has no locks left: go on without
            lock.close()
            granted = None
        try:
            loop.call_soon_threadsafe(self._lock_granted, granted)
        except RuntimeError:  # the loop has been closed meanwhile
            lock.close()

    def _lock_granted(self, lock: FileIO | None) -> None:
        self._asking = self._overdue = False
        if self._heir is not None and not self._heir.done():
            self._heir.set_result(lock)
        elif lock is not None:
            self._release_lock(lock)

    async def _pass_lock(self, heir: asyncio.Future[FileIO | None]) -> FileIO | None:
        try:
            return await heir
        except asyncio.CancelledError:
            if heir.done() and not heir.cancelled() and (lock := heir.result()) is not None:
                self._release_lock(lock)  # granted in the very moment of the cancellation
            raise

    def _release_lock(self, lock: FileIO) -> None:
        # Unlocking explicitly: a forked child may hold a copy of the descriptor, and closing would leave its lock.
        try:
            unlock_file(lock.fileno())
        except OSError:
            lock.close()
            raise
        if self._free is None and not self._closed:
            self._free = lock
        else:
            lock.close()
