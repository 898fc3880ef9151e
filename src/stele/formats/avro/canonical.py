"""The model printed: as the Java library prints it, normalized, and as Parsing Canonical Form.

PRINTED     what Java's `Schema.toString` gives: fixed attribute order, unknown attributes kept, a name written with
            its namespace only where that differs from the enclosing one; types of references by name.
NORMALIZED  full names, attributes sorted, references by name; docs, defaults, aliases and logical types kept. Laid
            out as Confluent's `normalize` does, except that a sort order is written only when it is not the default.
CANONICAL   Parsing Canonical Form of the specification, references inlined, so that a fingerprint says it all.

Source: docs/protocols/avro.md#canonical-forms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from stele.core.ports import TextForm
from stele.errors import MalformedSchema
from stele.formats.avro.java_json import to_java_json
from stele.formats.avro.model import (
    NO_DEFAULT,
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
    namespace_of,
)

MAX_INLINED: Final = 200
"""Types inside types once references are inlined: documents may each stay flat and still nest deeply together."""


def print_canonical(schema: AvroSchema, form: TextForm) -> bytes:
    """Return the schema in one of its stable texts, UTF-8. Raises `MalformedSchema` when references nest too deeply."""
    match form:
        case TextForm.PRINTED:
            return _print_schema(_PrintedForm(schema.referenced), schema)
        case TextForm.NORMALIZED:
            return _print_schema(_NormalizedForm(schema.referenced), schema)
        case TextForm.CANONICAL:
            return _print_schema(_ParsingCanonicalForm({}), schema)


def print_resolved(schema: AvroSchema) -> bytes:
    """PRINTED with every reference inlined where it is first used: a text that stands alone."""
    return _print_schema(_PrintedForm({}), schema)


def _print_schema(printer: _Printer, schema: AvroSchema) -> bytes:
    try:
        return to_java_json(printer.print_type(schema.root, "")).encode()
    except RecursionError:  # only where the caller's own stack is deep already
        raise _too_deep_error() from None


def _too_deep_error() -> MalformedSchema:
    return MalformedSchema(f"with its references inlined the schema nests deeper than {MAX_INLINED} levels")


class _Printer:
    """Walks the model; a named type is written out where it is first met and by name afterwards."""

    def __init__(self, known: Mapping[str, AvroNamedType]) -> None:
        self.known = set(known)
        self.depth = 0

    def print_type(self, node: AvroType, space: str) -> Any:
        """Return the JSON value of a type, space being the namespace in force."""
        if self.depth > MAX_INLINED:
            raise _too_deep_error()
        self.depth += 1
        found = self._print_type(node, space)
        self.depth -= 1
        return found

    def _print_type(self, node: AvroType, space: str) -> Any:
        match node:
            case AvroPrimitive():
                return self.add_props({"type": node.kind}, node.props) if node.props else node.kind
            case AvroUnion():
                return [self.print_type(branch, space) for branch in node.branches]
            case AvroArray():
                return self.add_props({"type": "array", "items": self.print_type(node.items, space)}, node.props)
            case AvroMap():
                return self.add_props({"type": "map", "values": self.print_type(node.values, space)}, node.props)
            case _:
                if node.name in self.known:
                    return self.print_reference(node.name, space)
                self.known.add(node.name)
                return self.print_definition(node, space)

    def print_reference(self, name: str, space: str) -> str:
        """Return the reference to a type that is defined before."""
        return name

    def print_definition(self, node: AvroNamedType, space: str) -> dict[str, Any]:
        """Return the definition of a named type."""
        raise NotImplementedError

    def add_props(self, out: dict[str, Any], props: Props) -> Any:
        """Return out with the attributes that the specification does not know."""
        raise NotImplementedError


class _PrintedForm(_Printer):
    """TextForm.PRINTED."""

    def print_reference(self, name: str, space: str) -> str:
        own = namespace_of(name)
        return name[len(own) + 1 :] if own and own == space else name

    def add_props(self, out: dict[str, Any], props: Props) -> dict[str, Any]:
        out.update(props)
        return out

    def print_definition(self, node: AvroNamedType, space: str) -> dict[str, Any]:
        own, _, simple = node.name.rpartition(".")
        out: dict[str, Any] = {
            "type": "error" if isinstance(node, AvroRecord) and node.error else node.kind,
            "name": simple,
        }
        if own != space:
            out["namespace"] = own
        if node.doc is not None:
            out["doc"] = node.doc
        match node:
            case AvroRecord():
                out["fields"] = [self._print_field(field, own) for field in node.fields]
            case AvroFixed():
                out["size"] = node.size
            case AvroEnum():
                out["symbols"] = node.symbols
                if node.default is not None:
                    out["default"] = node.default
        out.update(node.props)
        if node.aliases:
            out["aliases"] = [_shorten_alias(alias, node.name) for alias in node.aliases]
        return out

    def _print_field(self, field: AvroField, space: str) -> dict[str, Any]:
        out: dict[str, Any] = {"name": field.name, "type": self.print_type(field.type, space)}
        if field.doc is not None:
            out["doc"] = field.doc
        if field.default is not NO_DEFAULT:
            out["default"] = field.default
        if field.order != "ascending":
            out["order"] = field.order
        if field.aliases:
            out["aliases"] = field.aliases
        out.update(field.props)
        return out


class _NormalizedForm(_Printer):
    """TextForm.NORMALIZED."""

    def add_props(self, out: dict[str, Any], props: Props) -> dict[str, Any]:
        for key in sorted(props):
            out[key] = _sort_members(props[key])
        return out

    def print_definition(self, node: AvroNamedType, space: str) -> dict[str, Any]:
        out: dict[str, Any] = {"name": node.name, "type": node.kind}
        if space and not namespace_of(node.name):
            out["namespace"] = ""
        match node:
            case AvroRecord():
                out["type"] = "error" if node.error else "record"
                out["fields"] = [self._print_field(field, namespace_of(node.name)) for field in node.fields]
            case AvroFixed():
                out["size"] = node.size
            case AvroEnum():
                out["symbols"] = node.symbols
        if node.doc:
            out["doc"] = node.doc
        if node.aliases:
            out["aliases"] = sorted(_qualify_alias(alias, node.name) for alias in node.aliases)
        if isinstance(node, AvroEnum) and node.default is not None:
            out["default"] = node.default
        return self.add_props(out, node.props)

    def _print_field(self, field: AvroField, space: str) -> dict[str, Any]:
        out: dict[str, Any] = {"name": field.name, "type": self.print_type(field.type, space)}
        if field.order != "ascending":
            out["order"] = field.order
        if field.doc:
            out["doc"] = field.doc
        if field.aliases:
            out["aliases"] = sorted(field.aliases)
        if field.default is not NO_DEFAULT:
            out["default"] = _sort_members(field.default)
        return self.add_props(out, field.props)


class _ParsingCanonicalForm(_Printer):
    """TextForm.CANONICAL: the specification's transformation, done on the model instead of the text."""

    def add_props(self, out: dict[str, Any], props: Props) -> Any:
        return out if len(out) > 1 else out["type"]

    def print_definition(self, node: AvroNamedType, space: str) -> dict[str, Any]:
        out: dict[str, Any] = {"name": node.name, "type": node.kind}
        match node:
            case AvroRecord():
                out["fields"] = [{"name": field.name, "type": self.print_type(field.type, "")} for field in node.fields]
            case AvroEnum():
                out["symbols"] = node.symbols
            case AvroFixed():
                out["size"] = node.size
        return out


