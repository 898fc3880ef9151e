"""Forged, expired and confused credentials over HTTP, and password guessing: all are refused, at a limited cost."""

from __future__ import annotations

import json
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.support.token_issuer import TokenIssuer
from tests.unit.server.authentication.test_password_file import bcrypt_line

from stele.server.authentication.credentials import UserPassword
from stele.server.authentication.users import User, UserFiles
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings

ISSUER = TokenIssuer()
PATHS = ("/subjects", "/v1/groups", "/schemagroups", "/schema-repo", "/api/journal", "/openschema/subjects", "/metrics")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server that accepts tokens of the issuer, and the password `one` of ann."""
    folder = tmp_path_factory.mktemp("credentials")
    (folder / "keys.json").write_text(json.dumps(ISSUER.key_set))
    (folder / "users").write_text(bcrypt_line("ann", "one"))
    settings = ServerSettings(
        store="memory:",
        authentication=("oidc", "basic"),
        password_file=str(folder / "users"),
        oidc_issuer=ISSUER.url,
        oidc_audience=(ISSUER.audience,),
        oidc_jwks=str(folder / "keys.json"),
    )
    server = InProcessServer(settings)
    with httpx.Client(transport=InProcessTransport(server), base_url="http://127.0.0.1:8081") as client:
        yield client
    server.stop()


def claims(**more: Any) -> dict[str, Any]:
    """Return the claims of a valid token."""
    now = int(time.time())
    return {"iss": ISSUER.url, "aud": ISSUER.audience, "sub": "ann", "iat": now, "exp": now + 60, **more}


def make_unsigned_token(header: dict[str, Any], signature: bytes = b"") -> str:
    """Return a token with any header and signature."""
    parts = [json.dumps(header).encode(), json.dumps(claims()).encode(), signature]
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def make_confused_token() -> str:
    """Return a token whose HMAC uses the public key as its secret."""
    import hashlib
    import hmac

    secret = ISSUER.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head = make_unsigned_token({"alg": "HS256", "typ": "JWT", "kid": ISSUER.key_id}).rpartition(".")[0]
    digest = hmac.new(secret, head.encode(), hashlib.sha256).digest()
    return f"{head}.{urlsafe_b64encode(digest).decode().rstrip('=')}"


def make_foreign_token(**header: Any) -> str:
    """Return a token that is signed with another key and names where to find that key."""
    key = rsa.generate_private_key(65537, 2048)
    return jwt.encode(claims(), key, "RS256", headers={"kid": ISSUER.key_id, **header})


TOKENS: dict[str, Callable[[], str]] = {
    "no algorithm": lambda: make_unsigned_token({"alg": "none", "kid": ISSUER.key_id}),
    "None": lambda: make_unsigned_token({"alg": "NoNe", "kid": ISSUER.key_id}),
    "the public key as a secret": make_confused_token,
    "another key": make_foreign_token,
    "another key in the head": lambda: make_foreign_token(
        jku="http://127.0.0.1:1/keys", x5u="http://127.0.0.1:1/x", jwk={"kty": "RSA"}
    ),
    "a path for a key": lambda: make_foreign_token(kid="../../../../etc/passwd"),
    "an unknown key": lambda: make_foreign_token(kid="x" * 5000),
    "critical words": lambda: make_unsigned_token(
        {"alg": "RS256", "kid": ISSUER.key_id, "crit": ["x"], "x": 1}, b"x" * 256
    ),
    "expired": lambda: ISSUER.sign_token(exp=int(time.time()) - 3600),
    "not yet valid": lambda: ISSUER.sign_token(nbf=int(time.time()) + 3600),
    "without an end": lambda: ISSUER.sign_token(exp=None),
    "another audience": lambda: ISSUER.sign_token(aud="other"),
    "another issuer": lambda: ISSUER.sign_token(iss="https://evil.example"),
    "a name that is none": lambda: ISSUER.sign_token(sub=["root"]),
    "deep claims": lambda: (
        ISSUER.sign_token().partition(".")[0] + "." + urlsafe_b64encode(b"[" * 30_000).decode() + ".eA"
    ),
    "dots": lambda: "." * 10_000,
}


@pytest.mark.parametrize("name", TOKENS)
def test_no_forged_token_is_believed(client: httpx.Client, name: str) -> None:
    """A forged token gets a 401 in every dialect, and no part of it is in the response; a valid one is accepted."""
    token = TOKENS[name]()
    for path in PATHS:
        answer = client.get(path, headers={"authorization": f"Bearer {token}"})
        assert answer.status_code == 401, (path, answer.text)
        assert "www-authenticate" in answer.headers
        assert token not in answer.text
        good = client.get(path, headers={"authorization": f"Bearer {ISSUER.sign_token()}"})
        assert good.status_code == 200, (path, good.text)


def test_guesses_at_passwords_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rate limits, password guesses beyond them are not verified, and cached callers are not affected."""
    (tmp_path / "users").write_text(bcrypt_line("ann", "one"))
    settings = ServerSettings(
        store="memory:",
        authentication=("basic",),
        password_file=str(tmp_path / "users"),
        requests_per_second=0.001,
        requests_burst=20,
    )
    tried = []
    check = UserFiles.check_password

    def note(self: UserFiles, credentials: UserPassword) -> User | None:
        tried.append(credentials)
        return check(self, credentials)

    monkeypatch.setattr(UserFiles, "check_password", note)
    server = InProcessServer(settings)
    with httpx.Client(transport=InProcessTransport(server), base_url="http://127.0.0.1:8081") as client:
        own = {"authorization": "Basic " + b64encode(b"ann:one").decode()}
        assert client.get("/subjects", headers=own).status_code == 200
        statuses = []
        for number in range(40):
            guess = b64encode(f"ann:guess-{number}".encode()).decode()
            statuses.append(client.get("/subjects", headers={"authorization": f"Basic {guess}"}).status_code)
        assert statuses[0] == 401
        assert statuses[-1] == 429
        assert len(tried) <= 21
        assert client.get("/subjects", headers=own).status_code == 200
    server.stop()
