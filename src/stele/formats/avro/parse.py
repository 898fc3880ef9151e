"""JSON text into the model.

Strict parsing accepts what both the Java library and the two Python ones accept, and refuses what any reader of the
data would trip over: names outside the specification, duplicate fields and branches, defaults of a wrong type, decimals
that contradict themselves. Lenient parsing takes whatever still has one meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.avro.defaults import default_fault
from stele.formats.avro.logical import decimal_fault, read_logical
from stele.formats.avro.model import (
    NO_DEFAULT,
    NO_PROPS,
    PRIMITIVES,
    Array,
    AvroSchema,
    EnumType,
    Fixed,
    Map,
    Named,
    Primitive,
    Props,
    Record,
    RecordField,
    Type,
    Union,
    namespace,
)
from stele.formats.json_reader import decode_json

MAX_NESTING: Final = 200
"""Types inside types, written out in one document."""

_NAME_RULE: Final = "letters, digits and _, not starting with a digit"
_DOTTED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_NAMED_KINDS: Final = frozenset({"record", "error", "enum", "fixed"})
_RESERVED_NAMES: Final = frozenset({*PRIMITIVES, *_NAMED_KINDS, "array", "map", "union", "request", "error_union"})
_TYPE_KEYS: Final = frozenset(
    {"type", "name", "namespace", "doc", "fields", "items", "values", "size", "symbols", "aliases"}
)
_ENUM_KEYS: Final = _TYPE_KEYS | {"default"}
_FIELD_KEYS: Final = frozenset({"name", "type", "doc", "default", "order", "aliases"})
_ORDERS: Final = frozenset({"ascending", "descending", "ignore"})


def parse(text: bytes, references: Mapping[str, bytes], *, strict: bool) -> AvroSchema:
    """Parse a document after the documents it refers to (given in dependency order).

    References were checked when they were registered, so they are read leniently. Raises `MalformedSchema` with line
    and column or JSON Pointer, and `UnresolvedReference`.
    """
    names: dict[str, Named] = {}
    origins: dict[str, str] = {}
    for name, body in references.items():
        try:
            _parse_document(body, names, origins, strict=False)
        except MalformedSchema as error:
            kind = UnresolvedReference if isinstance(error, UnresolvedReference) else MalformedSchema
            raise kind(f"in the reference {name!r}: {error}") from error
        origins.update(dict.fromkeys(islice(names, len(origins), None), name))
    referenced = dict(names)
    return AvroSchema(_parse_document(text, names, origins, strict=strict), referenced)


def _parse_document(text: bytes, names: dict[str, Named], origins: Mapping[str, str], *, strict: bool) -> Type:
    node = decode_json(text)
    try:
        return _Parser(names, origins, strict=strict).type(node, "")
    except _Fault as fault:
        raise fault.public() from None


class _Fault(Exception):
    """What is wrong at a place; the place is gathered while the call stack unwinds, so correct schemas pay nothing."""

    def __init__(self, why: str, expected: str | None = None, *, at: str = "", missing: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.expected = expected
        self.missing = missing
        self.tokens = [at] if at else []

    def within(self, *tokens: str | int) -> _Fault:
        """The same fault seen from further out; tokens lead from there inwards."""
        self.tokens.extend(str(token) for token in reversed(tokens))
        return self

    def public(self) -> MalformedSchema:
        """The error callers see."""
        tokens = (token.replace("~", "~0").replace("/", "~1") for token in reversed(self.tokens))
        kind = UnresolvedReference if self.missing else MalformedSchema
        return kind(self.why, path="/" + "/".join(tokens), expected=self.expected)


class _Parser:
    """Parses one document into names, which other documents of the same schema share.

    origins says which reference defined a name.
    """

    def __init__(self, names: dict[str, Named], origins: Mapping[str, str], *, strict: bool) -> None:
        self.names = names
        self.origins = origins
        self.strict = strict
        self.depth = 0

    def type(self, node: Any, space: str) -> Type:
        """Any type expression; space is the namespace in force."""
        if type(node) is str:
            return PRIMITIVES.get(node) or self._known(node, space)
        if self.depth >= MAX_NESTING:
            raise _Fault(f"types are nested deeper than {MAX_NESTING} levels")
        self.depth += 1
        if type(node) is dict:
            found = self._object(node, space)
        elif type(node) is list:
            found = self._union(node, space)
        else:
            raise _Fault(f"{_shown(node)} is not a type", "a type name, an object or an array")
        self.depth -= 1
        return found

    def _known(self, name: str, space: str) -> Named:
        """A named type by name: of the namespace in force, else of none, as the Java library looks it up."""
        names = self.names
        found = None
        if "." not in name and space:
            found = names.get(f"{space}.{name}")
        if found is None:
            found = names.get(name.removeprefix(".") if name.rfind(".") == 0 else name)
        if found is None:
            raise _Fault(
                f"{name!r} is not defined before this place, nor by a reference that comes before",
                "a primitive type or the name of a type defined earlier",
                missing=True,
            )
        return found

    def _object(self, node: dict[str, Any], space: str) -> Type:
        word = node.get("type")
        if type(word) is not str:
            raise _Fault(
                "the type has no kind" if word is None else f"{_shown(word)} names no kind", "a string", at="type"
            )
        primitive = PRIMITIVES.get(word)
        if primitive is not None:
            return primitive if len(node) == 1 else self._primitive(primitive, node)
        if word in _NAMED_KINDS:
            return self._definition(word, node, space)
        if word == "array":
            return Array(self._inner(node, "items", space), _props(node, _TYPE_KEYS))
        if word == "map":
            return Map(self._inner(node, "values", space), _props(node, _TYPE_KEYS))
        try:
            return self._known(word, space)
        except _Fault as fault:
            raise fault.within("type") from None

    def _primitive(self, plain: Primitive, node: dict[str, Any]) -> Primitive:
        props = _props(node, _TYPE_KEYS)
        return Primitive(plain.kind, props, self._logical(plain.kind, props)) if props else plain

    def _logical(self, kind: str, props: Props, size: int = 0) -> Any:
        if "logicalType" not in props:
            return None
        if self.strict and props["logicalType"] == "decimal":
            fault = decimal_fault(kind, props, size)
            if fault:
                raise _Fault(fault, at="logicalType")
        return read_logical(kind, props, size)

    def _inner(self, node: dict[str, Any], key: str, space: str) -> Type:
        if key not in node:
            raise _Fault(f"the {node['type']} has no {key!r}", "a type", at=key)
        try:
            return self.type(node[key], space)
        except _Fault as fault:
            raise fault.within(key) from None

    def _union(self, node: list[Any], space: str) -> Union:
        if not node and self.strict:
            raise _Fault("the union is empty", "at least one type")
        branches: list[Type] = []
        seen: set[str] = set()
        for index, item in enumerate(node):
            try:
                branch = self.type(item, space)
            except _Fault as fault:
                raise fault.within(index) from None
            if branch.kind == "union":
                raise _Fault("a union may not directly contain a union", "its branches here", at=str(index))
            label = branch.name if isinstance(branch, Named) else branch.kind
            if label in seen:
                raise _Fault(f"the union contains {label!r} twice", "each type once", at=str(index))
            seen.add(label)
            branches.append(branch)
        return Union(tuple(branches))

    # --- named types ------------------------------------------------------------------------------------------------

    def _definition(self, word: str, node: dict[str, Any], space: str) -> Named:
        name = self._name(node, space)
        if name in self.names:
            origin = f", first in the reference {self.origins[name]!r}" if name in self.origins else ""
            raise _Fault(f"{name!r} is defined twice{origin}", "its name alone, where it is used again", at="name")
        doc = node.get("doc")
        doc = doc if type(doc) is str else None
        aliases = self._type_aliases(node, namespace(name))
        if word == "enum":
            return self._enum(name, doc, aliases, node)
        if word == "fixed":
            return self._fixed(name, doc, aliases, node)
        record = Record(name, doc, aliases, word == "error", props=_props(node, _TYPE_KEYS))
        self.names[name] = record
        record.complete(self._fields(record, node))
        return record

    def _name(self, node: dict[str, Any], space: str) -> str:
        name, own = node.get("name"), node.get("namespace")
        if type(name) is not str:
            raise _Fault(
                f"the {node['type']} has no name" if name is None else "the name is no string", "a name", at="name"
            )
        if own is not None and type(own) is not str:
            if self.strict:
                raise _Fault("the namespace is no string", "dotted names, or ''", at="namespace")
            own = None
        full = _qualified(name, space if own is None else own)
        if not full or (self.strict and not _DOTTED.fullmatch(full)):
            raise _Fault(f"{full!r} is not a valid name", _NAME_RULE, at="name")
        if full in (_RESERVED_NAMES if self.strict else PRIMITIVES):
            raise _Fault(f"{full!r} is the name of a built-in type", "another name", at="name")
        return full

    def _type_aliases(self, node: dict[str, Any], space: str) -> tuple[str, ...]:
        if "aliases" not in node:
            return ()
        aliases = _strings(node, "aliases")
        full = tuple(dict.fromkeys(_qualified(alias, space) for alias in aliases))
        if self.strict:
            for index, alias in enumerate(full):
                if not _DOTTED.fullmatch(alias):
                    raise _Fault(f"{alias!r} is not a valid name", _NAME_RULE, at=str(index)).within("aliases")
        return full

    def _enum(self, name: str, doc: str | None, aliases: tuple[str, ...], node: dict[str, Any]) -> EnumType:
        if "symbols" not in node:
            raise _Fault("the enum has no symbols", "an array of strings", at="symbols")
        symbols = _strings(node, "symbols")
        if not symbols and self.strict:
            raise _Fault("the enum has no symbols", "at least one", at="symbols")
        if len(set(symbols)) != len(symbols):
            twice = next(symbol for symbol in symbols if symbols.count(symbol) > 1)
            again = len(symbols) - 1 - symbols[::-1].index(twice)
            raise _Fault(f"the enum has the symbol {twice!r} twice", "each once", at=str(again)).within("symbols")
        default = node.get("default")
        if self.strict:
            for index, symbol in enumerate(symbols):
                if not _is_name(symbol):
                    raise _Fault(f"{symbol!r} is not a valid symbol", _NAME_RULE, at=str(index)).within("symbols")
            if "default" in node and default not in symbols:
                raise _Fault(f"the default {_shown(default)} is none of the symbols", "one of them", at="default")
        default = default if type(default) is str and default in symbols else None
        enum = EnumType(name, symbols, default, doc, aliases, _props(node, _ENUM_KEYS))
        self.names[name] = enum
        return enum

    def _fixed(self, name: str, doc: str | None, aliases: tuple[str, ...], node: dict[str, Any]) -> Fixed:
        size = node.get("size")
        if type(size) is not int or not 0 <= size < 2**31:
            raise _Fault("the fixed has no valid size", "an integer between 0 and 2147483647", at="size")
        props = _props(node, _TYPE_KEYS)
        fixed = Fixed(name, size, doc, aliases, props, self._logical("fixed", props, size))
        self.names[name] = fixed
        return fixed

    def _fields(self, record: Record, node: dict[str, Any]) -> dict[str, RecordField]:
        items = node.get("fields")
        if type(items) is not list:
            why = "the 'fields' of the record are no array" if "fields" in node else "the record has no fields"
            raise _Fault(why, "an array of fields", at="fields")
        space = namespace(record.name)
        fields: dict[str, RecordField] = {}
        for index, item in enumerate(items):
            try:
                field = self._field(item, space, record)
            except _Fault as fault:
                raise fault.within("fields", index) from None
            if field.name in fields:
                why = f"the record {record.name!r} has the field {field.name!r} twice"
                raise _Fault(why, "another name", at="name").within("fields", index)
            fields[field.name] = field
        return fields

    def _field(self, node: Any, space: str, parent: Record) -> RecordField:
        if type(node) is not dict:
            raise _Fault(f"{_shown(node)} is not a field", "an object with a name and a type")
        name = node.get("name")
        if type(name) is not str or not name:
            raise _Fault("the field has no name", "a string", at="name")
        if self.strict and not _is_name(name):
            raise _Fault(f"{name!r} is not a valid name", _NAME_RULE, at="name")
        word = node.get("type")
        kind = (PRIMITIVES.get(word) if type(word) is str else None) or self._inner_of_field(node, name, space)
        if len(node) == 2:
            return RecordField(name, kind)
        default = node.get("default", NO_DEFAULT)
        if default is not NO_DEFAULT and self.strict:
            fault = default_fault(kind, default, parent)
            if fault:
                raise _Fault(f"the default of {name!r} does not fit its type: {fault}", at="default")
        doc = node.get("doc")
        aliases = self._field_aliases(node) if "aliases" in node else ()
        order = self._order(node["order"]) if "order" in node else "ascending"
        return RecordField(
            name, kind, default, doc if type(doc) is str else None, order, aliases, _props(node, _FIELD_KEYS)
        )

    def _inner_of_field(self, node: dict[str, Any], name: str, space: str) -> Type:
        if "type" not in node:
            raise _Fault(f"the field {name!r} has no type", "a type", at="type")
        try:
            return self.type(node["type"], space)
        except _Fault as fault:
            raise fault.within("type") from None

    def _field_aliases(self, node: dict[str, Any]) -> tuple[str, ...]:
        aliases = tuple(dict.fromkeys(_strings(node, "aliases")))
        if self.strict:
            for index, alias in enumerate(aliases):
                if not _is_name(alias):
                    raise _Fault(f"{alias!r} is not a valid name", _NAME_RULE, at=str(index)).within("aliases")
        return aliases

    def _order(self, value: Any) -> str:
        """Read in any case, as the Java library does: Confluent's normalized texts say ASCENDING."""
        order = value.lower() if type(value) is str else ""
        if order not in _ORDERS:
            if self.strict:
                raise _Fault(f"{_shown(value)} is no sort order", "ascending, descending or ignore", at="order")
            return "ascending"
        return order


def _is_name(text: str) -> bool:
    """Whether a text is [A-Za-z_][A-Za-z0-9_]*: in ASCII, Python's identifiers are just that."""
    return text.isascii() and text.isidentifier()


def _qualified(name: str, space: str) -> str:
    """The full name: a dotted name is full already, and a leading dot means the null namespace."""
    if "." in name:
        return name[1:] if name.rfind(".") == 0 else name
    return f"{space}.{name}" if space else name


def _strings(node: dict[str, Any], key: str) -> tuple[str, ...]:
    items = node[key]
    if type(items) is not list:
        raise _Fault(f"{key!r} is not an array", "an array of strings", at=key)
    for index, item in enumerate(items):
        if type(item) is not str:
            raise _Fault(f"{_shown(item)} is not a string", "a string", at=str(index)).within(key)
    return tuple(items)


def _props(node: dict[str, Any], known: frozenset[str]) -> Props:
    if node.keys() <= known:
        return NO_PROPS
    return {key: value for key, value in node.items() if key not in known}


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:59] + "…"
