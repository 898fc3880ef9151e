"""Base of all serializers: choose the subject, find the schema's id in it, frame the payload."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypedDict
from uuid import UUID

import msgspec

from stele.client import endpoints, workflows
from stele.client.names import AssociatedName, Naming, qualify_subject, topic_name
from stele.client.serdes.framing import Headers, IdPlace
from stele.client.serdes.rules.engine import RuleEngine, Rules
from stele.client.serdes.rules.model import RecordContext, RuleMode, RulePhase, Walk
from stele.client.serdes.schemas import ParsedSchema, parse_schema, require_type
from stele.client.serdes.steps import (
    AnyClient,
    AssociatedSubjects,
    BoundedCache,
    Steps,
    Work,
    blocking_client,
    run_blocking,
)
from stele.client.snapshot import ResolvedSchema
from stele.client.types import Schema
from stele.errors import EncodeError, InvalidRequest
from stele.wire import confluent
from stele.wire.confluent import RecordField


class Encoded(NamedTuple):
    """One payload, and for Protobuf the indexes of its message."""

    payload: bytes
    indexes: Sequence[int] | None = None


Encode = Callable[[Any], Encoded]
"""Turns a value into a payload. Raises `EncodeError`."""


class SchemaWithRules(NamedTuple):
    """A schema with rules for writing, and the function that returns the walk over a value's fields."""

    schema: ParsedSchema
    walk: Callable[[Any], Walk]


class Writer(NamedTuple):
    """A subject's schema, ready to write with.

    prefix  bytes before a payload
    guid    '' when the server does not report it
    ruled   the schema when it has rules for writing
    """

    prefix: bytes
    guid: str
    encode: Encode
    ruled: SchemaWithRules | None = None


class SerializerSettings(TypedDict, total=False):
    """The keyword arguments of `Serializer`, for the signatures of its subclasses."""

    naming: Naming
    context: str
    auto_register: bool
    use_latest: bool
    use_metadata: Mapping[str, str] | None
    use_id: int | None
    normalize: bool
    id_in: IdPlace
    rules: Rules | None


