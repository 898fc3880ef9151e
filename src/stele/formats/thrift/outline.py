"""Declarations of a document: its outline, for comparing versions, its fields, and their source positions.

An outline is the list of headers, types with their members, constants and services.

Fields, arguments and exceptions are identified by id, enum values by number, everything else by name. Definitions of
included documents are not listed: they belong to their own documents.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from stele.core.findings import SourcePosition
from stele.core.ports import Field
from stele.formats.capabilities import OutlineNode
from stele.formats.outline_builder import OutlineBuilder
from stele.formats.thrift.canonical import normalize_document
from stele.formats.thrift.constants import to_json_value
from stele.formats.thrift.printer import format_annotations, format_type, format_value
from stele.formats.thrift.schema import (
    Annotations,
    Const,
    ContainerType,
    CppInclude,
    Definition,
    Header,
    Include,
    Requiredness,
    ResolvedType,
    Senum,
    ThriftEnum,
    ThriftField,
    ThriftFunction,
    ThriftNamespace,
    ThriftSchema,
    ThriftService,
    ThriftStruct,
    ThriftType,
    Typedef,
    TypeName,
)

DOCUMENT: Final = "/"
"""Path of the document itself."""


def build_outline(schema: ThriftSchema) -> list[OutlineNode]:
    """Return headers, then definitions in the order of the document, each followed by its members, by number."""
    return _Outliner().build_outline(schema)


class _Outliner:
    def __init__(self) -> None:
        self.outline = OutlineBuilder()

    def build_outline(self, schema: ThriftSchema) -> list[OutlineNode]:
        document = normalize_document(schema.unit.document)
        self.outline.add_node(DOCUMENT, "document", {})
        for header in self.outline.until_full(document.headers):
            self._add_header(header)
        for definition in self.outline.until_full(document.definitions):
            self._add_definition(definition)
        return self.outline.nodes

    def _add_header(self, header: Header) -> None:
        match header:
            case ThriftNamespace():
                word, name = "namespace", header.scope
                attributes = {"name": header.name, **_format_annotations(header.annotations), "doc": header.doc}
            case Include():
                word, name, attributes = "include", header.path, {"doc": header.doc}
            case CppInclude():
                word, name, attributes = "cpp_include", header.path, {"doc": header.doc}
        self.outline.add_node(f"{word} {name}", word, attributes, parent=DOCUMENT, name=name)

    def _add_definition(self, definition: Definition) -> None:
        """Add a definition. Types are identified by name alone, so a struct that becomes a union counts as changed."""
        match definition:
            case Typedef():
                kind, family, attributes = "typedef", "type", {"type": format_type(definition.type)}
            case Const():
                kind, family = "const", "const"
                attributes = {"type": format_type(definition.type), "value": format_value(definition.value)}
            case ThriftEnum() | Senum():
                kind, family, attributes = "enum" if isinstance(definition, ThriftEnum) else "senum", "type", {}
            case ThriftStruct():
                kind, family, attributes = definition.kind, "type", {"xsd_all": "yes" if definition.xsd_all else ""}
            case ThriftService():
                kind, family, attributes = "service", "service", {"extends": definition.extends}
        if not isinstance(definition, Const):
            attributes |= _format_annotations(definition.annotations)
        name = definition.name
        path = self.outline.add_node(
            name,
            kind,
            {**attributes, "doc": definition.doc},
            parent=DOCUMENT,
            name=name,
            identity=f"{family} {name}",
            uses=_referred_paths(definition.type) if isinstance(definition, Typedef | Const) else [],
        )
        self._add_members(definition, path)

    def _add_members(self, definition: Definition, path: str) -> None:
        match definition:
            case ThriftEnum():
                self._add_values(definition, path)
            case Senum():
                for value in self.outline.until_full(definition.values):
                    self.outline.add_node(f"{path}.{value}", "enum value", {}, parent=path, name=value)
            case ThriftStruct():
                for field in self.outline.until_full(definition.fields):
                    self._add_field(field, path, "field")
            case ThriftService():
                for function in self.outline.until_full(definition.functions):
                    self._add_function(function, path)
            case _:
                pass

    def _add_values(self, enum: ThriftEnum, path: str) -> None:
        times = Counter(value.number for value in enum.values)
        for value in self.outline.until_full(enum.values):
            alone = times[value.number] == 1
            self.outline.add_node(
                f"{path}.{value.name}",
                "enum value",
                {"number": str(value.number), **_format_annotations(value.annotations), "doc": value.doc},
                parent=path,
                name=value.name,
                identity=f"value {value.number}" if alone else "",
            )

    def _add_field(self, field: ThriftField, path: str, kind: str) -> None:
        attributes = {
            "type": format_type(field.type),
            "requiredness": field.requiredness.value,
            "default": "" if field.default is None else format_value(field.default),
            "id": str(field.id),
            "reference": "yes" if field.boxed else "",
            "xsd_optional": "yes" if field.xsd_optional else "",
            "xsd_nillable": "yes" if field.xsd_nillable else "",
            "xsd_attrs": "yes" if field.xsd_attrs is not None else "",
            **_format_annotations(field.annotations),
            "doc": field.doc,
        }
        path = self.outline.add_node(
            f"{path}.{field.name}",
            kind,
            attributes,
            parent=path,
            name=field.name,
            identity=f"{kind} {field.id}",
            uses=_referred_paths(field.type),
        )
        for attribute in self.outline.until_full(field.xsd_attrs or ()):
            self._add_field(attribute, path, "xsd attribute")

    def _add_function(self, function: ThriftFunction, service: str) -> None:
        returns = function.returns
        attributes = {
            "returns": "void" if returns is None else format_type(returns),
            "oneway": "yes" if function.oneway else "",
            **_format_annotations(function.annotations),
            "doc": function.doc,
        }
        uses = [] if returns is None else _referred_paths(returns)
        where = f"{service}.{function.name}"
        path = self.outline.add_node(where, "function", attributes, parent=service, name=function.name, uses=uses)
        for field in self.outline.until_full(function.arguments):
            self._add_field(field, path, "argument")
        for field in self.outline.until_full(function.throws):
            self._add_field(field, path, "exception")


def _format_annotations(annotations: Annotations) -> dict[str, str]:
    """Return annotations by `annotation key`."""
    return {f"annotation {each.key}": each.value or format_annotations((each,)).strip() for each in annotations}


def _referred_paths(kind: ThriftType) -> list[str]:
    """Return the names a type refers to."""
    return list(_type_names(kind))


def _type_names(kind: ThriftType) -> Iterator[str]:
    match kind:
        case TypeName():
            yield kind.name
        case ContainerType():
            for item in kind.items:
                yield from _type_names(item)
        case _:
            pass


# --- fields for search and pages --------------------------------------------------------------------------------------
# All fields of a schema by dotted path, for search, pages and lint.

MAX_FIELDS: Final = 10_000
"""The list ends here: a struct used twice at each of n levels has 2**n fields."""

MAX_DEPTH: Final = 32
"""Most levels of nested structs that are listed."""

MAX_DEFAULT: Final = 1_000
"""Most characters of a listed default. A longer one is cut and ends in an ellipsis, so it is no longer JSON."""


def list_fields(schema: ThriftSchema) -> list[Field]:
    """Return fields depth first; `[]` enters a list or set, `{}` the values of a map, `{}.key` its keys.

    Paths start in the struct that `type_name` names. Structs that no listed one uses follow in the order of the
    document; their paths begin with their name. A struct inside itself is listed, but not entered again.
    """
    lister = _FieldLister()
    root = schema.type_name
    if root:
        lister.list_struct(ResolvedType(schema.unit, schema.find_struct(root)), "")
    for struct in schema.unit.structs:
        if id(struct) not in lister.seen:
            lister.list_struct(ResolvedType(schema.unit, struct), f"{struct.name}.")
    return lister.found


def _is_optional(struct: ThriftStruct, field: ThriftField) -> bool | None:
    """Return whether data may lack a field; None if the field has no requiredness keyword."""
    if struct.kind == "union" or field.requiredness is Requiredness.OPTIONAL:
        return True
    return False if field.requiredness is Requiredness.REQUIRED else None


class _FieldLister:
    def __init__(self) -> None:
        self.found: list[Field] = []
        self.seen: set[int] = set()
        self._open: list[ThriftStruct] = []
        self._defaults: dict[int, str] = {}

    def list_struct(self, kind: ResolvedType, prefix: str) -> None:
        """List the fields of a struct and of nested ones. Their paths start with `prefix`."""
        struct = kind.node
        if (
            not isinstance(struct, ThriftStruct)
            or len(self._open) >= MAX_DEPTH
            or any(struct is each for each in self._open)
        ):
            return
        self.seen.add(id(struct))
        self._open.append(struct)
        for field in struct.fields:
            if len(self.found) >= MAX_FIELDS:
                break
            default = None
            if field.default is not None:
                default = self._defaults.get(id(field))
                if default is None:
                    text = json.dumps(to_json_value(kind.unit, field.default), ensure_ascii=False)
                    default = text if len(text) <= MAX_DEFAULT else f"{text[: MAX_DEFAULT - 1]}…"
                    self._defaults[id(field)] = default
            word, optional = format_type(field.type), _is_optional(struct, field)
            self.found.append(Field(prefix + field.name, word, default, field.doc, optional))
            self._list_type(kind.unit.resolve_type(field.type), prefix + field.name)
        self._open.pop()

    def _list_type(self, kind: ResolvedType, path: str) -> None:
        if isinstance(kind.node, ContainerType):
            if kind.kind == "map":
                self._list_type(kind.inner_type(0), f"{path}{{}}.key")
            self._list_type(kind.inner_type(-1), path + ("{}" if kind.kind == "map" else "[]"))
        elif isinstance(kind.node, ThriftStruct):
            self.list_struct(kind, f"{path}.")


def locate_declarations(schema: ThriftSchema) -> dict[str, SourcePosition]:
    """Return positions by the paths of findings: `Order`, `Order.note`, `Shop.find.id`."""
    text = schema.unit.text
    starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
    positions = {"/": SourcePosition(1, 1)}
    for path, at in _walk_offsets(schema):
        line = bisect_right(starts, at)
        positions.setdefault(path, SourcePosition(line, at - starts[line - 1] + 1))
    return positions


def _walk_offsets(schema: ThriftSchema) -> Iterator[tuple[str, int]]:
    """Yield (path, offset in characters) of each declaration."""
    for definition in schema.unit.document.definitions:
        name = definition.name
        yield name, definition.at
        match definition:
            case ThriftEnum():
                yield from ((f"{name}.{value.name}", value.at) for value in definition.values)
            case Senum():
                yield from ((f"{name}.{value}", definition.at) for value in definition.values)
            case ThriftStruct():
                yield from _walk_fields(definition.fields, name)
            case ThriftService():
                for function in definition.functions:
                    path = f"{name}.{function.name}"
                    yield path, function.at
                    yield from _walk_fields((*function.arguments, *function.throws), path)
            case _:
                pass


def _walk_fields(fields: Iterable[ThriftField], path: str) -> Iterator[tuple[str, int]]:
    return ((f"{path}.{field.name}", field.at) for field in fields)
