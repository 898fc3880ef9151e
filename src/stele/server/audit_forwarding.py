"""Forwards the audit trail to syslog or a webhook: each line at least once, in order, also after a restart.

The file is the queue. A cursor beside it holds the number of the line that was delivered last. Lines of full files that
were deleted before they could be delivered are counted as dropped.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec
import structlog

from stele.core.audit_chain import AuditLine, read_entry, read_line
from stele.errors import SteleError
from stele.service.audit_file import find_files, iter_lines
from stele.service.times import format_time
from stele.storage.file_lock import lock_file
from stele.tls_verification import make_client_context

_logger = structlog.get_logger("stele.audit")

_BATCH: Final = 100
_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 60.0
_SEND_SECONDS: Final = 10.0
_PRIORITY: Final = 13 * 8 + 6
"""Facility "log audit", severity "informational" (RFC 5424, 6.2.1)."""


class DeliveryFailed(SteleError):
    """Raised when a receiver did not accept lines. They are sent again."""


class Receiver(Protocol):
    """A destination of lines."""

    async def send_lines(self, lines: Sequence[bytes]) -> None:
        """Deliver lines without line feeds. Raises `DeliveryFailed`."""
        ...


class WebhookReceiver:
    """Sends lines as one JSON document, `{"lines": […]}`, by POST; any 2xx means that the receiver has them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._tls = make_client_context()

    async def send_lines(self, lines: Sequence[bytes]) -> None:
        """Send the lines by POST. Raises `DeliveryFailed`."""
        import httpx  # takes a while to load

        body = b'{"lines":[' + b",".join(lines) + b"]}"
        try:
            async with httpx.AsyncClient(
                verify=self._tls, timeout=_SEND_SECONDS, follow_redirects=False, trust_env=False
            ) as client:
                answer = await client.post(self._url, content=body, headers={"content-type": "application/json"})
        except httpx.HTTPError as error:
            raise DeliveryFailed(type(error).__name__) from None
        if not answer.is_success:
            raise DeliveryFailed(f"HTTP {answer.status_code}")


class SyslogReceiver:
    """Sends lines as messages of RFC 5424: one datagram each by UDP, or with octet counting by TCP."""

    def __init__(self, host: str, port: int, *, is_tcp: bool) -> None:
        self._address = (host, port)
        self._is_tcp = is_tcp

    async def send_lines(self, lines: Sequence[bytes]) -> None:
        """Send one message per line. Raises `DeliveryFailed`."""
        try:
            await asyncio.to_thread(self._send, [format_message(line) for line in lines])
        except OSError as error:
            raise DeliveryFailed(error.strerror or type(error).__name__) from None

    def _send(self, messages: Sequence[bytes]) -> None:
        if self._is_tcp:
            with socket.create_connection(self._address, _SEND_SECONDS) as connection:
                connection.sendall(b"".join(b"%d %b" % (len(message), message) for message in messages))
            return
        family = socket.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)[0][0]
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            for message in messages:
                sender.sendto(message, self._address)


def format_message(line: bytes) -> bytes:
    """Return a line as a message of RFC 5424, whose id is the kind of the entry."""
    entry = read_entry(read_line(line))
    head = (
        f"<{_PRIORITY}>1 {format_time(entry.at)} {socket.gethostname() or '-'} stele {os.getpid()} {entry.kind[:32]} - "
    )
    return head.encode("ascii", "replace") + line


def make_receiver(url: str) -> Receiver:
    """Return the receiver for a URL: a webhook (http, https) or syslog (udp, tcp)."""
    parts = urlsplit(url)
    if parts.scheme in {"http", "https"}:
        return WebhookReceiver(url)
    return SyslogReceiver(parts.hostname or "", parts.port or 0, is_tcp=parts.scheme == "tcp")


class _Cursor(msgspec.Struct):
    delivered: int = 0


class AuditForwarder:
    """Forwards the lines of a trail to one receiver. Of several processes, only one does it.

    Args:
        path: The file of the trail.
        name: Name of the receiver, in the cursor's file name and in the log.
        receiver: Destination of the lines.
    """

    def __init__(self, path: Path, name: str, receiver: Receiver) -> None:
        self._path = path
        self._name = name
        self._receiver = receiver
        self._cursor = path.with_name(f"{path.name}.{name}")
        self._lock = -1
        self._delivered = 0
        self._place: tuple[Path, int, int] | None = None
        """File, its inode, and the offset after the last line that was delivered."""
        self.dropped = 0
        """Number of lines that were deleted before they could be delivered."""

    async def run(self, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Deliver lines until cancelled. While deliveries fail, the pauses between attempts grow."""
        wait = _PAUSE_SECONDS
        while True:
            try:
                is_more = self.is_owner() and await self.deliver()
                wait = _PAUSE_SECONDS
            except (SteleError, OSError) as error:
                is_more = False
                if wait == _PAUSE_SECONDS:
                    _logger.warning("the audit trail is not delivered", receiver=self._name, reason=str(error))
                wait = min(wait * 2, _LONGEST_PAUSE_SECONDS)
            if not is_more:
                await pause(wait)

    def is_owner(self) -> bool:
        """Return whether this process is the one that delivers; it keeps that role until it ends."""
        if self._lock >= 0:
            return True
        descriptor = os.open(self._cursor, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            lock_file(descriptor, is_waiting=False)
        except OSError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        try:
            self._delivered = msgspec.json.decode(os.pread(descriptor, 1000, 0), type=_Cursor).delivered
        except msgspec.MsgspecError:
            self._delivered = 0
        return True

    async def deliver(self) -> bool:
        """Deliver a batch; return False when there was none. Raises `DeliveryFailed`, `OSError`."""
        lines, place = await asyncio.to_thread(self._read_batch)
        if not lines:
            return False
        await self._receiver.send_lines([text for _, text in lines])
        self.dropped += lines[0][0].number - self._delivered - 1
        self._delivered, self._place = lines[-1][0].number, place
        data = msgspec.json.encode(_Cursor(self._delivered))
        os.pwrite(self._lock, data.ljust(40), 0)
        return True

    def _read_batch(self) -> tuple[list[tuple[AuditLine, bytes]], tuple[Path, int, int] | None]:
        """Return the next lines, and where they end."""
        for path in find_files(self._path):
            inode = path.stat().st_ino
            offset = self._place[2] if self._place is not None and self._place[1] == inode else 0
            batch: list[tuple[AuditLine, bytes]] = []
            for end, text in iter_lines(path, offset):
                line = read_line(text)
                if line.number > self._delivered:
                    batch.append((line, text.rstrip(b"\n")))
                    offset = end
                    if len(batch) == _BATCH:
                        break
            if batch:
                return batch, (path, inode, offset)
        return [], None

    def close(self) -> None:
        """Release the lock, so that another process can deliver."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
