"""What is in the data, by schema id: how many records, when, which could not be read, and what their fields are like.

Census and drift are two readings of this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from stele.client import ResolvedSchema, SchemaSnapshot
from stele.errors import DataError, Invalid
from stele.spark.data_audit.aggregation import HEADERS, RAW, TIME, added, bounded, counted, later, sooner
from stele.spark.data_audit.field_stats import Fields, merge, observed
from stele.spark.decode.records import ReadPlan, ReadTarget
from stele.spark.engines.arrow import Column
from stele.spark.engines.error_codes import ErrorCode
from stele.spark.engines.error_messages import describe_error, describe_errors
from stele.spark.registry.clients import PATIENCE, RegistryLike
from stele.spark.registry.snapshot import PinnedSchemas, SchemaLookup
from stele.spark.wires import Wire

if TYPE_CHECKING:
    from stele.spark.decode.records import RecordDecoder

NO_ID: Final = ""
"""Name under which records without an id are counted."""
MOST_REASONS: Final = 50
"""Reasons told apart for the records of one id."""
DAY: Final = 86_400_000_000
"""Microseconds."""
MOST_DAYS: Final = 4000
"""Days told apart; the data of longer times are counted without days."""


class Sighting(msgspec.Struct, frozen=True, omit_defaults=True):
    """The records of one id.

    bytes        of the records with their frames
    first, last  microseconds since 1970; None where no time was named
    days         records by day since 1970; empty when there are too many
    reasons      records that could not be read with the schema they name, by reason
    fields       see `stats`; of records that could be read
    note         why fields were not looked at
    nulls        null records, which have no id: under `NO_ID` only
    """

    records: int = 0
    bytes: int = 0
    first: int | None = None
    last: int | None = None
    days: dict[int, int] | None = {}
    reasons: dict[str, int] = {}
    fields: Fields = {}
    note: str = ""
    nulls: int = 0

    def merged(self, other: Sighting) -> Sighting:
        """See `Answer`."""
        return Sighting(
            records=self.records + other.records,
            bytes=self.bytes + other.bytes,
            first=sooner(self.first, other.first),
            last=later(self.last, other.last),
            days=_days(self.days, other.days),
            reasons=added(self.reasons, other.reasons, MOST_REASONS),
            fields=merge(self.fields, other.fields),
            note=max(self.note, other.note),
            nulls=self.nulls + other.nulls,
        )


def _days(one: dict[int, int] | None, other: dict[int, int] | None) -> dict[int, int] | None:
    if one is None or other is None:
        return None
    days = {day: one.get(day, 0) + other.get(day, 0) for day in one.keys() | other.keys()}
    return days if len(days) <= MOST_DAYS else None


@dataclass(frozen=True, slots=True)
class Frame:
    """How records name their schemas, and what is known of these beforehand. It travels to tasks.

    subject   whose context ids count in; '' is the default one
    snapshot  schemas known already
    message   which message of a Protobuf schema, which struct of a Thrift schema; '' is the usual one
    patience  seconds for which a registry that does not answer is asked again
    engine    for Avro: `vm`, `python`, or `auto`
    """

    registry: RegistryLike
    wire: Wire
    subject: str = ""
    snapshot: SchemaSnapshot = SchemaSnapshot(())  # noqa: RUF009 - it cannot change
    message: str = ""
    patience: float = PATIENCE
    engine: str = "auto"

    def pin(self, reader: ResolvedSchema) -> PinnedSchemas:
        """The schemas with one of them, or another one, as the reader's."""
        return PinnedSchemas(self.subject, self.snapshot, reader)

    def lookup(self) -> SchemaLookup:
        """Finds schemas of ids, those known already without asking."""
        return SchemaLookup(self.pin(ResolvedSchema("")), self.registry, patience=self.patience)

    def decoder(self, reader: ResolvedSchema) -> RecordDecoder:
        """Decodes records towards a schema; data rules are left alone. Raises `Invalid`, `DataError`."""
        target = ReadTarget("", self.pin(reader), self.message)
        reading = ReadPlan((target,), self.registry, self.engine, self.wire, "ignore", patience=self.patience)
        return reading.decoder()


