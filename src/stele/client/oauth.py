"""Tokens that a client gets for itself: the client credentials grant of OAuth 2.0 (RFC 6749, section 4.4)."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator
from typing import Final
from urllib.parse import quote

import httpx
import msgspec

from stele.errors import RegistryUnreachable

_RENEWED_AFTER: Final = 0.8
"""Part of its life after which a token is renewed."""
_LIFE_SECONDS: Final = 300.0
"""Of a token whose issuer does not say how long it holds."""


class _TokenAnswer(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float | None = None


class OAuthClientCredentials(httpx.Auth):
    """Gets a token with the id and secret of a client, sends it with every request, and renews it in time.

    A registry that answers 401 makes it get a new one, once. Where the issuer gives none, a call raises
    `RegistryUnreachable`.

    Args:
        token_url: Address of the issuer's tokens.
        client_id: Who the client is.
        client_secret: What proves that.
        scope: What the token is to be good for, words with blanks between; empty: what the issuer gives by itself.
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
        """As `sync_auth_flow`."""
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
                f"{self._token_url} gave no token to {self._client[0]}: it answered {answer.status_code}"
            ) from None
        self._token = token.access_token
        life = _LIFE_SECONDS if token.expires_in is None else token.expires_in
        self._renew_at = time.monotonic() + life * _RENEWED_AFTER
