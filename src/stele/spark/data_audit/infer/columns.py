"""Evidence from columns of Arrow, a batch at a time."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from stele.formats.conversion.sample_shape import detect_notations
from stele.spark.data_audit.aggregation import count_values
from stele.spark.data_audit.field_stats import LONGEST, is_record
from stele.spark.data_audit.infer.evidence import INT64, Evidence
from stele.spark.engines.arrow import ArrowType, Column

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
