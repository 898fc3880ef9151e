"""A document as text: two spaces, one member a line, and every part of it that the parser keeps."""

from __future__ import annotations

from typing import Final

from stele.formats.thrift.docs import comment
from stele.formats.thrift.syntax import (
    Annotations,
    Base,
    Const,
    Container,
    CppInclude,
    Definition,
    Document,
    EnumType,
    EnumValue,
    Field,
    Function,
    Header,
    Include,
    ListValue,
    Literal,
    MapValue,
    Name,
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

_STEP: Final = "  "
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def print_document(document: Document) -> str:
    """The text; parsing it gives an equal document."""
    headers = "\n".join(line for header in document.headers for line in _header(header))
    blocks = [headers] if headers else []
    blocks += ["\n".join(_definition(each)) for each in document.definitions]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def quoted(text: str) -> str:
    """A text in double quotes."""
    return f'"{text.translate(_ESCAPES)}"'


# --- statements -----------------------------------------------------------------------------------------------------


def _header(header: Header) -> list[str]:
    match header:
        case Include():
            line = f"include {quoted(header.path)}"
        case CppInclude():
            line = f"cpp_include {quoted(header.path)}"
        case Namespace():
            line = f"namespace {header.scope} {header.name}{notes(header.annotations)}"
    return [*comment(header.doc, ""), line]


def _definition(definition: Definition) -> list[str]:
    lines = comment(definition.doc, "")
    match definition:
        case Typedef():
            lines.append(f"typedef {type_text(definition.type)} {definition.name}{notes(definition.annotations)}")
            return lines
        case Const():
            lines.append(f"const {type_text(definition.type)} {definition.name} = {value_text(definition.value)}")
            return lines
        case EnumType():
            head, inside = f"enum {definition.name}", [_enum_value(each) for each in definition.values]
        case Senum():
            head, inside = f"senum {definition.name}", [[f"{_STEP}{quoted(each)},"] for each in definition.values]
        case Struct():
            head = f"{definition.kind} {definition.name}{' xsd_all' if definition.xsd_all else ''}"
            inside = [_member(each) for each in definition.fields]
        case Service():
            head = f"service {definition.name}{f' extends {definition.extends}' if definition.extends else ''}"
            inside = [_function(each) for each in definition.functions]
    end = f"}}{notes(definition.annotations)}"
    if not inside:
        return [*lines, f"{head} {{{end}"]
    return [*lines, f"{head} {{", *(line for member in inside for line in member), end]


def _enum_value(value: EnumValue) -> list[str]:
    number = "" if value.implicit else f" = {value.number}"
    return [*comment(value.doc, _STEP), f"{_STEP}{value.name}{number}{notes(value.annotations)},"]


def _member(field: Field) -> list[str]:
    return [*comment(field.doc, _STEP), f"{_STEP}{_field(field)},"]


def _function(function: Function) -> list[str]:
    """A function stands in one line, unless an argument has documentation."""
    returns = "void" if function.returns is None else type_text(function.returns)
    text = f"{_STEP}{'oneway ' if function.oneway else ''}{returns} {function.name}({_inline(function.arguments)})"
    if function.throws:
        text += f" throws ({_inline(function.throws)})"
    return [*comment(function.doc, _STEP), f"{text}{notes(function.annotations)},"]


def _inline(fields: tuple[Field, ...]) -> str:
    """Fields between brackets."""
    if not any(field.doc for field in fields):
        return ", ".join(_field(field) for field in fields)
    deep = _STEP * 2
    lines = [line for field in fields for line in (*comment(field.doc, deep), f"{deep}{_field(field)},")]
    return "\n" + "\n".join(lines) + f"\n{_STEP}"


def _field(field: Field) -> str:
    parts = [] if field.implicit else [f"{field.id}:"]
    if field.requiredness is not Requiredness.DEFAULT:
        parts.append(field.requiredness.value)
    parts.append(type_text(field.type))
    if field.boxed:
        parts.append("&")
    parts.append(field.name)
    if field.default is not None:
        parts.append(f"= {value_text(field.default)}")
    if field.xsd_optional:
        parts.append("xsd_optional")
    if field.xsd_nillable:
        parts.append("xsd_nillable")
    if field.xsd_attrs is not None:
        parts.append(f"xsd_attrs {{{_inline(field.xsd_attrs)}}}")
    return " ".join(parts) + notes(field.annotations)


# --- parts ----------------------------------------------------------------------------------------------------------


def notes(found: Annotations) -> str:
    """Annotations with a space before them, or ''."""
    if not found:
        return ""
    inside = (each.key if each.value is None else f"{each.key} = {quoted(each.value)}" for each in found)
    return f" ({', '.join(inside)})"


def type_text(kind: Type) -> str:
    """A type as it is written."""
    match kind:
        case Ref():
            return kind.name
        case Base():
            return kind.name + notes(kind.annotations)
        case Container():
            cpp_type = "" if kind.cpp_type is None else f" cpp_type {quoted(kind.cpp_type)} "
            inside = ", ".join(type_text(item) for item in kind.items)
            return f"{kind.kind}{cpp_type}<{inside}>{notes(kind.annotations)}"


def value_text(value: Value) -> str:
    """A value as it is written."""
    match value:
        case Name():
            return value.name
        case ListValue():
            return f"[{', '.join(value_text(item) for item in value.items)}]"
        case MapValue():
            return f"{{{', '.join(f'{value_text(key)}: {value_text(item)}' for key, item in value.items)}}}"
        case Literal(bool() as truth):
            return "true" if truth else "false"
        case Literal(str() as text):
            return quoted(text)
        case Literal(number):
            return repr(number)