class Serializer(ABC):
    """Serializes values of one format to framed bytes.

    client         the registry; wrap a serializer that has an async client, see `AsyncSerializer`
    schema         the writer's schema, or its text. None is allowed only with use_latest, use_metadata or use_id
    naming         returns the subject for topic, field and record type
    context        context of subjects that are not qualified
    auto_register  register the schema if it is missing; otherwise a missing schema is an error
    use_latest     write with the subject's newest version instead of the schema
    use_metadata   write with the newest version whose metadata has these properties instead
    use_id         write with the schema of that id instead
    normalize      let the server ignore differences of style when it registers or looks up
    id_in          where the schema's identity is written
    rules          how the rules of the writing schema are run; see `Rules`. Without it, a schema with rules for
                   writing is refused

    Raises `InvalidRequest` for options that exclude each other.
    """

    schema_type: ClassVar[str]

    def __init__(
        self,
        client: AnyClient,
        schema: Schema | str | None = None,
        *,
        naming: Naming = topic_name,
        context: str = "",
        auto_register: bool = False,
        use_latest: bool = False,
        use_metadata: Mapping[str, str] | None = None,
        use_id: int | None = None,
        normalize: bool = False,
        id_in: IdPlace = IdPlace.PREFIX,
        rules: Rules | None = None,
    ) -> None:
        chosen = use_latest + (use_metadata is not None) + (use_id is not None)
        if auto_register + chosen > 1:
            raise InvalidRequest("give a serializer only one of auto_register, use_latest, use_metadata and use_id")
        if schema is None and not chosen:
            raise InvalidRequest("a serializer needs a schema, or use_latest, use_metadata or use_id")
        self.client = client
        self._schema = Schema(schema, self.schema_type) if isinstance(schema, str) else schema
        self._naming = AssociatedSubjects(client, naming) if isinstance(naming, AssociatedName) else naming
        self._context = context
        self._auto_register = auto_register
        self._use_metadata = use_metadata
        self._engine = RuleEngine(rules, blocking_client(client))
        self._use_id = use_id
        self._normalize = normalize
        self._id_in = id_in
        self._choosing = use_latest or use_metadata is not None
        self._own: ParsedSchema | None = None
        self._writers: BoundedCache[tuple[str, int], Writer] = BoundedCache()

    def __call__(
        self, value: Any, *, topic: str = "", field: RecordField = "value", headers: Headers | None = None
    ) -> bytes | None:
        """Return the value as bytes of a record; None stays None.

        With `IdPlace.HEADER` the identity is appended to headers. Raises `EncodeError` when the value does not fit,
        `RuleFailed` when a rule refuses it, `RulesRefused` when a rule must not run, `InvalidName` when the naming
        strategy lacks an input, and the errors of the client.
        """
        return run_blocking(self.serialize_steps(value, topic, field, headers), self.client)

    def serialize_steps(
        self, value: Any, topic: str, field: RecordField, headers: Headers | None
    ) -> Steps[bytes | None]:
        """Return the steps of a call as a generator, to be driven blocking or awaited."""
        if value is None:
            return None
        name = self.record_of(value)
        if name is None:
            if self._own is None and self._schema is not None:
                yield from self.parse_own_schema()
            name = str(self._own.parsed.type_name) if self._own is not None else ""
        if isinstance(self._naming, AssociatedSubjects):
            subject = yield from self._naming.find_subject(topic, field, name)
        else:
            subject = self._naming(topic, field, name)
        if self._context:
            subject = qualify_subject(subject, self._context)
        number = (yield from self._choose_version(subject)) if self._choosing else 0
        writer = self._writers.get((subject, number))
        if writer is None:
            new_writer = yield from self._find_version(subject, number) if number else self._find_writer(subject)
            writer = self._writers.put((subject, number), new_writer)
        if writer.ruled is None:
            payload, indexes = writer.encode(value)
        else:
            record = RecordContext(subject, topic, field, headers, value)
            payload, indexes = yield Work(partial(self._by_rules, writer.encode, writer.ruled, value, record))
        return self._frame_payload(writer, payload, indexes, field, headers)

    def _frame_payload(
        self,
        writer: Writer,
        payload: bytes,
        indexes: Sequence[int] | None,
        field: RecordField,
        headers: Headers | None,
    ) -> bytes:
        if self._id_in is IdPlace.PREFIX:
            return writer.prefix + (payload if indexes is None else confluent.encode_indexes(indexes) + payload)
        if headers is None:
            raise EncodeError("the identity of the schema is written to the headers, but no headers were given")
        if not writer.guid:
            raise EncodeError("the server did not return the guid of the schema, which the header needs")
        headers.append((confluent.HEADER_NAMES[field], confluent.guid_header(UUID(writer.guid), indexes)))
        return payload

    def record_of(self, value: Any) -> str | None:
        """Return the full name of the value's type, for the naming strategy; None: the type of the given schema."""
        del value  # a text schema has one type; Protobuf has one for each message
        return None

    @abstractmethod
    def make_encoder(self, schema: ParsedSchema) -> Encode:
        """Return the encoder for a schema, either the given one or one from the registry."""

    def to_rule_value(self, schema: ParsedSchema, value: Any) -> Any:
        """Return the value as rules see it."""
        del schema  # used by formats with their own value types
        return value

    @abstractmethod
    def make_walker(self, schema: ParsedSchema) -> Callable[[Any], Walk]:
        """Return the function from a value of the schema to the walk over its fields."""

    def own_encoder(self) -> Steps[Encode]:
        """Return the encoder for the given schema."""
        return self.make_encoder((yield from self.parse_own_schema()))

    def own_schema(self) -> Steps[Schema]:
        """Return the given schema in the form that is registered or looked up."""
        yield from ()
        assert self._schema is not None
        return self._schema

    def parse_own_schema(self) -> Steps[ParsedSchema]:
        """Return the given schema parsed, with the schemas it refers to."""
        if self._own is None:
            schema = yield from self.own_schema()
            self._own = parse_schema((yield from workflows.resolve_schema(schema, context=self._context)))
        return self._own

    def _choose_version(self, subject: str) -> Steps[int]:
        """Return the number of the version to write with, when the registry chooses it."""
        if self._use_metadata is not None:
            return int((yield endpoints.latest_with_metadata(subject, self._use_metadata)).version)
        return int((yield endpoints.version(subject)).version)

    def _find_writer(self, subject: str) -> Steps[Writer]:
        if self._use_id is not None:
            return self._writer_for((yield from workflows.resolve(self._use_id, context=self._context)))
        call = endpoints.register if self._auto_register else endpoints.lookup
        own = yield from self.own_schema()
        registration = yield call(subject, own, normalize=self._normalize)
        writer = Writer(_id_prefix(registration.id), registration.guid, (yield from self.own_encoder()))
        rule_set, metadata = registration.rule_set or own.rule_set, registration.metadata or own.metadata
        if rule_set is None:
            return writer
        parsed = yield from self.parse_own_schema()
        schema = msgspec.structs.replace(parsed.schema, rule_set=rule_set, metadata=metadata)
        return writer._replace(ruled=self._attach_rules(parsed._replace(schema=schema)))

    def _find_version(self, subject: str, number: int) -> Steps[Writer]:
        return self._writer_for((yield from workflows.resolve_version(subject, number)))

    def _writer_for(self, schema: ResolvedSchema) -> Writer:
        require_type(schema, self.schema_type)
        parsed = parse_schema(schema)
        return Writer(_id_prefix(schema.id), schema.guid, self.make_encoder(parsed), self._attach_rules(parsed))

    def _attach_rules(self, schema: ParsedSchema) -> SchemaWithRules | None:
        phases = RulePhase.DOMAIN, RulePhase.ENCODING
        if not any(self._engine.has_rules(phase, RuleMode.WRITE, schema.schema) for phase in phases):
            return None
        return SchemaWithRules(schema, self.make_walker(schema))

    def _by_rules(self, encode: Encode, ruled: SchemaWithRules, value: Any, record: RecordContext) -> Encoded:
        run, schema = self._engine.run_phase, ruled.schema.schema
        value = self.to_rule_value(ruled.schema, value)
        value = run(RulePhase.DOMAIN, RuleMode.WRITE, schema, value, record, ruled.walk(value))
        encoded = encode(value)
        before = replace(record, original=encoded.payload)
        return encoded._replace(payload=run(RulePhase.ENCODING, RuleMode.WRITE, schema, encoded.payload, before))


def _id_prefix(schema_id: int) -> bytes:
    if not schema_id:
        raise EncodeError("the server did not return the id of the schema")
    return confluent.id_prefix(schema_id)
