"""Writer's schema + reader's slots → steps: Avro's schema resolution (spec 1.12), done once per writer.

More lenient than the specification in one point: outside unions the names of records, enums and fixed need not agree,
as in Java's decoder; their content decides. Stricter in one: decimals of different scale never match, their digits
would change value.

Source: docs/protocols/avro.md#schema-resolution.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from stele.errors import DataError
from stele.formats.avro.model import (
    NO_DEFAULT,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
    describe_type,
)
from stele.spark.engines.defaults import encoded_default
from stele.spark.engines.error_codes import ErrorCode
from stele.spark.engines.layout import layout, members, merged
from stele.spark.engines.scalars import is_number, number, promotes
from stele.spark.engines.steps import (
    REST,
    Beyond,
    Branch,
    Default,
    Group,
    Kind,
    Member,
    Nothing,
    Past,
    Repeat,
    Routine,
    Slot,
    Step,
    Symbol,
    Text,
    Unreadable,
    Unscaled,
    floor,
)
from stele.spark.engines.unroll import Pruned, Shortened, unrolled

MOST_STEPS = 100_000
"""Steps of one writer: named types used inside each other can grow exponentially."""
MOST_DEPTH = 100
"""Types inside types of what is only read past; the reader's own depth is limited by the Arrow mapping."""


class Resolver:
    """One reader's schema, ready to be matched with writers; recursion is as in `unrolled`.

    Raises `Invalid` when it has no table shape.
    """

    def __init__(self, reader: AvroSchema, *, for_spark: bool = False, recursion: int = 0) -> None:
        self.reader = reader
        self._shape = unrolled(reader, recursion)
        self.root = layout(self._shape, for_spark=for_spark)

    def steps(self, writer: AvroSchema) -> Step:
        """How to read the writer's data into the slots. Raises `DataError` when the reader's schema cannot."""
        return _Match(bare=writer.root.kind == "bytes").step(writer.root, self._shape.root, self.root)


