"""Sessions of users who logged in to the pages: a cookie that holds their credentials, sealed, until it expires.

A request for a page with the cookie is treated like a request with the credentials in a header. They are verified like
all others, so a session ends at once when the user is removed from the password file, the key is revoked or the token
expires. The cookie counts for pages only; for a change it counts only if a page of this server sent the request.
"""

from __future__ import annotations

import os
import time
from base64 import b64encode
from hashlib import sha256
from typing import Final

import msgspec
import structlog
from msgspec.structs import replace

from stele.errors import InvalidRequest, NotInstalled, SteleError, Unauthenticated
from stele.server.authentication import Method, RequestAuthenticator, parse_methods
from stele.server.settings import ServerSettings
from stele.server.site_guard import is_same_origin
from stele.service import collections
from stele.service.access import CALLER, Headers, PresentedCredentials, Principal
from stele.service.registry import Registry
from stele.service.secrets import parse_source, read_key_bytes
from stele.service.session_seal import SessionSeal, make_session_key
from stele.ui.options import COOKIE

_logger = structlog.get_logger("stele.server")

COLLECTION: Final = "ui.ended_sessions"
"""Digests of sessions that were ended before they expired, with the time when they would have expired."""
KEY_VARIABLE: Final = "STELE_RESOLVED_SESSION_KEY"
"""Environment variable in which a process passes the key to its workers."""
LONGEST_CREDENTIALS: Final = 2800
"""Highest number of bytes of credentials that, once sealed, fit into a cookie of every browser."""
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_ENDED: Final = 10_000
_VIA: Final = "ui"


class _Session(msgspec.Struct, array_like=True):
    """The content of a cookie: the header with the credentials, and when the session expires.

    The time is in seconds since 1970 UTC.
    """

    name: bytes
    value: bytes
    expires: int


class BrowserSessions:
    """Begins, checks and ends sessions. Implements `stele.ui.options.LogIn`.

    Args:
        registry: Stores ended sessions.
        authenticator: Verifies credentials.
        key: Key that seals cookies, 32 bytes.
        seconds: How long a session lasts at most.
        takes_passwords: Whether users can log in with user name and password.
        takes_tokens: Whether users can log in with an API key or a token.

    Raises:
        NotInstalled: The encryption library is missing.
    """

    def __init__(
        self,
        registry: Registry,
        authenticator: RequestAuthenticator,
        key: bytes,
        seconds: int,
        *,
        takes_passwords: bool,
        takes_tokens: bool,
    ) -> None:
        self.takes_passwords = takes_passwords
        self.takes_tokens = takes_tokens
        self.seconds = seconds
        self._registry = registry
        self._authenticator = authenticator
        self._seal = SessionSeal(key)
        self._ended: dict[str, int] = {}

    async def begin(self, user: str, secret: str, port: int, address: str) -> str:
        """Verify the credentials that a user entered, and return the value of a new cookie.

        Args:
            user: Name of the user; '' for a token or an API key.
            secret: The password, token or key.
            port: Port to which the request came.
            address: Address from which it came.

        Raises:
            Unauthenticated: The credentials are wrong.
            Unavailable: The credentials cannot be verified now.
        """
        if user:
            header = b"authorization", b"Basic " + b64encode(f"{user}:{secret}".encode())
        else:
            header = b"authorization", b"Bearer " + secret.encode()
        if len(header[1]) > LONGEST_CREDENTIALS:
            raise Unauthenticated(f"credentials for a session may have {LONGEST_CREDENTIALS} bytes at most")
        principal = await self._verify(PresentedCredentials([header], port, address))
        if not principal.name:
            raise Unauthenticated("this server has no authentication, so there is no login")
        session = _Session(*header, int(time.time()) + self.seconds)
        return self._seal.seal(msgspec.msgpack.encode(session))

    async def _verify(self, presented: PresentedCredentials) -> Principal:
        return self._authenticator.find_principal(presented) or await self._authenticator.authenticate(presented)

    def has_session(self, headers: Headers) -> bool:
        """Return whether a request has the cookie of a valid session."""
        return self._open_session(headers) is not None

    def find_credentials(self, method: str, headers: Headers) -> tuple[bytes, bytes] | None:
        """Return the header with the credentials of a request's session.

        Returns None where there is no session, and for a request that changes something unless a page of this server
        sent it.
        """
        if method not in _SAFE_METHODS and not _is_sent_by_own_page(headers):
            return None
        session = self._open_session(headers)
        return None if session is None else (session.name, session.value)

    async def end(self, headers: Headers) -> None:
        """End the session of a request on all nodes, if it has one.

        When the store rejects the write, the session ends in this process only.
        """
        session, cookie = self._open_session(headers), _find_cookie(headers)
        if session is None or cookie is None:
            return
        digest, now = _digest(cookie), int(time.time())
        self._ended = {each: until for each, until in self._ended.items() if until > now}
        if len(self._ended) < _MOST_ENDED:
            self._ended[digest] = session.expires
        acting = CALLER.set(replace(CALLER.get(), is_system=True))  # Every user may end their own session.
        try:
            await collections.edit_collection(
                self._registry, COLLECTION, lambda items: _note_end(items, digest, session.expires, now), via=_VIA
            )
        except SteleError as error:
            _logger.warning("a session ended on one process only", reason=str(error))
        finally:
            CALLER.reset(acting)

    def _open_session(self, headers: Headers) -> _Session | None:
        cookie = _find_cookie(headers)
        if cookie is None:
            return None
        payload = self._seal.unseal(cookie)
        if payload is None:
            return None
        session = msgspec.msgpack.decode(payload, type=_Session)
        digest = _digest(cookie)
        ended = collections.items_in(self._registry, self._registry.state, COLLECTION)
        if session.expires <= time.time() or digest in self._ended or (digest,) in ended:
            return None
        return session


