"""Evidence for an inferred schema: counts for each place in the data, collected in tasks, a batch at a time.

A place is a member of an object, the items of a list or the values of a map. Counts can be added in any order and
grouping. They are those of the formats' own inference (`stele.formats.conversion.infer`), plus how often each was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from stele.core.json_depth import is_nested_deeper
from stele.errors import TooLarge
from stele.formats.conversion.infer import MAX_DEPTH, MAX_MEMBERS, MAX_PLACES, detect_notations
from stele.spark.data_audit.aggregation import add_counts, count_values, greatest_known, least_known, limit_kinds
from stele.spark.data_audit.data_stats import LONGEST, is_record
from stele.spark.engines.arrow import ArrowType, Column

INT64: Final = range(-(1 << 63), 1 << 63)
EXACT: Final = range(-(1 << 53), (1 << 53) + 1)
"""Range of whole numbers in which a 64-bit float represents every number exactly."""


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The counts for one place.

    slots      how often the enclosing object, list or map could hold it
    there      how often it was there, null or not
    nulls      how often it was null
    kinds      how often it was of each kind: `boolean`, `integer`, `number`, `text`, `object`, `list`, `map`, or of a
               column's type
    low, high  the least and the greatest whole number, limited to the range of 64 bits
    wide       whether a whole number was outside that range
    least, most  the least and the greatest number with a fraction
    notations  texts: how many are also a `uuid`, `date`, `timestamp`, `local`
    digits     texts: greatest number of decimal places of a second
    values     texts: how often each occurs; None when there are too many, or they are long
    shortest, longest  texts: length in characters
    order      sum of its positions in the enclosing object
    members    of objects, by name; None once there were too many names
    parts      items of lists, values of maps
    keyed      merged evidence of all values, for objects with too many names
    """

    slots: int = 0
    there: int = 0
    nulls: int = 0
    kinds: dict[str, int] = {}
    low: int | None = None
    high: int | None = None
    wide: bool = False
    least: float | None = None
    most: float | None = None
    notations: dict[str, int] = {}
    digits: int = 0
    values: dict[str, int] | None = {}
    shortest: int | None = None
    longest: int | None = None
    order: int = 0
    members: dict[str, Evidence] | None = {}
    parts: Evidence | None = None
    keyed: Evidence | None = None

    @property
    def present(self) -> int:
        """Number of values that were there and not null."""
        return self.there - self.nulls

    def merge_with(self, other: Evidence, most: int) -> Evidence:
        """Return the evidence of both; `most` is the maximum number of different texts that are counted one by one."""
        members = _merge_by_name(self, other, most)
        keyed = _merge_optional(self.keyed, other.keyed, most)
        if members is None:
            for known in (self.members, other.members):
                keyed = _merge_optional(keyed, merge_members(known or {}, most), most)
        return Evidence(
            slots=self.slots + other.slots,
            there=self.there + other.there,
            nulls=self.nulls + other.nulls,
            kinds=add_counts(self.kinds, other.kinds),
            low=least_known(self.low, other.low),
            high=greatest_known(self.high, other.high),
            wide=self.wide or other.wide,
            least=least_known(self.least, other.least),
            most=greatest_known(self.most, other.most),
            notations=add_counts(self.notations, other.notations),
            digits=max(self.digits, other.digits),
            values=_merge_values(self.values, other.values, most),
            shortest=least_known(self.shortest, other.shortest),
            longest=greatest_known(self.longest, other.longest),
            order=self.order + other.order,
            members=members,
            parts=_merge_optional(self.parts, other.parts, most),
            keyed=keyed,
        )

    def iterate_places(self, path: str = "") -> Iterator[tuple[str, Evidence]]:
        """Yield this place and all places in it, by path, with members in the order of the data.

        Paths have the form `place.city`, `tags[]`, `homes{}`.
        """
        yield path, self
        if self.parts is not None:
            yield from self.parts.iterate_places(f"{path}{'{}' if 'map' in self.kinds else '[]'}")
        if self.keyed is not None:
            yield from self.keyed.iterate_places(f"{path}{{}}")
        for name, member in sorted((self.members or {}).items(), key=lambda item: (item[1].mean_position, item[0])):
            yield from member.iterate_places(f"{path}.{name}" if path else name)

    @property
    def mean_position(self) -> float:
        """Mean position in the enclosing object."""
        return self.order / self.there if self.there else 0.0


def merge_members(members: Mapping[str, Evidence], most: int) -> Evidence | None:
    """Return the merged evidence of the members of objects, as values of a map."""
    merged: Evidence | None = None
    for member in members.values():
        mine = msgspec.structs.replace(member, slots=member.there, order=0)
        merged = mine if merged is None else merged.merge_with(mine, most)
    return merged


