"""Prints the model: as the Java library prints it, normalized, and as Parsing Canonical Form.

PRINTED     what Java's `Schema.toString` returns: fixed attribute order, unknown attributes kept, a name written with
            its namespace only where that differs from the enclosing one; types of references by name.
NORMALIZED  what Confluent's `normalize` stores: PRINTED, with attributes, aliases and members of defaults sorted,
            numbers spelled as their types spell them, and empty docs of types removed.
CANONICAL   Parsing Canonical Form of the specification, with references inlined, so that a fingerprint covers them.

Two more texts are for comparisons only: `print_identity`, which is equal for schemas that Java calls equal, and
`print_digest_text`, which the digest `normalized` is computed from.

JSON is printed as that library prints it (`to_java_json`): no white space, non-ASCII characters as themselves, control
characters escaped with upper-case hex, doubles like Java's `Double.toString` (`1.0`, `2.0E10`, `1.0E-4`).

Source: docs/protocols/avro.md#canonical-forms.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isinf, isnan
from struct import pack
from typing import Any, Final

import msgspec

from stele.core.ports import TextForm
from stele.errors import MalformedSchema
from stele.formats.avro.model import (
    NO_DEFAULT,
    TYPE_WORDS,
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
    LogicalType,
    Props,
    namespace_of,
)

MAX_INLINED: Final = 200
"""Maximum nesting of types once references are inlined: flat documents can nest deeply together."""


def print_canonical(schema: AvroSchema, form: TextForm) -> bytes:
    """Return the schema in one of its stable texts, UTF-8. Raises `MalformedSchema` when references nest too deeply."""
    match form:
        case TextForm.PRINTED:
            return _print_and_note_identity(schema)
        case TextForm.NORMALIZED:
            return _print_schema(_NormalizedForm(schema.referenced), schema)
        case TextForm.CANONICAL:
            return _print_schema(_ParsingCanonicalForm({}), schema)


def print_identity(schema: AvroSchema) -> bytes:
    """Return PRINTED, but with everything sorted that Java's `Schema.equals` compares as a set.

    Docs are part of it, as in Confluent's comparison. It does not distinguish error records from other records.
    """
    known = schema.identity_text
    return _print_schema(_IdentityForm(schema.referenced), schema) if known is None else known


def _print_and_note_identity(schema: AvroSchema) -> bytes:
    """Return PRINTED.

    If nothing had to be sorted, it is also the identity text, and is stored as such in the schema.
    """
    form = _PrintedForm(schema.referenced)
    text = _print_schema(form, schema)
    if form.is_identity:
        msgspec.structs.force_setattr(schema, "identity_text", text)
    return text


def print_digest_text(schema: AvroSchema) -> bytes:
    """Return the text that the digest `normalized` is computed from.

    Logs hold that digest, so this text never changes.
    """
    return _print_schema(_DigestForm(schema.referenced), schema)


def print_resolved(schema: AvroSchema) -> bytes:
    """Return PRINTED with every reference inlined where it is first used, so that the text needs no other document."""
    return _print_schema(_PrintedForm({}), schema)


def _print_schema(printer: _Printer, schema: AvroSchema) -> bytes:
    try:
        return to_java_json(printer.print_type(schema.root, "")).encode()
    except RecursionError:  # only where the caller's own stack is deep already
        raise _too_deep_error() from None


def _too_deep_error() -> MalformedSchema:
    return MalformedSchema(f"with its references inlined the schema nests deeper than {MAX_INLINED} levels")


class _Printer:
    """Walks the model. A named type is written in full at its first use and by name afterwards."""

    def __init__(self, known: Mapping[str, AvroNamedType]) -> None:
        self.known = set(known)
        self.depth = 0

    def print_type(self, node: AvroType, space: str) -> Any:
        """Return the JSON value of a type, space being the namespace in force."""
        if type(node) is AvroPrimitive and not node.props:
            return node.kind  # the commonest case by far
        if self.depth > MAX_INLINED:
            raise _too_deep_error()
        self.depth += 1
        json_value = self._print_type(node, space)
        self.depth -= 1
        return json_value

    def _print_type(self, node: AvroType, space: str) -> Any:
        match node:
            case AvroPrimitive():
                return self.add_props({"type": node.kind}, node.props, node.logical)
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

    def add_props(self, out: dict[str, Any], props: Props, logical: LogicalType | None = None) -> Any:
        """Add the attributes that the specification does not define to out and return it.

        logical is the logical type that they define.
        """
        raise NotImplementedError


class _PrintedForm(_Printer):
    """Prints TextForm.PRINTED."""

    is_identity = True
    """Whether the text so far is the same as `_IdentityForm` prints."""

    def print_reference(self, name: str, space: str) -> str:
        return _shorten_name(name, space)

    def add_props(self, out: dict[str, Any], props: Props, logical: LogicalType | None = None) -> dict[str, Any]:
        if props:
            out.update(props)
            is_sorted = len(props) < 2 or list(props) == sorted(props)
            self.is_identity = self.is_identity and is_sorted and not any(map(_has_members, props.values()))
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
        out = self.add_props(out, node.props, node.logical)
        if node.aliases:
            out["aliases"] = [_shorten_alias(alias, node.name) for alias in node.aliases]
        if node.aliases or out["type"] == "error":
            self.is_identity = False
        return out

    def _print_field(self, field: AvroField, space: str) -> dict[str, Any]:
        out: dict[str, Any] = {"name": field.name, "type": self.print_type(field.type, space)}
        if field.doc is not None:
            out["doc"] = field.doc
        if field.default is not NO_DEFAULT:
            out["default"] = field.default
            self.is_identity = self.is_identity and not _has_members(field.default)
        if field.order != "ascending":
            out["order"] = field.order
        if field.aliases:
            out["aliases"] = field.aliases
            self.is_identity = False
        return self.add_props(out, field.props) if field.props else out


class _IdentityForm(_PrintedForm):
    """Prints the text of `print_identity`."""

    def add_props(self, out: dict[str, Any], props: Props, logical: LogicalType | None = None) -> dict[str, Any]:
        for key in sorted(props):
            out[key] = _sort_members(props[key])
        return out

    def print_definition(self, node: AvroNamedType, space: str) -> dict[str, Any]:
        out = super().print_definition(node, space)
        out["type"] = node.kind
        if node.aliases:
            aliases = sorted(node.aliases, key=lambda alias: _qualify_alias(alias, node.name))
            out["aliases"] = [_shorten_alias(alias, node.name) for alias in aliases]
        return out

    def _print_field(self, field: AvroField, space: str) -> dict[str, Any]:
        out = super()._print_field(field, space)
        if field.default is not NO_DEFAULT:
            out["default"] = self.print_default(field)
        if field.aliases:
            out["aliases"] = sorted(field.aliases)
        return out

    def print_default(self, field: AvroField) -> Any:
        """Return the JSON value of a default."""
        return _sort_members(field.default)


class _NormalizedForm(_IdentityForm):
    """Prints TextForm.NORMALIZED."""

    def add_props(self, out: dict[str, Any], props: Props, logical: LogicalType | None = None) -> dict[str, Any]:
        first: tuple[str, ...] = ()
        if logical is not None:  # these come before the sorted attributes; a scale of zero does not
            first = ("logicalType", "precision", "scale") if logical.name == "decimal" else ("logicalType",)
            first = first if logical.scale else first[:2]
        return super().add_props({**out, **{key: props[key] for key in first if key in props}}, props)

    def print_definition(self, node: AvroNamedType, space: str) -> dict[str, Any]:
        out = super().print_definition(node, space)
        if not node.doc:
            out.pop("doc", None)
        return out

    def print_default(self, field: AvroField) -> Any:
        return _spell_default(field.type, field.default)


class _DigestForm(_Printer):
    """Prints the text of `print_digest_text`: like NORMALIZED, but with full names and its own order of attributes."""

    def add_props(self, out: dict[str, Any], props: Props, logical: LogicalType | None = None) -> dict[str, Any]:
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
        return self.add_props(out, field.props) if field.props else out


class _ParsingCanonicalForm(_Printer):
    """Prints TextForm.CANONICAL: applies the transformation of the specification to the model, not to the text."""

    def add_props(self, out: dict[str, Any], props: Props, logical: LogicalType | None = None) -> Any:
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


def _shorten_name(name: str, space: str) -> str:
    """Return a full name without the namespace in force, unless the rest would read as a kind of type."""
    own, _, simple = name.rpartition(".")
    return simple if own and own == space and simple not in TYPE_WORDS else name


def _shorten_alias(alias: str, name: str) -> str:
    """Return an alias without the namespace it shares with the type, as Java shortens it."""
    short = _shorten_name(alias, namespace_of(name))
    return short if short != alias else _qualify_alias(alias, name)


def _qualify_alias(alias: str, name: str) -> str:
    """Return an alias that means the same anywhere: inside a namespace, one without any gets a leading dot."""
    return f".{alias}" if namespace_of(name) and not namespace_of(alias) else alias


def _has_members(value: Any) -> bool:
    """Return whether a JSON value may have objects inside, whose members have an order."""
    return type(value) in (dict, list)


def _sort_members(value: Any) -> Any:
    """Return the same JSON value with the members of every object in order of their names."""
    if isinstance(value, dict):
        return {key: _sort_members(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sort_members(item) for item in value]
    return value


def _spell_default(node: AvroType, value: Any) -> Any:
    """Return a default as a value of its type is spelled: a double as 1.0, a float with the digits it has."""
    match node:
        case AvroUnion():
            return _spell_default(node.branches[0], value) if node.branches else value
        case AvroArray() if isinstance(value, list):
            return [_spell_default(node.items, item) for item in value]
        case AvroMap() if isinstance(value, dict):
            return {key: _spell_default(node.values, value[key]) for key in sorted(value)}
        case AvroRecord() if isinstance(value, dict):
            fields = node.by_name
            return {
                key: _spell_default(fields[key].type, value[key]) if key in fields else _sort_members(value[key])
                for key in sorted(value)
            }
        case AvroPrimitive() if node.kind in ("double", "float") and type(value) in (int, float):
            try:
                number = float(value)
            except OverflowError:  # an integer of more than 300 digits stays as it is
                return value
            return number if node.kind == "double" else _round_to_float(number)
    return _sort_members(value)


def _round_to_float(value: float) -> float:
    """Return the double with the fewest digits that becomes the same 32-bit float.

    A value outside the range of 32-bit floats is returned as it is.
    """
    try:
        packed = pack("f", value)
    except OverflowError:
        return value
    return next(short for digits in range(1, 18) if pack("f", short := float(f"{value:.{digits}g}")) == packed)


# --- fingerprints -----------------------------------------------------------------------------------------------------


_CRC_EMPTY: Final = 0xC15D213AA4D7A795


def _make_crc_table() -> tuple[int, ...]:
    """Return the table of CRC-64-AVRO: 256 entries, one for each value of a byte."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_CRC_EMPTY if value & 1 else 0)  # noqa: PLW2901 - the remainder grows bit by bit
        table.append(value)
    return tuple(table)


