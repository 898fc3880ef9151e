"""Determines the sender of a request, by the methods that are on at the port it came to.

Verified credentials are cached (`KnownCredentials`). They count for as long as their proof is in force: the hash in the
password file, the API key in the log, the issuer's keys. Passwords and tokens are verified in threads, few at a
time for each address, and once for all requests that wait for the same credentials.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from stele.errors import InvalidRequest, Overloaded, StoreError, Unauthenticated
from stele.server.authentication.certificate_rules import CertificateRules
from stele.server.authentication.credentials import (
    REFUSED,
    Token,
    UserPassword,
    find_credentials,
    parse_credentials,
)
from stele.server.authentication.key_set import KeySet
from stele.server.authentication.known_credentials import KnownCredentials, VerifiedCredentials
from stele.server.authentication.methods import Method, Methods, parse_methods
from stele.server.authentication.tokens import TokenRules, TokenVerifier
from stele.server.authentication.users import UserFiles
from stele.server.settings import ServerSettings
from stele.service import api_keys
from stele.service.access import ANONYMOUS, PresentedCredentials, Principal
from stele.service.registry import Registry
from stele.service.threads import WorkThreads

_FRESH_SECONDS: Final = 0.001
"""Seconds for which memory counts as up to date for API keys."""
_HASHING_THREADS: Final = 2
_HASHING_WAITING: Final = 32
_MOST_PER_ADDRESS: Final = 8
"""Verifications that may run for one address. More are refused, so that one client cannot take all threads."""
_REALM: Final = b'realm="stele", charset="UTF-8"'


class AuthenticationMethods(NamedTuple):
    """The methods that are on, and what they need.

    by_port               the methods of ports; 0 stands for every port that is not named
    passwords             users, for `basic`
    tokens                verifies tokens, for `oidc`
    certificates          rules, for `mtls`
    is_anonymous_allowed  requests without credentials are anonymous instead of refused
    """

    by_port: Mapping[int, Methods]
    passwords: UserFiles | None = None
    tokens: TokenVerifier | None = None
    certificates: CertificateRules | None = None
    is_anonymous_allowed: bool = False


class RequestAuthenticator:
    """Tries every method that is on. Implements `service.access.Authenticator`.

    Args:
        registry: The registry with the API keys.
        methods: The methods that are on.
    """

    def __init__(self, registry: Registry, methods: AuthenticationMethods) -> None:
        self._registry = registry
        self._methods = methods.by_port
        self._default_methods = methods.by_port[0]
        self._passwords = methods.passwords
        self._tokens = methods.tokens
        self._certificates = methods.certificates
        self._is_anonymous_allowed = methods.is_anonymous_allowed
        self._hashing = WorkThreads(_HASHING_THREADS, _HASHING_WAITING, "passwords")
        self._known = KnownCredentials()
        self._verifying: dict[bytes, asyncio.Task[VerifiedCredentials]] = {}
        self._addresses: Counter[str] = Counter()
        self._fresh_until = 0.0

    def find_known_principal(self, credentials: tuple[bytes, bytes], port: int) -> Principal | None:
        """Return the principal of credentials that were verified before and are still valid; see `Authenticator`."""
        methods = self._find_methods(port)
        if not methods:
            return ANONYMOUS
        verified = self._known.find_verified(self._known.digest_header(credentials))
        if verified is None or verified.method not in methods or not self._holds(verified):
            return None
        return verified.principal

    def find_principal(self, presented: PresentedCredentials) -> Principal | None:
        """Return the principal if that needs no waiting; see `Authenticator`."""
        methods = self._find_methods(presented.port)
        if not methods:
            return ANONYMOUS
        header = find_credentials(presented.headers)
        if header is None:
            return self._find_without_credentials(methods, presented)
        known = self.find_known_principal(header, presented.port)
        if known is not None:
            return known
        if Method.KEYS not in methods:
            return None
        key = _find_key(parse_credentials(*header))
        return None if key is None or not self._has_read_all() else self._check_key(header, key)

    async def authenticate(self, presented: PresentedCredentials) -> Principal:
        """Return the principal after all checks; see `Authenticator`."""
        methods = self._find_methods(presented.port)
        header = find_credentials(presented.headers)
        if not methods or header is None:
            return self._find_without_credentials(methods, presented) if methods else ANONYMOUS
        credentials = parse_credentials(*header)
        key = _find_key(credentials) if Method.KEYS in methods else None
        if key is not None:
            try:
                await self._registry.fresh_state()
            except StoreError:  # Keys in memory stay valid while the store does not answer.
                if api_keys.find_document(self._registry.state, api_keys.find_key_id(key) or "") is None:
                    raise
            principal = self._check_key(header, key)
            if principal is None:
                raise Unauthenticated("the API key is not valid")
            return principal
        if (Method.BASIC if isinstance(credentials, UserPassword) else Method.OIDC) not in methods:
            raise Unauthenticated("this kind of credentials is not accepted")
        return (await self._verify_once(self._known.digest_header(header), credentials, presented.address)).principal

    def list_challenges(self, port: int) -> Sequence[bytes]:
        """Return the values of `WWW-Authenticate` for a port; see `Authenticator`."""
        methods = self._find_methods(port)
        basic = [b"Basic " + _REALM] if methods & {Method.BASIC, Method.KEYS} else []
        bearer = [b'Bearer realm="stele"'] if methods & {Method.KEYS, Method.OIDC} else []
        return basic + bearer

    def close(self) -> None:
        """End the threads."""
        self._hashing.shutdown()
        if self._tokens is not None:
            self._tokens.close()

    def _find_methods(self, port: int) -> Methods:
        return self._methods.get(port, self._default_methods)

    def _find_without_credentials(self, methods: Methods, presented: PresentedCredentials) -> Principal:
        if Method.MTLS in methods and presented.certificate is not None and self._certificates is not None:
            return self._certificates.find_principal(presented.certificate)
        if self._is_anonymous_allowed:
            return ANONYMOUS
        raise Unauthenticated("the request has no credentials")

    def _holds(self, verified: VerifiedCredentials) -> bool:
        """Return whether the proof of credentials is still in force."""
        if verified.method is Method.BASIC:
            return self._passwords is not None and self._passwords.find_user(verified.name) == verified.proof
        if verified.method is Method.KEYS:
            return self._has_read_all() and (
                api_keys.find_document(self._registry.state, verified.name) == verified.proof
            )
        return self._tokens is not None and self._tokens.are_keys_in_force(verified.proof)

    def _has_read_all(self) -> bool:
        """Return whether memory has all API keys that this node knows of, without waiting."""
        now = time.perf_counter()
        if now >= self._fresh_until:
            if not self._registry.has_read_all():
                return False
            self._fresh_until = now + _FRESH_SECONDS
        return True

    def _check_key(self, header: tuple[bytes, bytes], key: str) -> Principal | None:
        """Return the principal of a key and cache it; None if memory has no such key. Raises `Unauthenticated`."""
        key_id = api_keys.find_key_id(key) or ""
        document = api_keys.find_document(self._registry.state, key_id)
        if document is None:
            return None
        principal, expires = api_keys.check_api_key(document, key, time.time())
        verified = VerifiedCredentials(principal, Method.KEYS, expires, key_id, document)
        self._known.remember(self._known.digest_header(header), verified)
        return principal

    async def _verify_once(self, digest: bytes, credentials: UserPassword | Token, address: str) -> VerifiedCredentials:
        """Verify credentials, or wait for a verification of the same ones that is running.

        Raises `Overloaded` where too many verifications run for the same address.
        """
        verifying = self._verifying.get(digest)
        if verifying is None:
            if self._addresses[address] >= _MOST_PER_ADDRESS:
                raise Overloaded(f"{_MOST_PER_ADDRESS} other credentials from the same address are being verified")
            self._addresses[address] += 1
            verifying = self._verifying[digest] = asyncio.create_task(self._verify(credentials))
            verifying.add_done_callback(lambda task: self._note_end(digest, address, task))
        return await asyncio.shield(verifying)

    def _note_end(self, digest: bytes, address: str, task: asyncio.Task[VerifiedCredentials]) -> None:
        del self._verifying[digest]
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]
        if not task.cancelled() and task.exception() is None:
            self._known.remember(digest, task.result())

    async def _verify(self, credentials: UserPassword | Token) -> VerifiedCredentials:
        if isinstance(credentials, Token):
            assert self._tokens is not None
            token = await self._tokens.verify_token(credentials.text)
            return VerifiedCredentials(token.principal, Method.OIDC, token.expires, proof=token.keys)
        assert self._passwords is not None
        loop = asyncio.get_running_loop()
        user = await loop.run_in_executor(self._hashing, self._passwords.check_password, credentials)
        if user is None:
            raise Unauthenticated(REFUSED)
        principal = Principal(credentials.user, user.groups, "basic")
        return VerifiedCredentials(principal, Method.BASIC, float("inf"), credentials.user, user)


def _find_key(credentials: UserPassword | Token) -> str | None:
    """Return an API key: as a token, or as the password of its own id."""
    if isinstance(credentials, Token):
        return credentials.text if api_keys.find_key_id(credentials.text) is not None else None
    password = credentials.password.decode("ascii", "replace")
    return password if password.isascii() and api_keys.find_key_id(password) == credentials.user else None


def open_methods(settings: ServerSettings, ports: Mapping[int, str]) -> AuthenticationMethods | None:
    """Return the authentication methods of the settings, None if authentication is off.

    Args:
        settings: Settings of the server.
        ports: Ports that belong to one dialect alone.

    Raises:
        InvalidRequest: A setting is missing or wrong.
        NotInstalled: A method needs a package that is not there.
    """
    by_dialect = parse_methods(settings.authentication, set(ports.values()))
    used = frozenset[Method]().union(*by_dialect.values())
    if not used:
        return None
    if Method.MTLS in used and not settings.tls_client_ca:
        raise InvalidRequest("authentication by mtls needs the settings tls_certificate and tls_client_ca")
    return AuthenticationMethods(
        {0: by_dialect[""]} | {port: by_dialect[name] for port, name in ports.items() if name in by_dialect},
        passwords=_open_users(settings) if Method.BASIC in used else None,
        tokens=_open_tokens(settings) if Method.OIDC in used else None,
        certificates=CertificateRules(settings.mtls_principal_rules) if Method.MTLS in used else None,
        is_anonymous_allowed=settings.anonymous,
    )


def _open_users(settings: ServerSettings) -> UserFiles:
    pravega = settings.pravega_acl if settings.pravega_acl_passwords else ""
    if not settings.password_file and not pravega:
        raise InvalidRequest(
            "authentication by basic needs the setting password_file, or pravega_acl with pravega_acl_passwords"
        )
    passwords, groups, users = (
        Path(name) if name else None for name in (settings.password_file, settings.group_file, pravega)
    )
    return UserFiles(passwords, groups, users)


def _open_tokens(settings: ServerSettings) -> TokenVerifier:
    rules = TokenRules(
        settings.oidc_issuer,
        settings.oidc_audience,
        settings.oidc_algorithms,
        settings.oidc_leeway_seconds,
        settings.oidc_name_claim,
        settings.oidc_groups_claim,
    )
    return TokenVerifier(rules, KeySet(settings.oidc_jwks, settings.oidc_issuer, is_insecure=settings.insecure))