class _Match:
    """One match of two schemas: counts steps, and knows how to read past the writer's records it has met.

    The reader's schema is finite, so reading with it ends; reading past a record that contains itself is a routine.
    bare  the writer's schema is just `bytes`, which has no length in front.
    """

    def __init__(self, *, bare: bool = False) -> None:
        self._bare = bare
        self._made = 0
        self._routines: dict[int, Routine] = {}
        self._again: set[int] = set()

    def step(self, writer: AvroType, reader: AvroType, slot: Slot) -> Step:
        """How to read a value of the writer's type as one of the reader's."""
        self._count()
        if isinstance(writer, AvroUnion):
            return self._writer_union(writer, reader, slot)
        if isinstance(reader, AvroUnion):
            return self._reader_union(writer, reader, slot)
        match writer, reader:
            case AvroRecord(), AvroRecord():
                return self._record(writer, reader, slot)
            case AvroArray(), AvroArray():
                item = self.step(writer.items, reader.items, slot.children[0])
                return Repeat(slot, None, item, floor(item))
            case AvroMap(), AvroMap():
                item = self.step(writer.values, reader.values, slot.children[1])
                return Repeat(slot, Text(slot.children[0], utf8=True), item, 1 + floor(item))
            case AvroEnum(), AvroEnum():
                return _enum(writer, reader, slot)
            case ((AvroPrimitive() | AvroFixed()), (AvroPrimitive() | AvroFixed())):
                return _scalar(writer, reader, slot, bare=self._bare)
        raise _mismatch(writer, reader)

    def skip(self, writer: AvroType, depth: int = 0) -> Step:
        """How to read past a value."""
        self._count()
        if depth > MOST_DEPTH:
            raise DataError(f"the writer's schema nests types more than {MOST_DEPTH} deep")
        depth += 1
        match writer:
            case AvroUnion():
                return Branch(None, tuple(self.skip(branch, depth) for branch in writer.branches))
            case AvroRecord():
                return self._skip_record(writer, depth)
            case AvroArray():
                item = self.skip(writer.items, depth)
                return Repeat(None, None, item, floor(item))
            case AvroMap():
                item = self.skip(writer.values, depth)
                return Repeat(None, Text(None), item, 1 + floor(item))
            case AvroEnum():
                return Symbol(None, tuple(range(len(writer.symbols))))
            case AvroFixed():
                return Text(None, size=writer.size)
            case AvroPrimitive():
                if writer.kind == "null":
                    return Nothing(None)
                return number(writer, writer, None) if is_number(writer) else Text(None)

    def _skip_record(self, writer: AvroRecord, depth: int) -> Step:
        """The record's parts one after the other; by its routine, when it is met again inside itself."""
        key = id(writer)
        if key in self._routines:
            self._again.add(key)
            return Past(self._routines[key])
        routine = self._routines[key] = Routine(Group(None, ()))
        routine.step = Group(None, tuple(self.skip(f.type, depth) for f in writer.fields))
        if key in self._again:
            return Past(routine)
        del self._routines[key]
        return routine.step

    def _beyond(self, writer: AvroType) -> Beyond:
        """Nothing but empty values, where the reader's columns end."""
        return Beyond(_only_empty(writer), _empty(writer))

    def _count(self) -> None:
        self._made += 1
        if self._made > MOST_STEPS:
            raise DataError(f"the writer's schema unfolds to more than {MOST_STEPS} steps")

    def _record(self, writer: AvroRecord, reader: AvroRecord, slot: Slot) -> Step:
        targets = _targets(writer, reader)
        places = {child.name: child for child in slot.children}
        steps: list[Step] = []
        for mine in writer.fields:
            theirs = targets.get(mine.name)
            if theirs is None:
                steps.append(self.skip(mine.type))
            elif theirs.name in places:
                steps.append(self._field(mine, theirs, places[theirs.name]))
            else:
                steps.append(self._beyond(mine.type))
        found = {theirs.name for theirs in targets.values()}
        steps += [self._default(f, places[f.name]) for f in reader.fields if f.name not in found]
        if writer is not reader:
            steps += [_deep_default(f) for f in _deeper(reader) if f.name not in found]
        return Group(slot, tuple(steps))

    def _field(self, mine: AvroField, theirs: AvroField, slot: Slot) -> Step:
        try:
            return self.step(mine.type, theirs.type, slot)
        except DataError as error:
            raise DataError(f"{theirs.name}: {error}") from error

    def _default(self, field: AvroField, slot: Slot) -> Step:
        if field.default is NO_DEFAULT:
            raise _no_default(field)
        return Default(encoded_default(field.type, field.default), _Match().step(field.type, field.type, slot))

    def _writer_union(self, writer: AvroUnion, reader: AvroType, slot: Slot) -> Step:
        steps: list[Step] = []
        for branch in writer.branches:
            try:
                steps.append(self.step(branch, reader, slot))
            except DataError:
                # an error only for the records that take this branch
                steps.append(Unreadable(slot))
        if all(isinstance(step, Unreadable) and step.code is ErrorCode.UNREADABLE_BRANCH for step in steps):
            raise _mismatch(writer, reader)
        return Branch(slot, tuple(steps))

    def _reader_union(self, writer: AvroType, reader: AvroUnion, slot: Slot) -> Step:
        if writer.kind == "null" and any(branch.kind == "null" for branch in reader.branches):
            return Nothing(slot)
        branches = members(reader)
        if isinstance(reader, Pruned) and _best(writer, reader.deeper) < min(2, _best(writer, branches)):
            return Unreadable(slot, ErrorCode.TOO_DEEP)
        single = merged(branches, slot.type)
        if single is not None:
            return self.step(writer, single, slot)
        for candidate in _preferred(writer, branches):
            try:
                chosen = slot.children[branches.index(candidate)]
                others = tuple(child for child in slot.children if child is not chosen)
                return Member(slot, self.step(writer, candidate, chosen), others)
            except DataError:
                continue
        raise _mismatch(writer, reader)


def _only_empty(writer: AvroType) -> Step:
    """Reads null, or an array or map without items; all else is too deep."""
    match writer:
        case AvroPrimitive(kind="null"):
            return Nothing(None)
        case AvroUnion():
            return Branch(None, tuple(_only_empty(branch) for branch in writer.branches))
        case AvroArray():
            return Repeat(None, None, Unreadable(None, ErrorCode.TOO_DEEP), 1)
        case AvroMap():
            return Repeat(None, Text(None), Unreadable(None, ErrorCode.TOO_DEEP), 1)
    return Unreadable(None, ErrorCode.TOO_DEEP)


