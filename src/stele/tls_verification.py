"""Verification of server certificates by TLS clients: the same on every supported Python version."""

from __future__ import annotations

import os
import ssl
import threading
from typing import Any, Self


def unify_verification(context: ssl.SSLContext) -> ssl.SSLContext:
    """Make a context verify certificates as Python 3.11 does, and return it.

    From 3.13 on Python refuses authorities without the extension `keyUsage`, which private ones often lack, and accepts
    an intermediate authority as the root.
    """
    context.verify_flags &= ~(ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    return context


def make_client_context() -> ssl.SSLContext:
    """Return a context that trusts the authorities that httpx trusts, or those that the environment names.

    `SSL_CERT_FILE` is a file of them, and `SSL_CERT_DIR` a folder. The context reads them at its first connection.
    httpx itself takes 25 ms to read them for each new client, even without TLS. The connection fails with an
    `ssl.SSLError` when they cannot be read.
    """
    return unify_verification(_LateContext())


class _LateContext(ssl.SSLContext):
    """A context that reads its authorities at the first connection."""

    def __new__(cls) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self) -> None:
        self._has_authorities = False
        self._reading = threading.Lock()
        if key_log := os.environ.get("SSLKEYLOGFILE"):
            self.keylog_filename = key_log

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        """Start TLS over a socket."""
        self._read_authorities()
        return super().wrap_socket(*args, **options)

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Start TLS over buffers."""
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
    """Return the file and the folder of authorities; one of them is None."""
    if file := os.environ.get("SSL_CERT_FILE"):
        return file, None
    if folder := os.environ.get("SSL_CERT_DIR"):
        return None, folder
    import certifi  # the authorities that httpx trusts

    return certifi.where(), None
