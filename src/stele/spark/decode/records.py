"""From a column of records to a column of values and back: wire, rules, formats and types put together.

What is decided before the first record is a plan (`plan_read`, `plan_write`): schemas are pinned, wires and rules
chosen on the driver. All parts of the Spark package decode and encode by plans, so that they support the same wires,
formats and choices.

In topics with several types each record goes to the column of its type. A record belongs to the subject that holds its
schema. If its schema was registered later, or in another subject, the record belongs to the reader whose type has the
same name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from stele.client import ResolvedSchema, SchemaSnapshot
from stele.client.names import split_subject
from stele.client.serdes.rules.model import RuleMode
from stele.client.serdes.schemas import parse_schema
from stele.errors import DataError, Invalid, VersionNotFound
from stele.formats.protobuf import indexes_of
from stele.spark.decode.formats import decoder_for, encoder_for, generic, type_for
from stele.spark.decode.rules import (
    READ_MODES,
    REENCODED_ID,
    RuleEncoder,
    RuleRunner,
    RulesLike,
    check_rules_choice,
    find_rule,
    refuse_reading,
    refuse_writing,
)
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import Decoded, Decoder, ErrorColumns
from stele.spark.engines.error_codes import (
    ErrorCode,
    RecordError,
)
from stele.spark.engines.unroll import check_recursion
from stele.spark.registry import PATIENCE, PinnedSchemas, ReaderLike, RegistryLike, SchemaLookup, pin_schemas
from stele.spark.wires import Framer, Prefix, Wire, WireLike, get_wire
from stele.spark.wires.normalize import FrameNormalizer, retry_without_padding
from stele.wire.confluent import encode_indexes

if TYPE_CHECKING:
    from stele.spark.engines.arrow import ArrowType


Decode: TypeAlias = Callable[[Column], Decoded]
Schemas: TypeAlias = Callable[[int], "ResolvedSchema | None"]


class MultiTypeDecoder:
    """Decodes a column of several types into a struct with a column for each, of which one is not null.

    pins   for each type its pinned subject, and its message if a schema has several
    """

    def __init__(
        self,
        names: Sequence[str],
        pins: Sequence[tuple[PinnedSchemas, str]],
        decoders: Sequence[Decode],
        type_: ArrowType,
        schemas: Schemas,
    ) -> None:
        self._names, self._pins, self._decoders = names, pins, decoders
        self._type, self._schemas = type_, schemas
        self._known: dict[int, tuple[int, ...]] = {}

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `engines.base.Decoder.decode`."""
        coded = pc.binary_slice(frames.cast(pa.binary()), 0, 5).dictionary_encode()
        choices = [self._candidate_types(head) for head in coded.dictionary.to_pylist()]
        left = [choices[code] if code is not None else () for code in coded.indices.to_pylist()]
        heads = coded.dictionary.to_pylist()
        n = len(frames)
        values: list[Column] = [pa.nulls(n, field.type) for field in self._type]
        numbers: list[int | None] = [None] * n
        failures: dict[int, RecordError] = {}
        for row, (code, ways) in enumerate(zip(coded.indices.to_pylist(), left, strict=True)):
            if code is not None and not ways:
                numbers[row] = int.from_bytes(heads[code][1:], "big")
                failures[row] = RecordError(ErrorCode.WRONG_SUBJECT, ", ".join(self._names))
        while any(left):
            for place, decode in enumerate(self._decoders):
                rows = [row for row, ways in enumerate(left) if ways and ways[0] == place]
                if not rows:
                    continue
                decoded = decode(frames.take(pa.array(rows, pa.int64())))
                self._put_values(values, place, rows, decoded.values)
                for row, number, error in zip(rows, decoded.schema_ids.to_pylist(), _list_errors(decoded), strict=True):
                    numbers[row] = number
                    failures.pop(row, None)
                    if error is not None:
                        failures[row] = error
                    again = error is not None and error.code is ErrorCode.WRONG_MESSAGE and len(left[row]) > 1
                    left[row] = left[row][1:] if again else ()
        absent = pc.and_(*_split_last([column.is_null() for column in values]))
        column = pa.StructArray.from_arrays(values, fields=list(self._type), mask=absent)
        errors = ErrorColumns(n)
        for row, error in failures.items():
            errors.add_error(row, error)
        return Decoded(column, pa.array(numbers, pa.int32()), *errors.columns())

    @staticmethod
    def _put_values(chosen: list[Column], place: int, rows: Sequence[int], values: Column) -> None:
        """Put values into the given rows of a column."""
        n = len(chosen[place])
        source = list(range(n))
        for at, row in enumerate(rows):
            source[row] = n + at
        both = pa.concat_arrays([chosen[place], values])
        chosen[place] = both.take(pa.array(source, pa.int64()))

    def _candidate_types(self, head: bytes | None) -> tuple[int, ...]:
        """Return the types that a record can have, likeliest first.

        For a bad frame this is the first type, whose decoder reports the error.
        """
        if head is None or len(head) < 5 or head[0] != 0:
            return (0,)
        number = int.from_bytes(head[1:], "big", signed=True)
        if number in self._known:
            return self._known[number]
        try:
            schema = self._schemas(number) if number >= 0 else None
            if schema is None:
                return (0,)
            types = self._types_of_schema(schema)
        except (DataError, Invalid):
            return (0,)
        self._known[number] = types
        return types

    def _types_of_schema(self, schema: ResolvedSchema) -> tuple[int, ...]:
        mine = [
            place
            for place, (pinned, _) in enumerate(self._pins)
            if schema.id
            and any(known.id == schema.id for known in pinned.snapshot.schemas if known.subject == pinned.subject)
        ]
        return tuple(mine or [place for place, pin in enumerate(self._pins) if _is_of(schema, *pin)])