def check_size(evidence: Evidence) -> Evidence:
    """Return the evidence unchanged. Raises `TooLarge` when there are more places than a schema should have."""
    if sum(1 for _ in evidence.iterate_places()) > MAX_PLACES:
        raise TooLarge(f"the records have more than {MAX_PLACES} different places")
    return evidence


def limit_members(members: dict[str, Evidence]) -> dict[str, Evidence] | None:
    """Return the members, or None if there are so many that their names are map keys."""
    return members if len(members) <= MAX_MEMBERS else None


def _merge_by_name(one: Evidence, other: Evidence, most: int) -> dict[str, Evidence] | None:
    """Return the merged members of both. A member that one side never had gets slots for each object of that side."""
    if one.members is None or other.members is None:
        return None
    mine, theirs = one.kinds.get("object", 0), other.kinds.get("object", 0)
    merged: dict[str, Evidence] = {}
    for name in [*one.members, *(name for name in other.members if name not in one.members)]:
        left = one.members.get(name) or Evidence(slots=mine)
        right = other.members.get(name) or Evidence(slots=theirs)
        merged[name] = left.merge_with(right, most)
    return limit_members(merged)


def _merge_optional(one: Evidence | None, other: Evidence | None, most: int) -> Evidence | None:
    if one is None or other is None:
        return one if other is None else other
    return one.merge_with(other, most)


def _merge_values(one: dict[str, int] | None, other: dict[str, int] | None, most: int) -> dict[str, int] | None:
    if one is None or other is None:
        return None
    both = add_counts(one, other)
    return both if len(both) <= most else None


MOST_REASONS: Final = 50
"""Maximum number of different reasons for unreadable documents."""
ALL: Final = "all"
"""The single name under which results are returned."""

_DEEP: Final = f"it is nested deeper than {MAX_DEPTH} levels"

_NOTATION: Final = r"^(\d{4}-\d\d-\d\d(T.*)?|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27})$"
"""Texts that can be a time or a UUID. Each match is then examined one by one."""
_INTEGER: Final = r"^-?(0|[1-9]\d{0,17})$"
_NUMBER: Final = r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?$"
_BOOLEAN: Final = r"^(?i:true|false)$"


def evidence_of_rows(batch: pa.RecordBatch, *, most: int, parse: bool) -> Evidence:
    """Return the evidence of rows as objects whose members are the columns.

    `most` is the maximum number of different texts that are counted one by one. With `parse`, texts are read as the
    types that they look like, and empty ones as null, because CSV has only text.
    """
    members = {
        name: evidence_of_column(column, order=at * len(column), most=most, parse=parse)
        for at, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True))
    }
    rows = batch.num_rows
    return Evidence(slots=rows, there=rows, kinds={"object": rows}, members=members)


