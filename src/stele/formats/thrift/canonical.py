"""The stable texts of a schema and their digests.

PRINTED      the document as `printer` writes it: documentation comments stay, other comments and layout go
NORMALIZED   PRINTED, and what has no order is sorted: headers, fields and enum values by number (which are written out
             where they were counted), functions, annotations, map entries. Definitions keep their order: the last
             struct is the one that data is of
CANONICAL    only what data and calls consist of: structs, unions, exceptions, enums, services, with the types behind
             the document's own typedefs and the values behind names of constants, and includes that are used. Nothing
             that concerns generated code, no documentation
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from stele.core.ports import TextForm
from stele.formats.thrift.printer import print_document, value_text
from stele.formats.thrift.schema import ThriftSchema, Unit
from stele.formats.thrift.syntax import (
    Annotation,
    Annotations,
    Base,
    Const,
    Container,
    Definition,
    Document,
    EnumType,
    Field,
    Function,
    Header,
    Include,
    ListValue,
    Literal,
    MapValue,
    Namespace,
    Ref,
    Requiredness,
    Senum,
    Service,
    Struct,
    Type,
    Typedef,
    Value,
)
from stele.formats.thrift.values import follow

_Annotated = Typedef | EnumType | Senum | Struct | Service
_MODERN: Final = {"byte": "i8", "slist": "string"}


def canonical(schema: ThriftSchema, form: TextForm) -> bytes:
    """The schema as one of its stable texts."""
    document = schema.unit.document
    if form is TextForm.NORMALIZED:
        document = normalized(document)
    elif form is TextForm.CANONICAL:
        document = normalized(_Essence(schema.unit).document())
    return print_document(document).encode()


def normalized(document: Document) -> Document:
    """The document with what has no order sorted, and one thing spelled one way."""
    return _Normal().document(document)


def fingerprints(schema: ThriftSchema) -> Mapping[str, bytes]:
    """`sha256` and `md5` of the CANONICAL form."""
    text = canonical(schema, TextForm.CANONICAL)
    return {
        "sha256": hashlib.sha256(text).digest(),
        "md5": hashlib.md5(text, usedforsecurity=False).digest(),
    }


class _Normal:
    """Sorts what has no order, and spells one thing one way."""

    def document(self, document: Document) -> Document:
        headers = sorted(map(self._header, document.headers), key=_header_order)
        return Document(tuple(headers), tuple(map(self._definition, document.definitions)))

    def _header(self, header: Header) -> Header:
        if isinstance(header, Namespace):
            return replace(header, annotations=_sorted(header.annotations))
        return header

    def _definition(self, definition: Definition) -> Definition:
        match definition:
            case Typedef():
                changed: _Annotated = replace(definition, type=self.type(definition.type))
            case Const():
                return replace(definition, type=self.type(definition.type), value=self.value(definition.value))
            case EnumType():
                values = sorted(definition.values, key=lambda each: (each.number, each.name))
                explicit = (replace(each, implicit=False, annotations=_sorted(each.annotations)) for each in values)
                changed = replace(definition, values=tuple(explicit))
            case Senum():
                changed = replace(definition, values=tuple(sorted(definition.values)))
            case Struct():
                changed = replace(definition, fields=self._fields(definition.fields, definition.kind))
            case Service():
                functions = sorted(map(self._function, definition.functions), key=lambda each: each.name)
                changed = replace(definition, functions=tuple(functions))
        return replace(changed, annotations=_sorted(definition.annotations))

    def _fields(self, fields: tuple[Field, ...], kind: str) -> tuple[Field, ...]:
        """Positive ids upwards, then the others downwards, as compilers count them."""
        ordered = sorted(fields, key=lambda field: (field.id <= 0, abs(field.id)))
        return tuple(self._field(field, kind) for field in ordered)

    def _field(self, field: Field, kind: str) -> Field:
        """Requiredness is dropped where compilers ignore it: in unions, and `optional` for arguments."""
        ignored = kind == "union" or (kind == "call" and field.requiredness is Requiredness.OPTIONAL)
        return replace(
            field,
            type=self.type(field.type),
            requiredness=Requiredness.DEFAULT if ignored else field.requiredness,
            default=None if field.default is None else self.value(field.default),
            implicit=False,
            xsd_attrs=None if field.xsd_attrs is None else self._fields(field.xsd_attrs, "attributes"),
            annotations=_sorted(field.annotations),
        )

    def _function(self, function: Function) -> Function:
        return replace(
            function,
            returns=None if function.returns is None else self.type(function.returns),
            arguments=self._fields(function.arguments, "call"),
            throws=self._fields(function.throws, "call"),
            annotations=_sorted(function.annotations),
        )

    def type(self, kind: Type) -> Type:
        match kind:
            case Base():
                return Base(_MODERN.get(kind.name, kind.name), _sorted(kind.annotations))
            case Container():
                items = tuple(map(self.type, kind.items))
                return replace(kind, items=items, annotations=_sorted(kind.annotations))
            case Ref():
                return kind

    def value(self, value: Value) -> Value:
        match value:
            case ListValue():
                return replace(value, items=tuple(map(self.value, value.items)))
            case MapValue():
                items = ((self.value(key), self.value(item)) for key, item in value.items)
                return replace(value, items=tuple(sorted(items, key=lambda pair: value_text(pair[0]))))
        return value


def _header_order(header: Header) -> tuple[str, str]:
    """cpp_include, include, namespace."""
    name = f"{header.scope} {header.name}" if isinstance(header, Namespace) else header.path
    return type(header).__name__, name


def _sorted(annotations: Annotations) -> Annotations:
    """By key; a key alone means the value 1."""
    full = (Annotation(each.key, "1" if each.value is None else each.value) for each in annotations)
    return tuple(sorted(full, key=lambda each: each.key))


class _Essence:
    """Leaves out what neither data nor calls show."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.used: set[str] = set()

    def document(self) -> Document:
        definitions = tuple(self._definitions())
        headers = self.unit.document.headers
        kept = [each for each in headers if isinstance(each, Include) and each.prefix in self.used]
        return Document(tuple(Include(each.path) for each in kept), definitions)

    def _definitions(self) -> Iterator[Definition]:
        for definition in self.unit.document.definitions:
            match definition:
                case EnumType():
                    values = (replace(each, annotations=(), doc="") for each in definition.values)
                    yield EnumType(definition.name, tuple(values))
                case Struct():
                    yield Struct(definition.kind, definition.name, self._fields(definition.fields))
                case Service():
                    self._use(definition.extends)
                    functions = tuple(map(self._function, definition.functions))
                    yield Service(definition.name, functions, definition.extends)

    def _function(self, function: Function) -> Function:
        return Function(
            function.name,
            None if function.returns is None else self._type(function.returns),
            self._fields(function.arguments),
            self._fields(function.throws),
            function.oneway,
        )

    def _fields(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        return tuple(map(self._field, fields))

    def _field(self, field: Field) -> Field:
        default = None
        if field.default is not None:
            default = written_out(self.unit, field.default)
            kind = self.unit.resolve(field.type).kind
            if isinstance(default, Literal) and not isinstance(default.value, str) and kind in {"bool", "double"}:
                default = Literal(bool(default.value) if kind == "bool" else float(default.value))
        return Field(field.id, field.name, self._type(field.type), field.requiredness, default)

    def _type(self, kind: Type) -> Type:
        """The type behind typedefs of this document; those of other documents stay names."""
        while isinstance(kind, Ref) and isinstance(found := self.unit.types.get(kind.name), Typedef | Senum):
            kind = found.type if isinstance(found, Typedef) else Base("string")
        match kind:
            case Base():
                return Base(kind.name)
            case Container():
                return Container(kind.kind, tuple(map(self._type, kind.items)))
            case Ref():
                self._use(kind.name)
                return Ref(kind.name)

    def _use(self, name: str) -> None:
        self.used.add(name.rpartition(".")[0])


def written_out(unit: Unit, value: Value) -> Value:
    """A value without names: constants by their values, enum values by their numbers."""
    unit, value = follow(unit, value)
    match value:
        case ListValue():
            return ListValue(tuple(written_out(unit, item) for item in value.items))
        case MapValue():
            return MapValue(tuple((written_out(unit, key), written_out(unit, item)) for key, item in value.items))
    return value