def _list_errors(decoded: Decoded) -> Iterator[RecordError | None]:
    """Yield the error of each record, None for good ones."""
    parts = zip(decoded.codes.to_pylist(), decoded.details.to_pylist(), decoded.offsets.to_pylist(), strict=True)
    for code, detail, offset in parts:
        yield RecordError(ErrorCode(code), detail, offset) if code else None


def _is_of(schema: ResolvedSchema, pinned: PinnedSchemas, message: str) -> bool:
    if schema.schema_type.upper() != pinned.reader.schema_type.upper():
        return False
    own, wanted = parse_schema(schema).parsed, parse_schema(pinned.reader).parsed
    name = message or str(wanted.type_name)
    positions: Any = getattr(own, "positions", {})
    return bool(name) and (own.type_name == name or name in positions)


def _split_last(masks: list[Column]) -> tuple[Column, Column]:
    """Return the conjunction of all masks but the last, and the last mask."""
    whole = masks[0]
    for mask in masks[1:-1]:
        whole = pc.and_(whole, mask)
    return whole, masks[-1]


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """A type that records are read as.

    name     name of its column, if there are several types
    pinned   versions of its subject, and the reader's schema
    message  message or struct of a Protobuf or Thrift schema; '' for the usual one
    """

    name: str
    pinned: PinnedSchemas
    message: str = ""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The plan by which a column is decoded. It is sent to tasks.

    targets   one type, or several of which each record is one; none: each record is read by its own schema, as JSON
    several   whether values are a struct with a column for each type, even for a single one
    topic     topic, for rules that need it
    patience  seconds for which requests are repeated to a registry that does not answer
    recursion how many times a type that contains itself is nested in itself in the columns
    """

    targets: tuple[ReadTarget, ...]
    registry: RegistryLike
    engine: str = "auto"
    wire: Wire = field(default_factory=Prefix)
    rules: RulesLike = "refuse"
    several: bool = False
    topic: str = ""
    patience: float = PATIENCE
    recursion: int = 0

    @property
    def type(self) -> ArrowType:
        """The type of values. Raises the errors of the readers' schemas."""
        if not self.targets:
            return generic.TYPE
        types = [type_for(target.pinned.reader, target.message, self.recursion) for target in self.targets]
        if not self.several:
            return types[0]
        return pa.struct([pa.field(target.name, type_) for target, type_ in zip(self.targets, types, strict=True)])

    def decoder(self) -> RecordDecoder:
        """Return a decoder of batches; each task needs its own."""
        return RecordDecoder(self)


