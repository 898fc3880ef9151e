"""TLS of the server: its certificate, which may change while it runs, and those of its clients."""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from stele.errors import InvalidRequest
from stele.server.settings import ServerSettings
from stele.service.watched_file import WatchedFile

_logger = structlog.get_logger("stele.server")


class ServerTls:
    """The TLS context of one process, and the files it was made of. Raises `InvalidRequest` for unusable files."""

    def __init__(self, settings: ServerSettings) -> None:
        self._certificate = settings.tls_certificate
        self._key = settings.tls_key or None
        _load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self._certificate, self._key)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        _load_certificate(self.context, self._certificate, self._key)
        self._files = [WatchedFile(Path(file)) for file in (self._certificate, self._key) if file]
        if settings.tls_client_ca:
            try:
                self.context.load_verify_locations(settings.tls_client_ca)
            except (OSError, ssl.SSLError) as error:
                raise InvalidRequest(f"tls_client_ca: {settings.tls_client_ca}: {error.strerror or error}") from None
            self.context.verify_mode = ssl.CERT_REQUIRED if settings.tls_client_required else ssl.CERT_OPTIONAL

    def reload_when_changed(self) -> None:
        """Give new connections the certificate that the files have now. Files that do not fit leave the one before."""
        changed = [file for file in self._files if file.has_changed()]
        if not changed:
            return
        try:
            # A certificate without its key, as in the middle of a change, would leave the context without either.
            _load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self._certificate, self._key)
            _load_certificate(self.context, self._certificate, self._key)
        except InvalidRequest as error:
            _logger.error("certificate not reloaded", reason=str(error))
        else:
            _logger.info("certificate reloaded", file=self._certificate)


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    try:
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError) as error:
        files = f"{certificate} and {key}" if key else certificate
        raise InvalidRequest(f"tls_certificate: cannot use {files}: {error.strerror or error}") from None
