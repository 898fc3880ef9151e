"""Verifies signed tokens (JWT) of an OpenID Connect or OAuth 2.0 server with the server's public keys."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import structlog

from stele.errors import InvalidRequest, NotInstalled, Unauthenticated, Unavailable
from stele.server.authentication.key_set import KeySet, PublicKey
from stele.service.access import Principal
from stele.service.threads import WorkThreads

METHOD: Final = "jwt"
"""Name of the method by which callers with a token authenticate."""
ASYMMETRICAL: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Asymmetric algorithms: the key that verifies a signature cannot make one."""

_THREADS: Final = 2
_WAITING: Final = 128
_MOST_GROUPS: Final = 1000
_LONGEST_NAME: Final = 256

_logger = structlog.get_logger("stele.server")


class TokenRules(NamedTuple):
    """Conditions for a token to be accepted.

    issuer       its claim `iss`
    audiences    its claim `aud` has one of them
    algorithms   it is signed by one of them
    leeway       seconds that clocks may differ by
    name_claim   claim with the name of the caller
    groups_claim claim with the groups of the caller
    """

    issuer: str
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...]
    leeway: int = 30
    name_claim: str = "sub"
    groups_claim: str = "groups"


class VerifiedToken(NamedTuple):
    """The principal of a token, when it expires in seconds since 1970, and the keys of its issuer at that time."""

    principal: Principal
    expires: float
    keys: Mapping[str, PublicKey]


class TokenVerifier:
    """Verifies tokens in its own threads. Unknown keys are fetched once for all requests that wait for them.

    Raises `InvalidRequest` for rules that are too weak to be safe, `NotInstalled`.
    """

    def __init__(self, rules: TokenRules, keys: KeySet) -> None:
        try:
            import jwt  # noqa: F401 - the sentence comes at the start, not with the first token
        except ImportError:
            raise NotInstalled("PyJWT", "access") from None
        if not rules.issuer or not rules.audiences:
            raise InvalidRequest("authentication by oidc needs the settings oidc_issuer and oidc_audience")
        wrong = sorted(set(rules.algorithms) - ASYMMETRICAL)
        if wrong or not rules.algorithms:
            raise InvalidRequest(
                f"oidc_algorithms: {', '.join(wrong) or 'none'} is not among {', '.join(sorted(ASYMMETRICAL))}"
            )
        self._rules = rules
        self._keys = keys
        self._threads = WorkThreads(_THREADS, _WAITING, "tokens")
        self._fetching: asyncio.Task[None] | None = None

    async def verify_token(self, token: str) -> VerifiedToken:
        """Return the principal of a token.

        Raises `Unauthenticated`, and `Unavailable` where its issuer does not answer.
        """
        algorithm, key_id = self._read_header(token)
        if self._keys.is_due():
            fetching = self._start_fetching()
            if fetching is not None and (self._keys.has_new_file() or self._keys.find_key(key_id) is None):
                await asyncio.shield(fetching)
        key = self._keys.find_key(key_id)
        if key is None:
            fetching = self._start_fetching()
            if fetching is not None:
                await asyncio.shield(fetching)
                key = self._keys.find_key(key_id)
        if key is None or not key.serves(algorithm):
            raise Unauthenticated("the token is signed with a key that its issuer does not have")
        keys = self._keys.keys
        loop = asyncio.get_running_loop()
        decoding = loop.run_in_executor(self._threads, _decode_token, token, algorithm, key, self._rules)
        return VerifiedToken(*await decoding, keys)

    def are_keys_in_force(self, keys: Mapping[str, PublicKey]) -> bool:
        """Return whether these are still the issuer's keys, as far as this server knows."""
        return keys is self._keys.keys and not self._keys.has_new_file()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def _start_fetching(self) -> asyncio.Task[None] | None:
        """Return the running fetch of keys.

        If none runs, start one when the pause since the last is over; else return None.
        """
        if self._fetching is None and self._keys.can_fetch():
            self._fetching = asyncio.create_task(self._fetch())
        return self._fetching

    async def _fetch(self) -> None:
        try:
            await asyncio.to_thread(self._keys.fetch)
        except Unavailable as error:
            _logger.warning("keys of the issuer not fetched", reason=str(error))
        finally:
            self._fetching = None

    def _read_header(self, token: str) -> tuple[str, str]:
        """Return the algorithm and the key id that a token names. Nothing is verified yet."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise Unauthenticated("the token is not valid: it is not a JWT") from None
        algorithm, key_id = header.get("alg"), header.get("kid", "")
        if algorithm not in self._rules.algorithms or not isinstance(key_id, str):
            raise Unauthenticated("the token is not valid: it is signed by an algorithm that is not allowed")
        if "crit" in header:
            raise Unauthenticated("the token is not valid: it has critical extensions")
        return str(algorithm), key_id


def _decode_token(token: str, algorithm: str, key: PublicKey, rules: TokenRules) -> tuple[Principal, float]:
    """Return the principal of a token, and when it expires, in seconds since 1970. Raises `Unauthenticated`."""
    import jwt

    try:
        claims = jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=list(rules.audiences),
            issuer=rules.issuer,
            leeway=rules.leeway,
            options={"require": ["exp", "iss", "aud"]},
        )
        expires = float(claims["exp"])
    except jwt.ExpiredSignatureError:
        raise Unauthenticated("the token is not valid: it has expired") from None
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
        kind = _describe_kind(error)
        raise Unauthenticated(f"the token is not valid: {kind}") from None
    name = _find_claim(claims, rules.name_claim)
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise Unauthenticated(f"the token is not valid: its claim {rules.name_claim} is not a name")
    return Principal(name, _read_groups(_find_claim(claims, rules.groups_claim)), METHOD), expires


def _describe_kind(error: Exception) -> str:
    """Return a message for the type of an error that contains no part of the token."""
    import jwt

    kinds: tuple[tuple[type[Exception], str], ...] = (
        (jwt.InvalidSignatureError, "its signature is wrong"),
        (jwt.ImmatureSignatureError, "it does not hold yet"),
        (jwt.InvalidAudienceError, "it is for another audience"),
        (jwt.InvalidIssuerError, "it is of another issuer"),
        (jwt.MissingRequiredClaimError, "it lacks exp, iss or aud"),
    )
    return next((text for kind, text in kinds if isinstance(error, kind)), "it cannot be read")


def _find_claim(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, or by a path such as `realm_access.roles`."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _read_groups(value: Any) -> frozenset[str]:
    """Return the groups in a list, or in a text separated by blanks like `scope`."""
    listed = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    groups = [group for group in listed if isinstance(group, str) and 0 < len(group) <= _LONGEST_NAME]
    if len(groups) > _MOST_GROUPS:
        raise Unauthenticated(f"the token is not valid: it has more than {_MOST_GROUPS} groups")
    return frozenset(groups)
