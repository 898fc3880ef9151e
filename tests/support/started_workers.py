"""Waits until each worker of a server serves: one that answers says nothing of the others."""

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
    """Hears, as a service manager does, which processes serve.

    Attributes:
        address: What servers are told as `NOTIFY_SOCKET`.
    """

    def __init__(self, messages: socket.socket) -> None:
        self.address = f"@stele-test-{secrets.token_hex(8)}"
        self._messages = messages
        messages.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        messages.bind(self.address.replace("@", "\0", 1))
        messages.settimeout(1)

    def wait_for(self, count: int, seconds: float = 240.0) -> None:
        """Return when so many processes have said that they serve. Raises `TimeoutError`."""
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
    """Hear who serves, until the end of the block."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
        yield StartedWorkers(messages)
