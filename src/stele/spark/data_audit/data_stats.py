"""Statistics of the data by schema id: number of records, times, unreadable records, and figures about their fields.

Census and drift are both made from these statistics, which are computed per batch and added up.

Paths are those of the columns: `place.city`, `tags[]` for the items of a list, `homes{}` for the values of a map; '' is
a datum that is not a record.
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
from stele.spark.data_audit.aggregation import (
    HEADERS,
    RAW,
    TIME,
    add_counts,
    count_values,
    greatest_known,
    least_known,
    limit_kinds,
)
from stele.spark.decode.records import ReadPlan, ReadTarget
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.error_codes import ErrorCode, describe_error, describe_errors
from stele.spark.registry import PATIENCE, PinnedSchemas, RegistryLike, SchemaLookup
from stele.spark.wires import Wire

if TYPE_CHECKING:
    from stele.spark.decode.records import RecordDecoder


MOST_VALUES: Final = 32
"""Maximum number of different values of a field, or keys of a map; above it no values are kept."""
LONGEST: Final = 120
"""Maximum length in characters of a text whose values are kept."""
MOST_FIELDS: Final = 2000
"""Maximum number of fields of one schema that are examined."""

SHAPES: Final = {
    "integer": r"^[+-]?\d{1,18}$",
    "number": r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$",
    "boolean": r"^(?i:true|false)$",
    "uuid": r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    "date": r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$",
    "timestamp": r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[T ]([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)(\.\d{1,9})?)?"
    r"(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)?$",
}
"""Regular expressions of types that a text can also be read as, the more specific ones later.

