"""Signed tokens: which ones are accepted, which are refused, and the cost of forged ones."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm
from tests.support.token_issuer import TokenIssuer, run_issuer

from stele.errors import InvalidRequest, Unauthenticated
from stele.server.authentication import key_set
from stele.server.authentication.key_set import KeySet, read_key_set
from stele.server.authentication.tokens import TokenRules, TokenVerifier, VerifiedToken
from stele.service import watched_file

ALGORITHMS = ("RS256", "ES256")
MONTH = 30 * 24 * 3600
"""Seconds that no test run takes; expiry times are computed when it begins."""


@pytest.fixture(scope="module")
def issuer() -> Iterator[TokenIssuer]:
    """An issuer on a port of this machine."""
    with run_issuer() as running:
        yield running


def make_verifier(server: TokenIssuer, source: str = "", **rules: Any) -> TokenVerifier:
    """Return a verifier for an issuer."""
    wanted = TokenRules(server.url, ("other", server.audience), ALGORITHMS, leeway=5)._replace(**rules)
    return TokenVerifier(wanted, KeySet(source, server.url))


async def verify(server: TokenIssuer, token: str, **rules: Any) -> VerifiedToken:
    """Return the principal of a token."""
    return await make_verifier(server, **rules).verify_token(token)


def forge(header: dict[str, Any], claims: Any, sign: Callable[[bytes], bytes] = lambda data: b"") -> str:
    """Return a token that no library would make."""
    parts = [json.dumps(part).encode() if not isinstance(part, bytes) else part for part in (header, claims)]
    signed = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    return (signed + b"." + base64.urlsafe_b64encode(sign(signed)).rstrip(b"=")).decode()


async def test_a_token_of_the_issuer(issuer: TokenIssuer) -> None:
    """Name and groups come from the claims that the settings name, also from nested ones."""
    verified = await verify(issuer, issuer.sign_token(groups=["dev", "ops", 7]))
    assert (verified.principal.name, verified.principal.groups) == ("ann", {"dev", "ops"})
    assert 0 < verified.expires - time.time() <= 60
    token = issuer.sign_token(email="ann@example.org", realm={"roles": ["a"]}, scope="read write")
    named = (await verify(issuer, token, name_claim="email", groups_claim="realm.roles")).principal
    assert (named.name, named.groups, named.method) == ("ann@example.org", {"a"}, "jwt")
    assert (await verify(issuer, token, groups_claim="scope")).principal.groups == {"read", "write"}
    expired = issuer.sign_token(exp=int(time.time()) - 60)
    assert (await verify(issuer, expired, leeway=3600)).principal.name == "ann", "within leeway"


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": int(time.time()) - 60}, "expired"),
        ({"exp": None}, "lacks exp"),
        ({"exp": "soon"}, "cannot be read"),
        ({"nbf": int(time.time()) + MONTH}, "does not hold yet"),
        ({"iat": int(time.time()) + MONTH}, "does not hold yet"),
        ({"aud": "another"}, "another audience"),
        ({"aud": None}, "lacks exp, iss or aud"),
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"sub": None}, "not a name"),
        ({"sub": ""}, "not a name"),
        ({"sub": "x" * 300}, "not a name"),
        ({"sub": "a\r\nb"}, "not a name"),
        ({"groups": [str(number) for number in range(1001)]}, "groups"),
    ],
)
async def test_claims_that_are_not_believed(claims: dict[str, Any], why: str, issuer: TokenIssuer) -> None:
    """A token with unacceptable claims is refused with the reason: times, audience, issuer, missing expiry or name."""
    with pytest.raises(Unauthenticated, match=why):
        await verify(issuer, issuer.sign_token(**claims))


async def test_algorithms_are_not_confused(issuer: TokenIssuer) -> None:
    """`none` in any spelling, the public key as a secret, and the algorithm of another key are refused."""
    claims = {"iss": issuer.url, "aud": issuer.audience, "sub": "root", "exp": int(time.time()) + 60}
    spki = issuer.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    tokens = [
        forge(
            {"alg": "HS256", "kid": issuer.key_id}, claims, lambda data: hmac.new(spki, data, hashlib.sha256).digest()
        ),
        *[
            forge({"alg": name, "kid": issuer.key_id}, claims)
            for name in ("none", "None", "NONE", "", None, 1, ["RS256"])
        ],
        forge({"kid": issuer.key_id}, claims),
        forge({"alg": "RS256", "kid": issuer.key_id}, claims),
        forge({"alg": "RS384", "kid": issuer.key_id}, claims),
        forge({"alg": "RS256", "kid": issuer.key_id, "crit": ["b64"], "b64": False}, claims),
        forge({"alg": "RS256", "kid": [issuer.key_id]}, claims),
        forge({"alg": "RS256", "kid": issuer.key_id, "jwk": issuer.key_set["keys"][0]}, claims),
        jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), "ES256", headers={"kid": issuer.key_id}),
        jwt.encode(claims, rsa.generate_private_key(65537, 2048), "RS256", headers={"kid": issuer.key_id}),
        issuer.sign_token()[:-8] + "AAAAAAAA",
    ]
    verifier = make_verifier(issuer)
    for token in tokens:
        with pytest.raises(Unauthenticated):
            await verifier.verify_token(token)


@pytest.mark.parametrize("token", ["x", "..", "a.b", "a.b.c.d", "eyJ9.e30.e30", "é.é.é", "." * 5000])
async def test_what_is_no_token(token: str, issuer: TokenIssuer) -> None:
    """Text that is no JWT is refused with that reason."""
    with pytest.raises(Unauthenticated):
        await verify(issuer, token)


async def test_a_token_that_no_reader_survives(issuer: TokenIssuer) -> None:
    """Deep nesting and very long numbers are refused like other invalid tokens, even with a valid signature."""
    header = {"alg": "RS256", "kid": issuer.key_id}
    with pytest.raises(Unauthenticated):
        await verify(issuer, forge(b"[" * 9000, b"{}"))  # type: ignore[arg-type]  # no object

    def sign(data: bytes) -> bytes:
        return jwt.get_algorithm_by_name("RS256").sign(data, issuer.key)

    claims = json.dumps({"iss": issuer.url, "aud": issuer.audience, "sub": "ann"})[:-1]
    for end in (b', "exp": 1e999}', b', "exp": NaN}', b', "exp": 9999999999, "a": ' + b"[" * 5000):
        with pytest.raises(Unauthenticated):
            await verify(issuer, forge(header, claims.encode() + end, sign))


async def test_rotated_keys_and_floods_of_unknown_ones(issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new key is fetched with its first token; a thousand unknown key ids cause only one request to the issuer."""
    verifier = make_verifier(issuer, f"{issuer.url}/keys")
    await verifier.verify_token(issuer.sign_token())
    issuer.rotate_key()
    clock = time.monotonic() + 31
    monkeypatch.setattr(key_set, "monotonic", lambda: clock)
    assert (await verifier.verify_token(issuer.sign_token())).principal.name == "ann"
    issuer.requests.clear()
    claims = {"iss": issuer.url, "aud": issuer.audience, "sub": "root", "exp": int(time.time()) + 60}
    for expected in ([], ["/keys"]):
        for number in range(100):
            token = jwt.encode(claims, issuer.key, "RS256", headers={"kid": f"unknown-{number}"})
            with pytest.raises(Unauthenticated):
                await verifier.verify_token(token)
        assert issuer.requests == expected
        clock += 31
    assert (await verifier.verify_token(issuer.sign_token())).principal.name == "ann"


