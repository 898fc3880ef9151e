"""The blocking client."""

from __future__ import annotations

import ssl
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from stele.client.api import BlockingApi
from stele.client.cache import AnswerCache
from stele.client.connection import Auth, Servers, http_options, to_transport_failure
from stele.client.deadline import Deadline, bound_connections, is_sending_over, limit_sending
from stele.client.drive import drive_steps
from stele.client.exchange import Outcome, Pause, Retry, Send, Step, TransportFailure, answer_request
from stele.client.request import Request
from stele.client.response_body import BodyReader

T = TypeVar("T")


class SchemaRegistryClient(BlockingApi):
    """Talks to any schema registry with the Confluent API. Safe between threads.

    A pickled copy has the same settings, and connections and a cache of its own: jobs may carry a client along.

    urls       one address, several with commas between, or a list: all servers of one registry
    auth       (user, password), `Bearer(...)`, or another httpx scheme; an address may contain its own user:password@
    timeout    seconds for each of connecting, sending a piece and receiving a piece
    deadline   seconds for a call in all, with its retries; half of it for one sending
    max_response_bytes      limit of a response, decompressed; a longer one is a `ResponseError`
    retry      see `Retry`
    cache_size, cache_ttl   answers kept; seconds a changeable one (`latest`, look-ups) stays valid
    verify     a TLS context, or False to accept any certificate
    headers    sent with every request
    transport, sleep        for tests: an httpx transport, and a function that replaces sleeping

    It does not discover servers, follow redirects, or share its cache with other processes.

    Every method may raise `ResponseError` (with the domain error's class) or `RegistryUnreachable`.
    """

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        auth: Auth = None,
        timeout: float = 10.0,
        deadline: float = 60.0,
        max_response_bytes: int = 128 << 20,
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
            "deadline": deadline,
            "max_response_bytes": max_response_bytes,
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
        self._deadline = deadline
        self._max_response_bytes = max_response_bytes
        self._http = httpx.Client(transport=transport, **http_options(timeout=timeout, verify=verify, headers=headers))
        bound_connections(self._http)

    def send(self, request: Request[T]) -> T:
        """Send one request and return its result; see `BlockingApi.send`."""
        perform = partial(self._perform_step, Deadline(self._deadline))
        return drive_steps(answer_request(request, self._servers.nodes, self._retry, self._cache), perform)

    def forget(self) -> None:
        """Empty the cache."""
        self._cache.clear()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def close_when_unused(self) -> None:
        """Close the connections once no reference to this client is left. Until then it can be used."""
        weakref.finalize(self, self._http.close).atexit = False

    def __reduce__(self) -> tuple[Callable[..., SchemaRegistryClient], tuple[str | Sequence[str], dict[str, Any]]]:
        return _rebuild_client, (self._urls, self._settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _perform_step(self, deadline: Deadline, step: Step) -> Outcome:
        if isinstance(step, Pause):
            self._sleep(min(step.seconds, deadline.remaining()))
            return None
        if not deadline.remaining():
            return TransportFailure(deadline.message(), reached=False)
        with limit_sending(deadline.sending()):
            try:
                return self._send_request(step, deadline)
            except httpx.RequestError as error:
                failure = to_transport_failure(error)
                return failure._replace(why=deadline.message()) if is_sending_over() else failure

    def _send_request(self, step: Send, deadline: Deadline) -> Outcome:
        request = self._servers.build_request(self._http, step)
        response = self._http.send(request, auth=self._servers.auth_for(step.base), stream=True)
        with closing(response):
            body = BodyReader(response, self._max_response_bytes)
            for data in () if response.is_stream_consumed else response.iter_raw():
                if is_sending_over():
                    return TransportFailure(deadline.message(), reached=True)
                if not body.feed(data):
                    break
        return body.to_reply()


def _rebuild_client(urls: str | Sequence[str], settings: dict[str, Any]) -> SchemaRegistryClient:
    return SchemaRegistryClient(urls, **settings)
