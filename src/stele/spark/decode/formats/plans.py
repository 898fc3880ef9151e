"""Conversion between lists of Python values and Arrow columns, one column at a time.

A plan is a tree with a node for each place of a schema. It builds a column by picking one field of all rows after the
other, which is much faster than going row by row. It also turns the rows of a column into values that a codec of the
format accepts.

A missing value is None. Values of a wrong kind raise a `DataError` that names the place; `build_column` finds the rows
they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from stele.errors import DataError, EncodeError
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.error_codes import ErrorCode, RecordError
from stele.spark.engines.steps import tabular_type

Values: TypeAlias = Sequence[Any]
Convert: TypeAlias = Callable[[Any], Any]


Pick: TypeAlias = Callable[[Values, bool], list[Any]]
"""Gives one field of each of the values; the flag says whether some of them are None."""
Kinds: TypeAlias = frozenset[type]
_NOTHING: Kinds = frozenset({type(None)})


class ColumnPlan(Protocol):
    """The plan of one place of a schema. `kinds` are the accepted classes of values, None for any."""

    type: ArrowType
    path: str

    def array(self, values: Values) -> Column:
        """Return the column of these values. Raises `DataError`."""
        ...

    def datum(self, value: Any) -> Any:
        """Return one value of the column, as `to_pylist` returns it, in the form of a codec. Raises `EncodeError`."""
        ...


class ScalarPlan:
    """The plan of a value without parts.

    read   converts a value to the form that Arrow takes for the type; None if that is the value itself
    write  converts a value from Arrow to the form that the codec takes; None if that is the value itself
    easy   kinds for which read is not needed
    take   converts a column of another type where Arrow's cast would differ; returns None for types it does not convert
    raw    type of the result of read, if the column's type is another view of it (a timestamp of a number)
    """

    def __init__(
        self,
        type_: ArrowType,
        path: str,
        *,
        read: Convert | None = None,
        write: Convert | None = None,
        kinds: Kinds | None = None,
        easy: Kinds = frozenset(),
        take: Callable[[Column], Column | None] | None = None,
        raw: ArrowType | None = None,
    ) -> None:
        self.type = type_
        self.path = path
        self.take = take
        self._read, self._write, self._raw = read, write, raw
        self._kinds = None if kinds is None else kinds | _NOTHING
        self._easy = easy | _NOTHING

    def array(self, values: Values) -> Column:
        """Return the column of these values; see `ColumnPlan.array`."""
        read = self._read
        if self._kinds is not None and _check_kinds(values, self._kinds, self) <= self._easy:
            read = None
        try:
            if read is not None:
                values = [None if value is None else read(value) for value in values]
            if self._raw is None:
                return pa.array(values, self.type)
            return pa.array(values, self._raw).cast(self.type)
        except (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError) as error:
            raise DataError(f"{self.path}: {error}") from error

    def datum(self, value: Any) -> Any:
        """Return a value in the form of a codec; see `ColumnPlan.datum`."""
        if value is None or self._write is None:
            return value
        try:
            return self._write(value)
        except (ValueError, OverflowError, RecursionError) as error:
            raise EncodeError(f"{self.path}: {error}") from error


class FieldPlan(NamedTuple):
    """A field of a struct. `pick` returns the field of every value.

    With `keeps_null`, null is written. Otherwise a null field is left out.
    """

    name: str
    pick: Pick
    plan: ColumnPlan
    keeps_null: bool = False


def pick_member(name: str) -> Pick:
    """Return a `Pick` of one member of dicts."""
    get = itemgetter(name)

    def pick(values: Values, holes: bool) -> list[Any]:
        if holes:
            return [None if value is None else value.get(name) for value in values]
        try:
            return list(map(get, values))
        except KeyError:
            return [value.get(name) for value in values]

    return pick


class TruncatedField(NamedTuple):
    """A field without a column, where a type inside itself would be nested deeper than the columns are.

    items  whether it is a list or map, which can be there without items
    empty  value that is written for it, None if it can be left out
    """

    name: str
    pick: Pick
    items: bool
    empty: Any = None

    def check(self, values: Values, holes: bool) -> None:
        """Raise `RecordError` when a value is nested deeper."""
        for value in self.pick(values, holes):
            if value is not None and not (self.items and len(value) == 0):
                raise RecordError(ErrorCode.TOO_DEEP)


class Struct:
    """The plan of a value with named parts. Null fields are left out for codecs, unless a part keeps them.

    whole   function that returns whether a column type can stand for the struct, such as a date for year, month and day
    deeper  fields without a column
    """

    def __init__(
        self,
        parts: Sequence[FieldPlan],
        path: str = "",
        *,
        kinds: Kinds | None = None,
        whole: Callable[[ArrowType], bool] | None = None,
        deeper: Sequence[TruncatedField] = (),
    ) -> None:
        self.parts = tuple(parts)
        self.deeper = tuple(deeper)
        self.whole = whole
        self.path = path or "the value"
        self._kinds = None if kinds is None else kinds | _NOTHING
        self.type: ArrowType = pa.struct([pa.field(part.name, part.plan.type) for part in parts])

    def array(self, values: Values) -> Column:
        """Return the column of these values; see `ColumnPlan.array`."""
        if self._kinds is not None:
            _check_kinds(values, self._kinds, self)
        absent = [value is None for value in values]
        holes = True in absent
        for each in self.deeper:
            each.check(values, holes)
        children = [part.plan.array(part.pick(values, holes)) for part in self.parts]
        mask = pa.array(absent, pa.bool_()) if holes else None
        if not children:
            return pa.array([None if value is None else {} for value in values], self.type)
        return pa.StructArray.from_arrays(children, fields=list(self.type), mask=mask)

    def datum(self, value: Any) -> Any:
        """Return a value in the form of a codec; see `ColumnPlan.datum`."""
        if not isinstance(value, dict):
            return value  # null, or a value that stands for the whole struct
        pairs = ((part, part.plan.datum(value.get(part.name))) for part in self.parts)
        members = {part.name: inner for part, inner in pairs if inner is not None or part.keeps_null}
        return members | {each.name: each.empty for each in self.deeper if each.empty is not None}


class ListPlan:
    """The plan of a list."""

    def __init__(self, item: ColumnPlan, path: str, *, kinds: Kinds | None = None) -> None:
        self.item = item
        self.path = path
        self._kinds = None if kinds is None else kinds | _NOTHING
        self.type: ArrowType = pa.list_(pa.field("element", item.type))

    def array(self, values: Values) -> Column:
        """Return the column of these values; see `ColumnPlan.array`."""
        if self._kinds is not None:
            _check_kinds(values, self._kinds, self)
        items = self.item.array(list(chain.from_iterable(value for value in values if value)))
        return pa.ListArray.from_arrays(_list_offsets(values), items, type=self.type)

    def datum(self, value: Any) -> Any:
        """Return a value in the form of a codec; see `ColumnPlan.datum`."""
        return None if value is None else [self.item.datum(item) for item in value]


class MapPlan:
    """The plan of a map. Values are mappings, or lists of pairs if `pairs` is set."""

    def __init__(
        self, key: ColumnPlan, item: ColumnPlan, path: str, *, pairs: bool = False, kinds: Kinds | None = None
    ) -> None:
        self.key, self.item, self.path = key, item, path
        self._pairs = pairs
        self._kinds = None if kinds is None else kinds | _NOTHING
        self.type: ArrowType = pa.map_(key.type, item.type)

    def array(self, values: Values) -> Column:
        """Return the column of these values; see `ColumnPlan.array`."""
        if self._kinds is not None:
            _check_kinds(values, self._kinds, self)
        if self._pairs:
            values = [list(value.items()) if isinstance(value, dict) else value for value in values]
            both = list(chain.from_iterable(value for value in values if value))
            keys, items = [pair[0] for pair in both], [pair[1] for pair in both]
        else:
            keys = list(chain.from_iterable(value for value in values if value))
            items = [value[key] for value in values if value for key in value]
        entries = self.key.array(keys), self.item.array(items)
        return pa.MapArray.from_arrays(_list_offsets(values), *entries, type=self.type)

    def datum(self, value: Any) -> Any:
        """Return a value in the form of a codec; see `ColumnPlan.datum`."""
        if value is None:
            return None
        entries = [(self.key.datum(key), self.item.datum(item)) for key, item in value]
        return entries if self._pairs else dict(entries)


def _check_kinds(values: Values, kinds: Kinds, plan: ColumnPlan) -> set[type]:
    """Return the classes of the values. Raises `DataError` for a class that is not accepted."""
    there = set(map(type, values))
    if not there <= kinds:
        odd = next(iter(there - kinds))
        raise DataError(f"{plan.path}: a {odd.__name__} where the column is {plan.type}")
    return there


def _list_offsets(values: Iterable[Any]) -> Column:
    """Return the offset of each value's items, null for a null value, in the form of `from_arrays`."""
    sizes = [0 if value is None else len(value) for value in values]
    ends = list(accumulate(sizes, initial=0))
    if ends[-1] >= 1 << 31:
        raise DataError("the records of one batch have more than 2**31 items")
    return pa.array(
        [None if value is None else end for value, end in zip(values, ends, strict=False)] + ends[-1:], pa.int32()
    )