def evidence_of_column(column: Column, *, order: int = 0, most: int, parse: bool = False) -> Evidence:
    """Return the evidence of a column's values; all count as there, null or not."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if parse and _is_text(kind):
        column = pc.if_else(pc.equal(column, pa.scalar("", kind)), None, column)
    there = column.drop_null()
    evidence = Evidence(slots=len(column), there=len(column), nulls=len(column) - len(there), order=order)
    if not len(there):
        return evidence
    if pa.types.is_map(kind):
        entries = pc.list_flatten(there.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))))
        parts = evidence_of_column(entries.flatten()[1], most=most)
        return msgspec.structs.replace(evidence, kinds={"map": len(there)}, parts=parts)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        parts = evidence_of_column(pc.list_flatten(there), most=most)
        return msgspec.structs.replace(evidence, kinds={"list": len(there)}, parts=parts)
    if is_record(kind):
        pairs = zip(kind, there.flatten(), strict=True)
        members = {
            field.name: evidence_of_column(values, order=at * len(there), most=most)
            for at, (field, values) in enumerate(pairs)
        }
        return msgspec.structs.replace(evidence, kinds={"object": len(there)}, members=members)
    return _evidence_of_scalars(evidence, there, most=most, parse=parse)


def _is_text(kind: ArrowType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _evidence_of_scalars(evidence: Evidence, there: Column, *, most: int, parse: bool) -> Evidence:
    kind = there.type
    replace = msgspec.structs.replace
    if _is_text(kind):
        return add_parsed_texts(evidence, there, most) if parse else add_texts(evidence, there, most)
    if pa.types.is_boolean(kind):
        return replace(evidence, kinds={"boolean": len(there)})
    if pa.types.is_integer(kind):
        return add_integers(evidence, there)
    if pa.types.is_floating(kind):
        return add_floats(evidence, there)
    return replace(evidence, kinds={str(kind): len(there)})


def add_integers(evidence: Evidence, there: Column) -> Evidence:
    """Return the evidence with whole numbers added to the other kinds."""
    ends: Any = pc.min_max(there).as_py()
    low, high = ends["min"], ends["max"]
    kinds = {**evidence.kinds, "integer": len(there)}
    wide = evidence.wide or high not in INT64
    return msgspec.structs.replace(evidence, kinds=kinds, low=low, high=min(high, INT64[-1]), wide=wide)


def add_floats(evidence: Evidence, there: Column) -> Evidence:
    """Return the evidence with floating-point numbers added to the other kinds."""
    kinds = {**evidence.kinds, "number": len(there)}
    finite = there.filter(pc.is_finite(there))
    if not len(finite):
        return msgspec.structs.replace(evidence, kinds=kinds)
    ends: Any = pc.min_max(finite).as_py()
    return msgspec.structs.replace(evidence, kinds=kinds, least=float(ends["min"]), most=float(ends["max"]))


def add_texts(evidence: Evidence, there: Column, most: int) -> Evidence:
    """Return the evidence with texts added to the other kinds."""
    lengths: Column = pc.utf8_length(there)
    ends: Any = pc.min_max(lengths).as_py()
    shortest, longest = ends["min"], ends["max"]
    notations, digits = _count_notations(there)
    return msgspec.structs.replace(
        evidence,
        kinds={**evidence.kinds, "text": len(there)},
        shortest=shortest,
        longest=longest,
        notations=notations,
        digits=digits,
        values=_count_if_few(there, most) if longest <= LONGEST else None,
    )


def add_parsed_texts(evidence: Evidence, there: Column, most: int) -> Evidence:
    """Return the evidence with texts added as what they look like: whole numbers, numbers, booleans, or texts."""
    whole = pc.match_substring_regex(there, _INTEGER)
    number = pc.and_not(pc.match_substring_regex(there, _NUMBER), whole)
    boolean = pc.match_substring_regex(there, _BOOLEAN)
    rest = pc.invert(pc.or_(pc.or_(whole, number), boolean))
    # the figures of texts cover all of them: if one text is not a number, all of them stay texts
    texts = add_texts(evidence, there, most)
    evidence = msgspec.structs.replace(texts, kinds={}, notations={}, digits=0)
    if pc.any(whole).as_py():
        evidence = add_integers(evidence, there.filter(whole).cast(pa.int64()))
    if pc.any(number).as_py():
        evidence = add_floats(evidence, there.filter(number).cast(pa.float64()))
    kinds = dict(evidence.kinds)
    for name, mask in (("boolean", boolean), ("text", rest)):
        flags: Column = mask
        if count := pc.sum(flags).as_py():
            kinds[name] = int(count)
    return msgspec.structs.replace(evidence, kinds=kinds, notations=texts.notations, digits=texts.digits)


def _count_notations(there: Column) -> tuple[dict[str, int], int]:
    """Return the number of texts of each notation, and the greatest number of decimal places of a second.

    Notations are detected by the rules of the formats.
    """
    likely = there.filter(pc.match_substring_regex(there, _NOTATION))
    counts: dict[str, int] = {}
    digits = 0
    for text, times in count_values(likely).items():
        names, places = detect_notations(text)
        digits = max(digits, places)
        for name in names:
            counts[name] = counts.get(name, 0) + times
    return counts, digits


def _count_if_few(there: Column, most: int) -> dict[str, int] | None:
    return count_values(there) if pc.count_distinct(there).as_py() <= most else None


def evidence_of_documents(documents: Sequence[bytes | str], most: int) -> tuple[Evidence, dict[str, int]]:
    """Return the evidence of JSON documents, and the number of invalid ones by reason.

    `most` is the maximum number of different texts that are counted one by one.
    """
    place = _DocumentPlace()
    reasons: dict[str, int] = {}
    for document in documents:
        try:
            value = _decode_document(document)
        except ValueError as error:
            why = str(error)
            reasons[why] = reasons.get(why, 0) + 1
        else:
            place.there += 1
            place.add_value(value)
    return place.make_evidence(place.there, most), reasons


def _decode_document(document: bytes | str) -> Any:
    """Return the value of a document. Raises ValueError with a reason that is the same for many documents."""
    text = document.encode("utf-8", "replace") if isinstance(document, str) else document
    if is_nested_deeper(text, MAX_DEPTH):
        raise ValueError(_DEEP)
    try:
        return msgspec.json.decode(document)
    except UnicodeError:
        raise ValueError("it is not UTF-8") from None
    except msgspec.MsgspecError as error:
        raise ValueError(f"it is not JSON: {str(error).partition(' (byte')[0]}") from None


class _DocumentPlace:
    """Collects the values at one place of a batch."""

    __slots__ = (
        "booleans",
        "floats",
        "integers",
        "items",
        "lists",
        "members",
        "nulls",
        "objects",
        "order",
        "texts",
        "there",
    )

    def __init__(self) -> None:
        self.there = self.nulls = self.order = self.booleans = self.objects = self.lists = 0
        self.integers: list[int] = []
        self.floats: list[float] = []
        self.texts: list[str] = []
        self.members: dict[str, _DocumentPlace] = {}
        self.items: _DocumentPlace | None = None

    def add_value(self, value: Any) -> None:
        """Add one value. The caller increases `there`."""
        kind = type(value)
        if kind is str:
            self.texts.append(value)
        elif kind is dict:
            self.objects += 1
            members = self.members
            for at, (name, item) in enumerate(value.items()):
                member = members.get(name)
                if member is None:
                    member = members[name] = _DocumentPlace()
                member.there += 1
                member.order += at
                member.add_value(item)
        elif kind is int:
            self.integers.append(value)
        elif kind is float:
            self.floats.append(value)
        elif value is None:
            self.nulls += 1
        elif kind is bool:
            self.booleans += 1
        else:
            self.lists += 1
            items = self.items = self.items or _DocumentPlace()
            items.there += len(value)
            for item in value:
                items.add_value(item)

    def make_evidence(self, slots: int, most: int) -> Evidence:
        """Return the evidence of the values; `slots` is how often the enclosing value was there."""
        counts = {"boolean": self.booleans, "object": self.objects, "list": self.lists}
        kinds = {name: count for name, count in counts.items() if count}
        evidence = Evidence(slots=slots, there=self.there, nulls=self.nulls, kinds=kinds, order=self.order)
        if self.integers:
            narrow = [max(INT64[0], min(number, INT64[-1])) for number in self.integers]
            evidence = add_integers(evidence, pa.array(narrow, pa.int64()))
            evidence = msgspec.structs.replace(evidence, wide=narrow != self.integers)
        if self.floats:
            evidence = add_floats(evidence, pa.array(self.floats, pa.float64()))
        if self.texts:
            evidence = add_texts(evidence, pa.array(self.texts, pa.string()), most)
        members = {name: member.make_evidence(self.objects, most) for name, member in self.members.items()}
        named_members = limit_members(members)
        return msgspec.structs.replace(
            evidence,
            members=named_members,
            keyed=merge_members(members, most) if named_members is None else None,
            parts=None if self.items is None else self.items.make_evidence(self.items.there, most),
        )


class CollectedEvidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The evidence of some records.

    records   number of all records but null ones
    nulls     rows without a document
    reasons   invalid documents by reason
    most      maximum number of different texts of a place that are counted one by one
    """

    records: int = 0
    nulls: int = 0
    reasons: dict[str, int] = {}
    evidence: Evidence = Evidence()
    most: int = 0

    def merge_with(self, other: CollectedEvidence) -> CollectedEvidence:
        """Return the evidence of both. Raises `TooLarge` for more places than a schema should have."""
        most = max(self.most, other.most)
        return CollectedEvidence(
            records=self.records + other.records,
            nulls=self.nulls + other.nulls,
            reasons=add_counts(self.reasons, other.reasons, MOST_REASONS),
            evidence=check_size(self.evidence.merge_with(other.evidence, most)),
            most=most,
        )


