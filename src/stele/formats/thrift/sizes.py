"""How large types and values are with typedefs and constants written out.

A few lines of typedefs of typedefs, or constants made of constants, can stand for more than any memory holds. They are
measured once, before anything follows them, so that whoever walks a checked schema may recurse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from stele.formats.thrift.graph import dependencies_first
from stele.formats.thrift.schema import Unit
from stele.formats.thrift.syntax import Base, Container, ListValue, Literal, MapValue, Name, Ref, Type, Typedef, Value


class Size(NamedTuple):
    """Levels and parts of something that is written out."""

    depth: int
    parts: int


_ONE: Final = Size(1, 1)


class Sizes:
    """Sizes of the typedefs and constants of units; a unit is added after those it includes."""

    def __init__(self) -> None:
        self._types: dict[tuple[Unit, str], Size] = {}
        self._constants: dict[tuple[Unit, str], Size] = {}

    def add_types(self, unit: Unit) -> None:
        """Measure the typedefs of a unit. Raises `Circle` (of their names)."""
        own = {each.name: each.type for each in unit.types.values() if isinstance(each, Typedef)}
        for name in dependencies_first(own, lambda name: (ref.name for ref in refs(own[name]) if ref.name in own)):
            self._types[unit, name] = self.type(unit, own[name])

    def add_constants(self, unit: Unit) -> None:
        """Measure the constants of a unit, whose types have been. Raises `Circle` (of their names)."""
        own = {each.name: each.value for each in unit.constants.values()}
        for name in dependencies_first(own, lambda name: (used.name for used in names(own[name]) if used.name in own)):
            self._constants[unit, name] = self.value(unit, own[name])

    def type(self, unit: Unit, kind: Type) -> Size:
        """The size of a type of a unit; names that mean nothing count as one."""
        match kind:
            case Base():
                return _ONE
            case Ref():
                found = unit.type(kind.name)
                inner = [self._types[found[0], found[1].name]] if found and isinstance(found[1], Typedef) else []
            case Container():
                inner = [self.type(unit, item) for item in kind.items]
        return _around(inner)

    def value(self, unit: Unit, value: Value) -> Size:
        """The size of a value of a unit."""
        match value:
            case Literal():
                return _ONE
            case Name():
                found = unit.value(value.name)
                inner = [self._constants[found[0], found[1].name]] if found and len(found) == 2 else []
            case ListValue():
                inner = [self.value(unit, item) for item in value.items]
            case MapValue():
                inner = [self.value(unit, each) for pair in value.items for each in pair]
        return _around(inner)


def _around(inner: list[Size]) -> Size:
    return Size(1 + max((size.depth for size in inner), default=0), 1 + sum(size.parts for size in inner))


def refs(kind: Type) -> Iterator[Ref]:
    """The names inside a type."""
    if isinstance(kind, Ref):
        yield kind
    elif isinstance(kind, Container):
        for item in kind.items:
            yield from refs(item)


def names(value: Value) -> Iterator[Name]:
    """The names inside a value."""
    match value:
        case Name():
            yield value
        case ListValue():
            for item in value.items:
                yield from names(item)
        case MapValue():
            for pair in value.items:
                for each in pair:
                    yield from names(each)
