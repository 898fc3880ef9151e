"""Access of the Spark package to a registry: clients, pinned schemas, and schemas looked up by id.

The driver and the tasks name, open, share and retry clients in the same way. Schemas are pinned on the driver and sent
with the tasks. An id that was not pinned is looked up once.
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
"""Default number of seconds for which requests are repeated to a registry that does not answer."""
_FIRST_DELAY, _LONGEST_PAUSE = 0.5, 10.0  # seconds


class RegistryClient(Protocol):
    """The client methods that the Spark package uses; `SchemaRegistryClient` has them."""

    def snapshot(self, *, subjects: Iterable[str] = ()) -> SchemaSnapshot:
        """Return all live versions of the subjects."""
        ...

    def resolve(self, schema: int | UUID, *, context: str = "") -> ResolvedSchema:
        """Return the schema of an id in a context, or of a guid.

        Raises `ContentNotFound` when there is none, `RegistryUnreachable` when the registry does not answer.
        """
        ...

    def resolve_version(self, subject: str, number: Version = "latest") -> ResolvedSchema:
        """Return one version of a subject. Raises `SubjectNotFound`, `VersionNotFound`."""
        ...

    def register(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Add a schema to a subject and return its id."""
        ...

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema:
        """Return the id of a schema that the subject has. Raises `ContentNotFound`."""
        ...

    def resolve_schema(self, schema: Schema, *, context: str = "") -> ResolvedSchema:
        """Return a schema that the caller has, with all schemas that it refers to."""
        ...

    def send(self, request: Request[T]) -> T:
        """Send a request of another dialect of the registry, and return the response."""
        ...


OpenClient: TypeAlias = Callable[[], RegistryClient]
RegistryLike: TypeAlias = "str | SchemaSnapshot | OpenClient"
"""An address (several with commas), a snapshot (no registry is asked), or a function that opens a client.

The function is sent to the executors, so it must be picklable. Use it to give credentials. A client itself is not
accepted, because its connections cannot be sent.
"""

MAX_CLIENTS = 16
"""Maximum number of clients that one process keeps open."""


def retry_unavailable(
    call: Callable[[], T],
    patience: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    jitter: Callable[[], float] = random.random,
) -> T:
    """Call a function and return its result, with retries for `patience` seconds while the registry is unavailable.

    Pauses double from half a second to ten seconds. Each is shortened by up to a half, so that tasks do not all retry
    at the same time after an outage. Raises what the last attempt raised.
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
    """A caller's function that opens a client, with a name that is pickled with it.

    Each task unpickles a function object of its own. By the name they share the client of their process, its cache and
    its connections.
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
    """Return the registry in the form that is sent to tasks. Raises `Invalid` for an object that cannot be sent."""
    if isinstance(registry, str | SchemaSnapshot | ClientFactory):
        return registry
    candidate: object = registry
    if not callable(candidate):
        kind = type(registry).__name__
        raise Invalid(
            f"a registry is an address, a snapshot or a function that opens a client; a {kind} cannot be sent"
            " to workers"
        )
    return ClientFactory(_NAMES.setdefault(registry, uuid4().hex), registry)


def get_client(registry: str | OpenClient) -> RegistryClient:
    """Return the client of this process for an address or function, opened at its first use.

    When there are more than `MAX_CLIENTS`, the least recently used one is dropped. Code that still holds it can go on
    using it; a `SchemaRegistryClient` closes its connections when its last user has released it.
    """
    named = as_picklable(registry)
    key = named.name if isinstance(named, ClientFactory) else str(named)
    with _OPENED_LOCK:
        if key in _OPENED:
            _OPENED.move_to_end(key)
            return _OPENED[key]
    # Not under the lock, because a function can take long, or get another client.
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
"""Seconds for which a process does not ask again for an id that the registry did not know."""


class PinnedSchemas(msgspec.Struct, frozen=True):
    """The schemas that one plan or one batch works with. They stay the same, whatever is registered meanwhile."""

    subject: str
    snapshot: SchemaSnapshot
    reader: ResolvedSchema

    @property
    def reader_version(self) -> int:
        """Version number of the reader's schema in the subject; 0 for a schema given as text."""
        return self.reader.version

    @property
    def versions(self) -> dict[int, int]:
        """Newest version number in the subject for each schema id."""
        mine = [schema for schema in self.snapshot.schemas if schema.subject == self.subject]
        return {schema.id: schema.version for schema in sorted(mine, key=lambda schema: schema.version)}


ReaderLike: TypeAlias = "str | int | Path | Schema | ResolvedSchema"
"""The reader's schema: `latest`, a version number, a schema's text in the subject's format, a file, or a `Schema`.

A file contains the text of a schema. A `Schema` names its format and its references.
"""

_WORD = re.compile(r"[\w.-]*")


def pin_schemas(
    registry: RegistryLike, subject: str, reader: ReaderLike = "latest", *, patience: float = 0.0
) -> PinnedSchemas:
    """Pin the subject's versions now. The subject '' means none, and then the reader must be a schema.

    patience   seconds for which requests are repeated to a registry that does not answer
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
    """Return a schema with all schemas that it refers to.

    Raises `Invalid` for a schema with references if the registry is a snapshot, which cannot resolve them.
    """
    if isinstance(schema, ResolvedSchema):
        return schema
    if not isinstance(registry, SchemaSnapshot):
        return get_client(registry).resolve_schema(schema, context=context)
    if schema.references:
        raise Invalid("a snapshot cannot look up what a schema refers to: give a ResolvedSchema")
    return ResolvedSchema(schema.text, schema.schema_type, metadata=schema.metadata, rule_set=schema.rule_set)


def parse_avro(schema: ResolvedSchema) -> AvroSchema:
    """Return the parsed Avro schema. Raises `DataError` when it is not Avro or does not parse."""
    if schema.schema_type != "AVRO":
        raise DataError(f"its format is {schema.schema_type}, Avro is needed")
    references = {name: text.encode() for name, text in schema.references.items()}
    try:
        return AVRO.parse(schema.text.encode(), references, strict=False)
    except Invalid as error:
        raise DataError(f"the text is not a valid Avro schema: {error}") from error


class SchemaLookup:
    """Schemas by id for an engine: the pinned ones, then those of the registry, each asked for once.

    Ids belong to the subject's context. `requested_ids` collects the ids that were looked up, including pinned ones.
    `patience` is the number of seconds for which requests are repeated to a registry that does not answer. `subjects`
    are the subjects of the pin, if it has several.
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
        """Return the parsed schema of an id, or None if there is none; see `engines.base.FindWriter`.

        Raises `RegistryUnreachable` when the registry does not answer for an id that is not pinned.
        """
        schema = self.find_schema(number)
        if schema is None:
            return None
        if number not in self._parsed:
            self._parsed[number] = parse_avro(schema)
        return self._parsed[number]

    def find_schema(self, number: int | UUID) -> ResolvedSchema | None:
        """Return the schema of an id or a guid, or None if there is none.

        Raises `RegistryUnreachable` when the registry does not answer for an id that is not pinned.
        """
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
        """Return the registry's answer, or None for the error `absent`, which is remembered for `UNKNOWN_TTL` seconds.

        Raises `RegistryUnreachable` and any other error of the registry.
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
        """Do not ask for this key again for `UNKNOWN_TTL` seconds, because the answer was not usable."""
        self._unknown[key] = self._clock() + UNKNOWN_TTL
