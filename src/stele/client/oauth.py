"""Tokens that a client requests itself: the client credentials grant of OAuth 2.0 (RFC 6749, section 4.4)."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator
from typing import Final
from urllib.parse import quote

import httpx
import msgspec

from stele.errors import RegistryUnreachable

_RENEWED_AFTER: Final = 0.8
"""Fraction of a token's lifetime after which it is renewed."""
_LIFE_SECONDS: Final = 300.0
"""Assumed lifetime of a token whose issuer reports none."""


class _TokenAnswer(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float | None = None


class OAuthClientCredentials(httpx.Auth):
    """Gets a token with a client's id and secret, sends it with every request, and renews it before it expires.

    After a 401 of the registry it requests a new token, once. When the issuer returns no token, the call raises
    `RegistryUnreachable`.

    Args:
        token_url: Address of the issuer's token endpoint.
        client_id: Id of the client.
        client_secret: Secret of the client.
        scope: Requested scopes, separated by spaces; empty: the issuer's default.
    """

    def __init__(self, token_url: str, client_id: str, client_secret: str, *, scope: str = "") -> None:
        self._token_url = token_url
        self._client = quote(client_id, safe=""), quote(client_secret, safe="")
        self._scope = scope
        self._token = ""
        self._renew_at = 0.0

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Put the token into the request (httpx calls this)."""
        for _ in range(2):
            if self._is_due():
                answer = yield self._make_token_request(request)
                answer.read()
                self._take_token(answer)
            request.headers["Authorization"] = f"Bearer {self._token}"
            response = yield request
            if response.status_code != httpx.codes.UNAUTHORIZED:
                return
            self._token = ""

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Put the token into the request, for async clients (httpx calls this)."""
        for _ in range(2):
            if self._is_due():
                answer = yield self._make_token_request(request)
                await answer.aread()
                self._take_token(answer)
            request.headers["Authorization"] = f"Bearer {self._token}"
            response = yield request
            if response.status_code != httpx.codes.UNAUTHORIZED:
                return
            self._token = ""

    def _is_due(self) -> bool:
        return not self._token or time.monotonic() >= self._renew_at

    def _make_token_request(self, wanted: httpx.Request) -> httpx.Request:
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        request = httpx.Request(
            "POST",
            self._token_url,
            data=form,
            headers={"Accept": "application/json"},
            extensions={name: value for name, value in wanted.extensions.items() if name == "timeout"},
        )
        next(httpx.BasicAuth(*self._client).auth_flow(request))
        return request

    def _take_token(self, answer: httpx.Response) -> None:
        try:
            token = msgspec.json.decode(answer.content, type=_TokenAnswer, strict=False)
        except msgspec.DecodeError:
            raise RegistryUnreachable(
                f"{self._token_url} issued no token to {self._client[0]}: it answered {answer.status_code}"
            ) from None
        self._token = token.access_token
        life = _LIFE_SECONDS if token.expires_in is None else token.expires_in
        self._renew_at = time.monotonic() + life * _RENEWED_AFTER
