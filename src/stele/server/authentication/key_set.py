"""The public keys of an issuer of tokens (JWKS), read from a file or an address, and read again when they change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from stele.errors import InvalidRequest, Unavailable
from stele.server.addresses import is_loopback
from stele.service.watched_file import WatchedFile
from stele.tls_verification import make_client_context

if TYPE_CHECKING:
    from jwt.types import JWKDict

_REFRESH_SECONDS: Final = 600.0
"""Seconds between two fetches of the keys: a key that the issuer has withdrawn is accepted for no longer."""
_RETRY_SECONDS: Final = 30.0
"""Shortest time in seconds between two fetches because of tokens with unknown keys."""
_FETCH_SECONDS: Final = 5.0
_MOST_BYTES: Final = 1 << 20
_MOST_KEYS: Final = 1000
_DISCOVERY: Final = "/.well-known/openid-configuration"
_ALGORITHMS: Final[Mapping[str, tuple[str, ...]]] = {"RSA": ("RS", "PS"), "EC": ("ES",), "OKP": ("EdDSA",)}
"""By type of key, the prefixes of the algorithms it may be used for. Symmetric keys are not accepted."""


class PublicKey(NamedTuple):
    """A key that verifies tokens, and the algorithms it is for, or the prefixes of their names."""

    key: Any
    algorithms: tuple[str, ...]

    def serves(self, algorithm: str) -> bool:
        """Return whether this key may verify a token that names that algorithm."""
        return algorithm.startswith(self.algorithms)


class KeySet:
    """Keys of one issuer by their ids.

    Args:
        source: File or address of the keys; empty: the issuer's metadata name the address.
        issuer: The address of the issuer.
        is_insecure: Whether addresses without TLS are accepted, also on other machines.

    Raises:
        InvalidRequest: The file is no key set, or the keys would be fetched without TLS.
    """

    def __init__(self, source: str, issuer: str, *, is_insecure: bool = False) -> None:
        self._issuer = issuer
        self._is_insecure = is_insecure
        self._address = source if urlsplit(source).scheme in {"http", "https"} else ""
        self._file = WatchedFile(Path(source)) if source and not self._address else None
        self.keys: Mapping[str, PublicKey] = {}
        """Keys by id. Each read makes a new mapping, also if the keys are the same."""
        self._has_file_changed = False
        self._fetch_at = self._retry_at = 0.0
        if self._file is not None:
            self.keys = self._read_file(self._file)
        else:
            self._check_address(self._address or issuer)

    def find_key(self, key_id: str) -> PublicKey | None:
        """Return a key by its id. For a token without an id, return the only key, if there is only one."""
        if not key_id and len(self.keys) == 1:
            return next(iter(self.keys.values()))
        return self.keys.get(key_id)

    def is_due(self) -> bool:
        """Return whether the keys must be read: never or long ago fetched, or their file has changed."""
        return self.has_new_file() if self._file is not None else monotonic() >= self._fetch_at

    def has_new_file(self) -> bool:
        """Return whether the keys are in a file that has changed since they were read."""
        if self._file is not None and not self._has_file_changed:
            self._has_file_changed = self._file.has_changed()
        return self._has_file_changed

    def can_fetch(self) -> bool:
        """Return whether the pause since the last request to the issuer is over, or the file has changed."""
        return monotonic() >= self._retry_at if self._file is None else self._has_file_changed

    def fetch(self) -> None:
        """Fetch or read the keys, blocking. Raises `Unavailable`, and leaves the keys unchanged then."""
        self._retry_at = monotonic() + _RETRY_SECONDS
        if self._file is not None:
            try:
                self.keys = self._read_file(self._file)
            except InvalidRequest as error:
                raise Unavailable(str(error)) from None
            finally:
                self._has_file_changed = False
            return
        import httpx

        try:
            self.keys = read_key_set(self._get(self._address or self._discover()))
        except (httpx.HTTPError, httpx.InvalidURL, InvalidRequest) as error:
            raise Unavailable(f"cannot get the keys of {self._issuer}: {error}") from None
        self._fetch_at = monotonic() + _REFRESH_SECONDS

    def _discover(self) -> str:
        """Return the address of the keys in the issuer's metadata."""
        try:
            metadata = msgspec.json.decode(self._get(self._issuer.rstrip("/") + _DISCOVERY), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise InvalidRequest(f"its metadata are not a JSON object: {error}") from None
        if metadata.get("issuer") != self._issuer:
            raise InvalidRequest(f"its metadata name the issuer {metadata.get('issuer')!r}")
        address = str(metadata.get("jwks_uri"))
        self._check_address(address)
        return address

    def _get(self, address: str) -> bytes:
        import httpx

        body = bytearray()
        headers = {"Accept": "application/json"}
        with httpx.stream(
            "GET", address, timeout=_FETCH_SECONDS, headers=headers, verify=make_client_context()
        ) as response:
            if response.status_code != httpx.codes.OK:
                raise InvalidRequest(f"{address} answered {response.status_code}")
            for part in response.iter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise InvalidRequest(f"{address} answered more than {_MOST_BYTES} bytes")
        return bytes(body)

    def _read_file(self, file: WatchedFile) -> Mapping[str, PublicKey]:
        try:
            return read_key_set(file.path.read_bytes())
        except (OSError, InvalidRequest) as error:
            raise InvalidRequest(f"oidc_jwks: {file.path}: {getattr(error, 'strerror', None) or error}") from None

    def _check_address(self, address: str) -> None:
        """Raise `InvalidRequest` for an address whose response could be forged on its way."""
        parts = urlsplit(address)
        is_safe = parts.scheme == "https" or (
            parts.scheme == "http" and (self._is_insecure or is_loopback(parts.hostname or ""))
        )
        if not is_safe:
            raise InvalidRequest(
                f"the keys of an issuer must be fetched by https, not from {address!r} (oidc_issuer, oidc_jwks)"
            )


def read_key_set(document: bytes) -> dict[str, PublicKey]:
    """Return the public keys for signatures in a JWKS, by id.

    Keys of unknown types are skipped. Raises `InvalidRequest`.
    """
    import jwt

    try:
        keys = msgspec.json.decode(document, type=dict[str, Any]).get("keys")
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"the key set is not a JSON object: {error}") from None
    if not isinstance(keys, list):
        raise InvalidRequest("the key set has no list `keys`")
    public_keys: dict[str, PublicKey] = {}
    for jwk in keys[:_MOST_KEYS]:
        if not isinstance(jwk, dict) or jwk.get("kty") not in _ALGORITHMS or jwk.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(_leave_out_private_parts(jwk)).key
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue  # An unknown curve; other keys of the issuer may be usable.
        own = jwk.get("alg")
        algorithms = _ALGORITHMS[jwk["kty"]]
        if isinstance(own, str):
            if not own.startswith(algorithms):
                continue
            algorithms = (own,)
        public_keys[str(jwk.get("kid", ""))] = PublicKey(key, algorithms)
    return public_keys


def _leave_out_private_parts(jwk: JWKDict) -> JWKDict:
    return {name: value for name, value in jwk.items() if name not in {"d", "p", "q", "dp", "dq", "qi", "oth"}}