@dataclass(frozen=True, slots=True)
class Sightings:
    """The question: see the module.

    fields  whether records are decoded with the schemas they name, to see which fields they have
    deep    whether values are looked at, too
    """

    frame: Frame
    fields: bool = True
    deep: bool = False
    answers = Sighting

    @property
    def needs_headers(self) -> bool:
        """See `Question`."""
        return self.frame.wire.needs_headers

    def begin(self) -> Callable[[pa.RecordBatch], Mapping[str, Sighting]]:
        """See `Question`."""
        return _Watch(self).answer


class _Watch:
    """Answers for the batches of one task; keeps the decoders."""

    def __init__(self, question: Sightings) -> None:
        self._question = question
        self._lookup = question.frame.lookup()
        self._own = OwnDecoders(question.frame, self._lookup)

    def answer(self, batch: pa.RecordBatch) -> Mapping[str, Sighting]:
        raw: Column = batch.column(RAW)
        headers: Column = batch.column(HEADERS) if HEADERS in batch.schema.names else None
        times: Column = batch.column(TIME) if TIME in batch.schema.names else pa.nulls(len(raw), pa.int64())
        parts = self._question.frame.wire.split(raw, headers)
        found: dict[str, Sighting] = {}
        for key in parts.ids.drop_null().unique().to_pylist():
            mine = pc.fill_null(pc.equal(parts.ids, pa.scalar(key, parts.ids.type)), False)
            seen = _counted(raw.filter(mine), times.filter(mine))
            found[str(key)] = self._read(key, seen, raw.filter(mine), headers.filter(mine) if headers else None)
        lost = pc.and_(raw.is_valid(), parts.ids.is_null())
        seen = _counted(raw.filter(lost), times.filter(lost))
        reasons = bounded(counted(parts.frame_errors.filter(lost)), MOST_REASONS)
        found[NO_ID] = msgspec.structs.replace(seen, reasons=reasons, nulls=raw.null_count)
        return found

    def _read(self, key: Any, seen: Sighting, raw: Column, headers: Column | None) -> Sighting:
        """What decoding the records of an id shows."""
        decoder, note = self._own.of(key) if self._question.fields else (None, "")
        if decoder is None:
            return msgspec.structs.replace(seen, note=note)
        decoded = decoder.decode(raw, headers)
        return msgspec.structs.replace(
            seen,
            reasons=bounded(counted(describe_errors(decoded)), MOST_REASONS),
            fields=observed(decoded.values, deep=self._question.deep),
        )


class OwnDecoders:
    """For each id a decoder towards the very schema its records were written with."""

    def __init__(self, frame: Frame, lookup: SchemaLookup) -> None:
        self._frame, self._lookup = frame, lookup
        self._known: dict[Any, tuple[RecordDecoder | None, str]] = {}

    def of(self, key: Any) -> tuple[RecordDecoder | None, str]:
        """The decoder, or None and why there is none. Raises `RegistryUnreachable`."""
        if key not in self._known:
            self._known[key] = self._made(key)
        return self._known[key]

    def _made(self, key: Any) -> tuple[RecordDecoder | None, str]:
        label = self._frame.wire.id_label
        try:
            found = self._frame.wire.resolve_id(key, self._lookup)
            if found is None:
                return None, describe_error(ErrorCode.UNKNOWN_SCHEMA_ID, label, key, None)
            return self._frame.decoder(found.schema), ""
        except (DataError, Invalid) as error:
            return None, describe_error(ErrorCode.UNUSABLE_SCHEMA, label, key, str(error))


def _counted(raw: Column, times: Column) -> Sighting:
    """How many records, how long, and when."""
    known = times.drop_null()
    if not len(known):
        return Sighting(records=len(raw), bytes=pc.sum(pc.binary_length(raw)).as_py() or 0)
    ends: Any = pc.min_max(known).as_py()
    days: dict[int, int] | None = None
    if ends["max"] - ends["min"] < MOST_DAYS * DAY:
        # division of integers goes towards zero: times before 1970 are shifted first
        shifted = pc.subtract(known, pa.scalar(ends["min"] // DAY * DAY))
        days = {ends["min"] // DAY + day: count for day, count in counted(pc.divide(shifted, pa.scalar(DAY))).items()}
    size = pc.sum(pc.binary_length(raw)).as_py() or 0
    return Sighting(len(raw), size, ends["min"], ends["max"], days)
