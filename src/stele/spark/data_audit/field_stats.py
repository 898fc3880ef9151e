"""What the values of a field are really like: counts that can be taken of a batch and added up.

Paths are those of the columns: `place.city`, `tags[]` for the items of a list, `homes{}` for the values of a map;
'' is a datum that is no record.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from stele.spark.data_audit.aggregation import add_counts, greatest_known, least_known
from stele.spark.engines.arrow import ArrowType, Column

MOST_VALUES: Final = 32
"""Different values of a field, and keys of a map, that are told apart; of more nothing is kept."""
LONGEST: Final = 120
"""Characters of a text that counts as one of few."""
MOST_FIELDS: Final = 2000
"""Fields of one schema that are looked at."""

SHAPES: Final = {
    "integer": r"^[+-]?\d{1,18}$",
    "number": r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$",
    "boolean": r"^(?i:true|false)$",
    "uuid": r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    "date": r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$",
    "timestamp": r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[T ]([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)(\.\d{1,9})?)?"
    r"(Z|[+-]([01]\d|2[0-3]):?[0-5]\d)?$",
}
"""What a text may be besides a text, most telling last but for a number, which an integer is too."""


class FieldStats(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field in many records.

    type      of its column
    slots     how often the record or list it is in was there
    present   how often it was not null
    low, high numbers: the least and the greatest one
    whole     numbers with fractions: how many had none
    shapes    texts: how many also have one of the `SHAPES`
    values    the different values, as texts; None when there are too many to tell, or the type has none
    entries   maps: how many in all
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
        """Both together."""
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
"""Stats by path."""


def merge_fields(one: Fields, other: Fields) -> Fields:
    """Stats of two sets of records."""
    whole = dict(one)
    for path, stats in other.items():
        whole[path] = whole[path].merge_with(stats) if path in whole else stats
    return whole


def observe_values(values: Column, *, deep: bool) -> Fields:
    """Stats of a column of decoded values, for every field at any depth.

    deep is whether values are looked at, not only whether they are there. Null rows are not counted: they are records
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
    """Whether a type has members: a struct, but not the two byte strings of a variant."""
    if not pa.types.is_struct(kind):
        return False
    return {field.name for field in kind} != {"value", "metadata"} or not all(
        pa.types.is_binary(field.type) for field in kind
    )


def _observe_members(rows: Column, path: str, fields: Fields, *, deep: bool) -> None:
    """The members of a column of structs none of which is null."""
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
    """Stats of the values of a type without parts."""
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
    """Return a short word for a type; what a part is in, its own paths tell."""
    if pa.types.is_map(kind):
        return "map"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return "list"
    if pa.types.is_struct(kind):
        return "record" if is_record(kind) else "variant"
    if pa.types.is_dictionary(kind):
        return str(kind.value_type)
    return str(kind)
