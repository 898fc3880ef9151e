"""Clients of a registry on the driver and in tasks: how they are named, opened, shared and retried."""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias, TypeVar
from uuid import UUID, uuid4
from weakref import WeakKeyDictionary

import msgspec

from stele.client import (
    RegisteredSchema,
    Request,
    ResolvedSchema,
    Schema,
    SchemaRegistryClient,
    SchemaSnapshot,
    Version,
)
from stele.errors import Invalid, Unavailable

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds for which a registry that does not answer is asked again, unless the caller says otherwise."""
_FIRST_DELAY, _LONGEST_PAUSE = 0.5, 10.0  # seconds


class RegistryClient(Protocol):
    """What is asked of a registry; `SchemaRegistryClient` is one."""

    def snapshot(self, *, subjects: Iterable[str] = ()) -> SchemaSnapshot:
        """Return all live versions of the subjects."""
        ...

    def resolve(self, schema: int | UUID, *, context: str = "") -> ResolvedSchema:
        """Return the schema of an id in a context, or of a guid.

        Raises `ContentNotFound` when there is none, `RegistryUnreachable` without an answer.
        """
        ...

    def resolve_version(self, subject: str, number: Version = "latest") -> ResolvedSchema:
        """Return one version of a subject. Raises `SubjectNotFound`, `VersionNotFound`."""
        ...

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Add a schema to a subject and say its id."""
        ...

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Return the id of a schema the subject has. Raises `ContentNotFound`."""
        ...

    def resolve_schema(self, schema: Schema, *, context: str = "") -> ResolvedSchema:
        """Return a schema at hand and all it refers to."""
        ...

    def send(self, request: Request[T]) -> T:
        """Return the answer to a request of another of the registry's dialects."""
        ...


OpenClient: TypeAlias = Callable[[], RegistryClient]
RegistryLike: TypeAlias = "str | SchemaSnapshot | OpenClient"
"""An address (several with commas), a snapshot (nobody is ever asked), or a function that opens a client.

The function travels to the executors, so it must be picklable; it is the way to give credentials. A client itself is
not taken: its connections cannot travel.
"""

MAX_CLIENTS = 16
"""Clients one process keeps open."""


def retry_unavailable(
    call: Callable[[], T],
    patience: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    jitter: Callable[[], float] = random.random,
) -> T:
    """Return what a call gives, tried again while the registry is away, for so many seconds.

    Pauses double from half a second to ten, each shortened by up to a half so that the tasks of one outage do not come
    back together. Raises what the last try raised.
    """
    until = clock() + patience
    pause = _FIRST_DELAY
    while True:
        try:
            return call()
        except Unavailable:
            wait = pause * (1 - jitter() / 2)
            if clock() + wait > until:
                raise
        sleep(wait)
        pause = min(2 * pause, _LONGEST_PAUSE)


class ClientFactory(msgspec.Struct, frozen=True):
    """A caller's function under a name that travels with it.

    Each task unpickles a function of its own. They must share the client of their process, its cache and its
    connections.
    """

    name: str
    function: OpenClient

    def __call__(self) -> RegistryClient:
        """Open a client."""
        return self.function()


_NAMES: WeakKeyDictionary[OpenClient, str] = WeakKeyDictionary()
_OPENED: OrderedDict[str, RegistryClient] = OrderedDict()


def as_picklable(registry: RegistryLike) -> RegistryLike:
    """Return the registry in the form in which it is sent to tasks. Raises `Invalid` for what cannot travel."""
    if isinstance(registry, str | SchemaSnapshot | ClientFactory):
        return registry
    given: object = registry
    if not callable(given):
        kind = type(registry).__name__
        raise Invalid(f"a registry is an address, a snapshot or a function that opens a client; a {kind} cannot travel")
    return ClientFactory(_NAMES.setdefault(registry, uuid4().hex), registry)


def get_client(registry: str | OpenClient) -> RegistryClient:
    """Return the client of this process for an address or function, opened at its first use."""
    named = as_picklable(registry)
    key = named.name if isinstance(named, ClientFactory) else str(named)
    if key not in _OPENED:
        _OPENED[key] = SchemaRegistryClient(registry) if isinstance(registry, str) else registry()
        while len(_OPENED) > MAX_CLIENTS:
            _OPENED.popitem(last=False)
    _OPENED.move_to_end(key)
    return _OPENED[key]
