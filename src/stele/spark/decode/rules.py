"""Data rules of schemas: they are run, ignored, or refused.

Engines decode bytes and do not know rules. Without rules for reading (decryption of a field, migration of an old
version), values would be as they were stored: ciphertext, or of the wrong version. So the caller chooses:

    refuse   the default: planning fails and names the rule; records of a schema registered later are bad records
    run      records of schemas with rules go through `stele.client.serdes`, one by one (about fifty times slower); give
             `Rules(...)` instead of the word to configure them (secrets, overrides, executors)
    ignore   records come out as they were stored

The same applies to writing, where plain text would be stored in place of ciphertext.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from stele.client import ResolvedSchema, SchemaRegistryClient, SchemaSnapshot, Version
from stele.client.names import split_subject
from stele.client.serdes import AvroSerializer, Deserializer, JsonSerializer, ProtobufSerializer, Rules, Serializer
from stele.client.serdes.rules.engine import RuleEngine
from stele.client.serdes.rules.model import RuleMode, RulePhase
from stele.client.serdes.schemas import parse_schema
from stele.errors import ContentNotFound, DataError, Invalid, RuleFailed, RulesRefused, Unavailable
from stele.formats.protobuf import indexes_of
from stele.spark.registry import PinnedSchemas, RegistryLike, get_client
from stele.wire.confluent import encode_indexes
from stele.wire.kms import KmsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

Schemas: TypeAlias = Callable[[int], "ResolvedSchema | None"]
"""Returns the schema of an id in a frame."""

RulesLike: TypeAlias = "Literal['refuse', 'run', 'ignore'] | Rules"
"""What happens to rules; see the module."""

REENCODED_ID = 2**31 - 1
"""Id of the reader's schema in frames that rules made. No registry assigns it."""


def check_rules_choice(rules: RulesLike) -> RulesLike:
    """Return the choice unchanged. Raises `Invalid` for an unknown word."""
    if isinstance(rules, Rules) or rules in {"refuse", "run", "ignore"}:
        return rules
    raise Invalid(f"rules are 'refuse', 'run', 'ignore' or Rules(…), not {rules!r}")


def find_rule(schema: ResolvedSchema, modes: Sequence[RuleMode]) -> str:
    """Return the name of a rule of the schema that would run in one of the modes, '' for none."""
    if schema.rule_set is None:
        return ""
    engine = RuleEngine(Rules(), None)
    for phase in RulePhase:
        for rule in phase.rules_of(schema.rule_set):
            alone = msgspec.structs.replace(schema, rule_set=_with_only_rule(schema, phase, rule.name))
            if any(engine.has_rules(phase, mode, alone) for mode in modes):
                return rule.name or ""
    return ""


def _with_only_rule(schema: ResolvedSchema, phase: RulePhase, name: str | None) -> Any:
    rules = [rule for rule in phase.rules_of(schema.rule_set) if rule.name == name]
    return msgspec.structs.replace(schema.rule_set, **{f"{phase.value}_rules": rules})  # type: ignore[type-var]  # not None


READ_MODES = (RuleMode.READ, RuleMode.UPGRADE, RuleMode.DOWNGRADE)
"""Modes in which rules run when records are read."""


def refuse_reading(pinned: PinnedSchemas) -> None:
    """Raise `RulesRefused` when a pinned schema has a rule for reading or migration."""
    for schema in (pinned.reader, *pinned.snapshot.schemas):
        name = find_rule(schema, READ_MODES)
        if name:
            raise RulesRefused(_refusal_message(schema, name, "read"))


def refuse_writing(writer: ResolvedSchema) -> None:
    """Raise `RulesRefused` when the schema has a rule for writing."""
    name = find_rule(writer, (RuleMode.WRITE,))
    if name:
        raise RulesRefused(_refusal_message(writer, name, "written"))


def _refusal_message(schema: ResolvedSchema, name: str, done: str) -> str:
    what = f"version {schema.version} of {schema.subject!r}" if schema.subject else "the schema"
    return f"{what} has the rule {name!r}, without which its records must not be {done}: choose rules='run' or 'ignore'"


class RuleSchemaSource:
    """Schemas for deserializers: those of a look-up, and the versions of the pinned subject."""

    def __init__(self, schemas: Schemas, pinned: PinnedSchemas) -> None:
        self._schemas, self._pinned = schemas, pinned

    def resolve(self, schema: int | UUID, *, context: str = "") -> ResolvedSchema:
        """Return the schema of an id; see `SchemaResolver.resolve`. Raises `ContentNotFound`."""
        del context  # ids belong to the context of the pinned subject
        resolved_schema = self._schemas(schema) if isinstance(schema, int) else None
        if resolved_schema is None:
            raise ContentNotFound(str(schema))
        return resolved_schema

    def resolve_version(self, subject: str, number: Version = "latest") -> ResolvedSchema:
        """Return a version; the newest one is the one pinned for reading, even if it is old.

        See `SchemaResolver.resolve_version`.
        """
        pinned = self._pinned
        mine = number in ("latest", pinned.reader.version)
        return pinned.reader if mine else pinned.snapshot.resolve_version(subject, number)

    def resolve_metadata(self, subject: str, properties: Mapping[str, str]) -> ResolvedSchema:
        """Return the pinned version with these properties; see `SchemaResolver.resolve_metadata`."""
        return self._pinned.snapshot.resolve_metadata(subject, properties)

    def lineage(self, subject: str, schema: ResolvedSchema, number: int) -> list[ResolvedSchema]:
        """Return the pinned versions between two; see `SchemaResolver.lineage`."""
        return self._pinned.snapshot.lineage(subject, schema, number)