The exception is `number`, which an integer also matches.
"""


class FieldStats(msgspec.Struct, frozen=True, omit_defaults=True):
    """Statistics of one field over many records.

    type      type of its column
    slots     number of records or list items that could hold it
    present   how often it was not null
    low, high numbers: the least and the greatest one
    whole     floating-point numbers: how many were whole
    shapes    texts: how many match each of the `SHAPES`
    values    counts of the different values, as texts; None when there are too many, or for a type without them
    entries   maps: number of all entries
    """

    type: str
    slots: int = 0
    present: int = 0
    low: float | int | None = None
    high: float | int | None = None
    whole: int = 0
    shapes: dict[str, int] = {}
    values: dict[str, int] | None = {}
    entries: int = 0

    def merge_with(self, other: FieldStats) -> FieldStats:
        """Return the statistics of both sets of records."""
        return FieldStats(
            type=self.type
            if self.type == other.type
            else " | ".join(sorted({*_type_words(self), *_type_words(other)})),
            slots=self.slots + other.slots,
            present=self.present + other.present,
            low=least_known(self.low, other.low),
            high=greatest_known(self.high, other.high),
            whole=self.whole + other.whole,
            shapes=add_counts(self.shapes, other.shapes),
            values=_merge_values(self.values, other.values),
            entries=self.entries + other.entries,
        )


Fields = dict[str, FieldStats]
"""Statistics of fields by path."""


def merge_fields(one: Fields, other: Fields) -> Fields:
    """Return the statistics of two sets of records, by path."""
    whole = dict(one)
    for path, stats in other.items():
        whole[path] = whole[path].merge_with(stats) if path in whole else stats
    return whole


def observe_values(values: Column, *, deep: bool) -> Fields:
    """Return statistics of a column of decoded values, for every field at any depth.

    With `deep`, values are examined, not only whether they are null. Null rows are not counted, as they are records
    that could not be read.
    """
    fields: Fields = {}
    rows = values.drop_null()
    if is_record(rows.type):
        _observe_members(rows, "", fields, deep=deep)
    else:
        _observe_field(rows, "", fields, deep=deep)
    return fields


def is_record(kind: ArrowType) -> bool:
    """Return whether a type has fields: a struct, but not the struct of two byte strings that stands for a variant."""
    if not pa.types.is_struct(kind):
        return False
    return {field.name for field in kind} != {"value", "metadata"} or not all(
        pa.types.is_binary(field.type) for field in kind
    )


def _observe_members(rows: Column, path: str, fields: Fields, *, deep: bool) -> None:
    """Add the statistics of the fields of a struct column without nulls."""
    for field, column in zip(rows.type, rows.flatten(), strict=True):
        _observe_field(column, f"{path}.{field.name}" if path else field.name, fields, deep=deep)


def _observe_field(column: Column, path: str, fields: Fields, *, deep: bool) -> None:
    if len(fields) >= MOST_FIELDS:
        return
    kind = column.type
    there = column.drop_null()
    counts = FieldStats(_type_word(kind), slots=len(column), present=len(there), values=None)
    if pa.types.is_map(kind):
        entries = pc.list_flatten(there.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))))
        keys, items = entries.flatten()
        if deep:
            values = _count_distinct(keys) if pa.types.is_string(keys.type) else None
            counts = msgspec.structs.replace(counts, values=values, entries=len(entries))
        fields[path] = counts
        _observe_field(items, f"{path}{{}}", fields, deep=deep)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        fields[path] = counts
        _observe_field(pc.list_flatten(there), f"{path}[]", fields, deep=deep)
    elif is_record(kind):
        fields[path] = counts
        _observe_members(there, path, fields, deep=deep)
    else:
        fields[path] = _observe_scalars(there, counts) if deep else counts


def _observe_scalars(there: Column, counts: FieldStats) -> FieldStats:
    """Return the statistics of the values of a type without parts."""
    kind = there.type
    if pa.types.is_dictionary(kind):
        there, kind = there.dictionary_decode(), kind.value_type
    replace = msgspec.structs.replace
    if pa.types.is_boolean(kind):
        return replace(counts, values=_count_distinct(there.cast(pa.string())))
    if pa.types.is_integer(kind):
        low, high = _min_and_max(there)
        return replace(counts, low=low, high=high, values=_count_distinct(there.cast(pa.string())))
    if pa.types.is_floating(kind):
        finite = there.filter(pc.is_finite(there))
        low, high = _min_and_max(finite)
        whole = _count_true(pc.equal(pc.floor(finite), finite))
        return replace(counts, low=low, high=high, whole=whole, values=_count_distinct(there.cast(pa.string())))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        shapes = {name: _count_true(pc.match_substring_regex(there, shape)) for name, shape in SHAPES.items()}
        return replace(counts, shapes={k: n for k, n in shapes.items() if n}, values=_count_distinct(there))
    return counts


def _min_and_max(numbers: Column) -> tuple[Any, Any]:
    ends: Any = pc.min_max(numbers).as_py()
    return ends["min"], ends["max"]


def _count_true(flags: Column) -> int:
    return int(pc.sum(flags).as_py() or 0)


def _count_distinct(texts: Column) -> dict[str, int] | None:
    counts = pc.value_counts(texts.drop_null())
    if len(counts) > MOST_VALUES:
        return None
    values = {item["values"]: item["counts"] for item in counts.to_pylist()}
    return None if any(len(value) > LONGEST for value in values) else values


def _merge_values(one: dict[str, int] | None, other: dict[str, int] | None) -> dict[str, int] | None:
    if one is None or other is None:
        return None
    values = add_counts(one, other)
    return None if len(values) > MOST_VALUES else values


def _type_words(stats: FieldStats) -> list[str]:
    return stats.type.split(" | ")


def _type_word(kind: ArrowType) -> str:
    """Return a short name of a type, without the types of its parts, which have paths of their own."""
    if pa.types.is_map(kind):
        return "map"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return "list"
    if pa.types.is_struct(kind):
        return "record" if is_record(kind) else "variant"
    if pa.types.is_dictionary(kind):
        return str(kind.value_type)
    return str(kind)


NO_ID: Final = ""
"""Name under which records without an id are counted."""
MOST_REASONS: Final = 50
"""Maximum number of different reasons for the records of one id."""
DAY: Final = 86_400_000_000
"""Length of a day in microseconds."""
MOST_DAYS: Final = 4000
"""Maximum number of days that are counted one by one. Data over a longer time have no counts by day."""


class SchemaStats(msgspec.Struct, frozen=True, omit_defaults=True):
    """Statistics of the records of one id.

    bytes        size of the records with their frames
    first, last  microseconds since 1970; None without a time column
    days         records by day since 1970; None when there are too many days
    reasons      records that could not be read with their own schema, by reason
    fields       statistics of the fields of records that could be read
    note         why fields were not examined
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

    def merge_with(self, other: SchemaStats) -> SchemaStats:
        """Return the statistics of both sets of records; see `PartialResult.merge_with`."""
        return SchemaStats(
            records=self.records + other.records,
            bytes=self.bytes + other.bytes,
            first=least_known(self.first, other.first),
            last=greatest_known(self.last, other.last),
            days=_merge_days(self.days, other.days),
            reasons=add_counts(self.reasons, other.reasons, MOST_REASONS),
            fields=merge_fields(self.fields, other.fields),
            note=max(self.note, other.note),
            nulls=self.nulls + other.nulls,
        )


