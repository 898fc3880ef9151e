"""Parses JSON text into the model.

Strict parsing accepts what the Java library accepts, including types named like kinds of types (`record`, `error`) and
the empty union. It rejects what causes errors for readers of the data: names outside the specification, duplicate
fields and branches, defaults of a wrong type, decimals that contradict themselves. Lenient parsing accepts everything
that still has one meaning. Valid defaults are those of the table of field default values of Avro 1.12.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.avro.model import (
    NO_DEFAULT,
    NO_PROPS,
    PRIMITIVES,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroNamedType,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
    Props,
    describe_type,
    find_decimal_fault,
    namespace_of,
    read_logical,
)
from stele.formats.avro.scalars import make_converter
from stele.formats.json_reader import decode_json

MAX_NESTING: Final = 200
"""Maximum nesting of types that are written out in one document."""

_NAME_RULE: Final = "letters, digits and _, not starting with a digit"
_DOTTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
NAMED_KINDS: Final = frozenset({"record", "error", "enum", "fixed"})
_TYPE_KEYS: Final = frozenset(
    {"type", "name", "namespace", "doc", "fields", "items", "values", "size", "symbols", "aliases"}
)
_ENUM_KEYS: Final = _TYPE_KEYS | {"default"}
_FIELD_KEYS: Final = frozenset({"name", "type", "doc", "default", "order", "aliases"})
_SCHEMA_BYTES: Final = 1024
_BYTES_PER_BYTE: Final = 32
"""Maximum memory of a parsed schema for each byte of its texts, as measured. Texts of empty objects need the most."""
_ORDERS: Final = frozenset({"ascending", "descending", "ignore"})


def parse(text: bytes, references: Mapping[str, bytes], *, strict: bool, checks_defaults: bool = True) -> AvroSchema:
    """Parse a document after the documents it refers to, which are given in dependency order.

    References were checked when they were registered, so they are parsed leniently. checks_defaults is whether a strict
    parser rejects defaults that do not fit their type.

    Raises `MalformedSchema` with line and column or JSON Pointer, and `UnresolvedReference`.
    """
    names: dict[str, AvroNamedType] = {}
    origins: dict[str, str] = {}
    for name, body in references.items():
        try:
            _parse_document(body, names, origins, strict=False)
        except MalformedSchema as error:
            kind = UnresolvedReference if isinstance(error, UnresolvedReference) else MalformedSchema
            raise kind(f"in the reference {name!r}: {error}") from error
        origins.update(dict.fromkeys(islice(names, len(origins), None), name))
    referenced = dict(names)
    parsed = _parse_document(text, names, origins, strict=strict, checks_defaults=checks_defaults)
    length = len(text) + sum(map(len, references.values()))
    return AvroSchema(parsed, referenced, _SCHEMA_BYTES + _BYTES_PER_BYTE * length)


def _parse_document(
    text: bytes,
    names: dict[str, AvroNamedType],
    origins: Mapping[str, str],
    *,
    strict: bool,
    checks_defaults: bool = True,
) -> AvroType:
    node = decode_json(text)
    try:
        return _Parser(names, origins, strict=strict, checks_defaults=checks_defaults).parse_type(node, "")
    except _ParseFault as fault:
        raise fault.to_malformed_schema() from None


class _ParseFault(Exception):
    """Raised for an error at a position.

    The path is built while the call stack unwinds, so valid schemas have no extra cost.
    """

    def __init__(self, why: str, expected: str | None = None, *, at: str = "", missing: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.expected = expected
        self.missing = missing
        self.tokens = [at] if at else []

    def prefix_path(self, *tokens: str | int) -> _ParseFault:
        """Add tokens in front of the path, for an enclosing value. Return the fault itself."""
        self.tokens.extend(str(token) for token in reversed(tokens))
        return self

    def to_malformed_schema(self) -> MalformedSchema:
        """Return this fault as the error that callers receive."""
        tokens = (token.replace("~", "~0").replace("/", "~1") for token in reversed(self.tokens))
        kind = UnresolvedReference if self.missing else MalformedSchema
        return kind(self.why, path="/" + "/".join(tokens), expected=self.expected)


class _Parser:
    """Parses one document. The dictionary names is shared by all documents of a schema.

    origins gives the reference that defined a name.
    """

    def __init__(
        self, names: dict[str, AvroNamedType], origins: Mapping[str, str], *, strict: bool, checks_defaults: bool
    ) -> None:
        self.names = names
        self.origins = origins
        self.strict = strict
        self.checks_defaults = strict and checks_defaults
        self.depth = 0

    def parse_type(self, node: Any, space: str) -> AvroType:
        """Parse any type expression; space is the namespace in force."""
        if type(node) is str:
            return PRIMITIVES.get(node) or self._find_named_type(node, space)
        if self.depth >= MAX_NESTING:
            raise _ParseFault(f"types are nested deeper than {MAX_NESTING} levels")
        self.depth += 1
        if type(node) is dict:
            parsed_type = self._parse_object(node, space)
        elif type(node) is list:
            parsed_type = self._parse_union(node, space)
        else:
            raise _ParseFault(f"{_abbreviate(node)} is not a type", "a type name, an object or an array")
        self.depth -= 1
        return parsed_type

    def _find_named_type(self, name: str, space: str) -> AvroNamedType:
        """Return a named type by name: first in the enclosing namespace, then in none, as the Java library does."""
        names = self.names
        named_type = None
        if "." not in name and space:
            named_type = names.get(f"{space}.{name}")
        if named_type is None:
            named_type = names.get(name.removeprefix(".") if name.rfind(".") == 0 else name)
        if named_type is None:
            raise _ParseFault(
                f"{name!r} is not defined before this place, nor by a reference that comes before",
                "a primitive type or the name of a type defined earlier",
                missing=True,
            )
        return named_type

    def _parse_object(self, node: dict[str, Any], space: str) -> AvroType:
        word = node.get("type")
        if type(word) is not str:
            why = "the type does not say its kind" if word is None else f"{_abbreviate(word)} is not a kind of type"
            raise _ParseFault(why, "a string", at="type")
        primitive = PRIMITIVES.get(word)
        if primitive is not None:
            return primitive if len(node) == 1 else self._parse_primitive(primitive, node)
        if word in NAMED_KINDS:
            return self._parse_definition(word, node, space)
        if word == "array":
            return AvroArray(self._parse_inner(node, "items", space), _unknown_props(node, _TYPE_KEYS))
        if word == "map":
            return AvroMap(self._parse_inner(node, "values", space), _unknown_props(node, _TYPE_KEYS))
        try:
            return self._find_named_type(word, space)
        except _ParseFault as fault:
            raise fault.prefix_path("type") from None

    def _parse_primitive(self, plain: AvroPrimitive, node: dict[str, Any]) -> AvroPrimitive:
        props = _unknown_props(node, _TYPE_KEYS)
        return AvroPrimitive(plain.kind, props, self._parse_logical_type(plain.kind, props)) if props else plain

    def _parse_logical_type(self, kind: str, props: Props, size: int = 0) -> Any:
        if "logicalType" not in props:
            return None
        if self.strict and props["logicalType"] == "decimal":
            fault = find_decimal_fault(kind, props, size)
            if fault:
                raise _ParseFault(fault, at="logicalType")
        return read_logical(kind, props, size)

    def _parse_inner(self, node: dict[str, Any], key: str, space: str) -> AvroType:
        if key not in node:
            raise _ParseFault(f"the {node['type']} has no {key!r}", "a type", at=key)
        try:
            return self.parse_type(node[key], space)
        except _ParseFault as fault:
            raise fault.prefix_path(key) from None

    def _parse_union(self, node: list[Any], space: str) -> AvroUnion:
        branches: list[AvroType] = []
        labels: set[str] = set()
        for index, item in enumerate(node):
            try:
                branch = self.parse_type(item, space)
            except _ParseFault as fault:
                raise fault.prefix_path(index) from None
            if branch.kind == "union":
                raise _ParseFault("a union may not directly contain a union", "its branches here", at=str(index))
            label = branch.name if isinstance(branch, AvroNamedType) else branch.kind
            if label in labels:
                raise _ParseFault(f"the union contains {label!r} twice", "each type once", at=str(index))
            labels.add(label)
            branches.append(branch)
        return AvroUnion(tuple(branches))

    # --- named types ------------------------------------------------------------------------------------------------

    def _parse_definition(self, word: str, node: dict[str, Any], space: str) -> AvroNamedType:
        name = self._parse_name(node, space)
        if name in self.names:
            origin = f", first in the reference {self.origins[name]!r}" if name in self.origins else ""
            raise _ParseFault(f"{name!r} is defined twice{origin}", "its name alone, where it is used again", at="name")
        doc = node.get("doc")
        doc = doc if type(doc) is str else None
        aliases = self._parse_type_aliases(node, namespace_of(name))
        if word == "enum":
            return self._parse_enum(name, doc, aliases, node)
        if word == "fixed":
            return self._parse_fixed(name, doc, aliases, node)
        record = AvroRecord(name, doc, aliases, word == "error", props=_unknown_props(node, _TYPE_KEYS))
        self.names[name] = record
        record.set_fields(self._parse_fields(record, node))
        return record

    def _parse_name(self, node: dict[str, Any], space: str) -> str:
        name, own = node.get("name"), node.get("namespace")
        if type(name) is not str:
            raise _ParseFault(
                f"the {node['type']} has no name" if name is None else "the name is not a string", "a name", at="name"
            )
        if own is not None and type(own) is not str:
            if self.strict:
                raise _ParseFault("the namespace is not a string", "dotted names, or ''", at="namespace")
            own = None
        full = qualify_name(name, space if own is None else own)
        if not full or (self.strict and not _DOTTED.fullmatch(full)):
            raise _ParseFault(f"{full!r} is not a valid name", _NAME_RULE, at="name")
        if full in PRIMITIVES:
            raise _ParseFault(f"{full!r} is the name of a primitive type", "another name, or a namespace", at="name")
        return full

    def _parse_type_aliases(self, node: dict[str, Any], space: str) -> tuple[str, ...]:
        if "aliases" not in node:
            return ()
        aliases = _read_strings(node, "aliases")
        full = tuple(dict.fromkeys(qualify_name(alias, space) for alias in aliases))
        if self.strict:
            for index, alias in enumerate(full):
                if not _DOTTED.fullmatch(alias):
                    raise _ParseFault(f"{alias!r} is not a valid name", _NAME_RULE, at=str(index)).prefix_path(
                        "aliases"
                    )
        return full

    def _parse_enum(self, name: str, doc: str | None, aliases: tuple[str, ...], node: dict[str, Any]) -> AvroEnum:
        if "symbols" not in node:
            raise _ParseFault("the enum has no symbols", "an array of strings", at="symbols")
        symbols = _read_strings(node, "symbols")
        if not symbols and self.strict:
            raise _ParseFault("the enum has no symbols", "at least one", at="symbols")
        if len(set(symbols)) != len(symbols):
            twice = next(symbol for symbol in symbols if symbols.count(symbol) > 1)
            again = len(symbols) - 1 - symbols[::-1].index(twice)
            raise _ParseFault(f"the enum has the symbol {twice!r} twice", "each once", at=str(again)).prefix_path(
                "symbols"
            )
        default = node.get("default")
        if self.strict:
            for index, symbol in enumerate(symbols):
                if not _is_name(symbol):
                    raise _ParseFault(f"{symbol!r} is not a valid symbol", _NAME_RULE, at=str(index)).prefix_path(
                        "symbols"
                    )
            if self.checks_defaults and "default" in node and default not in symbols:
                raise _ParseFault(
                    f"the default {_abbreviate(default)} is none of the symbols", "one of them", at="default"
                )
        default = default if type(default) is str and default in symbols else None
        enum = AvroEnum(name, symbols, default, doc, aliases, _unknown_props(node, _ENUM_KEYS))
        self.names[name] = enum
        return enum

    def _parse_fixed(self, name: str, doc: str | None, aliases: tuple[str, ...], node: dict[str, Any]) -> AvroFixed:
        size = node.get("size")
        if type(size) is not int or not 0 <= size < 2**31:
            raise _ParseFault("the fixed has no valid size", "an integer between 0 and 2147483647", at="size")
        props = _unknown_props(node, _TYPE_KEYS)
        fixed = AvroFixed(name, size, doc, aliases, props, self._parse_logical_type("fixed", props, size))
        self.names[name] = fixed
        return fixed

    def _parse_fields(self, record: AvroRecord, node: dict[str, Any]) -> dict[str, AvroField]:
        items = node.get("fields")
        if type(items) is not list:
            why = "the 'fields' of the record are no array" if "fields" in node else "the record has no fields"
            raise _ParseFault(why, "an array of fields", at="fields")
        space = namespace_of(record.name)
        fields: dict[str, AvroField] = {}
        for index, item in enumerate(items):
            try:
                field = self._parse_field(item, space, record)
            except _ParseFault as fault:
                raise fault.prefix_path("fields", index) from None
            if field.name in fields:
                why = f"the record {record.name!r} has the field {field.name!r} twice"
                raise _ParseFault(why, "another name", at="name").prefix_path("fields", index)
            fields[field.name] = field
        return fields

    def _parse_field(self, node: Any, space: str, parent: AvroRecord) -> AvroField:
        if type(node) is not dict:
            raise _ParseFault(f"{_abbreviate(node)} is not a field", "an object with a name and a type")
        name = node.get("name")
        if type(name) is not str or not name:
            raise _ParseFault("the field has no name", "a string", at="name")
        if self.strict and not _is_name(name):
            raise _ParseFault(f"{name!r} is not a valid name", _NAME_RULE, at="name")
        word = node.get("type")
        kind = (PRIMITIVES.get(word) if type(word) is str else None) or self._parse_inner_of_field(node, name, space)
        if len(node) == 2:
            return AvroField(name, kind)
        doc = node.get("doc")
        doc = doc if type(doc) is str else None
        if len(node) == 3 and doc is not None:
            return AvroField(name, kind, doc=doc)
        default = node.get("default", NO_DEFAULT)
        if default is not NO_DEFAULT and self.checks_defaults:
            fault = find_default_fault(kind, default, parent)
            if fault:
                raise _ParseFault(f"the default of {name!r} does not fit its type: {fault}", at="default")
        aliases = self._parse_field_aliases(node) if "aliases" in node else ()
        order = self._parse_order(node["order"]) if "order" in node else "ascending"
        return AvroField(name, kind, default, doc, order, aliases, _unknown_props(node, _FIELD_KEYS))

    def _parse_inner_of_field(self, node: dict[str, Any], name: str, space: str) -> AvroType:
        if "type" not in node:
            raise _ParseFault(f"the field {name!r} has no type", "a type", at="type")
        try:
            return self.parse_type(node["type"], space)
        except _ParseFault as fault:
            raise fault.prefix_path("type") from None

    def _parse_field_aliases(self, node: dict[str, Any]) -> tuple[str, ...]:
        aliases = tuple(dict.fromkeys(_read_strings(node, "aliases")))
        if self.strict:
            for index, alias in enumerate(aliases):
                if not _is_name(alias):
                    raise _ParseFault(f"{alias!r} is not a valid name", _NAME_RULE, at=str(index)).prefix_path(
                        "aliases"
                    )
        return aliases

    def _parse_order(self, value: Any) -> str:
        """Return a sort order in lower case.

        Any case is accepted, as in the Java library: Confluent's normalized texts have ASCENDING.
        """
        order = value.lower() if type(value) is str else ""
        if order not in _ORDERS:
            if self.strict:
                raise _ParseFault(
                    f"{_abbreviate(value)} is not a sort order", "ascending, descending or ignore", at="order"
                )
            return "ascending"
        return order


def _is_name(text: str) -> bool:
    """Return whether a text matches [A-Za-z_][A-Za-z0-9_]*: these are Python's identifiers in ASCII."""
    return text.isascii() and text.isidentifier()