def _empty(writer: AvroType) -> tuple[int, ...] | None:
    """How the writer says null or, where it cannot, that there are no items."""
    match writer:
        case AvroPrimitive(kind="null"):
            return ()
        case AvroArray() | AvroMap():
            return (0,)
        case AvroUnion():
            found = [(branch.kind != "null", n, _empty(branch)) for n, branch in enumerate(writer.branches)]
            return next(((n, *rest) for _, n, rest in sorted(found, key=itemgetter(0, 1)) if rest is not None), None)
    return None


def _deeper(reader: AvroRecord) -> tuple[AvroField, ...]:
    return reader.deeper if isinstance(reader, Shortened) else ()


def _deep_default(field: AvroField) -> Step:
    """What becomes of a field that has no column, and that the writer does not have."""
    if field.default is NO_DEFAULT:
        raise _no_default(field)
    return Nothing(None) if field.default in (None, [], {}) else Unreadable(None, ErrorCode.TOO_DEEP)


def _no_default(field: AvroField) -> DataError:
    return DataError(f"the writer has no field {field.name!r}, and the reader no default for it")


def _targets(writer: AvroRecord, reader: AvroRecord) -> dict[str, AvroField]:
    """Which field of the reader each of the writer's fields goes to: by name, else by the reader's aliases.

    Those without a column, because they would go deeper, are among the reader's fields.
    """
    fields = (*reader.fields, *_deeper(reader))
    by_name = {field.name: field for field in fields}
    targets = {f.name: by_name[f.name] for f in writer.fields if f.name in by_name}
    for theirs in fields:
        if theirs.name not in targets:
            alias = next((a for a in theirs.aliases if a in writer.by_name and a not in targets), None)
            if alias is not None:
                targets[alias] = theirs
    return targets


def _preferred(writer: AvroType, branches: list[AvroType]) -> list[AvroType]:
    """The reader's branches, likeliest first: same name, same kind, then promotions in the order written."""
    return sorted(branches, key=lambda branch: _rank(writer, branch))


def _rank(writer: AvroType, branch: AvroType) -> int:
    if branch.kind != writer.kind:
        return 3
    mine, theirs = getattr(writer, "name", ""), getattr(branch, "name", "")
    if mine == theirs or mine in getattr(branch, "aliases", ()):
        return 0
    return 1 if mine.rpartition(".")[2] == theirs.rpartition(".")[2] else 2


def _best(writer: AvroType, branches: Iterable[AvroType]) -> int:
    return min((_rank(writer, branch) for branch in branches), default=3)


def _enum(writer: AvroEnum, reader: AvroEnum, slot: Slot) -> Symbol:
    places = {symbol: place for place, symbol in enumerate(reader.symbols)}
    fallback = places.get(reader.default, -1) if reader.default is not None else -1
    mapping = tuple(places.get(symbol, fallback) for symbol in writer.symbols)
    if all(place < 0 for place in mapping):
        raise _mismatch(writer, reader)
    return Symbol(slot, mapping)


def _scalar(writer: AvroPrimitive | AvroFixed, reader: AvroPrimitive | AvroFixed, slot: Slot, *, bare: bool) -> Step:
    if not promotes(writer, reader):
        raise _mismatch(writer, reader)
    if reader.kind == "null":
        return Nothing(slot)
    if is_number(writer):
        return number(writer, reader, slot)
    size = writer.size if isinstance(writer, AvroFixed) else REST if bare else None
    if slot.kind is Kind.DECIMAL or slot.digits is not None:
        assert reader.logical is not None
        if writer.logical is not None and writer.logical.scale != reader.logical.scale:
            raise _mismatch(writer, reader)
        return Unscaled(slot, reader.logical.precision, size)
    return Text(slot, size, utf8="string" in (writer.kind, reader.kind))


def _mismatch(writer: AvroType, reader: AvroType) -> DataError:
    return DataError(f"{describe_type(writer)} cannot be read as {describe_type(reader)}")
