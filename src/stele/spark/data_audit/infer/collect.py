"""Collect evidence for an inferred schema from Arrow columns and JSON documents, a batch at a time, in tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from stele.formats.conversion.infer import MAX_DEPTH, detect_notations
from stele.spark.data_audit.aggregation import add_counts, count_values, limit_kinds
from stele.spark.data_audit.field_stats import LONGEST, is_record
from stele.spark.data_audit.infer.evidence import INT64, Evidence, check_size, limit_members, merge_members
from stele.spark.engines.arrow import ArrowType, Column

MOST_REASONS: Final = 50
"""Reasons told apart why a document is none."""
ALL: Final = "all"
"""The one name under which answers are."""

_DEEP: Final = f"it is nested deeper than {MAX_DEPTH} levels"

_NOTATION: Final = r"^(\d{4}-\d\d-\d\d(T.*)?|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27})$"
"""What may be a time or an id; which of these are is found out one by one."""
_INTEGER: Final = r"^-?(0|[1-9]\d{0,17})$"
_NUMBER: Final = r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?$"
_BOOLEAN: Final = r"^(?i:true|false)$"


def evidence_of_rows(batch: pa.RecordBatch, *, most: int, parse: bool) -> Evidence:
    """Rows as objects whose members are the columns; most is how many texts are told apart.

    parse is whether texts are read as what they look like, and empty ones as null: in CSV all is text.
    """
    members = {
        name: evidence_of_column(column, order=at * len(column), most=most, parse=parse)
        for at, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True))
    }
    rows = batch.num_rows
    return Evidence(slots=rows, there=rows, kinds={"object": rows}, members=members)


def evidence_of_column(column: Column, *, order: int = 0, most: int, parse: bool = False) -> Evidence:
    """The values of a column, all of which are there, null or not."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if parse and _is_text(kind):
        column = pc.if_else(pc.equal(column, pa.scalar("", kind)), None, column)
    there = column.drop_null()
    seen = Evidence(slots=len(column), there=len(column), nulls=len(column) - len(there), order=order)
    if not len(there):
        return seen
    if pa.types.is_map(kind):
        entries = pc.list_flatten(there.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))))
        parts = evidence_of_column(entries.flatten()[1], most=most)
        return msgspec.structs.replace(seen, kinds={"map": len(there)}, parts=parts)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        parts = evidence_of_column(pc.list_flatten(there), most=most)
        return msgspec.structs.replace(seen, kinds={"list": len(there)}, parts=parts)
    if is_record(kind):
        pairs = zip(kind, there.flatten(), strict=True)
        members = {
            field.name: evidence_of_column(values, order=at * len(there), most=most)
            for at, (field, values) in enumerate(pairs)
        }
        return msgspec.structs.replace(seen, kinds={"object": len(there)}, members=members)
    return _evidence_of_scalars(seen, there, most=most, parse=parse)


