"""What the Spark package reads of a registry: clients, pinned schemas, and schemas looked up by id.

Clients are named, opened, shared and retried in one way on the driver and in tasks. Schemas are pinned on the driver,
shipped with the tasks, and looked up once for an id that nobody pinned.
"""

from __future__ import annotations

import random
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
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
from stele.client.names import split_subject
from stele.errors import ContentNotFound, DataError, Invalid, NotFound, Unavailable, VersionNotFound
from stele.formats.avro import AVRO, AvroSchema

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
_OPENED_LOCK = Lock()


def as_picklable(registry: RegistryLike) -> RegistryLike:
    """Return the registry in the form in which it is sent to tasks. Raises `Invalid` for what cannot travel."""
    if isinstance(registry, str | SchemaSnapshot | ClientFactory):
        return registry
    candidate: object = registry
    if not callable(candidate):
        kind = type(registry).__name__
        raise Invalid(f"a registry is an address, a snapshot or a function that opens a client; a {kind} cannot travel")
    return ClientFactory(_NAMES.setdefault(registry, uuid4().hex), registry)


def get_client(registry: str | OpenClient) -> RegistryClient:
    """Return the client of this process for an address or function, opened at its first use.

    The one that was not asked for longest goes when there are too many. Whoever got it before may go on to use it;
    a `SchemaRegistryClient` closes its connections when the last one has let go of it.
    """
    named = as_picklable(registry)
    key = named.name if isinstance(named, ClientFactory) else str(named)
    with _OPENED_LOCK:
        if key in _OPENED:
            _OPENED.move_to_end(key)
            return _OPENED[key]
    # Not under the lock: a function may take long, or get another client.
    opened = SchemaRegistryClient(registry) if isinstance(registry, str) else registry()
    with _OPENED_LOCK:
        client = _OPENED.setdefault(key, opened)
        _OPENED.move_to_end(key)
        released = [] if client is opened else [opened]
        while len(_OPENED) > MAX_CLIENTS:
            released.append(_OPENED.popitem(last=False)[1])
    for each in released:
        if isinstance(each, SchemaRegistryClient):
            each.close_when_unused()
    return client


UNKNOWN_TTL = 30.0
"""Seconds for which an id the registry did not know is not asked for again by the same process."""


class PinnedSchemas(msgspec.Struct, frozen=True):
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


ReaderLike: TypeAlias = "str | int | Path | Schema | ResolvedSchema"
"""The reader's schema: `latest`, a version number, the text of a schema in the subject's format, a file with such a
text, or a `Schema`, which says its format and what it refers to."""

_WORD = re.compile(r"[\w.-]*")


def pin_schemas(
    registry: RegistryLike, subject: str, reader: ReaderLike = "latest", *, patience: float = 0.0
) -> PinnedSchemas:
    """Pin the subject's versions now; no subject is '' and needs a reader that is a schema.

    patience   seconds a registry that does not answer is asked again
    Raises `SubjectNotFound`, `VersionNotFound`, `RegistryUnreachable`, `OSError` for a file that cannot be read.
    """
    snapshot = _load_snapshot(registry, subject, patience)
    if isinstance(reader, str) and reader.isdecimal():
        reader = int(reader)
    if isinstance(reader, int) or reader == "latest":
        pinned = snapshot.resolve_version(subject, reader if isinstance(reader, int) else "latest")
        return PinnedSchemas(subject, snapshot, pinned)
    if isinstance(reader, Path):
        reader = reader.read_text(encoding="utf-8")
    elif isinstance(reader, str) and _WORD.fullmatch(reader):
        raise VersionNotFound(reader)
    if isinstance(reader, str):
        return PinnedSchemas(subject, snapshot, ResolvedSchema(reader, _format_of(snapshot, subject)))
    return PinnedSchemas(subject, snapshot, resolve_references(registry, reader, split_subject(subject).context))


def _load_snapshot(registry: RegistryLike, subject: str, patience: float) -> SchemaSnapshot:
    if isinstance(registry, SchemaSnapshot):
        return registry
    if not subject:
        return SchemaSnapshot(())
    return retry_unavailable(lambda: get_client(registry).snapshot(subjects=[subject]), patience)


