"""The blocking client."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from stele.client.api import BlockingApi
from stele.client.cache import AnswerCache
from stele.client.connection import Auth, Servers, http_options, to_reply, to_transport_failure
from stele.client.drive import drive_steps
from stele.client.exchange import Outcome, Pause, Retry, Step, answer_request
from stele.client.request import Request

T = TypeVar("T")


class SchemaRegistryClient(BlockingApi):
    """Talks to a schema registry of any make which speaks the Confluent API. Safe between threads.

    A pickled copy has the same settings, and connections and a cache of its own: jobs may carry a client along.

    urls       one address, several with commas between, or a list: all servers of one registry
    auth       (user, password), `Bearer(...)`, or another httpx scheme; an address may bring its own user:password@
    timeout    seconds for each of connecting, sending and receiving
    retry      see `Retry`
    cache_size, cache_ttl   answers kept; seconds a changeable one (`latest`, look-ups) holds
    verify     a TLS context, or False to trust anybody
    headers    sent with every request
    transport, sleep        for tests: an httpx transport, and what to do instead of sleeping

    What it does not do: find servers by itself, follow redirects, or share its cache with other processes.

    Every method may raise `ResponseError` (with the domain error's class) or `RegistryUnreachable`.
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        auth: Auth = None,
        timeout: float = 10.0,
        retry: Retry | None = None,
        cache_size: int = 10_000,
        cache_ttl: float = 30.0,
        verify: ssl.SSLContext | bool = True,
        headers: dict[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings: dict[str, Any] = {
            "auth": auth,
            "timeout": timeout,
            "retry": retry,
            "cache_size": cache_size,
            "cache_ttl": cache_ttl,
            "verify": verify,
            "headers": headers,
            "transport": transport,
            "sleep": sleep,
        }
        self._urls = urls
        self._servers = Servers(urls, auth)
        self._retry = retry or Retry()
        self._cache = AnswerCache(cache_size, cache_ttl)
        self._sleep = sleep
        self._http = httpx.Client(transport=transport, **http_options(timeout=timeout, verify=verify, headers=headers))

    def send(self, request: Request[T]) -> T:
        """See `BlockingApi`."""
        return drive_steps(answer_request(request, self._servers.nodes, self._retry, self._cache), self._perform_step)

    def forget(self) -> None:
        """Empty the cache."""
        self._cache.clear()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __reduce__(self) -> tuple[Callable[..., SchemaRegistryClient], tuple[str | Sequence[str], dict[str, Any]]]:
        return _rebuild_client, (self._urls, self._settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _perform_step(self, step: Step) -> Outcome:
        if isinstance(step, Pause):
            self._sleep(step.seconds)
            return None
        request = self._servers.build_request(self._http, step)
        try:
            return to_reply(self._http.send(request, auth=self._servers.auth_for(step.base)))
        except httpx.RequestError as error:
            return to_transport_failure(error)


def _rebuild_client(urls: str | Sequence[str], settings: dict[str, Any]) -> SchemaRegistryClient:
    return SchemaRegistryClient(urls, **settings)
