"""Whether the names of a document lead somewhere, once each, and its values fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.thrift.graph import Circle, dependencies_first
from stele.formats.thrift.lexer import fault, place
from stele.formats.thrift.numbers import I16
from stele.formats.thrift.parser import MAX_DEPTH
from stele.formats.thrift.schema import Unit
from stele.formats.thrift.sizes import Size, Sizes, names, refs
from stele.formats.thrift.syntax import Const, EnumType, Field, Function, Ref, Service, Struct, Type, Typedef, Value
from stele.formats.thrift.values import fit, follow

MAX_PARTS: Final = 200_000
"""Types and values of one document together, typedefs and constants written out."""


def check(unit: Unit, sizes: Sizes, *, strict: bool) -> None:
    """Raise `MalformedSchema` or `UnresolvedReference` for what is wrong in one document.

    sizes has those of the included documents; this document's are added. strict=False lets values and field ids pass
    that are out of range.
    """
    _Check(unit, sizes, strict=strict).run()


class _Check:
    def __init__(self, unit: Unit, sizes: Sizes, *, strict: bool) -> None:
        self.unit = unit
        self.sizes = sizes
        self.strict = strict
        self.parts = 0

    def fault(self, at: int, why: str, expected: str | None = None) -> MalformedSchema:
        return fault(self.unit.text, at, why, expected)

    def run(self) -> None:
        self._unique()
        self._in_order(lambda: self.sizes.add_types(self.unit), "the typedefs name each other")
        self._in_order(lambda: self.sizes.add_constants(self.unit), "the constants name each other")
        self._in_order(self._order_services, "the services extend each other")
        for definition in self.unit.document.definitions:
            match definition:
                case Typedef():
                    self._type(definition.type, definition.at)
                case Const():
                    self._type(definition.type, definition.at)
                    self._value(definition.value, definition.type, definition.at)
                case Struct():
                    self._struct(definition)
                case EnumType():
                    self._once(((value.name, definition.at) for value in definition.values), "the value")
                case Service():
                    self._service(definition)

    # --- names ------------------------------------------------------------------------------------------------------

    def _unique(self) -> None:
        """Types and services share one space of names, constants have their own."""
        seen: set[tuple[bool, str]] = set()
        for definition in self.unit.document.definitions:
            key = (isinstance(definition, Const), definition.name)
            if key in seen:
                raise self.fault(definition.at, f"{definition.name} is defined twice", "a new name")
            seen.add(key)

    def _once(self, found: Iterable[tuple[object, int]], what: str) -> None:
        seen: set[object] = set()
        for name, at in found:
            if name in seen:
                raise self.fault(at, f"{what} {name} is there twice", "each one once")
            seen.add(name)

    def _in_order(self, work: Callable[[], None], what: str) -> None:
        """Do work that cannot be done when definitions depend on each other."""
        try:
            work()
        except Circle as circle:
            at = next(each.at for each in self.unit.document.definitions if each.name == circle.way[0])
            raise self.fault(at, f"{what} in a circle: {circle.shown(str)}") from None

    def _order_services(self) -> None:
        services = self.unit.services

        def above(name: str) -> Iterator[str]:
            if services[name].extends in services:
                yield services[name].extends

        dependencies_first(services, above)

    def _unresolved(self, name: str, at: int, what: str) -> UnresolvedReference:
        line, column = place(self.unit.text, at)
        prefix = name.rpartition(".")[0]
        expected = f"an include of {prefix}.thrift that defines it" if prefix else f"a {what} defined in this document"
        return UnresolvedReference(f"there is no {what} {name!r}", line=line, column=column, expected=expected)

    # --- members ----------------------------------------------------------------------------------------------------

    def _struct(self, struct: Struct) -> None:
        self._fields(struct.fields)
        defaults = [field for field in struct.fields if field.default is not None]
        if struct.kind == "union" and len(defaults) > 1 and self.strict:
            raise self.fault(defaults[1].at, f"the union {struct.name} has more than one default", "one at most")

    def _fields(self, fields: tuple[Field, ...]) -> None:
        self._once(((field.name, field.at) for field in fields), "the field")
        self._once(((field.id, field.at) for field in fields), "the field id")
        for field in fields:
            if self.strict and field.id not in I16:
                raise self.fault(field.at, f"the field id {field.id} is out of range", "a number of 16 bits")
            self._type(field.type, field.at)
            if field.default is not None:
                self._value(field.default, field.type, field.at)
            if field.xsd_attrs is not None:
                self._fields(field.xsd_attrs)

    def _service(self, service: Service) -> None:
        if service.extends and self.unit.service(service.extends) is None:
            raise self._unresolved(service.extends, service.at, "service")
        self._once(((function.name, service.at) for function in service.functions), "the function")
        for function in service.functions:
            self._function(function, service.at)

    def _function(self, function: Function, at: int) -> None:
        if function.returns is not None:
            self._type(function.returns, at)
        self._fields(function.arguments)
        self._fields(function.throws)
        for field in function.throws:
            thrown = self.unit.resolve(field.type).node
            if not (isinstance(thrown, Struct) and thrown.kind == "exception"):
                raise self.fault(
                    field.at, f"{function.name} throws {field.name}, which is no exception", "an exception"
                )

    # --- types and values -------------------------------------------------------------------------------------------

    def _type(self, kind: Type, at: int) -> None:
        for ref in refs(kind):
            if not self._known(ref):
                raise self._unresolved(ref.name, ref.at, "type")
        self._count(self.sizes.type(self.unit, kind), at)

    def _known(self, ref: Ref) -> bool:
        return self.unit.type(ref.name) is not None or ref.name == "uuid"

    def _value(self, value: Value, kind: Type, at: int) -> None:
        for name in names(value):
            follow(self.unit, name)
        self._count(self.sizes.value(self.unit, value), at)
        if self.strict:
            fit(self.unit, value, self.unit.resolve(kind), at)

    def _count(self, size: Size, at: int) -> None:
        self.parts += size.parts
        if size.depth > MAX_DEPTH:
            raise self.fault(at, f"nested deeper than {MAX_DEPTH} levels, with typedefs and constants written out")
        if self.parts > MAX_PARTS:
            raise self.fault(at, f"more than {MAX_PARTS} types and values, with typedefs and constants written out")
