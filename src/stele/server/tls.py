"""TLS of the server: its certificate and the authorities of its clients, which may change while it runs."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import structlog

from stele.errors import InvalidRequest
from stele.server.settings import ServerSettings
from stele.service.watched_file import WatchedFile

_logger = structlog.get_logger("stele.server")


class ServerContext(ssl.SSLContext):
    """A context of the server, and the time since when it knows the authorities of clients (seconds since 1970)."""

    authorities_since: float = 0.0


class ServerTls:
    """The TLS contexts of one process, and the files they are made of. Raises `InvalidRequest` for unusable files.

    A listening socket keeps the context that it was opened with. So every new connection is switched to the current
    context, which has the current authorities only: authorities can be added to a context, but never removed.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        names = (settings.tls_certificate, settings.tls_key, settings.tls_client_ca)
        # Before the files are read, so that every later change is detected
        self._files = [WatchedFile(Path(name)) for name in names if name]
        self._reason = ""
        """Why the last reload failed; '' when it succeeded."""
        self._now = _make_context(settings)
        self.context = self._now
        """The context of the listening sockets."""
        self.context.sni_callback = self._hand_over  # OpenSSL calls it also where a client names no server.

    def reload_when_changed(self) -> None:
        """Use the current content of the files for new connections.

        Files that do not fit together, or cannot be read, change nothing; they are read again at each call.
        """
        changed = [file for file in self._files if file.has_changed()]
        if not changed and not self._reason:
            return
        try:
            context = _make_context(self._settings)
        except InvalidRequest as error:
            if str(error) != self._reason:
                self._reason = str(error)
                _logger.error("certificates not reloaded", reason=self._reason)
            return
        # The files may have changed one after another, so the context counts as new from now.
        context.authorities_since = time.time() if self._settings.tls_client_ca else 0.0
        self._now = context
        self._reason = ""
        _logger.info(
            "certificates reloaded", file=self._settings.tls_certificate, authorities=self._settings.tls_client_ca
        )

    def _hand_over(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        connection.context = self._now


def has_outlived_authorities(connection: ssl.SSLObject | ssl.SSLSocket) -> bool:
    """Return whether a connection resumes a session from before the authorities changed.

    Its certificate was checked against the old authorities then.
    """
    context, session = connection.context, connection.session
    if not connection.session_reused or session is None or not isinstance(context, ServerContext):
        return False
    return session.time <= context.authorities_since


def _make_context(settings: ServerSettings) -> ServerContext:
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    certificate, key, authorities = settings.tls_certificate, settings.tls_key or None, settings.tls_client_ca
    try:
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError) as error:
        files = f"{certificate} and {key}" if key else certificate
        raise InvalidRequest(f"tls_certificate: cannot use {files}: {error.strerror or error}") from None
    if authorities:
        try:
            context.load_verify_locations(authorities)
        except (OSError, ssl.SSLError) as error:
            raise InvalidRequest(f"tls_client_ca: {authorities}: {error.strerror or error}") from None
        context.verify_mode = ssl.CERT_REQUIRED if settings.tls_client_required else ssl.CERT_OPTIONAL
        # A ticket would keep a client's certificate valid after a change of authorities, and its age is not readable.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context