def _build_deserializer(schemas: Schemas, pinned: PinnedSchemas, registry: RegistryLike, rules: Rules) -> Deserializer:
    """Return a deserializer that reads every record as the pinned reader's schema."""
    subject, reader = pinned.subject, pinned.reader
    if reader.rule_set is None and not reader.version and pinned.snapshot.schemas:
        # a reader given as text has no rules, but its records were written by the rules of the subject
        newest = pinned.snapshot.resolve_version(subject)
        reader = msgspec.structs.replace(reader, rule_set=newest.rule_set, metadata=newest.metadata)
    client = None if isinstance(registry, SchemaSnapshot) else get_client(registry)
    if rules.client is None and isinstance(client, SchemaRegistryClient):
        rules = replace(rules, client=client)
    return Deserializer(
        RuleSchemaSource(schemas, pinned),
        None if reader.version else reader,
        use_latest=bool(reader.version),
        naming=lambda *_: subject,
        context=split_subject(subject).context,
        rules=rules,
    )


class RuleRunner:
    """Runs the rules of records' schemas, and encodes the records again with the reader's schema."""

    def __init__(
        self,
        schemas: Schemas,
        pinned: PinnedSchemas,
        registry: RegistryLike,
        rules: RulesLike,
        message: str,
        topic: str,
    ) -> None:
        self._schemas, self._pinned, self._registry = schemas, pinned, registry
        self._rules = rules if isinstance(rules, Rules) else Rules()
        self._reader = pinned.reader
        self._message = message
        self._topic = topic
        self._ruled: dict[int, bool] = {}
        self._deserialize: Deserializer | None = None
        self._encode: Any = None

    def has_rules_for(self, number: int) -> bool:
        """Return whether records of this id go through rules."""
        if number not in self._ruled:
            schema = self._schemas(number)
            self._ruled[number] = schema is not None and self._has_rules(schema)
        return self._ruled[number]

    def _has_rules(self, schema: ResolvedSchema) -> bool:
        engine = RuleEngine(self._rules, None)
        others = (self._reader, *self._pinned.snapshot.schemas)
        return (
            engine.has_rules(RulePhase.ENCODING, RuleMode.READ, schema)
            or any(engine.has_rules(RulePhase.DOMAIN, RuleMode.READ, each) for each in (schema, self._reader))
            or (
                schema.id != self._reader.id
                and any(
                    engine.has_rules(RulePhase.MIGRATION, mode, each)
                    for each in others
                    for mode in (RuleMode.UPGRADE, RuleMode.DOWNGRADE)
                )
            )
        )

    def run(self, frame: bytes) -> bytes:
        """Return the record after its rules, framed with `REENCODED_ID`.

        Raises `DataError` for a record that rules refuse. An outage of the registry or of a key management service is
        raised unchanged, and a missing library as `NotInstalled`.
        """
        if self._deserialize is None:
            self._deserialize = _build_deserializer(self._schemas, self._pinned, self._registry, self._rules)
            self._encode = _build_encoder(self._reader, self._message)
        try:
            value = self._deserialize(frame, topic=self._topic)
        except RuleFailed as failure:
            outage = _find_outage(failure)
            if outage is not None:
                raise outage from failure
            raise
        payload: bytes = self._encode(value)
        return b"\0" + REENCODED_ID.to_bytes(4, "big") + payload


def _find_outage(failure: BaseException) -> Unavailable | KmsError | None:
    """Return the outage that made a rule fail, or None."""
    cause: BaseException | None = failure
    for _ in range(20):
        if cause is None or isinstance(cause, Unavailable | KmsError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def _build_encoder(reader: ResolvedSchema, message: str) -> Any:
    own = parse_schema(reader)
    if reader.schema_type == "PROTOBUF":

        def write(value: Any) -> bytes:
            name = value.DESCRIPTOR.full_name
            known = name in own.parsed.message_positions
            payload: bytes = value.SerializeToString()
            return encode_indexes(indexes_of(own.parsed, name if known else message)) + payload

        return write
    return own.format.codec(own.parsed).encode


class RuleEncoder:
    """Runs the rules for writing on records that an encoder made."""

    def __init__(self, writer: ResolvedSchema, registry: RegistryLike, rules: RulesLike, topic: str) -> None:
        client = None if isinstance(registry, SchemaSnapshot) else get_client(registry)
        if not isinstance(client, SchemaRegistryClient):
            raise Invalid("rules for writing need a registry: its address, or a function that opens a client")
        chosen = rules if isinstance(rules, Rules) else Rules()
        subject = writer.subject
        kind = _SERIALIZERS.get(writer.schema_type)
        if kind is None:
            raise DataError(f"rules cannot run on data of the format {writer.schema_type}")
        self._read = Deserializer(SchemaSnapshot((writer,)), rules=Rules(enabled=False), context=writer.context)
        self._write = kind(client, use_id=writer.id, naming=lambda *_: subject, context=writer.context, rules=chosen)
        self._topic = topic

    def run(self, frame: bytes) -> bytes:
        """Return the record after its rules. Raises `RuleFailed`, and outages as `RuleRunner.run` does."""
        try:
            record = self._write(self._read(frame), topic=self._topic)
        except RuleFailed as failure:
            outage = _find_outage(failure)
            if outage is not None:
                raise outage from failure
            raise
        assert record is not None  # the frame is not a tombstone
        return record


_SERIALIZERS: dict[str, type[Serializer]] = {
    "AVRO": AvroSerializer,
    "JSON": JsonSerializer,
    "PROTOBUF": ProtobufSerializer,
}
