"""The form of the URL of a MySQL store, and the connection options in it."""

from __future__ import annotations

import ssl
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from stele.errors import InvalidRequest
from stele.storage.credentials import find_credentials
from stele.tls_verification import unify_verification

__all__ = ["connect_options"]

_SHAPE: Final = (
    "A MySQL store is written mysql://user@host:3306/database, with percent escapes in names and after '?' any of"
    " ssl-mode=disabled|required|verify_ca|verify_identity, ssl-ca, ssl-cert, ssl-key, unix-socket and connect-timeout"
)
_PARAMETERS: Final = {"ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "unix-socket", "connect-timeout"}
_SSL_MODES: Final = {"disabled", "required", "verify_ca", "verify_identity"}
_CONNECT_SECONDS: Final = 10


def connect_options(url: str) -> dict[str, Any]:
    """Return the options of `pymysql.connect` for a URL, completed from the environment. Raises `InvalidRequest`."""
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        parameters = dict(pairs)
        timeout = int(parameters.get("connect-timeout", _CONNECT_SECONDS))
    except ValueError:
        raise InvalidRequest(_SHAPE) from None
    database = unquote(parts.path.removeprefix("/"))
    is_known = parameters.keys() <= _PARAMETERS and len(pairs) == len(parameters)
    if not database or "/" in database or not parts.hostname or parts.fragment or not is_known or timeout < 1:
        raise InvalidRequest(_SHAPE)
    credentials = find_credentials()
    options = {
        "host": parts.hostname,
        "port": port,
        "user": unquote(parts.username) if parts.username is not None else credentials.user,
        "password": unquote(parts.password) if parts.password is not None else credentials.password or "",
        "database": database,
        "connect_timeout": timeout,
        "unix_socket": parameters.get("unix-socket"),
        **_ssl_options(parameters),
    }
    return {name: value for name, value in options.items() if value is not None}


def _ssl_options(parameters: dict[str, str]) -> dict[str, Any]:
    mode = parameters.get("ssl-mode", "verify_ca" if "ssl-ca" in parameters else "")
    if not mode and not {"ssl-cert", "ssl-key"} & parameters.keys():
        return {}
    if mode == "disabled":
        return {"ssl_disabled": True}
    if mode not in _SSL_MODES:
        raise InvalidRequest(_SHAPE)
    try:
        context = unify_verification(ssl.create_default_context(cafile=parameters.get("ssl-ca")))
        context.check_hostname = mode == "verify_identity"
        if mode == "required":
            context.verify_mode = ssl.CERT_NONE
        if "ssl-cert" in parameters:
            context.load_cert_chain(parameters["ssl-cert"], parameters.get("ssl-key"))
    except OSError as error:  # ssl.SSLError is one
        raise InvalidRequest(f"The certificates of the MySQL store cannot be read: {error.strerror}") from None
    return {"ssl": context}