def _note_end(items: collections.Items, digest: str, expires: int, now: int) -> tuple[collections.Changes, None]:
    """Add an ended session, and delete those that have expired since."""
    old: dict[tuple[str, ...], bytes | None] = {key: None for key, until in items.items() if int(until) <= now}
    return {**old, (digest,): str(expires).encode()}, None


def _digest(cookie: bytes) -> str:
    return sha256(cookie).hexdigest()


def _find_cookie(headers: Headers) -> bytes | None:
    """Return the value of the cookie. None where there is none, or several, because another site may have set one."""
    name = COOKIE.encode()
    values = [
        value
        for header, text in headers
        if header == b"cookie"
        for each, _, value in (pair.strip().partition(b"=") for pair in text.split(b";"))
        if each == name
    ]
    return values[0] if len(values) == 1 else None


def _is_sent_by_own_page(headers: Headers) -> bool:
    """Return whether the `Origin` header names this server, so that one of its pages sent the request."""
    values = dict(headers)
    origin = values.get(b"origin", b"")
    return bool(origin) and is_same_origin(origin.decode("latin-1"), values.get(b"host", b""))


def open_sessions(
    settings: ServerSettings, registry: Registry, authenticator: RequestAuthenticator | None, ports: dict[int, str]
) -> BrowserSessions | None:
    """Return the sessions of a server; None where users cannot log in to its pages. Raises `InvalidRequest`."""
    if authenticator is None or not settings.ui or not settings.ui_session_seconds:
        return None
    by_dialect = parse_methods(settings.authentication, set(ports.values()))
    used = by_dialect.get(_VIA, by_dialect[""])
    takes_passwords, takes_tokens = Method.BASIC in used, bool(used & {Method.KEYS, Method.OIDC})
    if not takes_passwords and not takes_tokens:
        return None
    try:
        return BrowserSessions(
            registry,
            authenticator,
            find_session_key(settings),
            settings.ui_session_seconds,
            takes_passwords=takes_passwords,
            takes_tokens=takes_tokens,
        )
    except NotInstalled as error:
        _logger.warning("login to the pages is not possible", reason=str(error))
        return None


def find_session_key(settings: ServerSettings) -> bytes:
    """Return the key from the settings, else the one passed by the parent process, else a new one."""
    if settings.ui_session_key:
        return read_key_bytes(parse_source("ui_session_key", settings.ui_session_key))
    handed_down = os.environ.get(KEY_VARIABLE, "")
    try:
        return bytes.fromhex(handed_down) if handed_down else make_session_key()
    except ValueError:
        raise InvalidRequest(f"the variable {KEY_VARIABLE} does not hold a key") from None
