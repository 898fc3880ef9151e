"""A client that gets its tokens itself."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import httpx
import pytest

from stele.client import AsyncSchemaRegistryClient, OAuthClientCredentials, Retry, SchemaRegistryClient
from stele.errors import RegistryUnreachable

REGISTRY, TOKENS = "http://registry.test", "http://issuer.test/token"


class Servers:
    """A registry that accepts tokens until they are withdrawn, and their issuer."""

    def __init__(self) -> None:
        self.issued: list[str] = []
        self.asked: list[tuple[str, str, str]] = []
        self.life = 3600

    def __call__(self, request: httpx.Request) -> httpx.Response:
        authorization = request.headers.get("authorization", "")
        self.asked.append((request.url.host, authorization, request.content.decode()))
        if request.url.host == "issuer.test":
            if authorization != httpx.BasicAuth("a%3Ab", "s%20")._auth_header:
                return httpx.Response(401, json={"error": "invalid_client"})
            self.issued.append(f"token-{len(self.issued)}")
            return httpx.Response(200, json={"access_token": self.issued[-1], "expires_in": self.life})
        is_known = authorization == f"Bearer {self.issued[-1] if self.issued else ''}"
        return httpx.Response(200 if is_known else 401, json=[] if is_known else {"error_code": 401, "message": "no"})


def make_auth(secret: str = "s ") -> OAuthClientCredentials:
    """Return credentials whose id and secret must be escaped."""
    return OAuthClientCredentials(TOKENS, "a:b", secret, scope="one two")


def test_one_token_for_many_requests() -> None:
    """The token is requested once, with id and secret in the header and the scope in the form."""
    servers = Servers()
    auth: OAuthClientCredentials = pickle.loads(pickle.dumps(make_auth()))
    with SchemaRegistryClient(REGISTRY, auth=auth, transport=httpx.MockTransport(servers)) as client:
        for _ in range(3):
            assert client.subjects() == []
        assert [host for host, _, _ in servers.asked] == ["issuer.test", *["registry.test"] * 3]
        assert servers.asked[0][2] == "grant_type=client_credentials&scope=one+two"
        servers.issued.append("withdrawn")
        assert client.subjects() == [], "a registry that refuses a token makes the client get another one"


async def test_the_async_client_does_the_same() -> None:
    """With the async client, a token that expires at once is requested again for every request."""
    servers = Servers()
    servers.life = 0
    transport = httpx.MockTransport(servers)
    async with AsyncSchemaRegistryClient(REGISTRY, auth=make_auth(), transport=transport) as client:
        assert await client.subjects() == []
        assert await client.subjects() == []
    assert servers.issued == ["token-0", "token-1"]


@pytest.mark.parametrize("answer", [lambda _: httpx.Response(200, text="<html>"), None])
def test_an_issuer_that_gives_no_token(answer: Callable[[httpx.Request], httpx.Response] | None) -> None:
    """The error names the address and the client, and never the secret."""
    transport = httpx.MockTransport(answer or Servers())
    with (
        SchemaRegistryClient(
            REGISTRY, auth=make_auth("wrong secret"), transport=transport, retry=Retry(rounds=1)
        ) as client,
        pytest.raises(RegistryUnreachable, match=TOKENS) as failed,
    ):
        client.subjects()
    assert "wrong" not in str(failed.value)
