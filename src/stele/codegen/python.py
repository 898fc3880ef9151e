"""Generates Python dataclasses for the records of a schema, in every language that can be converted to the model.

One module per schema, in the folder of its namespace: a frozen dataclass per record, an `Enum` per enumeration. Other
types are plain Python values, as the codecs use them. A default that cannot be written as a literal becomes a comment.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from stele.errors import CannotConvert
from stele.formats.capabilities import ToModel
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    Fixed,
    Map,
    Model,
    NamedType,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    Type,
    TypeReference,
    Union,
    UniqueNames,
)
from stele.formats.registry import get_format

_SCALARS: Final = {
    ScalarKind.ANY: "Any",
    ScalarKind.NULL: "None",
    ScalarKind.BOOLEAN: "bool",
    ScalarKind.NUMBER: "float",
    ScalarKind.FLOAT32: "float",
    ScalarKind.FLOAT64: "float",
    ScalarKind.STRING: "str",
    ScalarKind.BYTES: "bytes",
    ScalarKind.UUID: "UUID",
    ScalarKind.DATE: "datetime.date",
}
_HEADER = '''"""{title}"""

from __future__ import annotations

import dataclasses
import datetime
import enum
from decimal import Decimal
from typing import Any
from uuid import UUID
'''
_NAMES = {"dataclasses", "datetime", "enum", "Decimal", "Any", "UUID", "None", "True", "False"}
"""Names that a generated module imports or that are keywords; classes must not use them."""


class PythonCompiler:
    """Compiler for the language `python`."""

    language: Final = "python"

    def compile(self, idl: str, schema_type: str) -> Mapping[str, bytes]:
        """Return one module with a class per record and enumeration; see `Compiler.compile`."""
        fmt = get_format(schema_type)
        if not isinstance(fmt, ToModel):
            raise CannotConvert(f"classes cannot be generated from {fmt.name} schemas")
        parsed: Any = fmt.parse(idl.encode(), {}, strict=False)
        model, _ = fmt.to_model(parsed)
        records = [name for name, kind in model.types.items() if isinstance(kind, RecordType)]
        if not records:
            raise CannotConvert("the schema describes no record, so no class can be generated")
        root = model.root.name if isinstance(model.root, TypeReference) and model.root.name in records else records[0]
        *namespace, own = (_to_identifier(part) for part in root.split("."))
        path = "/".join([*namespace, f"{_to_snake_case(own)}.py"])
        return {path: _Module(model).render_source(root).encode()}


class _Module:
    """Builds the source of one schema's module."""

    def __init__(self, model: Model) -> None:
        self._model = model
        taken = UniqueNames(_NAMES)
        self._classes = {name: taken.claim_name(_to_identifier(name.rpartition(".")[2])) for name in model.types}

    def render_source(self, root: str) -> str:
        """Return the whole source."""
        title = _escape_doc(self._model.doc or f"Classes for {root}.")
        # Enumerations first: defaults of fields name their members.
        kinds = sorted(self._model.types.items(), key=lambda item: not isinstance(item[1], Enumeration))
        declared = [self._declare_class(name, kind) for name, kind in kinds]
        return "\n\n".join([_HEADER.format(title=title), *filter(None, declared)]).rstrip() + "\n"

    def _declare_class(self, name: str, kind: NamedType) -> str:
        match kind:
            case RecordType():
                head = f"@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)\nclass {self._classes[name]}:"
                lines = self._render_fields(kind)
            case Enumeration():
                head = f"class {self._classes[name]}(enum.Enum):"
                lines = _enum_symbols(kind)
            case Fixed():
                return ""
        doc = f'    """{_escape_doc(kind.doc or f"{name}.")}"""'
        return "\n".join([head, doc, "", *(f"    {line}" for line in lines)]).rstrip() + "\n"

    def _render_fields(self, record: RecordType) -> Iterator[str]:
        taken = UniqueNames()
        for field in record.fields:
            name = taken.claim_name(_to_identifier(field.name))
            annotation = self.render_annotation(field.type)
            if (field.nullable or not field.required) and annotation not in {"Any", "None"}:
                annotation += " | None"
            yield f"{name}: {annotation}{self._render_default(field)}" + (
                "" if name == field.name else f"  # {field.name!a}"
            )
            if field.doc:
                yield f'"""{_escape_doc(field.doc)}"""'

    def render_annotation(self, kind: Type) -> str:
        """Return the type annotation of a value."""
        match kind:
            case Scalar():
                return _SCALARS.get(kind.kind, "int")
            case Decimal():
                return "Decimal"
            case Time():
                return "datetime.time"
            case Timestamp():
                return "datetime.datetime"
            case Duration():
                return "datetime.timedelta"
            case Array():
                return f"list[{self.render_annotation(kind.items)}{' | None' if kind.nullable else ''}]"
            case Map():
                keys, values = self.render_annotation(kind.keys), self.render_annotation(kind.values)
                return f"dict[{keys}, {values}{' | None' if kind.nullable else ''}]"
            case Union():
                return " | ".join(dict.fromkeys(self.render_annotation(option.type) for option in kind.options))
            case TypeReference():
                return "bytes" if isinstance(self._model.types[kind.name], Fixed) else self._classes[kind.name]

    def _render_default(self, field: RecordField) -> str:
        """Return the text after the type of a field: its default, or a comment with it."""
        value, kind = field.default, field.type
        if value is ABSENT:
            return "" if field.required else " = None"
        if value is None or (isinstance(kind, Scalar) and isinstance(value, bool | int | float | str)):
            plain = (
                kind.kind not in {ScalarKind.BYTES, ScalarKind.UUID, ScalarKind.DATE}
                if isinstance(kind, Scalar)
                else True
            )
            if value is None or plain:
                return f" = {value!a}"
        if value in ([], {}) and isinstance(kind, Array | Map):
            return f" = dataclasses.field(default_factory={type(value).__name__})"
        if isinstance(kind, TypeReference) and isinstance(self._model.types[kind.name], Enumeration):
            return f" = {self._classes[kind.name]}({value!a})"
        return f"  # default: {value!a}"


def _enum_symbols(enumeration: Enumeration) -> Iterator[str]:
    taken = UniqueNames()
    for symbol in enumeration.symbols:
        yield f"{taken.claim_name(_to_identifier(symbol.name))} = {symbol.name!a}"


def _to_identifier(text: str) -> str:
    """Return a text as a Python name. Invalid characters become `_`."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII) or "_"
    name = f"_{name}" if name[0].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) or name.startswith("__") or name == "mro" else name


def _to_snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _escape_doc(text: str) -> str:
    """Return a text that is safe within triple quotes: nothing in it can end them."""
    printable_text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return printable_text.replace("\\", "\\\\").replace('"', '\\"')