_CRC_TABLE: Final = _make_crc_table()


def rabin_fingerprint(text: bytes) -> bytes:
    """Return the CRC-64-AVRO of a text as 8 bytes, big-endian.

    In hex they read like Java's `Long.toHexString`. The header of the single-object encoding requires the same bytes in
    reverse (little-endian) order.
    """
    value = _CRC_EMPTY
    table = _CRC_TABLE
    for byte in text:
        value = (value >> 8) ^ table[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "big")


def compute_fingerprints(canonical: bytes) -> Mapping[str, bytes]:
    """Return the three digests that the specification names, for a text in Parsing Canonical Form.

    The digests of short texts are cached, because schemas that differ only in documentation share this form.
    """
    return _remember_fingerprints(canonical) if len(canonical) <= _SHORT_BYTES else _compute_fingerprints(canonical)


def _compute_fingerprints(canonical: bytes) -> Mapping[str, bytes]:
    return {
        "rabin": rabin_fingerprint(canonical),
        "md5": hashlib.md5(canonical, usedforsecurity=False).digest(),
        "sha256": hashlib.sha256(canonical).digest(),
    }


_SHORT_BYTES: Final = 4096
_remember_fingerprints = lru_cache(1024)(_compute_fingerprints)


_quote = json.encoder.encode_basestring
_encode = msgspec.json.Encoder().encode
_MAYBE_DOUBLE = re.compile(r"[:,\[]-?[0-9]+[.e]")
"""Matches every double inside a document that msgspec printed. It can also match parts of strings."""
_LOWER_HEX = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([01])([a-f])")