def _merge_days(one: dict[int, int] | None, other: dict[int, int] | None) -> dict[int, int] | None:
    if one is None or other is None:
        return None
    days = {day: one.get(day, 0) + other.get(day, 0) for day in one.keys() | other.keys()}
    return days if len(days) <= MOST_DAYS else None


@dataclass(frozen=True, slots=True)
class AuditContext:
    """How records name their schemas, and what is known of these in advance. It is sent to tasks.

    subject   the subject whose context the ids belong to; '' is the default context
    snapshot  schemas that are known already
    message   the message of a Protobuf schema, or the struct of a Thrift schema; '' is the usual one
    patience  seconds for which requests are repeated to a registry that does not answer
    engine    for Avro: `vm`, `python`, or `auto`
    """

    registry: RegistryLike
    wire: Wire
    subject: str = ""
    snapshot: SchemaSnapshot = SchemaSnapshot(())  # noqa: RUF009 - it cannot change
    message: str = ""
    patience: float = PATIENCE
    engine: str = "auto"

    def pin_reader(self, reader: ResolvedSchema) -> PinnedSchemas:
        """Return the known schemas, with the given one as the reader's schema."""
        return PinnedSchemas(self.subject, self.snapshot, reader)

    def make_lookup(self) -> SchemaLookup:
        """Return a lookup of schemas by id that does not ask the registry for known ones."""
        return SchemaLookup(self.pin_reader(ResolvedSchema("")), self.registry, patience=self.patience)

    def make_decoder(self, reader: ResolvedSchema) -> RecordDecoder:
        """Return a decoder towards a schema, which does not run data rules. Raises `Invalid`, `DataError`."""
        target = ReadTarget("", self.pin_reader(reader), self.message)
        reading = ReadPlan((target,), self.registry, self.engine, self.wire, "ignore", patience=self.patience)
        return reading.decoder()


@dataclass(frozen=True, slots=True)
class SchemaStatsAggregator:
    """Computes the statistics of records; see the module.

    fields  whether records are decoded with their own schemas, to see which fields they have
    deep    whether values are examined, too
    """

    context: AuditContext
    fields: bool = True
    deep: bool = False
    result_type = SchemaStats

    @property
    def needs_headers(self) -> bool:
        """Whether the wire needs the headers of records."""
        return self.context.wire.needs_headers

    def start_task(self) -> Callable[[pa.RecordBatch], Mapping[str, SchemaStats]]:
        """Return the function for one task; see `Aggregator.start_task`."""
        return _SchemaStatsTask(self).aggregate_batch


