"""The stable texts of a schema and their digests.

PRINTED      the document as `printer` writes it: it keeps documentation comments, not other comments and layout
NORMALIZED   PRINTED, with everything sorted whose order has no meaning: headers, fields and enum values by number,
             functions, annotations, map entries. Implicit numbers are written out. Definitions keep their order,
             because the last struct is the type of the data
CANONICAL    only what affects data and calls: structs, unions, exceptions, enums, services and used includes.
             Typedefs of the document and names of constants are replaced by what they stand for. There is nothing
             about generated code, and no documentation
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from stele.core.ports import TextForm
from stele.formats.thrift.constants import resolve_names
from stele.formats.thrift.printer import format_value, print_document
from stele.formats.thrift.schema import (
    Annotation,
    Annotations,
    BaseType,
    Const,
    ContainerType,
    Definition,
    Header,
    Include,
    ListValue,
    LiteralValue,
    MapValue,
    Requiredness,
    Senum,
    ThriftDocument,
    ThriftEnum,
    ThriftField,
    ThriftFunction,
    ThriftNamespace,
    ThriftSchema,
    ThriftService,
    ThriftStruct,
    ThriftType,
    ThriftUnit,
    Typedef,
    TypeName,
    Value,
)

_Annotated = Typedef | ThriftEnum | Senum | ThriftStruct | ThriftService
_MODERN: Final = {"byte": "i8", "slist": "string"}


def print_canonical(schema: ThriftSchema, form: TextForm) -> bytes:
    """Return the schema as one of its stable texts."""
    document = schema.unit.document
    if form is TextForm.NORMALIZED:
        document = normalize_document(document)
    elif form is TextForm.CANONICAL:
        document = normalize_document(_CanonicalBuilder(schema.unit).build_document())
    return print_document(document).encode()


def normalize_document(document: ThriftDocument) -> ThriftDocument:
    """Return the document with everything sorted whose order has no meaning, and with uniform spelling."""
    return _Normalizer().normalize_document(document)


def compute_fingerprints(schema: ThriftSchema) -> Mapping[str, bytes]:
    """Return `sha256` and `md5` of the CANONICAL form."""
    text = print_canonical(schema, TextForm.CANONICAL)
    return {
        "sha256": hashlib.sha256(text).digest(),
        "md5": hashlib.md5(text, usedforsecurity=False).digest(),
    }


class _Normalizer:
    """Sorts everything whose order has no meaning, and makes spelling uniform."""

    def normalize_document(self, document: ThriftDocument) -> ThriftDocument:
        headers = sorted(map(self._normalize_header, document.headers), key=_header_order)
        return ThriftDocument(tuple(headers), tuple(map(self._normalize_definition, document.definitions)))

    def _normalize_header(self, header: Header) -> Header:
        if isinstance(header, ThriftNamespace):
            return replace(header, annotations=_sort_annotations(header.annotations))
        return header

    def _normalize_definition(self, definition: Definition) -> Definition:
        match definition:
            case Typedef():
                changed: _Annotated = replace(definition, type=self.normalize_type(definition.type))
            case Const():
                return replace(
                    definition, type=self.normalize_type(definition.type), value=self.normalize_value(definition.value)
                )
            case ThriftEnum():
                values = sorted(definition.values, key=lambda each: (each.number, each.name))
                explicit = (
                    replace(each, implicit=False, annotations=_sort_annotations(each.annotations)) for each in values
                )
                changed = replace(definition, values=tuple(explicit))
            case Senum():
                changed = replace(definition, values=tuple(sorted(definition.values)))
            case ThriftStruct():
                changed = replace(definition, fields=self._normalize_fields(definition.fields, definition.kind))
            case ThriftService():
                functions = sorted(map(self._normalize_function, definition.functions), key=lambda each: each.name)
                changed = replace(definition, functions=tuple(functions))
        return replace(changed, annotations=_sort_annotations(definition.annotations))

    def _normalize_fields(self, fields: tuple[ThriftField, ...], kind: str) -> tuple[ThriftField, ...]:
        """Return the fields in order: positive ids ascending, then the others descending, as compilers count them."""
        ordered = sorted(fields, key=lambda field: (field.id <= 0, abs(field.id)))
        return tuple(self._normalize_field(field, kind) for field in ordered)

    def _normalize_field(self, field: ThriftField, kind: str) -> ThriftField:
        """Return a field without requiredness where compilers ignore it: in unions, and `optional` for arguments."""
        ignored = kind == "union" or (kind == "call" and field.requiredness is Requiredness.OPTIONAL)
        return replace(
            field,
            type=self.normalize_type(field.type),
            requiredness=Requiredness.DEFAULT if ignored else field.requiredness,
            default=None if field.default is None else self.normalize_value(field.default),
            implicit=False,
            xsd_attrs=None if field.xsd_attrs is None else self._normalize_fields(field.xsd_attrs, "attributes"),
            annotations=_sort_annotations(field.annotations),
        )

    def _normalize_function(self, function: ThriftFunction) -> ThriftFunction:
        return replace(
            function,
            returns=None if function.returns is None else self.normalize_type(function.returns),
            arguments=self._normalize_fields(function.arguments, "call"),
            throws=self._normalize_fields(function.throws, "call"),
            annotations=_sort_annotations(function.annotations),
        )

    def normalize_type(self, kind: ThriftType) -> ThriftType:
        match kind:
            case BaseType():
                return BaseType(_MODERN.get(kind.name, kind.name), _sort_annotations(kind.annotations))
            case ContainerType():
                items = tuple(map(self.normalize_type, kind.items))
                return replace(kind, items=items, annotations=_sort_annotations(kind.annotations))
            case TypeName():
                return kind

    def normalize_value(self, value: Value) -> Value:
        match value:
            case ListValue():
                return replace(value, items=tuple(map(self.normalize_value, value.items)))
            case MapValue():
                items = ((self.normalize_value(key), self.normalize_value(item)) for key, item in value.items)
                return replace(value, items=tuple(sorted(items, key=lambda pair: format_value(pair[0]))))
        return value


def _header_order(header: Header) -> tuple[str, str]:
    """Return the sort key of a header: cpp_include, include, namespace, then by name."""
    name = f"{header.scope} {header.name}" if isinstance(header, ThriftNamespace) else header.path
    return type(header).__name__, name


def _sort_annotations(annotations: Annotations) -> Annotations:
    """Return annotations sorted by key. A key without value gets the value 1."""
    full = (Annotation(each.key, "1" if each.value is None else each.value) for each in annotations)
    return tuple(sorted(full, key=lambda each: each.key))


class _CanonicalBuilder:
    """Builds the CANONICAL form: leaves out everything that affects neither data nor calls."""

    def __init__(self, unit: ThriftUnit) -> None:
        self.unit = unit
        self.used: set[str] = set()

    def build_document(self) -> ThriftDocument:
        definitions = tuple(self._build_definitions())
        headers = self.unit.document.headers
        includes = [each for each in headers if isinstance(each, Include) and each.prefix in self.used]
        return ThriftDocument(tuple(Include(each.path) for each in includes), definitions)

    def _build_definitions(self) -> Iterator[Definition]:
        for definition in self.unit.document.definitions:
            match definition:
                case ThriftEnum():
                    values = (replace(each, annotations=(), doc="") for each in definition.values)
                    yield ThriftEnum(definition.name, tuple(values))
                case ThriftStruct():
                    yield ThriftStruct(definition.kind, definition.name, self._build_fields(definition.fields))
                case ThriftService():
                    self._use_name(definition.extends)
                    functions = tuple(map(self._build_function, definition.functions))
                    yield ThriftService(definition.name, functions, definition.extends)

    def _build_function(self, function: ThriftFunction) -> ThriftFunction:
        return ThriftFunction(
            function.name,
            None if function.returns is None else self._build_type(function.returns),
            self._build_fields(function.arguments),
            self._build_fields(function.throws),
            function.oneway,
        )

    def _build_fields(self, fields: tuple[ThriftField, ...]) -> tuple[ThriftField, ...]:
        return tuple(map(self._build_field, fields))

    def _build_field(self, field: ThriftField) -> ThriftField:
        default = None
        if field.default is not None:
            default = resolve_names(self.unit, field.default)
            kind = self.unit.resolve_type(field.type).kind
            if isinstance(default, LiteralValue) and not isinstance(default.value, str) and kind in {"bool", "double"}:
                default = LiteralValue(bool(default.value) if kind == "bool" else float(default.value))
        return ThriftField(field.id, field.name, self._build_type(field.type), field.requiredness, default)

    def _build_type(self, kind: ThriftType) -> ThriftType:
        """Return the type with this document's typedefs resolved. Those of other documents stay names."""
        while isinstance(kind, TypeName) and isinstance(definition := self.unit.types.get(kind.name), Typedef | Senum):
            kind = definition.type if isinstance(definition, Typedef) else BaseType("string")
        match kind:
            case BaseType():
                return BaseType(kind.name)
            case ContainerType():
                return ContainerType(kind.kind, tuple(map(self._build_type, kind.items)))
            case TypeName():
                self._use_name(kind.name)
                return TypeName(kind.name)

    def _use_name(self, name: str) -> None:
        self.used.add(name.rpartition(".")[0])
