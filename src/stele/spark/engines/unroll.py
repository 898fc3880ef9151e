"""Unroll a schema whose types contain themselves to a fixed number of levels, so that it can have columns.

`recursion` is how many times a record can be nested in itself. Below that level there is no column: a field whose only
remaining value is null, or an empty array or map, is left out, and a union loses the branch. The parts left out are
kept in `TruncatedRecord` and `TruncatedUnion`, so that data that are nested deeper are detected.
"""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from stele.errors import Invalid
from stele.formats.avro.model import AvroArray, AvroField, AvroMap, AvroRecord, AvroSchema, AvroType, AvroUnion

MAX_RECURSION = 32
"""Maximum number of levels. Nesting depth and number of columns have limits of their own."""
MAX_FIELDS = 10_000
"""Maximum number of fields over all levels. A record with two fields of its own type doubles at each level."""


class TruncatedRecord(AvroRecord, frozen=True, eq=False):
    """A record without its fields that would be nested too deep. `deeper` has these fields with unchanged types."""

    deeper: tuple[AvroField, ...] = ()


class TruncatedUnion(AvroUnion, frozen=True, eq=False):
    """A union without its branches that would be nested too deep, which `deeper` has."""

    deeper: tuple[AvroType, ...] = ()


class Remainder(Enum):
    """What remains of a type that cannot be unrolled further."""

    NOTHING = auto()
    """No value is shallow enough."""
    EMPTY = auto()
    """Only null, or an empty array or map."""


def check_recursion(levels: int) -> int:
    """Return the number of levels. Raises `Invalid` if it is not a number from 0 to `MAX_RECURSION`."""
    if isinstance(levels, bool) or not isinstance(levels, int) or not 0 <= levels <= MAX_RECURSION:
        raise Invalid(f"recursion is a number of levels from 0 to {MAX_RECURSION}, not {levels!r}")
    return levels


def unroll_schema(schema: AvroSchema, levels: int) -> AvroSchema:
    """Return the schema with records nested in themselves at most `levels` times; unchanged if none contains itself.

    Raises `Invalid` for a type that contains itself when `levels` is 0, or that has no finite value, or that unrolls to
    too many fields.
    """
    check_recursion(levels)
    endless = _find_recursive(schema.root)
    if endless is None:
        return schema
    if not levels:
        raise Invalid(
            f"{endless.name} contains itself, and a table cannot be nested infinitely: choose how many levels "
            "become columns with recursion=1 or more"
        )
    root = _Unroller(levels).unroll_type(schema.root)
    if isinstance(root, Remainder):
        raise Invalid(f"{endless.name} contains itself and has no value that ends")
    return msgspec.structs.replace(schema, root=root)


def _child_types(node: AvroType) -> tuple[AvroType, ...]:
    match node:
        case AvroRecord():
            return tuple(field.type for field in node.fields)
        case AvroArray():
            return (node.items,)
        case AvroMap():
            return (node.values,)
        case AvroUnion():
            return node.branches
    return ()


def _find_recursive(root: AvroType) -> AvroRecord | None:
    """Return the first record that contains itself, or None. Does not recurse, as schemas can be deep."""
    done: set[int] = set()
    open_: set[int] = set()
    ways: list[tuple[AvroType, bool]] = [(root, False)]
    while ways:
        node, leaving = ways.pop()
        if leaving:
            open_.discard(id(node))
            done.add(id(node))
            continue
        if isinstance(node, AvroRecord):
            if id(node) in open_:
                return node
            if id(node) in done:
                continue
            open_.add(id(node))
            ways.append((node, True))
        ways += [(part, False) for part in _child_types(node)]
    return None


class _Unroller:
    def __init__(self, levels: int) -> None:
        self._levels = levels
        self._inside: list[AvroRecord] = []
        self._fields = 0

    def unroll_type(self, node: AvroType) -> AvroType | Remainder:
        """Return the type at one place, or what remains of it."""
        match node:
            case AvroRecord():
                return self._unroll_record(node)
            case AvroArray():
                items = self.unroll_type(node.items)
                return Remainder.EMPTY if isinstance(items, Remainder) else msgspec.structs.replace(node, items=items)
            case AvroMap():
                values = self.unroll_type(node.values)
                return (
                    Remainder.EMPTY if isinstance(values, Remainder) else msgspec.structs.replace(node, values=values)
                )
            case AvroUnion():
                return self._unroll_union(node)
        return node

    def _unroll_record(self, node: AvroRecord) -> AvroRecord | Remainder:
        if sum(each is node for each in self._inside) > self._levels:
            return Remainder.NOTHING
        self._inside.append(node)
        record = self._unroll_branches(node)
        self._inside.pop()
        return record

    def _unroll_branches(self, node: AvroRecord) -> AvroRecord | Remainder:
        fields, deeper = [], []
        for field in node.fields:
            self._fields += 1
            if self._fields > MAX_FIELDS:
                raise Invalid(f"unrolled, the schema has more than {MAX_FIELDS} fields: choose fewer levels")
            type_ = self.unroll_type(field.type)
            if type_ is Remainder.NOTHING:
                return Remainder.NOTHING
            if type_ is Remainder.EMPTY:
                deeper.append(field)
            else:
                fields.append(msgspec.structs.replace(field, type=type_))
        rest = {name: getattr(node, name) for name in ("name", "doc", "aliases", "error", "props")}
        by_name = {field.name: field for field in fields}
        return TruncatedRecord(**rest, fields=tuple(fields), by_name=by_name, deeper=tuple(deeper))

    def _unroll_union(self, node: AvroUnion) -> AvroUnion | Remainder:
        pairs = [(branch, self.unroll_type(branch)) for branch in node.branches]
        branches = tuple(type_ for _, type_ in pairs if not isinstance(type_, Remainder))
        deeper = tuple(branch for branch, type_ in pairs if isinstance(type_, Remainder))
        if deeper and all(type_.kind == "null" for type_ in branches):
            empty = branches or any(type_ is Remainder.EMPTY for _, type_ in pairs)
            return Remainder.EMPTY if empty else Remainder.NOTHING
        return TruncatedUnion(branches, deeper=deeper)
