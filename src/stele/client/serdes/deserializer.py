"""What all deserializers do: find the record's schema, make a decoder of it once, and decode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

from stele.client.names import SubjectNaming, qualify, topic_name
from stele.client.serdes.framing import SeenHeaders, header_of
from stele.client.serdes.rules.engine import Engine, Rules
from stele.client.serdes.rules.model import Mode, Phase, Record, Walk
from stele.client.serdes.serializer import KEPT
from stele.client.snapshot import ResolvedSchema, SchemaSource
from stele.client.sync import SchemaRegistryClient
from stele.errors import InvalidName, InvalidRequest
from stele.wire import confluent
from stele.wire.confluent import Frame, RecordField

Decode = Callable[[Frame], Any]
"""Turns a record of one schema into a value. Raises `DecodeError` and `FrameError`."""


class Given(NamedTuple):
    """What a deserializer was called with."""

    data: bytes
    topic: str
    field: RecordField
    headers: SeenHeaders


class Stages(NamedTuple):
    """Decoding in steps, for rules to come between.

    type_name  full name of the record's type, '' for none
    read       the value as migrations take it, or when there are none as `land` gives it
    land       the value after migrations as other rules see it
    walk       what takes rules to its fields
    finish     the value as it is handed out; checks that it fits
    indexed    whether message indexes stand before the payload
    """

    type_name: Callable[[Frame], str]
    read: Decode
    land: Callable[[Frame, Any], Any]
    walk: Callable[[Any], Walk | None]
    finish: Callable[[Any], Any]
    indexed: bool = False


Migration = tuple[Mode, ResolvedSchema, ResolvedSchema]
"""One step from a version to the next: the way, the version left, the version reached."""


class BaseDeserializer(ABC):
    """Framed bytes to values.

    source      a client, or a snapshot
    reader      the reader's schema: a text, or a `ResolvedSchema` when it refers to others
    use_latest  take the newest version of the record's subject as the reader's schema; naming chooses the subject
    use_metadata  likewise the newest version whose metadata has these properties
    context     context in which ids count, and of subjects that are not qualified
    rules       how the rules of schemas are run; see `Rules`

    Rules for reading are those of the reader's schema, else the writer's. Where the reader's is a version of the
    record's subject, the rules of all versions between bring the value there.

    Can be pickled when its source and its rules can, which snapshots and clients can. Raises `InvalidRequest` for more
    than one of reader, use_latest and use_metadata.
    """

    schema_type = ""

    def __init__(
        self,
        source: SchemaSource,
        reader: ResolvedSchema | str | None = None,
        *,
        use_latest: bool = False,
        use_metadata: Mapping[str, str] | None = None,
        naming: SubjectNaming = topic_name,
        context: str = "",
        rules: Rules | None = None,
    ) -> None:
        if use_latest + (use_metadata is not None) + (reader is not None) > 1:
            raise InvalidRequest("a deserializer takes one of reader, use_latest and use_metadata")
        self._source = source
        self._reader = ResolvedSchema(reader, self.schema_type) if isinstance(reader, str) else reader
        self._use_latest = use_latest
        self._use_metadata = use_metadata
        self._naming = naming
        self._context = context
        self._rules = rules or Rules()
        self._ready()

    def __call__(
        self, data: bytes | None, *, topic: str = "", field: RecordField = "value", headers: SeenHeaders = None
    ) -> Any:
        """The value in a record; None stays None.

        Rules may need the topic. Raises `FrameError` when the record carries no schema, `DecodeError` when the payload
        is not of its schema, `RuleFailed` when a rule refuses it, `ContentNotFound` when the source does not know the
        schema, and what the client raises.
        """
        if data is None:
            return None
        frame = confluent.read(data, header_of(headers, field))
        return self._decoder(frame.schema, *self._chosen(topic, field))(frame, Given(data, topic, field, headers))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in {"_decoder", "_engine"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._ready()

    def _ready(self) -> None:
        source = self._source
        self._engine = Engine(self._rules, source if isinstance(source, SchemaRegistryClient) else None)
        self._decoder = lru_cache(KEPT)(self._learn)

    def fitting(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> ResolvedSchema | None:
        """The reader's schema for records of a schema, None where it has no say."""
        del schema
        return reader

    @abstractmethod
    def decoder(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> Decode:
        """Reads records of one schema, as the reader wants them."""

    @abstractmethod
    def stages(self, schema: ResolvedSchema, reader: ResolvedSchema | None, *, migrating: bool) -> Stages:
        """The same in steps; migrating: from values of the writer's version on, rules make those of the reader's."""

    def _chosen(self, topic: str, field: RecordField) -> tuple[()] | tuple[str, int]:
        """Subject and version of the reader's schema where the registry chooses it."""
        if not self._use_latest and self._use_metadata is None:
            return ()
        subject = qualify(self._naming(topic, field, ""), self._context)
        if self._use_metadata is not None:
            return subject, self._source.resolve_metadata(subject, self._use_metadata).version
        return subject, self._source.resolve_version(subject).version

    def _learn(self, schema: int | UUID, subject: str = "", number: int = 0) -> Callable[[Frame, Given], Any]:
        found = self._source.resolve(schema, context=self._context)
        reader = self.fitting(found, self._source.resolve_version(subject, number) if number else self._reader)
        migrations = self._migrations(found, reader, subject) if number and reader is not None else []
        has_rules = self._engine.has_rules
        if (
            not migrations
            and not has_rules(Phase.DOMAIN, Mode.READ, reader or found)
            and not has_rules(Phase.ENCODING, Mode.READ, found)
        ):
            plain = self.decoder(found, reader)
            return lambda frame, _: plain(frame)
        return self._ruled(found, reader, migrations)

    def _ruled(
        self, found: ResolvedSchema, reader: ResolvedSchema | None, migrations: list[Migration]
    ) -> Callable[[Frame, Given], Any]:
        engine = self._engine
        stages = self.stages(found, reader, migrating=bool(migrations))

        def decode(frame: Frame, given: Given) -> Any:
            record = self._record(given, stages.type_name(frame))
            value = stages.read(self._decoded(frame, found, record, indexed=stages.indexed))
            for mode, source, target in migrations:
                value = engine.migrate(mode, source, target, value, record)
            value = stages.land(frame, value)
            value = engine.run(Phase.DOMAIN, Mode.READ, reader or found, value, record, stages.walk(value))
            return stages.finish(value)

        return decode

    def _decoded(self, frame: Frame, found: ResolvedSchema, record: Record, *, indexed: bool) -> Frame:
        """The frame after the rules for payloads, with its message indexes where those of a record header would be."""
        indexes, payload = frame.message() if indexed else ((), frame.payload())
        plain = self._engine.run(Phase.ENCODING, Mode.READ, found, bytes(payload), record)
        header = confluent.encode_indexes(indexes) if indexes else b""
        return frame._replace(header=memoryview(header), body=memoryview(plain))

    def _record(self, given: Given, type_name: str) -> Record:
        try:
            subject = qualify(self._naming(given.topic, given.field, type_name), self._context)
        except InvalidName:  # not every rule needs it
            subject = ""
        return Record(subject, given.topic, given.field, given.headers, given.data)

    def _migrations(self, found: ResolvedSchema, reader: ResolvedSchema, subject: str) -> list[Migration]:
        """The steps from the writer's version to the reader's that have rules."""
        if found.id == reader.id and found.id:
            return []
        steps = []
        for source, target in pairwise(self._source.lineage(subject, found, reader.version)):
            mode, owner = (Mode.UPGRADE, target) if source.version < target.version else (Mode.DOWNGRADE, source)
            if self._engine.has_rules(Phase.MIGRATION, mode, owner):
                steps.append((mode, source, target))
        return steps
