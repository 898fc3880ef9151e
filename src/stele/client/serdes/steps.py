"""The course of a record as a generator: what it asks of the registry, and what is done by others' code.

Serializers and deserializers say here what they need; whoever drives them blocks for it or awaits it. So both kinds
have one logic, as the clients have.
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
"""Subjects a serializer, and schemas a deserializer, keeps ready; beyond that the oldest is made ready anew."""


ASSOCIATION_TTL: Final = 30.0
"""Seconds after which an association is looked up anew."""


_TTL_INCLUDED: Final = nextafter(ASSOCIATION_TTL, inf)


class Work(NamedTuple):
    """Do: rules. Their executors may block, at a key management service or the registry itself."""

    do: Callable[[], Any]


Steps = Generator[Request[Any] | Work, Any, T]
"""Yields requests and work, is sent what came of each, returns the result."""

AnyClient = SchemaRegistryClient | AsyncSchemaRegistryClient

Source = SchemaResolver | AsyncSchemaRegistryClient
"""Whoever knows schemas."""


def run_blocking(steps: Steps[T], client: object) -> T:
    """Drive steps and block. client answers the requests; steps of a snapshot have none.

    Raises `InvalidRequest` when the client is one that must be awaited.
    """
    if isinstance(client, AsyncSchemaRegistryClient):
        steps.close()
        raise InvalidRequest("with a client that is awaited, wrap it: AsyncSerializer(…), AsyncDeserializer(…)")

    return drive_steps(steps, partial(_perform_step, client))


def _perform_step(client: object, step: Request[Any] | Work) -> Any:
    if isinstance(step, Work):
        return step.do()
    assert isinstance(client, BlockingApi)
    return client.send(step)


async def run_async(steps: Steps[T], client: object) -> T:
    """Drive steps without blocking the event loop: requests are awaited, work is done in a thread."""

    async def perform(step: Request[Any] | Work) -> Any:
        if isinstance(step, Work):
            _loop.set(asyncio.get_running_loop())
            return await asyncio.to_thread(step.do)
        assert isinstance(client, AsyncSchemaRegistryClient)
        return await client.send(step)

    return await drive_awaited(steps, perform)


_loop: ContextVar[asyncio.AbstractEventLoop] = ContextVar("stele_serdes_loop")
"""The event loop that waits for the work a thread does."""


class BlockingBridge(BlockingApi):
    """An awaited client for work in a thread: it blocks the thread while the event loop asks."""

    def __init__(self, client: AsyncSchemaRegistryClient) -> None:
        self._client = client

    def send(self, request: Request[T]) -> T:
        """See `BlockingApi`."""
        return asyncio.run_coroutine_threadsafe(self._client.send(request), _loop.get()).result()


def blocking_client(client: object) -> BlockingApi | None:
    """Return what rules ask for keys: the client itself, a bridge to one that is awaited, None where there is none."""
    if isinstance(client, AsyncSchemaRegistryClient):
        return BlockingBridge(client)
    return client if isinstance(client, BlockingApi) else None


# --- questions ------------------------------------------------------------------------------------------------------


def ask_source(source: Source, plan: Callable[P, Workflow[T]], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Return the answer to a question of `plans`.

    A source that is not a client answers by itself.
    """
    if isinstance(source, SchemaRegistryClient | AsyncSchemaRegistryClient):
        return (yield from plan(*args, **kwargs))
    answer: T = getattr(source, plan.__name__)(*args, **kwargs)
    return answer


# --- what is kept ready ---------------------------------------------------------------------------------------------


class BoundedCache(Generic[K, T]):
    """Keeps `CACHE_SIZE` values and drops the one that was put in longest ago. Safe between threads."""

    def __init__(self) -> None:
        self._values: FIFOCache[K, T] = FIFOCache(CACHE_SIZE)
        self._lock = Lock()

    def get(self, key: K) -> T | None:
        """Return the value that is kept under a key, or None. Reading changes nothing, so it needs no lock."""
        try:
            return self._values[key]
        except KeyError:
            return None

    def put(self, key: K, value: T) -> T:
        """Keep a value, and return it."""
        with self._lock:
            self._values[key] = value
        return value


class AssociatedSubjects:
    """The subjects of topics by their associations, or by the fallback: found once, and again after a while.

    Without this a registry that knows no associations would be asked for every record.
    """

    def __init__(self, source: Source, naming: AssociatedName, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._naming = naming
        self._known: TTLCache[tuple[str, str, str], str] = TTLCache(CACHE_SIZE, _TTL_INCLUDED, timer=clock)
        self._lock = Lock()

    def find_subject(self, topic: str, field: RecordField, record: str) -> Steps[str]:
        """Return the subject of a record. A source that is no client knows no associations. Raises `InvalidName`."""
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