def _is_text(kind: ArrowType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _evidence_of_scalars(seen: Evidence, there: Column, *, most: int, parse: bool) -> Evidence:
    kind = there.type
    replace = msgspec.structs.replace
    if _is_text(kind):
        return add_parsed_texts(seen, there, most) if parse else add_texts(seen, there, most)
    if pa.types.is_boolean(kind):
        return replace(seen, kinds={"boolean": len(there)})
    if pa.types.is_integer(kind):
        return add_integers(seen, there)
    if pa.types.is_floating(kind):
        return add_floats(seen, there)
    return replace(seen, kinds={str(kind): len(there)})


def add_integers(seen: Evidence, there: Column) -> Evidence:
    """Whole numbers beside what was seen of other kinds."""
    ends: Any = pc.min_max(there).as_py()
    low, high = ends["min"], ends["max"]
    kinds = {**seen.kinds, "integer": len(there)}
    wide = seen.wide or high not in INT64
    return msgspec.structs.replace(seen, kinds=kinds, low=low, high=min(high, INT64[-1]), wide=wide)


def add_floats(seen: Evidence, there: Column) -> Evidence:
    """Numbers with fractions beside what was seen of other kinds."""
    kinds = {**seen.kinds, "number": len(there)}
    finite = there.filter(pc.is_finite(there))
    if not len(finite):
        return msgspec.structs.replace(seen, kinds=kinds)
    ends: Any = pc.min_max(finite).as_py()
    return msgspec.structs.replace(seen, kinds=kinds, least=float(ends["min"]), most=float(ends["max"]))


def add_texts(seen: Evidence, there: Column, most: int) -> Evidence:
    """Texts beside what was seen of other kinds."""
    lengths: Column = pc.utf8_length(there)
    ends: Any = pc.min_max(lengths).as_py()
    shortest, longest = ends["min"], ends["max"]
    found, digits = _count_notations(there)
    return msgspec.structs.replace(
        seen,
        kinds={**seen.kinds, "text": len(there)},
        shortest=shortest,
        longest=longest,
        notations=found,
        digits=digits,
        values=_count_if_few(there, most) if longest <= LONGEST else None,
    )


def add_parsed_texts(seen: Evidence, there: Column, most: int) -> Evidence:
    """Texts as what they look like: whole numbers, numbers, booleans, or texts."""
    whole = pc.match_substring_regex(there, _INTEGER)
    number = pc.and_not(pc.match_substring_regex(there, _NUMBER), whole)
    boolean = pc.match_substring_regex(there, _BOOLEAN)
    rest = pc.invert(pc.or_(pc.or_(whole, number), boolean))
    # figures of the texts as texts go for all of them: where one is no number, they all stay texts
    texts = add_texts(seen, there, most)
    seen = msgspec.structs.replace(texts, kinds={}, notations={}, digits=0)
    if pc.any(whole).as_py():
        seen = add_integers(seen, there.filter(whole).cast(pa.int64()))
    if pc.any(number).as_py():
        seen = add_floats(seen, there.filter(number).cast(pa.float64()))
    kinds = dict(seen.kinds)
    for name, mask in (("boolean", boolean), ("text", rest)):
        flags: Column = mask
        if count := pc.sum(flags).as_py():
            kinds[name] = int(count)
    return msgspec.structs.replace(seen, kinds=kinds, notations=texts.notations, digits=texts.digits)


def _count_notations(there: Column) -> tuple[dict[str, int], int]:
    """How many texts are in each notation, by the rules of the formats, and the most decimal places of a second."""
    likely = there.filter(pc.match_substring_regex(there, _NOTATION))
    found: dict[str, int] = {}
    digits = 0
    for text, times in count_values(likely).items():
        names, places = detect_notations(text)
        digits = max(digits, places)
        for name in names:
            found[name] = found.get(name, 0) + times
    return found, digits


def _count_if_few(there: Column, most: int) -> dict[str, int] | None:
    return count_values(there) if pc.count_distinct(there).as_py() <= most else None


def evidence_of_documents(documents: Sequence[bytes | str], most: int) -> tuple[Evidence, dict[str, int]]:
    """The evidence of documents, and how many are none, by reason; most is how many texts are told apart."""
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
    """The value of a document. Raises ValueError with a reason that many documents share."""
    try:
        value = msgspec.json.decode(document)
    except RecursionError:
        raise ValueError(_DEEP) from None
    except UnicodeError:
        raise ValueError("it is not UTF-8") from None
    except msgspec.MsgspecError as error:
        raise ValueError(f"it is not JSON: {str(error).partition(' (byte')[0]}") from None
    if _count_brackets(document) > MAX_DEPTH and _is_deep(value):
        raise ValueError(_DEEP)
    return value


def _count_brackets(document: bytes | str) -> int:
    """At least as many as levels, and cheap to count."""
    if isinstance(document, str):
        return document.count("{") + document.count("[")
    return document.count(b"{") + document.count(b"[")


def _is_deep(value: Any) -> bool:
    """Whether there are more levels of values inside values than the formats' inference takes."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
            elif isinstance(each, list):
                inner += each
        level, depth = inner, depth + 1
    return bool(level)


class _DocumentPlace:
    """The values at one place of a batch."""

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
        """One more value; whoever calls counts that it is there."""
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
        """What they show; slots is how often what the place is in was there."""
        counts = {"boolean": self.booleans, "object": self.objects, "list": self.lists}
        kinds = {name: count for name, count in counts.items() if count}
        seen = Evidence(slots=slots, there=self.there, nulls=self.nulls, kinds=kinds, order=self.order)
        if self.integers:
            narrow = [max(INT64[0], min(number, INT64[-1])) for number in self.integers]
            seen = add_integers(seen, pa.array(narrow, pa.int64()))
            seen = msgspec.structs.replace(seen, wide=narrow != self.integers)
        if self.floats:
            seen = add_floats(seen, pa.array(self.floats, pa.float64()))
        if self.texts:
            seen = add_texts(seen, pa.array(self.texts, pa.string()), most)
        members = {name: member.make_evidence(self.objects, most) for name, member in self.members.items()}
        kept = limit_members(members)
        return msgspec.structs.replace(
            seen,
            members=kept,
            keyed=merge_members(members, most) if kept is None else None,
            parts=None if self.items is None else self.items.make_evidence(self.items.there, most),
        )


class CollectedEvidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """What some records showed.

    records   all but null ones
    nulls     rows without a document
    reasons   documents that are none, by reason
    most      how many different texts of a place are told apart
    """

    records: int = 0
    nulls: int = 0
    reasons: dict[str, int] = {}
    evidence: Evidence = Evidence()
    most: int = 0

    def merge_with(self, other: CollectedEvidence) -> CollectedEvidence:
        """See `Answer`. Raises `TooLarge` for more places than a schema should have."""
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
    """The rows' one column holds JSON documents, as texts or bytes in UTF-8."""

    most: int
    result_type = CollectedEvidence

    def start_task(self) -> Callable[[pa.RecordBatch], Mapping[str, CollectedEvidence]]:
        """See `Asking`."""
        return self._aggregate_batch

    def _aggregate_batch(self, batch: pa.RecordBatch) -> Mapping[str, CollectedEvidence]:
        column: Column = batch.column(0)
        documents = column.drop_null().to_pylist()
        evidence, reasons = evidence_of_documents(documents, self.most)
        reasons = limit_kinds(reasons, MOST_REASONS)
        return {ALL: CollectedEvidence(len(documents), column.null_count, reasons, check_size(evidence), self.most)}


@dataclass(frozen=True, slots=True)
class RowAggregator:
    """The rows themselves are the records; parse: see `columns.of_rows`."""

    most: int
    parse: bool = False
    result_type = CollectedEvidence

    def start_task(self) -> Callable[[pa.RecordBatch], Mapping[str, CollectedEvidence]]:
        """See `Asking`."""
        return self._aggregate_batch

    def _aggregate_batch(self, batch: pa.RecordBatch) -> Mapping[str, CollectedEvidence]:
        evidence = check_size(evidence_of_rows(batch, most=self.most, parse=self.parse))
        return {ALL: CollectedEvidence(batch.num_rows, evidence=evidence, most=self.most)}