def _format_of(snapshot: SchemaSnapshot, subject: str) -> str:
    return snapshot.resolve_version(subject).schema_type if subject else "AVRO"


def resolve_references(registry: RegistryLike, schema: Schema | ResolvedSchema, context: str = "") -> ResolvedSchema:
    """Return a schema with all it refers to.

    Raises `Invalid` for references beside a snapshot, which cannot follow them.
    """
    if isinstance(schema, ResolvedSchema):
        return schema
    if not isinstance(registry, SchemaSnapshot):
        return get_client(registry).resolve_schema(schema, context=context)
    if schema.references:
        raise Invalid("a snapshot cannot look up what a schema refers to: give a ResolvedSchema")
    return ResolvedSchema(schema.text, schema.schema_type, metadata=schema.metadata, rule_set=schema.rule_set)


def parse_avro(schema: ResolvedSchema) -> AvroSchema:
    """Return the schema as the Avro format reads it. Raises `DataError` when it is not Avro or does not parse."""
    if schema.schema_type != "AVRO":
        raise DataError(f"its format is {schema.schema_type}, Avro is needed")
    references = {name: text.encode() for name, text in schema.references.items()}
    try:
        return AVRO.parse(schema.text.encode(), references, strict=False)
    except Invalid as error:
        raise DataError(f"the text is no Avro schema: {error}") from error


class SchemaLookup:
    """Schemas by id for an engine: the pinned ones, then the registry, once per id. Ids count in the subject's context.

    `met` collects the ids that were asked for, with the pinned ones among them. patience is for a registry that does
    not answer, in seconds; subjects are those of the pin, where it is made of several.
    """

    def __init__(
        self,
        pinned: PinnedSchemas,
        registry: RegistryLike,
        clock: Callable[[], float] = time.monotonic,
        *,
        patience: float = 0.0,
        subjects: tuple[str, ...] = (),
    ) -> None:
        self.pinned = pinned
        self.subjects = subjects or ((pinned.subject,) if pinned.subject else ())
        self.registry = registry
        self._clock = clock
        self._patience = patience
        self._context = split_subject(pinned.subject).context
        mine = [schema for schema in pinned.snapshot.schemas if schema.context == self._context]
        self._found: dict[int | UUID, ResolvedSchema] = {schema.id: schema for schema in mine if schema.id}
        self._found |= {UUID(schema.guid): schema for schema in pinned.snapshot.schemas if schema.guid}
        self._parsed: dict[int, AvroSchema] = {}
        self._unknown: dict[object, float] = {}
        self.requested_ids: set[int] = set()

    def __call__(self, number: int) -> AvroSchema | None:
        """See `engines.base.FindWriter`. Raises `RegistryUnreachable` when an id that is not pinned gets no answer."""
        schema = self.find_schema(number)
        if schema is None:
            return None
        if number not in self._parsed:
            self._parsed[number] = parse_avro(schema)
        return self._parsed[number]

    def find_schema(self, number: int | UUID) -> ResolvedSchema | None:
        """Return the schema of an id or a guid, None when there is none. Raises likewise."""
        if isinstance(number, int):
            self.requested_ids.add(number)
        if number not in self._found:
            schema = self.query(number, lambda registry: registry.resolve(number, context=self._context))
            if schema is None:
                return None
            self._found[number] = schema
        return self._found[number]

    def query(
        self, key: object, question: Callable[[RegistryClient], T], absent: type[NotFound] = ContentNotFound
    ) -> T | None:
        """Return the registry's answer; None for the error absent, after which it is not asked again for a while.

        Raises `RegistryUnreachable` and whatever else the registry refuses with.
        """
        registry = self.registry
        if isinstance(registry, SchemaSnapshot) or self._clock() < self._unknown.get(key, 0):
            return None
        try:
            return retry_unavailable(lambda: question(get_client(registry)), self._patience)
        except absent:
            self._unknown[key] = self._clock() + UNKNOWN_TTL
            return None

    def remember_unknown(self, key: object) -> None:
        """Do not ask this again for a while: the answer was of no use."""
        self._unknown[key] = self._clock() + UNKNOWN_TTL
