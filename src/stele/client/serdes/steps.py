"""Processing of a record as a generator: it yields requests to the registry, and calls that may block.

The caller that drives the generator blocks for each step or awaits it. So blocking and async serializers share one
logic, as the clients do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Hashable
from contextvars import ContextVar
from functools import partial
from math import inf, nextafter
from threading import Lock
from typing import Any, Final, Generic, NamedTuple, ParamSpec, TypeVar

from cachetools import FIFOCache, TTLCache

from stele.client import workflows
from stele.client.aio import AsyncSchemaRegistryClient
from stele.client.api import BlockingApi
from stele.client.drive import drive_steps
from stele.client.drive import drive_steps_async as drive_awaited
from stele.client.names import AssociatedName
from stele.client.request import Request, Workflow
from stele.client.snapshot import SchemaResolver
from stele.client.sync import SchemaRegistryClient
from stele.errors import InvalidRequest
from stele.wire.confluent import RecordField

K = TypeVar("K", bound=Hashable)
P = ParamSpec("P")
T = TypeVar("T")

CACHE_SIZE: Final = 1024
"""Subjects in a serializer's cache, and schemas in a deserializer's. Beyond that the oldest entry is dropped."""


ASSOCIATION_TTL: Final = 30.0
"""Seconds after which an association is looked up again."""


_TTL_INCLUDED: Final = nextafter(ASSOCIATION_TTL, inf)


class Work(NamedTuple):
    """Step: run rules. Their executors may block on a key management service or the registry itself."""

    do: Callable[[], Any]


Steps = Generator[Request[Any] | Work, Any, T]
"""Yields requests and work, receives the outcome of each, returns the result."""

AnyClient = SchemaRegistryClient | AsyncSchemaRegistryClient

Source = SchemaResolver | AsyncSchemaRegistryClient
"""Sources of schemas."""


def run_blocking(steps: Steps[T], client: object) -> T:
    """Drive steps and block. `client` sends the requests; the steps of a snapshot contain none.

    Raises `InvalidRequest` for an async client.
    """
    if isinstance(client, AsyncSchemaRegistryClient):
        steps.close()
        raise InvalidRequest("wrap it if the client is asynchronous: AsyncSerializer(…), AsyncDeserializer(…)")

    return drive_steps(steps, partial(_perform_step, client))


def _perform_step(client: object, step: Request[Any] | Work) -> Any:
    if isinstance(step, Work):
        return step.do()
    assert isinstance(client, BlockingApi)
    return client.send(step)


async def run_async(steps: Steps[T], client: object) -> T:
    """Drive steps without blocking the event loop: requests are awaited, work runs in a thread."""

    async def perform(step: Request[Any] | Work) -> Any:
        if isinstance(step, Work):
            _loop.set(asyncio.get_running_loop())
            return await asyncio.to_thread(step.do)
        assert isinstance(client, AsyncSchemaRegistryClient)
        return await client.send(step)

    return await drive_awaited(steps, perform)


_loop: ContextVar[asyncio.AbstractEventLoop] = ContextVar("stele_serdes_loop")
"""The event loop that waits for the work in a thread."""


class BlockingBridge(BlockingApi):
    """Blocking view of an async client for a worker thread: the thread waits while the event loop sends requests."""

    def __init__(self, client: AsyncSchemaRegistryClient) -> None:
        self._client = client

    def send(self, request: Request[T]) -> T:
        """Send one request and return its result; see `BlockingApi.send`."""
        return asyncio.run_coroutine_threadsafe(self._client.send(request), _loop.get()).result()


def blocking_client(client: object) -> BlockingApi | None:
    """Return the client for requests of rules, or None: the client itself, or a bridge to an async client."""
    if isinstance(client, AsyncSchemaRegistryClient):
        return BlockingBridge(client)
    return client if isinstance(client, BlockingApi) else None


# --- questions ------------------------------------------------------------------------------------------------------


def ask_source(source: Source, plan: Callable[P, Workflow[T]], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Return the result of a function of `workflows` for this source.

    A source that is not a client has a method of the same name, which is called instead.
    """
    if isinstance(source, SchemaRegistryClient | AsyncSchemaRegistryClient):
        return (yield from plan(*args, **kwargs))
    answer: T = getattr(source, plan.__name__)(*args, **kwargs)
    return answer


# --- caches ---------------------------------------------------------------------------------------------------------


class BoundedCache(Generic[K, T]):
    """Keeps `CACHE_SIZE` values and drops the oldest one first. Safe between threads."""

    def __init__(self) -> None:
        self._values: FIFOCache[K, T] = FIFOCache(CACHE_SIZE)
        self._lock = Lock()

    def get(self, key: K) -> T | None:
        """Return the value for a key, or None. Reading changes nothing, so it needs no lock."""
        try:
            return self._values[key]
        except KeyError:
            return None

    def put(self, key: K, value: T) -> T:
        """Store a value, and return it."""
        with self._lock:
            self._values[key] = value
        return value


class AssociatedSubjects:
    """Cache of the subjects of topics, by association or fallback. Entries expire after `ASSOCIATION_TTL`.

    Without it, a registry without associations would receive a request for every record.
    """

    def __init__(self, source: Source, naming: AssociatedName, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._naming = naming
        self._known: TTLCache[tuple[str, str, str], str] = TTLCache(CACHE_SIZE, _TTL_INCLUDED, timer=clock)
        self._lock = Lock()

    def find_subject(self, topic: str, field: RecordField, record: str) -> Steps[str]:
        """Return the subject of a record. A source that is not a client uses the fallback. Raises `InvalidName`."""
        if not isinstance(self._source, SchemaRegistryClient | AsyncSchemaRegistryClient):
            return self._naming.fallback_subject(topic, field, record)
        key = topic, field, record
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            return str(known)
        subject = yield from workflows.associated_subject(self._naming, topic, field, record)
        with self._lock:
            self._known[key] = subject
        return subject
