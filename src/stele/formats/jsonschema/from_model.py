"""Converts the neutral model to a JSON Schema of draft 2020-12, for data in the mapping of `conversion.json_values`.

A record is an object with `properties`, `required` and `additionalProperties` (false unless the model says open). Named
types are in `$defs`, and the root's name is its `title`. Unions are `anyOf`, because a number can match two of their
options at once. Scalars: see `stele.formats.jsonschema.to_model`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, Final
from urllib.parse import quote

from stele.errors import CannotConvert, TooLarge
from stele.formats.conversion.json_values import FLOATS, INTEGERS
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    Fixed,
    Loss,
    Map,
    Model,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
    Union,
)
from stele.formats.jsonschema.json_text import escape_token
from stele.formats.jsonschema.to_model import decimal_pattern, fixed_pattern

MAX_DEPTH: Final = 60
"""Maximum nesting of unnamed types."""

MAX_NODES: Final = 100_000
"""Maximum number of types and fields in one document."""

_MAX_COMPARED: Final = 100
"""Maximum number of options of a union that are compared with each other."""

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: Final[Mapping[ScalarKind, dict[str, Any]]] = {
    ScalarKind.ANY: {},
    ScalarKind.NULL: {"type": "null"},
    ScalarKind.BOOLEAN: {"type": "boolean"},
    ScalarKind.INTEGER: {"type": "integer"},
    ScalarKind.NUMBER: {"type": "number"},
    ScalarKind.FLOAT32: {"type": "number", "format": "float"},
    ScalarKind.FLOAT64: {"type": "number", "format": "double"},
    ScalarKind.STRING: {"type": "string"},
    ScalarKind.BYTES: {"type": "string", "contentEncoding": "base64"},
    ScalarKind.UUID: {"type": "string", "format": "uuid"},
    ScalarKind.DATE: {"type": "string", "format": "date"},
    **{
        kind: {"type": "integer", "minimum": least, "maximum": greatest} for kind, (least, greatest) in INTEGERS.items()
    },
}
_CONSTRAINTS: Final = frozenset(
    [
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "format", "contentEncoding"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "propertyNames", "required"),
        *("enum", "const"),
    ]
)


def from_model(model: Model) -> tuple[bytes, list[Loss]]:
    """Return a schema document and the losses. Raises `CannotConvert` and `TooLarge`."""
    writer = _SchemaBuilder(model)
    root = writer.build_document()
    return json.dumps(root, ensure_ascii=False, indent=2).encode(), writer.losses


class _SchemaBuilder:
    """Writes every named type once, into `$defs`; the root record is the document itself."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.losses: list[Loss] = []
        self.top = model.root.name if isinstance(model.root, TypeReference) and not model.nullable else None
        self.paths: dict[str, str] = {}
        self.pending: list[str] = []
        self.nodes = 0

    def add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        """Note a loss."""
        self.losses.append(Loss(path, what, why, data))

    def build_document(self) -> dict[str, Any]:
        """Return the whole schema."""
        out: dict[str, Any] = {"$schema": _DIALECT}
        if self.top is not None:
            out["title"] = self.top
            self.paths[self.top] = ""
            body = self._build_declared(self.top)
        else:
            body = self.make_nullable(self.build_type(self.model.root, "", 0), nullable=self.model.nullable)
        if self.model.doc and "description" not in body:
            out["description"] = self.model.doc
        out.update(self._add_constraints(body, self.model.constraints, "", nullable=self.model.nullable))
        definitions = {}
        while self.pending:
            name = self.pending.pop(0)
            definitions[name] = self._build_declared(name)
        if definitions:
            out["$defs"] = definitions
        return out

    # --- types ------------------------------------------------------------------------------------------------------

    def build_type(self, kind: Type, path: str, depth: int) -> dict[str, Any]:
        """Return the schema of a type."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise TooLarge(f"the schema would have more than {MAX_NODES} types and fields")
        if depth > MAX_DEPTH:
            raise TooLarge(f"types without a name would be written more than {MAX_DEPTH} levels deep")
        match kind:
            case Scalar(scalar):
                if scalar in FLOATS:
                    why = "JSON has no number for NaN and the infinities."
                    self.add_loss(path, "NOT_A_NUMBER", why, data=True)
                return dict(_SCALARS[scalar])
            case Decimal() | Time() | Timestamp() | Duration():
                return self._build_text(kind, path)
            case Array(items, nullable):
                inner = self.make_nullable(self.build_type(items, f"{path}[]", depth + 1), nullable=nullable)
                return {"type": "array", "items": inner}
            case Map(values, keys, nullable):
                if keys.kind is not ScalarKind.STRING:
                    self.add_loss(path, "MAP_KEY", f"That keys are {keys.kind.value} is not said: every name is text.")
                inner = self.make_nullable(self.build_type(values, f"{path}{{}}", depth + 1), nullable=nullable)
                return {"type": "object", "additionalProperties": inner}
            case Union(options):
                self._report_ambiguity(kind, path)
                return {"anyOf": [self.build_type(option.type, path, depth + 1) for option in options]}
            case TypeReference(name):
                return self._build_reference(name, path)

    def make_nullable(self, schema: dict[str, Any], *, nullable: bool) -> dict[str, Any]:
        """Return the schema, extended by null if nullable."""
        word = schema.get("type")
        if not nullable or not schema or word == "null":
            return schema
        if isinstance(word, str):
            return {**schema, "type": [word, "null"]}
        if schema.keys() == {"anyOf"}:
            return {"anyOf": [*schema["anyOf"], {"type": "null"}]}
        return {"anyOf": [schema, {"type": "null"}]}

    def _build_text(self, kind: Decimal | Time | Timestamp | Duration, path: str) -> dict[str, Any]:
        match kind:
            case Decimal():
                pattern = decimal_pattern(kind)
                if pattern is None and kind.precision is not None:
                    self.add_loss(path, "PRECISION", f"Nothing checks that there are {kind.precision} digits at most.")
                return {"type": "string", "format": "decimal", **({"pattern": pattern} if pattern else {})}
            case Duration(calendar=False):
                self.add_loss(path, "DURATION", "The exact length of the duration is not expressed.")
                return {"type": "string", "format": "duration"}
            case Duration():
                return {"type": "string", "format": "duration"}
        if kind.unit is not TimeUnit.MICRO:
            self.add_loss(path, "UNIT", f"The resolution ({kind.unit.value}) is not said.")
        word = "time-local" if isinstance(kind, Time) else "date-time" if kind.utc else "date-time-local"
        return {"type": "string", "format": word}

    def _build_reference(self, name: str, path: str) -> dict[str, Any]:
        if name not in self.paths:
            self.paths[name] = path
            self.pending.append(name)
        return {"$ref": "#" if name == self.top else f"#/$defs/{quote(escape_token(name), safe='~')}"}

    def _report_ambiguity(self, kind: Union, path: str) -> None:
        """Note a loss, once for a union, if a value does not show which option it belongs to."""
        if len(kind.options) > _MAX_COMPARED:
            why = f"With {len(kind.options)} options, it cannot be decided which one a value belongs to."
            self.add_loss(path, "UNION", why, data=True)
            return
        views = [(option.type, *self._describe_values(option.type)) for option in kind.options]
        alike = [
            (one, other, word)
            for (one, word, names), (other, word2, names2) in combinations(views, 2)
            if _is_alike(word, names, word2, names2)
        ]
        for one, other, word in sorted(alike, key=lambda pair: pair[2] == "number")[:1]:
            why = f"In JSON, {_type_label(one)} and {_type_label(other)} look alike: a value does not say which it is."
            self.add_loss(path, "UNION", why, data=word != "number")

    def _describe_values(self, kind: Type) -> tuple[str, frozenset[str] | None]:
        """Return the JSON type of a type's values, and its symbols or members if they distinguish it from others."""
        match kind:
            case Array():
                return "array", None
            case Map():
                return "object", None
            case TypeReference(name):
                match self.model.types.get(name):
                    case RecordType(fields=fields, open=is_open):
                        exact = not is_open and all(field.required for field in fields)
                        return "object", frozenset(field.name for field in fields) if exact else None
                    case Enumeration(symbols=symbols):
                        return "string", frozenset(symbol.name for symbol in symbols)
                return "string", None
            case Scalar(scalar) if (
                scalar in INTEGERS or scalar in FLOATS or scalar in (ScalarKind.INTEGER, ScalarKind.NUMBER)
            ):
                return "number", None
            case Scalar(ScalarKind.ANY | ScalarKind.BOOLEAN as scalar):
                return scalar.value, None
        return "string", None

    # --- types with a name ------------------------------------------------------------------------------------------

    def _build_declared(self, name: str) -> dict[str, Any]:
        declared = self.model.types.get(name)
        if declared is None:
            raise CannotConvert(f"the model names the type {name!r} and does not declare it")
        path = self.paths[name]
        if declared.aliases:
            self.add_loss(path, "ALIAS", f"Earlier names of {name} have no place: {', '.join(declared.aliases)[:200]}.")
        described = {"description": declared.doc} if declared.doc else {}
        match declared:
            case RecordType():
                return {"type": "object", **described, **self._build_record(declared, path)}
            case Enumeration():
                self._report_enumeration(declared, path)
                symbols = [symbol.name for symbol in declared.symbols]
                return {"type": "string", **described, "enum": symbols}
            case Fixed():
                pattern = fixed_pattern(declared.size)
                return {"type": "string", **described, "contentEncoding": "base64", "pattern": pattern}

    def _report_enumeration(self, declared: Enumeration, path: str) -> None:
        if not declared.symbols:
            raise CannotConvert(f"{path or 'the root'}: the enumeration {declared.name} has no symbols")
        if declared.default:
            why = f"The schema cannot tell readers to use {declared.default!r} for unknown symbols."
            self.add_loss(path, "ENUM_DEFAULT", why)
        if any(symbol.number is not None for symbol in declared.symbols):
            self.add_loss(path, "NUMBER", "Symbols have no numbers in JSON.")
        if any(symbol.doc for symbol in declared.symbols):
            self.add_loss(path, "DOC", "Symbols have no description.")

    def _build_record(self, declared: RecordType, path: str) -> dict[str, Any]:
        properties = {}
        for field in declared.fields:
            place = f"{path}.{field.name}" if path else field.name
            properties[field.name] = self._build_field(field, place)
        out: dict[str, Any] = {"properties": properties}
        required = [field.name for field in declared.fields if field.required]
        if required:
            out["required"] = required
        out["additionalProperties"] = bool(declared.open)
        groups = [_at_most_one_schema(members) for members in self._exclusive_groups(declared, path)]
        if groups:
            out["allOf"] = groups
        return out

    def _exclusive_groups(self, declared: RecordType, path: str) -> Iterable[tuple[str, ...]]:
        """Yield the groups whose members are optional and not nullable, so that their presence can be tested."""
        optional = {field.name for field in declared.fields if not field.required and not field.nullable}
        for group, members in declared.at_most_one.items():
            if optional.issuperset(members):
                yield members
            else:
                self.add_loss(
                    path, "ONEOF", f"Nothing says that a datum has at most one of {', '.join(members)} ({group})."
                )

    def _build_field(self, field: RecordField, path: str) -> dict[str, Any]:
        schema = self.make_nullable(self.build_type(field.type, path, 1), nullable=field.nullable)
        schema = self._add_constraints(schema, field.constraints, path, nullable=field.nullable)
        if field.doc:
            schema = {**schema, "description": field.doc}
        if field.default is not ABSENT:
            schema = {**schema, "default": field.default}
        if field.aliases:
            self.add_loss(path, "ALIAS", f"Earlier names of the field have no place: {', '.join(field.aliases)[:200]}.")
        if field.number is not None:
            self.add_loss(path, "NUMBER", f"The field has no number ({field.number}) in JSON.")
        return schema

    def _add_constraints(
        self, schema: dict[str, Any], constraints: Mapping[str, Any], path: str, *, nullable: bool
    ) -> dict[str, Any]:
        known = {key: value for key, value in constraints.items() if key in _CONSTRAINTS}
        if len(known) < len(constraints):
            lost = ", ".join(sorted(constraints.keys() - known.keys()))
            self.add_loss(path, "CONSTRAINT", f"Nothing checks {lost[:200]}.")
        if nullable and "const" in known:
            known["enum"] = [known.pop("const")]
        if nullable and isinstance(known.get("enum"), list) and None not in known["enum"]:
            known["enum"] = [*known["enum"], None]
        return {**schema, **known}


def _at_most_one_schema(members: tuple[str, ...]) -> dict[str, Any]:
    """Return a schema that accepts objects with at most one of the members."""
    present = [{"required": [name]} for name in members]
    return {"oneOf": [*present, {"not": {"anyOf": present}}]}


def _is_alike(word: str, names: frozenset[str] | None, word2: str, names2: frozenset[str] | None) -> bool:
    """Return whether two options can have the same values. names are symbols, or the members of a closed record."""
    if word != word2:
        return False
    if names is None or names2 is None:
        return True
    return names == names2 if word == "object" else bool(names & names2)


def _type_label(kind: Type) -> str:
    match kind:
        case TypeReference(name):
            return name
        case Scalar(scalar):
            return scalar.value
    return type(kind).__name__.lower()