def _shorten_alias(alias: str, name: str) -> str:
    """Return an alias without the namespace it shares with the type, as Java shortens it."""
    own = namespace_of(name)
    return alias[len(own) + 1 :] if own and namespace_of(alias) == own else _qualify_alias(alias, name)


def _qualify_alias(alias: str, name: str) -> str:
    """Return an alias that means the same anywhere: inside a namespace, one without any gets a leading dot."""
    return f".{alias}" if namespace_of(name) and not namespace_of(alias) else alias


def _sort_members(value: Any) -> Any:
    """Return the same JSON value with the members of every object in order of their names."""
    if isinstance(value, dict):
        return {key: _sort_members(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sort_members(item) for item in value]
    return value


# --- fingerprints -----------------------------------------------------------------------------------------------------


_CRC_EMPTY: Final = 0xC15D213AA4D7A795


def _make_crc_table() -> tuple[int, ...]:
    """Return the 256 steps of CRC-64-AVRO, one for each value of a byte."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_CRC_EMPTY if value & 1 else 0)  # noqa: PLW2901 - the remainder grows bit by bit
        table.append(value)
    return tuple(table)


_CRC_TABLE: Final = _make_crc_table()


def rabin_fingerprint(text: bytes) -> bytes:
    """CRC-64-AVRO as 8 bytes, big-endian: printed as hex it reads like Java's `Long.toHexString`.

    The header of the single-object encoding wants the same bytes in reverse (little-endian) order.
    """
    value = _CRC_EMPTY
    table = _CRC_TABLE
    for byte in text:
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "big")


def compute_fingerprints(canonical: bytes) -> Mapping[str, bytes]:
    """Return the three digests the specification names, of a text in Parsing Canonical Form."""
    return {
        "rabin": rabin_fingerprint(canonical),
        "md5": hashlib.md5(canonical, usedforsecurity=False).digest(),
        "sha256": hashlib.sha256(canonical).digest(),
    }
