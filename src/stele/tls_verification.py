"""How TLS clients judge the certificates of servers: alike on every supported Python, and only where there is TLS."""

from __future__ import annotations

import os
import ssl
import threading
from typing import Any, Self


def unify_verification(context: ssl.SSLContext) -> ssl.SSLContext:
    """Make a context judge certificates as Python 3.11 does, and return it.

    From 3.13 on Python refuses authorities without the extension `keyUsage`, which private ones often lack, and takes
    an intermediate authority for the root.
    """
    context.verify_flags &= ~(ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    return context


def make_client_context() -> ssl.SSLContext:
    """Make a context that trusts the authorities that httpx trusts, or those that the environment names.

    `SSL_CERT_FILE` is a file of them, and `SSL_CERT_DIR` a folder. The context reads them for its first connection,
    where httpx takes 25 ms for it whenever a client is made, with TLS or not. That connection fails with an
    `ssl.SSLError` when they cannot be read.
    """
    return unify_verification(_LateContext())


class _LateContext(ssl.SSLContext):
    """Reads its authorities when they are needed."""

    def __new__(cls) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self) -> None:
        self._has_authorities = False
        self._reading = threading.Lock()
        if key_log := os.environ.get("SSLKEYLOGFILE"):
            self.keylog_filename = key_log

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        """Begin a connection over a socket."""
        self._read_authorities()
        return super().wrap_socket(*args, **options)

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection over buffers."""
        self._read_authorities()
        return super().wrap_bio(*args, **options)

    def _read_authorities(self) -> None:
        with self._reading:
            if self._has_authorities:
                return
            file, folder = _find_authorities()
            try:
                self.load_verify_locations(file, folder)
            except OSError as error:
                raise ssl.SSLError(f"cannot read the authorities in {file or folder}: {error}") from error
            self._has_authorities = True


def _find_authorities() -> tuple[str | None, str | None]:
    """The file, or the folder."""
    if file := os.environ.get("SSL_CERT_FILE"):
        return file, None
    if folder := os.environ.get("SSL_CERT_DIR"):
        return None, folder
    import certifi  # what httpx trusts

    return certifi.where(), None
