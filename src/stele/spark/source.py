"""Where schemas come from: pinned on the driver, shipped with the tasks, and looked up once for an id nobody pinned."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias
from uuid import uuid4
from weakref import WeakKeyDictionary

import msgspec

from stele.client import RegisteredSchema, ResolvedSchema, Schema, SchemaRegistryClient, SchemaSnapshot
from stele.client.names import split
from stele.errors import ContentNotFound, DataError, Invalid, VersionNotFound
from stele.formats.avro import AVRO, AvroSchema

ASK_AGAIN = 30.0
"""Seconds for which an id the registry did not know is not asked for again by the same process."""


class Registry(Protocol):
    """What is asked of a registry; `SchemaRegistryClient` is one."""

    def snapshot(self, *, subjects: Iterable[str] = ()) -> SchemaSnapshot:
        """All live versions of the subjects."""
        ...

    def resolve(self, schema: int, *, context: str = "") -> ResolvedSchema:
        """The schema of an id in a context.

        Raises `ContentNotFound` when there is none, `RegistryUnreachable` without an answer.
        """
        ...

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Add a schema to a subject and say its id."""
        ...

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema:
        """The id of a schema the subject has. Raises `ContentNotFound`."""
        ...


Open: TypeAlias = Callable[[], Registry]
RegistryLike: TypeAlias = "str | SchemaSnapshot | Open"
"""An address (several with commas), a snapshot (nobody is ever asked), or a function that opens a client.

The function travels to the executors, so it must be picklable; it is the way to give credentials. A client itself is
not taken: its connections cannot travel.
"""

MOST_CLIENTS = 16
"""Clients one process keeps open."""


class Pin(msgspec.Struct, frozen=True):
    """The schemas one plan or one batch works with; the same everywhere, whatever is registered meanwhile."""

    subject: str
    snapshot: SchemaSnapshot
    reader: ResolvedSchema

    @property
    def reader_version(self) -> int:
        """Number of the reader's version in the subject; 0 for a text given by hand."""
        return self.reader.version

    @property
    def versions(self) -> dict[int, int]:
        """Newest version number of the subject by schema id."""
        mine = [schema for schema in self.snapshot.schemas if schema.subject == self.subject]
        return {schema.id: schema.version for schema in sorted(mine, key=lambda schema: schema.version)}


def pin(registry: RegistryLike, subject: str, reader: str | int = "latest") -> Pin:
    """Pin the subject's versions now. reader: `latest`, a version number, or the text of a schema.

    Raises `SubjectNotFound`, `VersionNotFound`, `RegistryUnreachable`.
    """
    snapshot = registry if isinstance(registry, SchemaSnapshot) else opened(registry).snapshot(subjects=[subject])
    if isinstance(reader, int) or reader.isdecimal():
        return Pin(subject, snapshot, snapshot.resolve_version(subject, int(reader)))
    if reader == "latest":
        return Pin(subject, snapshot, snapshot.resolve_version(subject))
    if not reader.lstrip().startswith(("{", "[", '"')):
        raise VersionNotFound(reader)
    return Pin(subject, snapshot, ResolvedSchema(reader))


def parsed(schema: ResolvedSchema) -> AvroSchema:
    """The schema as the Avro format reads it. Raises `DataError` when it is not Avro or does not parse."""
    if schema.schema_type != "AVRO":
        raise DataError(f"its format is {schema.schema_type}, Avro is needed")
    references = {name: text.encode() for name, text in schema.references.items()}
    try:
        return AVRO.parse(schema.text.encode(), references, strict=False)
    except Invalid as error:
        raise DataError(f"the text is no Avro schema: {error}") from error


class Opener(msgspec.Struct, frozen=True):
    """A caller's function under a name that travels with it: each task unpickles a function of its own, and they must
    share the client of their process, its cache and its connections."""

    name: str
    function: Open

    def __call__(self) -> Registry:
        """Open a client."""
        return self.function()


_NAMES: WeakKeyDictionary[Open, str] = WeakKeyDictionary()
_OPENED: OrderedDict[str, Registry] = OrderedDict()


def portable(registry: RegistryLike) -> RegistryLike:
    """The registry in the form in which it is sent to tasks. Raises `Invalid` for what cannot travel."""
    if isinstance(registry, str | SchemaSnapshot | Opener):
        return registry
    given: object = registry
    if not callable(given):
        kind = type(registry).__name__
        raise Invalid(f"a registry is an address, a snapshot or a function that opens a client; a {kind} cannot travel")
    return Opener(_NAMES.setdefault(registry, uuid4().hex), registry)


def opened(registry: str | Open) -> Registry:
    """The client of this process for an address or function, opened at its first use."""
    named = portable(registry)
    key = named.name if isinstance(named, Opener) else str(named)
    if key not in _OPENED:
        _OPENED[key] = SchemaRegistryClient(registry) if isinstance(registry, str) else registry()
        while len(_OPENED) > MOST_CLIENTS:
            _OPENED.popitem(last=False)
    _OPENED.move_to_end(key)
    return _OPENED[key]


class Lookup:
    """Schemas by id for an engine: the pinned ones, then the registry, once per id. Ids count in the subject's context.

    `met` collects the ids that were asked for, with the pinned ones among them.
    """

    def __init__(self, pinned: Pin, registry: RegistryLike, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._context = split(pinned.subject).context
        mine = [schema for schema in pinned.snapshot.schemas if schema.context == self._context]
        self._pinned = {schema.id: schema for schema in mine if schema.id}
        self._parsed: dict[int, AvroSchema] = {}
        self._unknown: dict[int, float] = {}
        self.met: set[int] = set()

    def __call__(self, number: int) -> AvroSchema | None:
        """See `engines.base.Writers`. Raises `RegistryUnreachable` when nobody answers for an id that is not pinned."""
        self.met.add(number)
        if number not in self._parsed:
            found = self._pinned.get(number) or self._ask(number)
            if found is None:
                return None
            self._parsed[number] = parsed(found)
        return self._parsed[number]

    def _ask(self, number: int) -> ResolvedSchema | None:
        if isinstance(self._registry, SchemaSnapshot) or self._clock() < self._unknown.get(number, 0):
            return None
        try:
            return opened(self._registry).resolve(number, context=self._context)
        except ContentNotFound:
            self._unknown[number] = self._clock() + ASK_AGAIN
            return None
