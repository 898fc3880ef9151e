"""Waits until each worker of a server serves. An answer of one worker does not prove that the others serve."""

from __future__ import annotations

import secrets
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_CREDENTIALS: Final = struct.Struct("3i")
"""Process, user and group of a sender: `struct ucred` of Linux."""


class StartedWorkers:
    """Receives the `READY=1` messages of worker processes, as a service manager does.

    Attributes:
        address: Value of `NOTIFY_SOCKET` for the server.
    """

    def __init__(self, messages: socket.socket) -> None:
        self.address = f"@stele-test-{secrets.token_hex(8)}"
        self._messages = messages
        messages.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        messages.bind(self.address.replace("@", "\0", 1))
        messages.settimeout(1)

    def wait_for(self, count: int, seconds: float = 240.0) -> None:
        """Wait until `count` processes have reported that they serve. Raises `TimeoutError`."""
        until, started = time.monotonic() + seconds, set[int]()
        while len(started) < count:
            try:
                message, ancillary, _, _ = self._messages.recvmsg(1000, socket.CMSG_SPACE(_CREDENTIALS.size))
            except TimeoutError:
                if time.monotonic() >= until:
                    raise
                continue
            if b"READY=1" in message:
                started.add(_CREDENTIALS.unpack(ancillary[0][2])[0])


@contextmanager
def listen_to_workers() -> Iterator[StartedWorkers]:
    """Receive the messages of workers until the end of the block."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
        yield StartedWorkers(messages)