def to_java_json(value: Any) -> str:
    """Return a value as one line of JSON. Members keep their order.

    value must come from a JSON document, so it contains no NaN.
    """
    try:
        # The library's encoder is many times as fast, and differs in hex digits and doubles only.
        printed = _encode([value]).decode()
    except (TypeError, UnicodeEncodeError):  # a mapping that is no dict; half a surrogate pair
        printed = ""
    if printed and not _MAYBE_DOUBLE.search(printed):
        return _raise_hex_digits(printed[1:-1])
    parts: list[str] = []
    _write_value(value, parts.append)
    return "".join(parts)


def quote_string(text: str) -> str:
    """Return a text as a JSON string."""
    return _raise_hex_digits(_quote(text))


def _raise_hex_digits(printed: str) -> str:
    """Return JSON text with the hex digits of escaped control characters in upper case."""
    if "\\u00" not in printed:
        return printed
    return _LOWER_HEX.sub(lambda match: f"{match[1]}\\u00{match[2]}{match[3].upper()}", printed)


def _write_value(value: Any, put: Any) -> None:
    match value:
        case str():
            put(quote_string(value))
        case None:
            put("null")
        case bool():
            put("true" if value else "false")
        case int():
            put(str(value))
        case float():
            put(format_double(value))
        case Mapping():
            opening = "{"
            for key, item in value.items():
                put(opening + quote_string(key) + ":")
                _write_value(item, put)
                opening = ","
            put("{}" if opening == "{" else "}")
        case Sequence():
            opening = "["
            for item in value:
                put(opening)
                _write_value(item, put)
                opening = ","
            put("[]" if opening == "[" else "]")
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form")


def format_double(value: float) -> str:
    """Return a double in Java's notation, with the fewest digits that read back as the same number."""
    if isnan(value) or isinf(value):
        return '"NaN"' if isnan(value) else ('"Infinity"' if value > 0 else '"-Infinity"')
    sign, digits, exponent = _decompose_double(value)
    if value == 0:
        return f"{sign}0.0"
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        digits = digits.ljust(exponent + 2, "0")
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decompose_double(value: float) -> tuple[str, str, int]:
    """Return (sign, significant digits without trailing zeros, exponent of the first digit)."""
    mantissa, _, power = f"{value!r}".lower().partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + (len(whole) - 1 if whole.strip("0") else len(digits) - len(fraction) - 1)
    return sign, digits.rstrip("0") or "0", exponent
