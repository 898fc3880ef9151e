"""An issuer of tokens for tests: OAuth 2.0 client credentials, OpenID Connect metadata and keys that rotate.

Its token endpoint is Authlib's OAuth 2.0 server, so clients are tested against an independent implementation of RFC
6749.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import jwt
from authlib.oauth2.rfc6749 import (
    AuthorizationServer,
    ClientCredentialsGrant,
    ClientMixin,
    OAuth2Payload,
    OAuth2Request,
)
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

__all__ = ["TokenIssuer", "run_issuer"]


class TokenIssuer:
    """Signs tokens. It has one client, `client` with the secret `secret`.

    Attributes:
        url: Its address, which is the issuer in its tokens.
        requests: Paths of the requests so far.
    """

    audience = "registry"

    def __init__(self, url: str = "https://issuer.test") -> None:
        self.url = url
        self.requests: list[str] = []
        self._number = 0
        self.rotate_key()

    def rotate_key(self) -> None:
        """Create a new signing key. From now on the key set holds only this one."""
        self._number += 1
        key = rsa.generate_private_key(65537, 2048)
        self.key_id, self.key = f"key-{self._number}", key  # one assignment, since another thread may read both

    @property
    def key_set(self) -> dict[str, Any]:
        """The JSON Web Key Set with the public key."""
        jwk = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**jwk, "kid": self.key_id, "use": "sig", "alg": "RS256"}]}

    def sign_token(self, **claims: Any) -> str:
        """Return a token that is valid for a minute. A claim that is None is omitted."""
        now = int(time.time())
        payload = {"iss": self.url, "aud": self.audience, "sub": "ann", "iat": now, "exp": now + 60, **claims}
        payload = {name: value for name, value in payload.items() if value is not None}
        return jwt.encode(payload, self.key, "RS256", headers={"kid": self.key_id})


class _Client(ClientMixin):  # type: ignore[misc]  # the library has no types
    """The only client: `client` with the secret `secret`, sent in a header or in the form."""

    def get_client_id(self) -> str:
        return "client"

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == "secret"

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method in ClientCredentialsGrant.TOKEN_ENDPOINT_AUTH_METHODS

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == ClientCredentialsGrant.GRANT_TYPE

    def get_allowed_scope(self, scope: str) -> str:
        return scope or ""


class _Grant(ClientCredentialsGrant):  # type: ignore[misc]  # the library has no types
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")


class _Form(OAuth2Payload):  # type: ignore[misc]  # the library has no types
    """The parameters of a request."""

    def __init__(self, form: dict[str, list[str]]) -> None:
        self._form = form

    @property
    def data(self) -> dict[str, str]:
        return {name: values[0] for name, values in self._form.items()}

    @property
    def datalist(self) -> dict[str, list[str]]:
        return self._form


class _Request(OAuth2Request):  # type: ignore[misc]  # the library has no types
    """A request to the token endpoint."""

    def __init__(self, url: str, headers: Mapping[str, str], form: dict[str, list[str]]) -> None:
        super().__init__("POST", url, headers=headers)
        self.payload = _Form(form)
        self._form = self.payload.data

    @property
    def form(self) -> dict[str, str]:
        return self._form


class _TokenEndpoint(AuthorizationServer):  # type: ignore[misc]  # the library has no types
    """Authlib's server of OAuth 2.0 (RFC 6749), whose tokens an issuer signs."""

    def __init__(self, issuer: TokenIssuer) -> None:
        super().__init__()
        self.register_grant(_Grant)
        self.register_token_generator("default", self._make_token)
        self._issuer = issuer

    def _make_token(self, scope: str | None = None, **_: Any) -> dict[str, Any]:
        token = self._issuer.sign_token(sub="client", scope=scope or "", groups=["services"])
        return {"access_token": token, "token_type": "Bearer", "expires_in": 60, "scope": scope or ""}

    def query_client(self, client_id: str) -> _Client | None:
        return _Client() if client_id == "client" else None

    def save_token(self, token: dict[str, Any], request: OAuth2Request) -> None:
        """Save nothing: a signed token needs no record."""

    def create_oauth2_request(self, request: _Request) -> _Request:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any]:
        return status, body

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Ignore the signal."""


@contextmanager
def run_issuer() -> Iterator[TokenIssuer]:
    """Run an issuer on a port of this machine and yield it."""

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
            self.answer(*endpoint.create_token_response(_Request(issuer.url + self.path, self.headers, form)))

        def answer(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Log nothing: tests read `requests`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = TokenIssuer(f"http://127.0.0.1:{server.server_port}")
    endpoint = _TokenEndpoint(issuer)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
