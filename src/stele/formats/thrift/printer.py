"""Prints a document as text: two spaces, one member per line, and every part that the parser keeps."""

from __future__ import annotations

from typing import Final

from stele.formats.thrift.grammar import format_comment
from stele.formats.thrift.schema import (
    Annotations,
    BaseType,
    Const,
    ContainerType,
    CppInclude,
    Definition,
    EnumValue,
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
    ThriftService,
    ThriftStruct,
    ThriftType,
    Typedef,
    TypeName,
    Value,
    ValueName,
)

_STEP: Final = "  "
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def print_document(document: ThriftDocument) -> str:
    """Return the text. Parsing it returns an equal document."""
    headers = "\n".join(line for header in document.headers for line in _format_header(header))
    blocks = [headers] if headers else []
    blocks += ["\n".join(_format_definition(each)) for each in document.definitions]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def quote_text(text: str) -> str:
    """Return a text in double quotes."""
    return f'"{text.translate(_ESCAPES)}"'


# --- statements -----------------------------------------------------------------------------------------------------


def _format_header(header: Header) -> list[str]:
    match header:
        case Include():
            line = f"include {quote_text(header.path)}"
        case CppInclude():
            line = f"cpp_include {quote_text(header.path)}"
        case ThriftNamespace():
            line = f"namespace {header.scope} {header.name}{format_annotations(header.annotations)}"
    return [*format_comment(header.doc, ""), line]


def _format_definition(definition: Definition) -> list[str]:
    lines = format_comment(definition.doc, "")
    match definition:
        case Typedef():
            lines.append(
                f"typedef {format_type(definition.type)} {definition.name}{format_annotations(definition.annotations)}"
            )
            return lines
        case Const():
            lines.append(f"const {format_type(definition.type)} {definition.name} = {format_value(definition.value)}")
            return lines
        case ThriftEnum():
            head, inside = f"enum {definition.name}", [_format_enum_value(each) for each in definition.values]
        case Senum():
            head, inside = f"senum {definition.name}", [[f"{_STEP}{quote_text(each)},"] for each in definition.values]
        case ThriftStruct():
            head = f"{definition.kind} {definition.name}{' xsd_all' if definition.xsd_all else ''}"
            inside = [_format_member(each) for each in definition.fields]
        case ThriftService():
            head = f"service {definition.name}{f' extends {definition.extends}' if definition.extends else ''}"
            inside = [_format_function(each) for each in definition.functions]
    end = f"}}{format_annotations(definition.annotations)}"
    if not inside:
        return [*lines, f"{head} {{{end}"]
    return [*lines, f"{head} {{", *(line for member in inside for line in member), end]


def _format_enum_value(value: EnumValue) -> list[str]:
    number = "" if value.implicit else f" = {value.number}"
    return [*format_comment(value.doc, _STEP), f"{_STEP}{value.name}{number}{format_annotations(value.annotations)},"]


def _format_member(field: ThriftField) -> list[str]:
    return [*format_comment(field.doc, _STEP), f"{_STEP}{_format_field(field)},"]


def _format_function(function: ThriftFunction) -> list[str]:
    """Return the lines of a function: one line, unless an argument has documentation."""
    returns = "void" if function.returns is None else format_type(function.returns)
    text = (
        f"{_STEP}{'oneway ' if function.oneway else ''}{returns} {function.name}({_format_inline(function.arguments)})"
    )
    if function.throws:
        text += f" throws ({_format_inline(function.throws)})"
    return [*format_comment(function.doc, _STEP), f"{text}{format_annotations(function.annotations)},"]


def _format_inline(fields: tuple[ThriftField, ...]) -> str:
    """Return fields as text between brackets."""
    if not any(field.doc for field in fields):
        return ", ".join(_format_field(field) for field in fields)
    deep = _STEP * 2
    lines = [line for field in fields for line in (*format_comment(field.doc, deep), f"{deep}{_format_field(field)},")]
    return "\n" + "\n".join(lines) + f"\n{_STEP}"


def _format_field(field: ThriftField) -> str:
    parts = [] if field.implicit else [f"{field.id}:"]
    if field.requiredness is not Requiredness.DEFAULT:
        parts.append(field.requiredness.value)
    parts.append(format_type(field.type))
    if field.boxed:
        parts.append("&")
    parts.append(field.name)
    if field.default is not None:
        parts.append(f"= {format_value(field.default)}")
    if field.xsd_optional:
        parts.append("xsd_optional")
    if field.xsd_nillable:
        parts.append("xsd_nillable")
    if field.xsd_attrs is not None:
        parts.append(f"xsd_attrs {{{_format_inline(field.xsd_attrs)}}}")
    return " ".join(parts) + format_annotations(field.annotations)


# --- parts ----------------------------------------------------------------------------------------------------------


def format_annotations(annotations: Annotations) -> str:
    """Return annotations with a space before them, or ''."""
    if not annotations:
        return ""
    inside = (each.key if each.value is None else f"{each.key} = {quote_text(each.value)}" for each in annotations)
    return f" ({', '.join(inside)})"


def format_type(kind: ThriftType) -> str:
    """Return a type as it is written."""
    match kind:
        case TypeName():
            return kind.name
        case BaseType():
            return kind.name + format_annotations(kind.annotations)
        case ContainerType():
            cpp_type = "" if kind.cpp_type is None else f" cpp_type {quote_text(kind.cpp_type)} "
            inside = ", ".join(format_type(item) for item in kind.items)
            return f"{kind.kind}{cpp_type}<{inside}>{format_annotations(kind.annotations)}"


def format_value(value: Value) -> str:
    """Return a value as it is written."""
    match value:
        case ValueName():
            return value.name
        case ListValue():
            return f"[{', '.join(format_value(item) for item in value.items)}]"
        case MapValue():
            return f"{{{', '.join(f'{format_value(key)}: {format_value(item)}' for key, item in value.items)}}}"
        case LiteralValue(bool() as truth):
            return "true" if truth else "false"
        case LiteralValue(str() as text):
            return quote_text(text)
        case LiteralValue(number):
            return repr(number)


def describe_field(field: ThriftField) -> str:
    """Return a field in a few words, without annotations and default: `1: required i32 id`."""
    words = [f"{field.id}:", field.requiredness.value, format_type(field.type), field.name]
    return " ".join(word for word in words if word)
