"""Parts that both clients share: their settings, and the translation between `exchange` and httpx."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Generator, Sequence
from typing import Any

import httpx

import stele
from stele.client.exchange import Send, ServerOrder, TransportFailure
from stele.client.response_body import ENCODING
from stele.client.trace_context import make_trace_headers
from stele.errors import InvalidRequest
from stele.tls_verification import make_client_context

ACCEPT = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json; q=0.9, application/json; q=0.5"
"""The media types of the API, in order of preference."""

Auth = httpx.Auth | tuple[str, str] | None
"""User and password, a `Bearer`, or another authentication scheme of httpx."""

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Bearer(httpx.Auth):
    """A bearer token. A function is called for the token before each request, so that it can renew the token."""

    def __init__(self, token: str | Callable[[], str]) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Put the token into the request (httpx calls this)."""
        token = self._token if isinstance(self._token, str) else self._token()
        request.headers["Authorization"] = f"Bearer {token}"
        yield request


class Servers:
    """The servers' addresses, each with its credentials. An address may contain its own user and password.

    Raises `InvalidRequest` for a text that is not an HTTP address.
    """

    def __init__(self, urls: str | Sequence[str], auth: Auth) -> None:
        listed = urls.split(",") if isinstance(urls, str) else urls
        self._auths: dict[str, Auth] = {}
        for text in listed:
            base, own = _parse_address(text.strip())
            self._auths[base] = own or auth
        if not self._auths:
            raise InvalidRequest("a client needs the address of a registry")
        self.nodes = ServerOrder(list(self._auths))

    def build_request(self, client: httpx.Client | httpx.AsyncClient, send: Send) -> httpx.Request:
        """Return the httpx request for one sending."""
        headers = {"Accept-Encoding": ENCODING, **make_trace_headers()}
        if send.body is not None:
            headers["Content-Type"] = send.media
        return client.build_request(send.method, send.base + send.target, content=send.body, headers=headers)

    def auth_for(self, base: str) -> Auth:
        """Return the credentials for one server."""
        return self._auths[base]


def http_options(*, timeout: float, verify: ssl.SSLContext | bool, headers: dict[str, str] | None) -> dict[str, Any]:
    """Return the settings of an httpx client, sync or async."""
    if verify is True:
        verify = make_client_context()
    ours = {"Accept": ACCEPT, "User-Agent": f"stele-client/{stele.__version__}"}
    return {"timeout": timeout, "verify": verify, "headers": ours | (headers or {}), "follow_redirects": False}


def to_transport_failure(error: httpx.RequestError) -> TransportFailure:
    """Return the failure for a response that did not arrive. It records whether the request may have been sent."""
    return TransportFailure(str(error) or type(error).__name__, reached=not isinstance(error, _NEVER_SENT))


def _parse_address(text: str) -> tuple[str, tuple[str, str] | None]:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise InvalidRequest(f"{text!r} is not the address of a registry: {error}") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise InvalidRequest(
            f"{text!r} is not the address of a registry: it must have the form http(s)://host[:port][/path]"
        )
    own = (url.username, url.password) if url.userinfo else None
    return str(url.copy_with(userinfo=b"", query=None, fragment=None)).rstrip("/"), own
