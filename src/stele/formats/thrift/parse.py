"""Parsing: turns a document and its references into a linked schema, and validates it.

Every name of a document must refer to exactly one definition, and its values must fit their types.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.json_reader import line_and_column
from stele.formats.thrift.constants import follow_names, require_fit
from stele.formats.thrift.grammar import I16, MAX_DEPTH, make_fault, parse_document, position_of
from stele.formats.thrift.schema import (
    BaseType,
    Const,
    ContainerType,
    Include,
    ListValue,
    LiteralValue,
    MapValue,
    ThriftEnum,
    ThriftField,
    ThriftFunction,
    ThriftSchema,
    ThriftService,
    ThriftStruct,
    ThriftType,
    ThriftUnit,
    Typedef,
    TypeName,
    Value,
    ValueName,
)

MAX_BYTES: Final = 768 << 10
"""Most bytes of a document together with its includes. A common machine parses this in 1.5 seconds."""


def parse(text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True) -> ThriftSchema:
    """Parse one document.

    references maps include paths to documents. `include "x"` finds the reference named x, or x relative to the folder
    of the including document; name is the document's own path. strict=False accepts defaults and constants whose value
    does not fit their type, and field ids beyond 16 bits.
    Raises `MalformedSchema` with line and column, `UnresolvedReference` for includes and names without a target.
    """
    units = _load_units(text, references, name)
    try:
        ordered = sort_by_dependencies(units, lambda unit: [each for group in unit.includes.values() for each in group])
    except CircularDependency as circle:
        way = circle.describe_way(lambda unit: unit.name or "the schema" if isinstance(unit, ThriftUnit) else "")
        raise MalformedSchema(f"the includes go in a circle: {way}", line=1, column=1) from None
    sizes = ExpandedSizes()
    for unit in ordered:
        try:
            validate_unit(unit, sizes, strict=strict)
        except MalformedSchema as error:
            raise _within_document(unit.name, error) from None
    return ThriftSchema(units[0])


def _load_units(text: bytes, references: Mapping[str, bytes], name: str) -> list[ThriftUnit]:
    """Return the document and all documents it includes, directly or not. The document comes first."""
    main = _parse_unit("", text)
    units: dict[str, ThriftUnit] = {"": main}
    todo = [(main, posixpath.dirname(name))]
    size = len(text)
    while todo:
        unit, folder = todo.pop()
        for header in unit.document.headers:
            if not isinstance(header, Include):
                continue
            path = _find_reference(unit, header, folder, references)
            included_unit = units.get(path)
            if included_unit is None:
                size += len(references[path])
                if size > MAX_BYTES:
                    raise _too_large_error()
                included_unit = units[path] = _parse_unit(path, references[path])
                todo.append((included_unit, posixpath.dirname(path)))
            group = unit.includes.setdefault(header.prefix, [])
            if included_unit not in group:
                group.append(included_unit)
    return list(units.values())


def _find_reference(unit: ThriftUnit, header: Include, folder: str, references: Mapping[str, bytes]) -> str:
    """Return the name of the reference that an include refers to."""
    for path in (header.path, posixpath.normpath(posixpath.join(folder, header.path)), posixpath.normpath(header.path)):
        if path and path in references:
            return path
    line, column = position_of(unit.text, header.at)
    missing = UnresolvedReference(
        f"the included document {header.path!r} is not among the references",
        line=line,
        column=column,
        expected=f"a reference named {header.path!r}",
    )
    raise _within_document(unit.name, missing)


def _parse_unit(name: str, text: bytes) -> ThriftUnit:
    """Parse one document without its includes."""
    if len(text) > MAX_BYTES:
        raise _too_large_error()
    try:
        decoded = text.decode("utf-8")
        return ThriftUnit(name, decoded, parse_document(decoded))
    except UnicodeDecodeError as error:
        line, column = line_and_column(text, error.start)
        raise _within_document(
            name, MalformedSchema("the document is not UTF-8", line=line, column=column, expected="UTF-8")
        ) from None
    except MalformedSchema as error:
        raise _within_document(name, error) from None


def _within_document(name: str, error: MalformedSchema) -> MalformedSchema:
    """Return the error with the name of the included document."""
    if not name:
        return error
    return type(error)(
        f"in the included document {name!r}: {error.why}",
        line=error.line,
        column=error.column,
        path=error.path,
        expected=error.expected,
    )


def _too_large_error() -> MalformedSchema:
    return MalformedSchema(f"the schema and what it includes are larger than {MAX_BYTES} bytes")


# --- validation -------------------------------------------------------------------------------------------------------
# Checks that every name has exactly one definition, and that values fit their types.

MAX_PARTS: Final = 200_000
"""Most types and values of one document, with typedefs and constants expanded."""


def validate_unit(unit: ThriftUnit, sizes: ExpandedSizes, *, strict: bool) -> None:
    """Raise `MalformedSchema` or `UnresolvedReference` for an error in one document.

    sizes has those of the included documents; this document's are added. strict=False accepts values and field ids
    that are out of range.
    """
    _Validator(unit, sizes, strict=strict).validate_unit()


class _Validator:
    def __init__(self, unit: ThriftUnit, sizes: ExpandedSizes, *, strict: bool) -> None:
        self.unit = unit
        self.sizes = sizes
        self.strict = strict
        self.parts = 0

    def make_fault(self, at: int, why: str, expected: str | None = None) -> MalformedSchema:
        return make_fault(self.unit.text, at, why, expected)

    def validate_unit(self) -> None:
        self._check_definition_names()
        self._reject_circle(lambda: self.sizes.add_types(self.unit), "the typedefs name each other")
        self._reject_circle(lambda: self.sizes.add_constants(self.unit), "the constants name each other")
        self._reject_circle(self._order_services, "the services extend each other")
        for definition in self.unit.document.definitions:
            match definition:
                case Typedef():
                    self._check_type(definition.type, definition.at)
                case Const():
                    self._check_type(definition.type, definition.at)
                    self._check_value(definition.value, definition.type, definition.at)
                case ThriftStruct():
                    self._check_struct(definition)
                case ThriftEnum():
                    self._check_unique(((value.name, definition.at) for value in definition.values), "the value")
                case ThriftService():
                    self._check_service(definition)

    # --- names ------------------------------------------------------------------------------------------------------

    def _check_definition_names(self) -> None:
        """Check that names are unique. Types and services share one namespace, constants have their own."""
        seen: set[tuple[bool, str]] = set()
        for definition in self.unit.document.definitions:
            key = (isinstance(definition, Const), definition.name)
            if key in seen:
                raise self.make_fault(definition.at, f"{definition.name} is defined twice", "a new name")
            seen.add(key)

    def _check_unique(self, names: Iterable[tuple[object, int]], what: str) -> None:
        seen: set[object] = set()
        for name, at in names:
            if name in seen:
                raise self.make_fault(at, f"{what} {name} is declared twice", "each one once")
            seen.add(name)

    def _reject_circle(self, work: Callable[[], None], what: str) -> None:
        """Run `work`, and raise `MalformedSchema` if definitions depend on each other in a cycle."""
        try:
            work()
        except CircularDependency as circle:
            at = next(each.at for each in self.unit.document.definitions if each.name == circle.way[0])
            raise self.make_fault(at, f"{what} in a circle: {circle.describe_way(str)}") from None

    def _order_services(self) -> None:
        services = self.unit.services

        def above(name: str) -> Iterator[str]:
            if services[name].extends in services:
                yield services[name].extends

        sort_by_dependencies(services, above)

    def _unresolved_error(self, name: str, at: int, what: str) -> UnresolvedReference:
        line, column = position_of(self.unit.text, at)
        prefix = name.rpartition(".")[0]
        expected = f"an include of {prefix}.thrift that defines it" if prefix else f"a {what} defined in this document"
        return UnresolvedReference(f"there is no {what} {name!r}", line=line, column=column, expected=expected)

    # --- members ----------------------------------------------------------------------------------------------------

    def _check_struct(self, struct: ThriftStruct) -> None:
        self._check_fields(struct.fields)
        defaults = [field for field in struct.fields if field.default is not None]
        if struct.kind == "union" and len(defaults) > 1 and self.strict:
            raise self.make_fault(defaults[1].at, f"the union {struct.name} has more than one default", "one at most")

    def _check_fields(self, fields: tuple[ThriftField, ...]) -> None:
        self._check_unique(((field.name, field.at) for field in fields), "the field")
        self._check_unique(((field.id, field.at) for field in fields), "the field id")
        for field in fields:
            if self.strict and field.id not in I16:
                raise self.make_fault(field.at, f"the field id {field.id} is out of range", "a number of 16 bits")
            self._check_type(field.type, field.at)
            if field.default is not None:
                self._check_value(field.default, field.type, field.at)
            if field.xsd_attrs is not None:
                self._check_fields(field.xsd_attrs)

    def _check_service(self, service: ThriftService) -> None:
        if service.extends and self.unit.find_service(service.extends) is None:
            raise self._unresolved_error(service.extends, service.at, "service")
        self._check_unique(((function.name, service.at) for function in service.functions), "the function")
        for function in service.functions:
            self._check_function(function, service.at)

    def _check_function(self, function: ThriftFunction, at: int) -> None:
        if function.returns is not None:
            self._check_type(function.returns, at)
        self._check_fields(function.arguments)
        self._check_fields(function.throws)
        for field in function.throws:
            thrown = self.unit.resolve_type(field.type).node
            if not (isinstance(thrown, ThriftStruct) and thrown.kind == "exception"):
                raise self.make_fault(
                    field.at, f"{function.name} throws {field.name}, which is not an exception", "an exception"
                )

    # --- types and values -------------------------------------------------------------------------------------------

    def _check_type(self, kind: ThriftType, at: int) -> None:
        for ref in names_in_type(kind):
            if not self._is_known(ref):
                raise self._unresolved_error(ref.name, ref.at, "type")
        self._count_parts(self.sizes.type_size(self.unit, kind), at)

    def _is_known(self, ref: TypeName) -> bool:
        return self.unit.find_type(ref.name) is not None or ref.name == "uuid"

    def _check_value(self, value: Value, kind: ThriftType, at: int) -> None:
        for name in names_in_value(value):
            follow_names(self.unit, name)
        self._count_parts(self.sizes.value_size(self.unit, value), at)
        if self.strict:
            require_fit(self.unit, value, self.unit.resolve_type(kind), at)

    def _count_parts(self, size: ExpandedSize, at: int) -> None:
        self.parts += size.parts
        if size.depth > MAX_DEPTH:
            raise self.make_fault(at, f"nested deeper than {MAX_DEPTH} levels, with typedefs and constants written out")
        if self.parts > MAX_PARTS:
            raise self.make_fault(
                at, f"more than {MAX_PARTS} types and values, with typedefs and constants written out"
            )


# --- how large types and values are with typedefs and constants written out -------------------------------------------


class ExpandedSize(NamedTuple):
    """Depth and number of parts of a type or value after expansion."""

    depth: int
    parts: int


_ONE: Final = ExpandedSize(1, 1)


class ExpandedSizes:
    """Sizes of the expanded typedefs and constants of units. A unit is added after those it includes.

    A few lines of nested typedefs or constants can expand to more than fits into memory. Their sizes are computed
    first, before anything expands them, so that code that walks a validated schema may recurse.
    """

    def __init__(self) -> None:
        self._types: dict[tuple[ThriftUnit, str], ExpandedSize] = {}
        self._constants: dict[tuple[ThriftUnit, str], ExpandedSize] = {}

    def add_types(self, unit: ThriftUnit) -> None:
        """Compute the sizes of the typedefs of a unit. Raises `CircularDependency` (of their names)."""
        own = {each.name: each.type for each in unit.types.values() if isinstance(each, Typedef)}
        for name in sort_by_dependencies(
            own, lambda name: (ref.name for ref in names_in_type(own[name]) if ref.name in own)
        ):
            self._types[unit, name] = self.type_size(unit, own[name])

    def add_constants(self, unit: ThriftUnit) -> None:
        """Compute the sizes of a unit's constants, after `add_types`. Raises `CircularDependency` (of their names)."""
        own = {each.name: each.value for each in unit.constants.values()}
        for name in sort_by_dependencies(
            own, lambda name: (used.name for used in names_in_value(own[name]) if used.name in own)
        ):
            self._constants[unit, name] = self.value_size(unit, own[name])

    def type_size(self, unit: ThriftUnit, kind: ThriftType) -> ExpandedSize:
        """Return the size of a type of a unit. An unknown name counts as one part."""
        match kind:
            case BaseType():
                return _ONE
            case TypeName():
                target = unit.find_type(kind.name)
                inner = [self._types[target[0], target[1].name]] if target and isinstance(target[1], Typedef) else []
            case ContainerType():
                inner = [self.type_size(unit, item) for item in kind.items]
        return _enclosing_size(inner)

    def value_size(self, unit: ThriftUnit, value: Value) -> ExpandedSize:
        """Return the size of a value of a unit."""
        match value:
            case LiteralValue():
                return _ONE
            case ValueName():
                target = unit.find_value(value.name)
                inner = [self._constants[target[0], target[1].name]] if target and len(target) == 2 else []
            case ListValue():
                inner = [self.value_size(unit, item) for item in value.items]
            case MapValue():
                inner = [self.value_size(unit, each) for pair in value.items for each in pair]
        return _enclosing_size(inner)