class RecordDecoder:
    """Decodes batches, and caches what it learns about schemas."""

    def __init__(self, reading: ReadPlan) -> None:
        self._reading = reading
        self._lookup = _make_lookup(reading)
        self._normalizer: FrameNormalizer | None = None
        if not isinstance(reading.wire, Prefix):
            self._normalizer = FrameNormalizer(
                reading.wire, self._lookup, reading.targets[0].message if reading.targets else ""
            )
        self._decode = self._choose_decoder()

    def decode(self, values: Column, headers: Column | None = None) -> Decoded:
        """Decode a binary column, with its headers if the wire needs them.

        `Decoded.schema_ids` are in the wire's own type. Bad records are reported; an outage is raised.
        """
        if self._normalizer is None:
            return self._decode(values)
        frames = self._normalizer.normalize(values, headers)
        decoded = self._decode(frames.frames)
        if frames.padded:
            decoded = retry_without_padding(decoded, frames.frames, self._decode)
        return self._normalizer.restore_ids(decoded, frames)

    def _choose_decoder(self) -> Callable[[Column], Decoded]:
        reading = self._reading
        if not reading.targets:
            return generic.GenericDecoder(self._find_schema).decode
        decoders = [_TargetDecoder(target, reading, self._find_schema) for target in reading.targets]
        if not reading.several:
            return decoders[0].decode
        names = [target.name for target in reading.targets]
        pins = [(target.pinned, target.message) for target in reading.targets]
        return MultiTypeDecoder(
            names, pins, [decoder.decode for decoder in decoders], reading.type, self._find_schema
        ).decode

    def _find_schema(self, number: int) -> ResolvedSchema | None:
        """Return the schema of an id in a frame. Raises `DataError` for one with rules if `rules` is `refuse`."""
        schema = (
            self._normalizer.find_schema(number) if self._normalizer is not None else self._lookup.find_schema(number)
        )
        if schema is not None and self._reading.rules == "refuse":
            name = find_rule(schema, READ_MODES)
            if name:
                raise DataError(f"its rule {name!r} would have to run: choose rules='run' or 'ignore'")
        return schema


def _make_lookup(reading: ReadPlan) -> SchemaLookup:
    pins = [target.pinned for target in reading.targets]
    if not pins:
        snapshot = reading.registry if isinstance(reading.registry, SchemaSnapshot) else SchemaSnapshot(())
        pins = [PinnedSchemas("", snapshot, ResolvedSchema(""))]
    schemas = tuple({id(schema): schema for pinned in pins for schema in pinned.snapshot.schemas}.values())
    whole = PinnedSchemas(pins[0].subject, SchemaSnapshot(schemas), pins[0].reader)
    subjects = tuple(pinned.subject for pinned in pins if pinned.subject)
    return SchemaLookup(whole, reading.registry, patience=reading.patience, subjects=subjects)


class _TargetDecoder:
    """Decodes towards one reader. Records whose schemas have rules go through the rules first."""

    def __init__(self, target: ReadTarget, reading: ReadPlan, schemas: Callable[[int], ResolvedSchema | None]) -> None:
        reader = target.pinned.reader
        self._decoder: Decoder = decoder_for(
            reader,
            lambda number: reader if number == REENCODED_ID else schemas(number),
            reading.engine,
            target.message,
            reading.recursion,
        )
        self._runner: RuleRunner | None = None
        if reading.rules not in ("refuse", "ignore"):
            self._runner = RuleRunner(
                schemas, target.pinned, reading.registry, reading.rules, target.message, reading.topic
            )

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch."""
        if self._runner is None:
            return self._decoder.decode(frames)
        heads = pc.binary_slice(frames.cast(pa.binary()), 0, 5)
        concerned = [head for head in heads.unique().to_pylist() if self._has_rules(head)]
        if not concerned:
            return self._decoder.decode(frames)
        new_frames: list[bytes | None] = []
        refused: dict[int, str] = {}
        for row, data in enumerate(frames.to_pylist()):
            after: bytes | None = data
            if data is not None and data[:5] in concerned:
                try:
                    after = self._runner.run(data)
                except DataError as error:
                    after, refused[row] = None, str(error)
            new_frames.append(after)
        decoded = self._decoder.decode(pa.array(new_frames, pa.binary()))
        numbers = pa.array([_frame_id(data) for data in frames.to_pylist()], pa.int32())
        return replace(decoded, schema_ids=numbers).with_errors(ErrorCode.RULE_FAILED, refused)

    def _has_rules(self, head: bytes | None) -> bool:
        assert self._runner is not None
        number = _frame_id(head)
        try:
            return number is not None and number >= 0 and self._runner.has_rules_for(number)
        except DataError:  # the decoder reports the error of the id
            return False


def _frame_id(frame: Any) -> int | None:
    if frame is None or len(frame) < 5 or frame[0] != 0:
        return None
    return int.from_bytes(frame[1:5], "big", signed=True)


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The plan by which columns are encoded. It is sent to tasks.

    `framer` is None if engines make the frames themselves.
    """

    writer: ResolvedSchema
    registry: RegistryLike
    wire: Wire
    framer: Framer | None
    message: str
    rules: RulesLike
    topic: str
    engine: str
    recursion: int = 0


