"""Base of all deserializers: find the record's schema, build a decoder for it once, and decode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

from stele.client import workflows
from stele.client.names import AssociatedName, Naming, qualify_subject, topic_name
from stele.client.serdes.framing import SeenHeaders, header_of
from stele.client.serdes.rules.engine import RuleEngine, Rules
from stele.client.serdes.rules.model import RecordContext, RuleMode, RulePhase, Walk
from stele.client.serdes.steps import (
    AssociatedSubjects,
    BoundedCache,
    Source,
    Steps,
    Work,
    ask_source,
    blocking_client,
    run_blocking,
)
from stele.client.snapshot import ResolvedSchema
from stele.errors import InvalidName, InvalidRequest
from stele.wire import confluent
from stele.wire.confluent import Frame, RecordField

Decode = Callable[[Frame], Any]
"""Turns a record of one schema into a value. Raises `DecodeError` and `FrameError`."""


class ReadCall(NamedTuple):
    """Arguments of one call of a deserializer."""

    data: bytes
    topic: str
    field: RecordField
    headers: SeenHeaders


class Stages(NamedTuple):
    """Decoding in steps, so that rules can run between them.

    type_name  full name of the record's type, '' for none
    read       decodes the value into the form that migrations take; without migrations, into the form that `land`
               returns
    land       converts the value after migrations into the form that other rules see
    walk       returns the walk over the value's fields for rules
    finish     converts the value into the deserializer's result; checks that it fits the schema
    indexed    whether message indexes precede the payload
    """

    type_name: Callable[[Frame], str]
    read: Decode
    land: Callable[[Frame, Any], Any]
    walk: Callable[[Any], Walk | None]
    finish: Callable[[Any], Any]
    indexed: bool = False


class Reading(NamedTuple):
    """Decoder of the records of one schema: `ruled` if rules run, else `plain`."""

    plain: Decode | None
    ruled: Callable[[Frame, ReadCall], Steps[Any]] | None = None


_MADE = {"_readings", "_engine", "_associations"}
"""Attributes that are not pickled but created again."""

Migration = tuple[RuleMode, ResolvedSchema, ResolvedSchema]
"""One step between neighbouring versions: the mode, the version before, the version after."""


class BaseDeserializer(ABC):
    """Deserializes framed bytes to values.

    source      a client, or a snapshot; wrap a deserializer that has an async client, see `AsyncDeserializer`
    reader      the reader's schema: a text, or a `ResolvedSchema` when it refers to others
    use_latest  take the newest version of the record's subject as the reader's schema; naming chooses the subject
    use_metadata  likewise the newest version whose metadata has these properties
    context     context of schema ids and of subjects that are not qualified
    rules       how the rules of schemas are run; see `Rules`. Without it, a record that needs a rule is refused

    Rules for reading are those of the reader's schema, else the writer's. If the reader's schema is a version of the
    record's subject, the migration rules of all versions in between convert the value to it.

    Can be pickled when its source and its rules can; snapshots and clients can. Raises `InvalidRequest` for more than
    one of reader, use_latest and use_metadata.
    """

    schema_type = ""

    def __init__(
        self,
        source: Source,
        reader: ResolvedSchema | str | None = None,
        *,
        use_latest: bool = False,
        use_metadata: Mapping[str, str] | None = None,
        naming: Naming = topic_name,
        context: str = "",
        rules: Rules | None = None,
    ) -> None:
        if use_latest + (use_metadata is not None) + (reader is not None) > 1:
            raise InvalidRequest("give a deserializer only one of reader, use_latest and use_metadata")
        self.source = source
        self._reader = ResolvedSchema(reader, self.schema_type) if isinstance(reader, str) else reader
        self._choosing = use_latest or use_metadata is not None
        self._use_metadata = use_metadata
        self._naming = naming
        self._context = context
        self._rules = rules
        self._prepare()

    def __call__(
        self, data: bytes | None, *, topic: str = "", field: RecordField = "value", headers: SeenHeaders = None
    ) -> Any:
        """Return the value in a record; None stays None.

        Rules may need the topic. Raises `FrameError` when the record carries no schema, `DecodeError` when the payload
        is not of its schema, `RuleFailed` when a rule refuses it, `RulesRefused` when a rule must not run,
        `ContentNotFound` when the source does not know the schema, and the errors of the client.
        """
        return run_blocking(self.deserialize_steps(data, topic, field, headers), self.source)

    def deserialize_steps(self, data: bytes | None, topic: str, field: RecordField, headers: SeenHeaders) -> Steps[Any]:
        """Return the steps of a call as a generator, to be driven blocking or awaited."""
        if data is None:
            return None
        frame = confluent.read_frame(data, header_of(headers, field))
        subject, number = (yield from self._choose_version(topic, field)) if self._choosing else ("", 0)
        key = frame.schema, subject, number
        reading = self._readings.get(key) or self._readings.put(key, (yield from self._load_reading(*key)))
        if reading.plain is not None:
            return reading.plain(frame)
        assert reading.ruled is not None
        return (yield from reading.ruled(frame, ReadCall(data, topic, field, headers)))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _MADE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare()

    def _prepare(self) -> None:
        self._engine = RuleEngine(self._rules, blocking_client(self.source))
        naming = self._naming
        self._associations = AssociatedSubjects(self.source, naming) if isinstance(naming, AssociatedName) else None
        self._readings: BoundedCache[tuple[int | UUID, str, int], Reading] = BoundedCache()

    def select_reader(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> ResolvedSchema | None:
        """Return the reader's schema for records of a schema, None if it does not apply to them."""
        del schema
        return reader

    @abstractmethod
    def make_decoder(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> Decode:
        """Return the decoder for records of a schema, resolved to the reader's schema if there is one."""

    @abstractmethod
    def make_stages(self, schema: ResolvedSchema, reader: ResolvedSchema | None, *, migrating: bool) -> Stages:
        """Return the decoder in steps.

        When migrating, rules turn values of the writer's version into values of the reader's version.
        """

    def _choose_version(self, topic: str, field: RecordField) -> Steps[tuple[str, int]]:
        """Return the subject and version of the reader's schema, when the registry chooses it."""
        subject = yield from self._find_subject(topic, field, "")
        if self._use_metadata is not None:
            schema = yield from ask_source(self.source, workflows.resolve_metadata, subject, self._use_metadata)
        else:
            schema = yield from ask_source(self.source, workflows.resolve_version, subject)
        return subject, schema.version

    def _load_reading(self, schema: int | UUID, subject: str, number: int) -> Steps[Reading]:
        writer = yield from ask_source(self.source, workflows.resolve, schema, context=self._context)
        wanted = (
            (yield from ask_source(self.source, workflows.resolve_version, subject, number)) if number else self._reader
        )
        reader = self.select_reader(writer, wanted)
        migrations: list[Migration] = []
        if number and reader is not None:
            migrations = yield from self._find_migrations(writer, reader, subject)
        has_rules = self._engine.has_rules
        if (
            not migrations
            and not has_rules(RulePhase.DOMAIN, RuleMode.READ, reader or writer)
            and not has_rules(RulePhase.ENCODING, RuleMode.READ, writer)
        ):
            return Reading(self.make_decoder(writer, reader))
        return Reading(None, self._decode_with_rules(writer, reader, migrations))

    def _decode_with_rules(
        self, writer: ResolvedSchema, reader: ResolvedSchema | None, migrations: list[Migration]
    ) -> Callable[[Frame, ReadCall], Steps[Any]]:
        engine = self._engine
        stages = self.make_stages(writer, reader, migrating=bool(migrations))

        def decode(frame: Frame, record: RecordContext) -> Any:
            value = stages.read(self._run_encoding_rules(frame, writer, record, indexed=stages.indexed))
            for mode, source, target in migrations:
                value = engine.run_migration(mode, source, target, value, record)
            value = stages.land(frame, value)
            value = engine.run_phase(
                RulePhase.DOMAIN, RuleMode.READ, reader or writer, value, record, stages.walk(value)
            )
            return stages.finish(value)

        def steps(frame: Frame, call: ReadCall) -> Steps[Any]:
            record = yield from self._describe_record(call, stages.type_name(frame))
            return (yield Work(partial(decode, frame, record)))

        return steps

    def _run_encoding_rules(
        self, frame: Frame, writer: ResolvedSchema, record: RecordContext, *, indexed: bool
    ) -> Frame:
        """Return the frame after the payload rules. Its message indexes move into the frame's `header`."""
        indexes, payload = frame.message() if indexed else ((), frame.payload())
        plain = self._engine.run_phase(RulePhase.ENCODING, RuleMode.READ, writer, bytes(payload), record)
        header = confluent.encode_indexes(indexes) if indexes else b""
        return frame._replace(header=memoryview(header), body=memoryview(plain))

    def _find_subject(self, topic: str, field: RecordField, type_name: str) -> Steps[str]:
        if self._associations is not None:
            named = yield from self._associations.find_subject(topic, field, type_name)
        else:
            assert not isinstance(self._naming, AssociatedName)
            named = self._naming(topic, field, type_name)
        return qualify_subject(named, self._context)

    def _describe_record(self, call: ReadCall, type_name: str) -> Steps[RecordContext]:
        try:
            subject = yield from self._find_subject(call.topic, call.field, type_name)
        except InvalidName:  # not every rule needs the subject
            subject = ""
        return RecordContext(subject, call.topic, call.field, call.headers, call.data)

    def _find_migrations(self, writer: ResolvedSchema, reader: ResolvedSchema, subject: str) -> Steps[list[Migration]]:
        """Return those steps from the writer's version to the reader's that have migration rules."""
        if writer.id == reader.id and writer.id:
            return []
        lineage = yield from ask_source(self.source, workflows.lineage, subject, writer, reader.version)
        steps = []
        for source, target in pairwise(lineage):
            mode, owner = (
                (RuleMode.UPGRADE, target) if source.version < target.version else (RuleMode.DOWNGRADE, source)
            )
            if self._engine.has_rules(RulePhase.MIGRATION, mode, owner):
                steps.append((mode, source, target))
        return steps