def _enclosing_size(inner: list[ExpandedSize]) -> ExpandedSize:
    return ExpandedSize(1 + max((size.depth for size in inner), default=0), 1 + sum(size.parts for size in inner))


def names_in_type(kind: ThriftType) -> Iterator[TypeName]:
    """Yield the names inside a type."""
    if isinstance(kind, TypeName):
        yield kind
    elif isinstance(kind, ContainerType):
        for item in kind.items:
            yield from names_in_type(item)


def names_in_value(value: Value) -> Iterator[ValueName]:
    """Yield the names inside a value."""
    match value:
        case ValueName():
            yield value
        case ListValue():
            for item in value.items:
                yield from names_in_value(item)
        case MapValue():
            for pair in value.items:
                for each in pair:
                    yield from names_in_value(each)


# --- order of dependencies --------------------------------------------------------------------------------------------


N = TypeVar("N", bound=Hashable)

_SHOWN: Final = 8
"""Most steps of a cycle in an error message."""


class CircularDependency(Exception):
    """Raised when nodes depend on each other in a cycle. `way` leads from the first one back to it."""

    def __init__(self, way: list[Hashable]) -> None:
        super().__init__("things depend on each other in a circle")
        self.way = way

    def describe_way(self, name: Callable[[Hashable], str]) -> str:
        """Return the cycle as text. Of a long one, the middle is left out."""
        names = [name(node) for node in self.way]
        return " > ".join(names if len(names) <= _SHOWN else [*names[: _SHOWN - 2], "…", names[-1]])


def sort_by_dependencies(nodes: Iterable[N], edges: Callable[[N], Iterable[N]]) -> list[N]:
    """Return all nodes and what they depend on, each after its dependencies. Raises `CircularDependency`."""
    done: dict[N, None] = {}
    for root in nodes:
        if root in done:
            continue
        way: dict[N, None] = {root: None}
        stack = [(root, iter(edges(root)))]
        while stack:
            node, rest = stack[-1]
            following = next((each for each in rest if each not in done), None)
            if following is None:
                stack.pop()
                done[node] = None
                del way[node]
            elif following in way:
                steps: list[Hashable] = list(way)
                raise CircularDependency([*steps[steps.index(following) :], following])
            else:
                way[following] = None
                stack.append((following, iter(edges(following))))
    return list(done)


def list_imports(text: bytes) -> list[str]:
    """Return the paths of the includes."""
    try:
        document = parse_document(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise MalformedSchema(f"the document is not UTF-8: {error.reason}") from None
    return list(dict.fromkeys(each.path for each in document.headers if isinstance(each, Include)))
