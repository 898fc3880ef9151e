"""The interface to a service manager: listening sockets that it passes, and readiness and watchdog messages to it.

The protocols are those of systemd: sd_listen_fds(3) and sd_notify(3). Other supervisors support them, too.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Final

from stele.errors import InvalidRequest

__all__ = ["notify_service_manager", "take_sockets"]

_FIRST_DESCRIPTOR: Final = 3
_VARIABLES: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


def take_sockets() -> list[socket.socket]:
    """Return the listening sockets that were passed to this process, and unset the variables that announce them.

    Raises `InvalidRequest` for a socket that does not listen, or not for connections.
    """
    pid, count, _ = (os.environ.pop(name, "") for name in _VARIABLES)
    if pid != str(os.getpid()) or not count.isdecimal():
        return []
    sockets = [socket.socket(fileno=_FIRST_DESCRIPTOR + index) for index in range(int(count))]
    for index, listener in enumerate(sockets):
        listener.set_inheritable(False)
        if listener.type != socket.SOCK_STREAM or not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise InvalidRequest(
                f"the service manager hands over socket {index}, which does not listen for connections: use"
                " ListenStream= with Accept=no"
            )
    return sockets


def notify_service_manager(state: str) -> None:
    """Send the service manager a state such as `READY=1`, if it wants to receive states.

    A state that cannot be sent at once is dropped.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
        messages.setblocking(False)  # a manager that does not read must not block the event loop
        # An @ stands for the zero byte at the start of an abstract socket name.
        messages.sendto(state.encode(), address.replace("@", "\0", 1) if address.startswith("@") else address)