class _SchemaStatsTask:
    """Computes the statistics of one task's batches, and keeps the decoders between batches."""

    def __init__(self, question: SchemaStatsAggregator) -> None:
        self._question = question
        self._lookup = question.context.make_lookup()
        self._own = WriterDecoders(question.context, self._lookup)

    def aggregate_batch(self, batch: pa.RecordBatch) -> Mapping[str, SchemaStats]:
        raw: Column = batch.column(RAW)
        headers: Column = batch.column(HEADERS) if HEADERS in batch.schema.names else None
        times: Column = batch.column(TIME) if TIME in batch.schema.names else pa.nulls(len(raw), pa.int64())
        parts = self._question.context.wire.split(raw, headers)
        stats: dict[str, SchemaStats] = {}
        for key in parts.ids.drop_null().unique().to_pylist():
            mine = pc.fill_null(pc.equal(parts.ids, pa.scalar(key, parts.ids.type)), False)
            counts = _count_records(raw.filter(mine), times.filter(mine))
            stats[str(key)] = self._decode_records(
                key, counts, raw.filter(mine), headers.filter(mine) if headers else None
            )
        lost = pc.and_(raw.is_valid(), parts.ids.is_null())
        counts = _count_records(raw.filter(lost), times.filter(lost))
        reasons = limit_kinds(count_values(parts.frame_errors.filter(lost)), MOST_REASONS)
        stats[NO_ID] = msgspec.structs.replace(counts, reasons=reasons, nulls=raw.null_count)
        return stats

    def _decode_records(self, key: Any, stats: SchemaStats, raw: Column, headers: Column | None) -> SchemaStats:
        """Return the statistics of an id with the reasons and fields that decoding its records finds."""
        decoder, note = self._own.get_decoder(key) if self._question.fields else (None, "")
        if decoder is None:
            return msgspec.structs.replace(stats, note=note)
        decoded = decoder.decode(raw, headers)
        return msgspec.structs.replace(
            stats,
            reasons=limit_kinds(count_values(describe_errors(decoded)), MOST_REASONS),
            fields=observe_values(decoded.values, deep=self._question.deep),
        )


class WriterDecoders:
    """Decoders by id. Each decodes towards the schema that the records were written with."""

    def __init__(self, frame: AuditContext, lookup: SchemaLookup) -> None:
        self._frame, self._lookup = frame, lookup
        self._known: dict[Any, tuple[RecordDecoder | None, str]] = {}

    def get_decoder(self, key: Any) -> tuple[RecordDecoder | None, str]:
        """Return the decoder and '', or None and the reason why there is none. Raises `RegistryUnreachable`."""
        if key not in self._known:
            self._known[key] = self._make_decoder(key)
        return self._known[key]

    def _make_decoder(self, key: Any) -> tuple[RecordDecoder | None, str]:
        label = self._frame.wire.id_label
        try:
            resolved = self._frame.wire.resolve_id(key, self._lookup)
            if resolved is None:
                return None, describe_error(ErrorCode.UNKNOWN_SCHEMA_ID, label, key, None)
            return self._frame.make_decoder(resolved.schema), ""
        except (DataError, Invalid) as error:
            return None, describe_error(ErrorCode.UNUSABLE_SCHEMA, label, key, str(error))


def _count_records(raw: Column, times: Column) -> SchemaStats:
    """Return the number, size and times of records."""
    known = times.drop_null()
    if not len(known):
        return SchemaStats(records=len(raw), bytes=pc.sum(pc.binary_length(raw)).as_py() or 0)
    ends: Any = pc.min_max(known).as_py()
    days: dict[int, int] | None = None
    if ends["max"] - ends["min"] < MOST_DAYS * DAY:
        # division of integers goes towards zero: times before 1970 are shifted first
        shifted = pc.subtract(known, pa.scalar(ends["min"] // DAY * DAY))
        days = {
            ends["min"] // DAY + day: count for day, count in count_values(pc.divide(shifted, pa.scalar(DAY))).items()
        }
    size = pc.sum(pc.binary_length(raw)).as_py() or 0
    return SchemaStats(len(raw), size, ends["min"], ends["max"], days)