def spark_type(type_: ArrowType) -> ArrowType:
    """Return the type that Spark uses in place of a type without parts.

    It is a signed number, a time in microseconds, plain bytes, or text for a decimal of more than 38 digits.
    """
    if type_ in _WIDER:
        return _WIDER[type_]
    if pa.types.is_duration(type_):
        return pa.duration("us")
    if pa.types.is_decimal(type_):
        return pa.decimal128(type_.precision, type_.scale) if type_.precision <= _DIGITS else pa.string()
    return tabular_type(type_)


_DIGITS = 38
_WIDER: dict[ArrowType, ArrowType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


class BuiltColumn(NamedTuple):
    """A column, and by row the error of each value that did not fit; such rows are null."""

    column: Column
    misfits: dict[int, RecordError]


def build_column(plan: ColumnPlan, values: Values) -> BuiltColumn:
    """Return the column of all values that fit, and the errors of the others."""
    misfits: dict[int, RecordError] = {}
    pieces = list(_build_pieces(plan, values, 0, misfits))
    return BuiltColumn(pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces), misfits)


def _build_pieces(plan: ColumnPlan, values: Values, first: int, misfits: dict[int, RecordError]) -> Iterable[Column]:
    """Yield columns of the values, halving those that do not fit, down to each single bad value."""
    try:
        yield plan.array(values)
        return
    except DataError as error:
        if len(values) == 1:
            unfit = RecordError(ErrorCode.UNFIT_VALUE, str(error))
            misfits[first] = error if isinstance(error, RecordError) else unfit
            yield pa.nulls(1, plan.type)
            return
    half = len(values) // 2
    yield from _build_pieces(plan, values[:half], first, misfits)
    yield from _build_pieces(plan, values[half:], first + half, misfits)
