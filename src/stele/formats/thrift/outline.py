"""What a document declares: headers, types with their members, constants and services.

Fields, arguments and exceptions are the same by id, enum values by number, everything else by name. Definitions of
included documents are not listed: they belong to their own documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from stele.formats.capabilities import OutlineNode
from stele.formats.outline_builder import OutlineBuilder
from stele.formats.thrift.canonical import normalized
from stele.formats.thrift.printer import notes, type_text, value_text
from stele.formats.thrift.schema import ThriftSchema
from stele.formats.thrift.syntax import (
    Annotations,
    Const,
    Container,
    CppInclude,
    Definition,
    EnumType,
    Field,
    Function,
    Header,
    Include,
    Namespace,
    Ref,
    Senum,
    Service,
    Struct,
    Type,
    Typedef,
)

DOCUMENT: Final = "/"
"""Path of the document itself."""


def outline(schema: ThriftSchema) -> list[OutlineNode]:
    """Headers, then definitions in the order of the document, each followed by its members, by number."""
    return _Outliner().run(schema)


class _Outliner:
    def __init__(self) -> None:
        self.outline = OutlineBuilder()

    def run(self, schema: ThriftSchema) -> list[OutlineNode]:
        document = normalized(schema.unit.document)
        self.outline.add_node(DOCUMENT, "document", {})
        for header in self.outline.until_full(document.headers):
            self._header(header)
        for definition in self.outline.until_full(document.definitions):
            self._definition(definition)
        return self.outline.nodes

    def _header(self, header: Header) -> None:
        match header:
            case Namespace():
                word, name = "namespace", header.scope
                attributes = {"name": header.name, **_annotations(header.annotations), "doc": header.doc}
            case Include():
                word, name, attributes = "include", header.path, {"doc": header.doc}
            case CppInclude():
                word, name, attributes = "cpp_include", header.path, {"doc": header.doc}
        self.outline.add_node(f"{word} {name}", word, attributes, parent=DOCUMENT, name=name)

    def _definition(self, definition: Definition) -> None:
        """Types of one name are the same whatever their kind: a struct that becomes a union has changed."""
        match definition:
            case Typedef():
                kind, family, attributes = "typedef", "type", {"type": type_text(definition.type)}
            case Const():
                kind, family = "const", "const"
                attributes = {"type": type_text(definition.type), "value": value_text(definition.value)}
            case EnumType() | Senum():
                kind, family, attributes = "enum" if isinstance(definition, EnumType) else "senum", "type", {}
            case Struct():
                kind, family, attributes = definition.kind, "type", {"xsd_all": "yes" if definition.xsd_all else ""}
            case Service():
                kind, family, attributes = "service", "service", {"extends": definition.extends}
        if not isinstance(definition, Const):
            attributes |= _annotations(definition.annotations)
        name = definition.name
        path = self.outline.add_node(
            name,
            kind,
            {**attributes, "doc": definition.doc},
            parent=DOCUMENT,
            name=name,
            identity=f"{family} {name}",
            uses=_refs(definition.type) if isinstance(definition, Typedef | Const) else [],
        )
        self._members(definition, path)

    def _members(self, definition: Definition, path: str) -> None:
        match definition:
            case EnumType():
                self._values(definition, path)
            case Senum():
                for value in self.outline.until_full(definition.values):
                    self.outline.add_node(f"{path}.{value}", "enum value", {}, parent=path, name=value)
            case Struct():
                for field in self.outline.until_full(definition.fields):
                    self._field(field, path, "field")
            case Service():
                for function in self.outline.until_full(definition.functions):
                    self._function(function, path)
            case _:
                pass

    def _values(self, enum: EnumType, path: str) -> None:
        times = Counter(value.number for value in enum.values)
        for value in self.outline.until_full(enum.values):
            alone = times[value.number] == 1
            self.outline.add_node(
                f"{path}.{value.name}",
                "enum value",
                {"number": str(value.number), **_annotations(value.annotations), "doc": value.doc},
                parent=path,
                name=value.name,
                identity=f"value {value.number}" if alone else "",
            )

    def _field(self, field: Field, path: str, kind: str) -> None:
        attributes = {
            "type": type_text(field.type),
            "requiredness": field.requiredness.value,
            "default": "" if field.default is None else value_text(field.default),
            "id": str(field.id),
            "reference": "yes" if field.boxed else "",
            "xsd_optional": "yes" if field.xsd_optional else "",
            "xsd_nillable": "yes" if field.xsd_nillable else "",
            "xsd_attrs": "yes" if field.xsd_attrs is not None else "",
            **_annotations(field.annotations),
            "doc": field.doc,
        }
        path = self.outline.add_node(
            f"{path}.{field.name}",
            kind,
            attributes,
            parent=path,
            name=field.name,
            identity=f"{kind} {field.id}",
            uses=_refs(field.type),
        )
        for attribute in self.outline.until_full(field.xsd_attrs or ()):
            self._field(attribute, path, "xsd attribute")

    def _function(self, function: Function, service: str) -> None:
        returns = function.returns
        attributes = {
            "returns": "void" if returns is None else type_text(returns),
            "oneway": "yes" if function.oneway else "",
            **_annotations(function.annotations),
            "doc": function.doc,
        }
        uses = [] if returns is None else _refs(returns)
        where = f"{service}.{function.name}"
        path = self.outline.add_node(where, "function", attributes, parent=service, name=function.name, uses=uses)
        for field in self.outline.until_full(function.arguments):
            self._field(field, path, "argument")
        for field in self.outline.until_full(function.throws):
            self._field(field, path, "exception")


def _annotations(found: Annotations) -> dict[str, str]:
    """Annotations by `annotation key`."""
    return {f"annotation {each.key}": each.value or notes((each,)).strip() for each in found}


def _refs(kind: Type) -> list[str]:
    """The names a type refers to."""
    return list(_names(kind))


def _names(kind: Type) -> Iterator[str]:
    match kind:
        case Ref():
            yield kind.name
        case Container():
            for item in kind.items:
                yield from _names(item)
        case _:
            pass