def qualify_name(name: str, space: str) -> str:
    """Return the full name: a dotted name is full already, and a leading dot means the null namespace."""
    if "." in name:
        return name[1:] if name.rfind(".") == 0 else name
    return f"{space}.{name}" if space else name


def _read_strings(node: dict[str, Any], key: str) -> tuple[str, ...]:
    items = node[key]
    if type(items) is not list:
        raise _ParseFault(f"{key!r} is not an array", "an array of strings", at=key)
    for index, item in enumerate(items):
        if type(item) is not str:
            raise _ParseFault(f"{_abbreviate(item)} is not a string", "a string", at=str(index)).prefix_path(key)
    return tuple(items)


def _unknown_props(node: dict[str, Any], known: frozenset[str]) -> Props:
    if node.keys() <= known:
        return NO_PROPS
    return {key: value for key, value in node.items() if key not in known}


def _abbreviate(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:59] + "…"


# --- default values ---------------------------------------------------------------------------------------------------
# Whether a default value fits the type of its field (Avro 1.12, table of field default values).

_RANGES: Final = {"int": range(-(2**31), 2**31), "long": range(-(2**63), 2**63)}
_NOT_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})


def find_default_fault(node: AvroType, value: Any, incomplete: AvroRecord | None = None) -> str | None:
    """Return why value is not a valid default for node, as the end of a sentence; None when it is valid.

    A default of a union can fit any branch (since Avro 1.12; before, only the first). incomplete is the record that the
    field belongs to: it has no fields yet, so a default value inside itself is not valid.
    """
    return _DefaultChecker(incomplete).find_fault(node, value)