class RecordEncoder:
    """Encodes batches under one schema, for any wire."""

    def __init__(self, writing: WritePlan) -> None:
        self._writing = writing
        writer = writing.writer
        self._encoder = encoder_for(writer, writer.id, writing.engine, writing.message, writing.recursion)
        self._indexes = b""
        if writer.schema_type == "PROTOBUF":
            own = parse_schema(writer).parsed
            self._indexes = encode_indexes(indexes_of(own, own.get_message(writing.message).full_name))
        self._rules: RuleEncoder | None = None
        if writing.rules not in ("refuse", "ignore") and find_rule(writer, (RuleMode.WRITE,)):
            self._rules = RuleEncoder(writer, writing.registry, writing.rules, writing.topic)

    def encode(self, values: Column) -> list[Column]:
        """Return the records, and their headers if the wire has them. Raises `EncodeError`, `RuleFailed`."""
        frames = self._encoder.encode(values)
        if self._rules is not None:
            run = self._rules.run
            frames = pa.array([None if frame is None else run(frame) for frame in frames.to_pylist()], pa.binary())
        if self._writing.framer is None:
            return [frames]
        payloads = pc.binary_slice(frames, 5 + len(self._indexes), 1 << 31)
        records, headers = self._writing.framer(payloads, self._indexes)
        return [records] if headers is None else [records, headers]


Subjects: TypeAlias = "str | Sequence[str] | Mapping[str, str] | None"
"""One subject; several; several by the name of their column; or None, if they are not known in advance."""


def plan_read(
    registry: RegistryLike,
    subject: Subjects,
    reader: ReaderLike = "latest",
    *,
    message: str = "",
    wire: WireLike = "confluent",
    rules: RulesLike = "refuse",
    engine: str = "auto",
    topic: str = "",
    patience: float = PATIENCE,
    recursion: int = 0,
) -> ReadPlan:
    """Return the plan for reading records; see `from_registry` for the arguments and for what is raised."""
    check_recursion(recursion)
    chosen, rules = get_wire(wire), check_rules_choice(rules)
    several = subject is not None and not isinstance(subject, str)
    if several and (reader != "latest" or message):
        raise Invalid("several subjects are read by their newest versions: reader and message are for one")
    if subject is None:
        targets = _read_without_subject(registry, reader, message)
    elif isinstance(subject, str):
        targets = [ReadTarget("", pin_schemas(registry, subject, reader, patience=patience), message)]
    elif isinstance(subject, Mapping):
        targets = [ReadTarget(name, pin_schemas(registry, each, patience=patience)) for name, each in subject.items()]
    else:
        targets = _name_targets([pin_schemas(registry, each, patience=patience) for each in subject])
    if several and not targets:
        raise Invalid("no subject given: name at least one")
    if len({split_subject(target.pinned.subject).context for target in targets}) > 1:
        raise Invalid("the subjects are in several contexts, where the same id names different schemas")
    if rules == "refuse":
        for target in targets:
            refuse_reading(target.pinned)
    return ReadPlan(
        tuple(targets),
        registry,
        engine,
        chosen,
        rules,
        several=several,
        topic=topic,
        patience=patience,
        recursion=recursion,
    )


def _read_without_subject(registry: RegistryLike, reader: ReaderLike, message: str) -> list[ReadTarget]:
    if reader == "latest":
        return []
    if isinstance(reader, int) or (isinstance(reader, str) and reader.isdecimal()):
        raise VersionNotFound(reader)
    return [ReadTarget("", pin_schemas(registry, "", reader), message)]


def _name_targets(pins: Sequence[PinnedSchemas]) -> list[ReadTarget]:
    """Return each type under the last part of its name, or under its subject if that is empty or not unique."""
    short = [str(parse_schema(pinned.reader).parsed.type_name).rpartition(".")[2] for pinned in pins]
    often = Counter(name.lower() for name in short)
    names = [
        name if name and often[name.lower()] == 1 else pinned.subject for name, pinned in zip(short, pins, strict=True)
    ]
    return [ReadTarget(name, pinned) for name, pinned in zip(names, pins, strict=True)]


def plan_write(
    writer: ResolvedSchema,
    registry: RegistryLike,
    *,
    wire: WireLike = "confluent",
    message: str = "",
    rules: RulesLike = "refuse",
    topic: str = "",
    engine: str = "auto",
    recursion: int = 0,
) -> WritePlan:
    """Return the plan for writing records; see `to_registry` for the arguments and for what is raised."""
    chosen, rules = get_wire(wire), check_rules_choice(rules)
    if rules == "refuse":
        refuse_writing(writer)
    seal = None if isinstance(chosen, Prefix) else chosen.framer(writer, message, registry)
    return WritePlan(writer, registry, chosen, seal, message, rules, topic, engine, check_recursion(recursion))