async def test_keys_are_found_through_the_issuer(issuer: TokenIssuer) -> None:
    """Without an address of keys, it is read from the metadata of the issuer, if they name that issuer."""
    issuer.requests.clear()
    await verify(issuer, issuer.sign_token())
    assert issuer.requests == ["/.well-known/openid-configuration", "/keys"]
    other = TokenIssuer(issuer.url + "/")
    with pytest.raises(Unauthenticated):
        await make_verifier(other).verify_token(other.sign_token())


async def test_keys_in_a_file(issuer: TokenIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of keys needs no network, and its changes take effect."""
    monkeypatch.setattr(watched_file, "_LOOK_SECONDS", 0.0)
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(issuer.key_set))
    verifier = make_verifier(issuer, str(path))
    await verifier.verify_token(issuer.sign_token())
    issuer.rotate_key()
    with pytest.raises(Unauthenticated):
        await verifier.verify_token(issuer.sign_token())
    path.write_text(json.dumps({**issuer.key_set, "more": 1}))
    await verifier.verify_token(issuer.sign_token())
    with pytest.raises(InvalidRequest, match="No such file"):
        KeySet(str(tmp_path / "none.json"), issuer.url)


def test_which_keys_are_believed(issuer: TokenIssuer) -> None:
    """Symmetric keys, keys for encryption and unknown curves are skipped; private parts are not stored."""
    curve = ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()), as_dict=True)
    keys = [
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0", "alg": "HS256"},
        {**issuer.key_set["keys"][0], "kid": "encryption", "use": "enc"},
        {**issuer.key_set["keys"][0], "kid": "confused", "alg": "HS256"},
        {**curve, "kid": "curve"},
        {**curve, "kid": "no curve", "crv": "P-1"},
        "no key",
    ]
    key_set = read_key_set(json.dumps({"keys": keys}).encode())
    assert list(key_set) == ["curve"]
    assert not hasattr(key_set["curve"].key, "sign")
    assert key_set["curve"].serves("ES256")
    assert not key_set["curve"].serves("RS256")
    for text in (b"", b"[]", b"{}", b'{"keys": {}}'):
        with pytest.raises(InvalidRequest):
            read_key_set(text)


@pytest.mark.parametrize(
    "address", ["http://issuer.example/keys", "ftp://issuer.example", "http://127.0.0.1.evil.example"]
)
def test_keys_do_not_come_without_tls(address: str) -> None:
    """Keys are not fetched without TLS, since they could be replaced on the way, unless `insecure` allows it."""
    with pytest.raises(InvalidRequest, match="by https"):
        KeySet("", address)
    if address.startswith("http:"):
        KeySet(address, "https://issuer.example", is_insecure=True)


@pytest.mark.parametrize(
    "rules",
    [{"algorithms": ("HS256",)}, {"algorithms": ("none",)}, {"algorithms": ()}, {"audiences": ()}, {"issuer": ""}],
)
def test_settings_that_believe_too_much(rules: dict[str, Any], issuer: TokenIssuer) -> None:
    """Symmetric algorithms, and tokens for any audience, cannot be enabled."""
    with pytest.raises(InvalidRequest):
        make_verifier(issuer, **rules)
