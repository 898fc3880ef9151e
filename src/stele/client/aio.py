"""The client for asyncio. It has the methods of the blocking client, to be awaited."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import httpx

from stele.client.api import AsyncApi
from stele.client.cache import AnswerCache
from stele.client.connection import Auth, Servers, http_options, to_transport_failure
from stele.client.deadline import Deadline
from stele.client.drive import drive_steps_async
from stele.client.exchange import Outcome, Pause, Retry, Send, Step, TransportFailure, answer_request
from stele.client.request import Request
from stele.client.response_body import BodyReader

T = TypeVar("T")


class AsyncSchemaRegistryClient(AsyncApi):
    """Talks to a schema registry without blocking. Arguments and errors are those of `SchemaRegistryClient`."""

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
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._servers = Servers(urls, auth)
        self._retry = retry or Retry()
        self._cache = AnswerCache(cache_size, cache_ttl)
        self._sleep = sleep
        self._deadline = deadline
        self._max_response_bytes = max_response_bytes
        self._http = httpx.AsyncClient(
            transport=transport, **http_options(timeout=timeout, verify=verify, headers=headers)
        )

    async def send(self, request: Request[T]) -> T:
        """Send one request and return its result. Use it for calls that have no method of their own."""
        return await drive_steps_async(
            answer_request(request, self._servers.nodes, self._retry, self._cache),
            partial(self._perform_step, Deadline(self._deadline)),
        )

    def forget(self) -> None:
        """Empty the cache."""
        self._cache.clear()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _perform_step(self, deadline: Deadline, step: Step) -> Outcome:
        if isinstance(step, Pause):
            await self._sleep(min(step.seconds, deadline.remaining()))
            return None
        if not deadline.remaining():
            return TransportFailure(deadline.message(), reached=False)
        try:
            async with asyncio.timeout(deadline.sending()):
                return await self._send_request(step)
        except httpx.RequestError as error:
            return to_transport_failure(error)
        except TimeoutError:
            return TransportFailure(deadline.message(), reached=True)

    async def _send_request(self, step: Send) -> Outcome:
        request = self._servers.build_request(self._http, step)
        response = await self._http.send(request, auth=self._servers.auth_for(step.base), stream=True)
        async with aclosing(response):
            body = BodyReader(response, self._max_response_bytes)
            if not response.is_stream_consumed:
                async for data in response.aiter_raw():
                    if not body.feed(data):
                        break
        return body.to_reply()