def make_default(node: AvroType, value: Any) -> Any:
    """Return a new Python value for a default.

    Characters become bytes, and logical types and inner defaults are converted. A default that does not fit (after
    lenient parsing) stays the JSON value that it is.
    """
    match node:
        case AvroUnion():
            branch = next((branch for branch in node.branches if find_default_fault(branch, value) is None), None)
            return value if branch is None else make_default(branch, value)
        case AvroArray() if isinstance(value, list):
            return [make_default(node.items, item) for item in value]
        case AvroMap() if isinstance(value, dict):
            return {key: make_default(node.values, item) for key, item in value.items()}
        case AvroRecord() if isinstance(value, dict):
            field_values = {field.name: value.get(field.name, field.default) for field in node.fields}
            return {field.name: make_default(field.type, field_values[field.name]) for field in node.fields}
        case AvroPrimitive() | AvroFixed() if find_default_fault(node, value) is None:
            return _make_scalar(node, value)
    return value


def _make_scalar(node: AvroPrimitive | AvroFixed, value: Any) -> Any:
    raw = value
    if node.kind in ("bytes", "fixed"):
        raw = value.encode("latin-1")
    elif node.kind in ("float", "double"):
        raw = _to_double(value)
    convert = make_converter(node.logical)
    try:
        return raw if convert is None else convert(raw)
    except (ValueError, OverflowError):
        return raw


