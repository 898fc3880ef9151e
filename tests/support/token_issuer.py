"""An issuer of tokens for tests: OAuth 2.0 client credentials, OpenID Connect metadata, and keys that rotate."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

__all__ = ["TokenIssuer", "run_issuer"]


class TokenIssuer:
    """Signs tokens. Its clients are `client` with the secret `secret`.

    Attributes:
        url: Its address, the issuer of its tokens.
        requests: Paths it was asked for.
    """

    audience = "registry"

    def __init__(self, url: str = "https://issuer.test") -> None:
        self.url = url
        self.requests: list[str] = []
        self._number = 0
        self.rotate_key()

    def rotate_key(self) -> None:
        """Sign with a new key from now on, and tell of that one only."""
        self._number += 1
        self.key_id = f"key-{self._number}"
        self.key = rsa.generate_private_key(65537, 2048)

    @property
    def key_set(self) -> dict[str, Any]:
        """The public key."""
        jwk = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**jwk, "kid": self.key_id, "use": "sig", "alg": "RS256"}]}

    def sign_token(self, **claims: Any) -> str:
        """A token that holds for a minute; a claim that is None is left out."""
        now = int(time.time())
        said = {"iss": self.url, "aud": self.audience, "sub": "ann", "iat": now, "exp": now + 60, **claims}
        said = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(said, self.key, "RS256", headers={"kid": self.key_id})


@contextmanager
def run_issuer() -> Iterator[TokenIssuer]:
    """An issuer that answers on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.requests.append(self.path)
            pages = {
                "/.well-known/openid-configuration": {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"},
                "/keys": issuer.key_set,
            }
            page = pages.get(self.path)
            self.answer(404 if page is None else 200, page or {})

        def do_POST(self) -> None:
            issuer.requests.append(self.path)
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if form.get("grant_type") != ["client_credentials"]:
                self.answer(400, {"error": "unsupported_grant_type"})
            elif self.read_client(form) != ("client", "secret"):
                self.answer(401, {"error": "invalid_client"})
            else:
                scope = form.get("scope", [""])[0]
                token = issuer.sign_token(sub="client", scope=scope, groups=["services"])
                self.answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": 60, "scope": scope})

        def read_client(self, form: dict[str, list[str]]) -> tuple[str, str]:
            """Id and secret of the client, in a header or in the form (RFC 6749, section 2.3.1)."""
            scheme, _, encoded = self.headers.get("Authorization", "").partition(" ")
            if scheme == "Basic":
                user, _, secret = base64.b64decode(encoded).decode().partition(":")
                return unquote(user), unquote(secret)
            return form.get("client_id", [""])[0], form.get("client_secret", [""])[0]

        def answer(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Tests look at `requests`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = TokenIssuer(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