@dataclass(frozen=True, slots=True)
class DocumentAggregator:
    """Collects evidence from a single column of JSON documents, as text or bytes in UTF-8."""

    most: int
    result_type = CollectedEvidence

    def start_task(self) -> Callable[[pa.RecordBatch], Mapping[str, CollectedEvidence]]:
        """Return the function for one task; see `Aggregator.start_task`."""
        return self._aggregate_batch

    def _aggregate_batch(self, batch: pa.RecordBatch) -> Mapping[str, CollectedEvidence]:
        column: Column = batch.column(0)
        documents = column.drop_null().to_pylist()
        evidence, reasons = evidence_of_documents(documents, self.most)
        reasons = limit_kinds(reasons, MOST_REASONS)
        return {ALL: CollectedEvidence(len(documents), column.null_count, reasons, check_size(evidence), self.most)}


@dataclass(frozen=True, slots=True)
class RowAggregator:
    """Collects evidence from rows that are the records themselves; for `parse` see `evidence_of_rows`."""

    most: int
    parse: bool = False
    result_type = CollectedEvidence

    def start_task(self) -> Callable[[pa.RecordBatch], Mapping[str, CollectedEvidence]]:
        """Return the function for one task; see `Aggregator.start_task`."""
        return self._aggregate_batch

    def _aggregate_batch(self, batch: pa.RecordBatch) -> Mapping[str, CollectedEvidence]:
        evidence = check_size(evidence_of_rows(batch, most=self.most, parse=self.parse))
        return {ALL: CollectedEvidence(batch.num_rows, evidence=evidence, most=self.most)}