def _to_double(value: Any) -> float:
    """Return the double nearest to a number or its name: an infinity for integers that are too large, as Java does."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class _DefaultChecker:
    """Checks defaults, and caches what does not fit: nested unions would otherwise take exponential time."""

    def __init__(self, incomplete: AvroRecord | None) -> None:
        self.incomplete = incomplete
        self.refuted: dict[tuple[int, int], str] = {}

    def find_fault(self, node: AvroType, value: Any) -> str | None:
        match node:
            case AvroPrimitive():
                return _primitive_fault(node.kind, value)
            case AvroUnion():
                return self._find_union_fault(node, value)
            case AvroEnum():
                return None if type(value) is str and value in node.symbols else f"it is not a symbol of {node.name}"
            case AvroFixed():
                return _bytes_fault(value, node.size)
            case AvroArray():
                if type(value) is not list:
                    return "an array is needed"
                return next((why for item in value if (why := self.find_fault(node.items, item))), None)
            case AvroMap():
                if type(value) is not dict:
                    return "an object is needed"
                return next((why for item in value.values() if (why := self.find_fault(node.values, item))), None)
            case AvroRecord():
                return self._find_record_fault(node, value)

    def _find_union_fault(self, node: AvroUnion, value: Any) -> str | None:
        key = (id(node), id(value))
        if key in self.refuted:
            return self.refuted[key]
        for branch in node.branches:
            if self.find_fault(branch, value) is None:
                return None
        self.refuted[key] = f"it fits no branch of {describe_type(node)}"
        return self.refuted[key]

    def _find_record_fault(self, node: AvroRecord, value: Any) -> str | None:
        if type(value) is not dict:
            return "an object is needed"
        if node is self.incomplete:
            return f"{node.name} is still being defined here"
        for field in node.fields:
            if field.name in value:
                why = self.find_fault(field.type, value[field.name])
                if why:
                    return f"{field.name}: {why}"
            elif field.default is NO_DEFAULT:
                return f"the field {field.name!r} of {node.name} is missing and has no default"
        return None


def _primitive_fault(kind: str, value: Any) -> str | None:
    match kind:
        case "null":
            return None if value is None else "null is needed"
        case "boolean":
            return None if type(value) is bool else "true or false is needed"
        case "int" | "long":
            return (
                None
                if type(value) is int and value in _RANGES[kind]
                else f"an integer in the range of {kind} is needed"
            )
        case "float" | "double":
            fits = type(value) in (int, float) or (type(value) is str and value in _NOT_NUMBERS)
            return None if fits else "a number is needed"
        case "string":
            return None if type(value) is str else "a string is needed"
        case _:
            return _bytes_fault(value)


def _bytes_fault(value: Any, size: int | None = None) -> str | None:
    if type(value) is not str or any(char > "\xff" for char in value):
        return r"a string of characters from \u0000 to \u00ff is needed, one for each byte"
    if size is not None and len(value) != size:
        return f"{size} bytes are needed, not {len(value)}"
    return None
