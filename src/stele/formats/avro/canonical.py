"""The model printed: as the Java library prints it, normalized, and as Parsing Canonical Form.

PRINTED     what Java's `Schema.toString` gives: fixed attribute order, unknown attributes kept, a name written with
            its namespace only where that differs from the enclosing one; types of references by name.
NORMALIZED  full names, attributes sorted, references by name; docs, defaults, aliases and logical types kept. Laid
            out as Confluent's `normalize` does, except that a sort order is written only when it is not the default.
CANONICAL   Parsing Canonical Form of the specification, references inlined, so that a fingerprint says it all.

Source: docs/protocols/avro.md#canonical-forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stele.core.ports import TextForm
from stele.errors import MalformedSchema
from stele.formats.avro.javajson import dumps
from stele.formats.avro.model import (
    NO_DEFAULT,
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

MAX_INLINED: Final = 200
"""Types inside types once references are inlined: documents may each stay flat and still nest deeply together."""


def canonical(schema: AvroSchema, form: TextForm) -> bytes:
    """The schema in one of its stable texts, UTF-8. Raises `MalformedSchema` when references nest too deeply."""
    match form:
        case TextForm.PRINTED:
            return _print(_Printed(schema.referenced), schema)
        case TextForm.NORMALIZED:
            return _print(_Normalized(schema.referenced), schema)
        case TextForm.CANONICAL:
            return _print(_Canonical({}), schema)


def resolved(schema: AvroSchema) -> bytes:
    """PRINTED with every reference inlined where it is first used: a text that stands alone."""
    return _print(_Printed({}), schema)


def _print(printer: _Printer, schema: AvroSchema) -> bytes:
    try:
        return dumps(printer.node(schema.root, "")).encode()
    except RecursionError:  # only where the caller's own stack is deep already
        raise _too_deep() from None


def _too_deep() -> MalformedSchema:
    return MalformedSchema(f"with its references inlined the schema nests deeper than {MAX_INLINED} levels")


class _Printer:
    """Walks the model; a named type is written out where it is first met and by name afterwards."""

    def __init__(self, known: Mapping[str, Named]) -> None:
        self.known = set(known)
        self.depth = 0

    def node(self, node: Type, space: str) -> Any:
        """The JSON value of a type, space being the namespace in force."""
        if self.depth > MAX_INLINED:
            raise _too_deep()
        self.depth += 1
        found = self._node(node, space)
        self.depth -= 1
        return found

    def _node(self, node: Type, space: str) -> Any:
        match node:
            case Primitive():
                return self.with_props({"type": node.kind}, node.props) if node.props else node.kind
            case Union():
                return [self.node(branch, space) for branch in node.branches]
            case Array():
                return self.with_props({"type": "array", "items": self.node(node.items, space)}, node.props)
            case Map():
                return self.with_props({"type": "map", "values": self.node(node.values, space)}, node.props)
            case _:
                if node.name in self.known:
                    return self.reference(node.name, space)
                self.known.add(node.name)
                return self.definition(node, space)

    def reference(self, name: str, space: str) -> str:
        """How a type defined before is named."""
        return name

    def definition(self, node: Named, space: str) -> dict[str, Any]:
        """How a named type is written out."""
        raise NotImplementedError

    def with_props(self, out: dict[str, Any], props: Props) -> Any:
        """out with the attributes the specification does not know."""
        raise NotImplementedError


class _Printed(_Printer):
    """Form.PRINTED."""

    def reference(self, name: str, space: str) -> str:
        own = namespace(name)
        return name[len(own) + 1 :] if own and own == space else name

    def with_props(self, out: dict[str, Any], props: Props) -> dict[str, Any]:
        out.update(props)
        return out

    def definition(self, node: Named, space: str) -> dict[str, Any]:
        own, _, simple = node.name.rpartition(".")
        out: dict[str, Any] = {
            "type": "error" if isinstance(node, Record) and node.error else node.kind,
            "name": simple,
        }
        if own != space:
            out["namespace"] = own
        if node.doc is not None:
            out["doc"] = node.doc
        match node:
            case Record():
                out["fields"] = [self._field(field, own) for field in node.fields]
            case Fixed():
                out["size"] = node.size
            case EnumType():
                out["symbols"] = node.symbols
                if node.default is not None:
                    out["default"] = node.default
        out.update(node.props)
        if node.aliases:
            out["aliases"] = [_brief(alias, node.name) for alias in node.aliases]
        return out

    def _field(self, field: RecordField, space: str) -> dict[str, Any]:
        out: dict[str, Any] = {"name": field.name, "type": self.node(field.type, space)}
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


class _Normalized(_Printer):
    """Form.NORMALIZED."""

    def with_props(self, out: dict[str, Any], props: Props) -> dict[str, Any]:
        for key in sorted(props):
            out[key] = _sorted(props[key])
        return out

    def definition(self, node: Named, space: str) -> dict[str, Any]:
        out: dict[str, Any] = {"name": node.name, "type": node.kind}
        if space and not namespace(node.name):
            out["namespace"] = ""
        match node:
            case Record():
                out["type"] = "error" if node.error else "record"
                out["fields"] = [self._field(field, namespace(node.name)) for field in node.fields]
            case Fixed():
                out["size"] = node.size
            case EnumType():
                out["symbols"] = node.symbols
        if node.doc:
            out["doc"] = node.doc
        if node.aliases:
            out["aliases"] = sorted(_absolute(alias, node.name) for alias in node.aliases)
        if isinstance(node, EnumType) and node.default is not None:
            out["default"] = node.default
        return self.with_props(out, node.props)

    def _field(self, field: RecordField, space: str) -> dict[str, Any]:
        out: dict[str, Any] = {"name": field.name, "type": self.node(field.type, space)}
        if field.order != "ascending":
            out["order"] = field.order
        if field.doc:
            out["doc"] = field.doc
        if field.aliases:
            out["aliases"] = sorted(field.aliases)
        if field.default is not NO_DEFAULT:
            out["default"] = _sorted(field.default)
        return self.with_props(out, field.props)


class _Canonical(_Printer):
    """Form.CANONICAL: the specification's transformation, done on the model instead of the text."""

    def with_props(self, out: dict[str, Any], props: Props) -> Any:
        return out if len(out) > 1 else out["type"]

    def definition(self, node: Named, space: str) -> dict[str, Any]:
        out: dict[str, Any] = {"name": node.name, "type": node.kind}
        match node:
            case Record():
                out["fields"] = [{"name": field.name, "type": self.node(field.type, "")} for field in node.fields]
            case EnumType():
                out["symbols"] = node.symbols
            case Fixed():
                out["size"] = node.size
        return out


def _brief(alias: str, name: str) -> str:
    """An alias without the namespace it shares with the type, as Java shortens it."""
    own = namespace(name)
    return alias[len(own) + 1 :] if own and namespace(alias) == own else _absolute(alias, name)


def _absolute(alias: str, name: str) -> str:
    """An alias that means the same wherever it stands: without a namespace it gets a dot inside a type that has one."""
    return f".{alias}" if namespace(name) and not namespace(alias) else alias


def _sorted(value: Any) -> Any:
    """The same JSON value with the members of every object in order of their names."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value
