"""Tokens with which the server authenticates to other servers (RFC 6749, sections 4.4 and 6).

They are requested when needed, and cached until shortly before they expire.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import msgspec

from stele.errors import Unavailable
from stele.service.outgoing import OutgoingClient

_LEEWAY_SECONDS: Final = 30.0


class NoToken(Unavailable):
    """The issuer of tokens answered without a token."""


class _Token(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float = 300.0


class OutgoingTokens:
    """The tokens of one issuer.

    Args:
        client: HTTP client for requests to the issuer.
        url: Token endpoint of the issuer.
        form: Form fields of the token request.
    """

    def __init__(self, client: OutgoingClient, url: str, form: Mapping[str, str]) -> None:
        self._client = client
        self._url = url
        self._form = form
        self._token = ""
        self._until = 0.0

    async def get_token(self) -> str:
        """Return a valid token. Raises `NoToken`, `ForbiddenAddress`, `Unavailable`."""
        if time.monotonic() < self._until:
            return self._token
        answer = await self._client.send_request(
            "POST",
            self._url,
            headers={"content-type": "application/x-www-form-urlencoded", "accept": "application/json"},
            body=urlencode(self._form).encode("ascii"),
        )
        try:
            token = msgspec.json.decode(answer.body, type=_Token)
        except msgspec.MsgspecError:
            raise NoToken(f"the issuer of tokens answered {answer.status} without a token") from None
        self._token, self._until = token.access_token, time.monotonic() + token.expires_in - _LEEWAY_SECONDS
        return self._token
