"""Converts a JSON Schema of any draft to the neutral model.

    object with properties          record: open unless `additionalProperties` (or `unevaluatedProperties`) is false
    object without properties       map with the type of unnamed members, of any value where they have no schema
    array                           array; a tuple becomes an array of a union
    oneOf, anyOf, list of types     union; null among them makes it nullable; alternatives of constants an enumeration
    allOf                           all its members, merged
    enum of strings                 enumeration; other values and `const` stay constraints
    $ref                            the named type, by its name in `$defs`, else its title, else its path
    strings and numbers             the table below

Conditions that the model cannot express (`if`, `not`, `dependentSchemas`, `contains` …) are left out and reported. Then
the model allows more data and loses none. A loss of data means that the model allows less data than the schema.

These keywords of strings and numbers correspond to these types, in both directions:

    format date, date-time, uuid, duration      date, timestamp in UTC, UUID, span of months, days and milliseconds
    format time-local, date-time-local          time of day, timestamp without zone (names of the OpenAPI registry)
    format decimal and its pattern              decimal: text, so that no digit is lost to a reader's floating point
    contentEncoding base64                      bytes; with the pattern of a length, that many bytes
    minimum and maximum                         the integer of that width where they are its bounds, else the first of
                                                int32, int64, uint64 that holds what they allow
    format float, double                        float32, float64 (names of the OpenAPI registry)

`format` and `contentEncoding` assert nothing in JSON Schema, so a text that contradicts them is valid data that those
types cannot hold: every one of them is a loss of data. A pattern that Stele itself writes is an assertion, so it is no
loss.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal as Number
from functools import partial
from math import ceil, floor, isfinite
from typing import Any, Final, NamedTuple

from stele.errors import CannotConvert, MalformedSchema, TooLarge
from stele.formats.conversion.json_values import INTEGERS
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    EnumSymbol,
    Fixed,
    Loss,
    Map,
    Model,
    NamedType,
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
    UnionOption,
    UniqueNames,
)
from stele.formats.conversion.scalar_text import EXACT_CONTEXT
from stele.formats.jsonschema import flat_schema
from stele.formats.jsonschema.flat_schema import IGNORED, SchemaMerger, constant_symbols, json_types_of
from stele.formats.jsonschema.json_text import Json
from stele.formats.jsonschema.parse import ParsedJsonSchema

_NAME: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*", re.ASCII)
_WORD: Final = re.compile(r"[^\W_]+")
_EXTENSION: Final = re.compile(r"(\.schema)?\.json$")


class SchemaNames:
    """The names schemas have in their documents."""

    def __init__(self, parsed: ParsedJsonSchema) -> None:
        self._names: dict[int, str] = {}
        for label, text in parsed.references.items():
            self._names.setdefault(id(text), _title_name(text) or _file_name(label))
        if isinstance(parsed.root, dict) and _title_name(parsed.root):
            self._names[id(parsed.root)] = _title_name(parsed.root)
        for text in (parsed.root, *parsed.references.values()):
            self._add_definitions(text)

    def _add_definitions(self, text: Json) -> None:
        for keyword in ("$defs", "definitions"):
            definitions = text.get(keyword) if isinstance(text, dict) else None
            for name, schema in (definitions if isinstance(definitions, dict) else {}).items():
                if name:
                    self._names.setdefault(id(schema), name)

    def name_of(self, schema: Json) -> str:
        """Return the name of a schema; '' when it has none."""
        return self._names.get(id(schema)) or _title_name(schema)


def join_names(parent: str, member: str) -> str:
    """Return the name for the type of a record's member: `Order` and `ship_to` make `OrderShipTo`."""
    if not parent and _NAME.fullmatch(member):
        return member
    return parent + "".join(word[0].upper() + word[1:] for word in _WORD.findall(member))


def _title_name(schema: Json) -> str:
    title = schema.get("title") if isinstance(schema, dict) else None
    return title if isinstance(title, str) and _NAME.fullmatch(title) else ""


def _file_name(label: str) -> str:
    """Return the name of a document: its file's, without the extension."""
    return join_names("", _EXTENSION.sub("", label.rpartition("/")[2])) or "Root"


MAX_DEPTH: Final = 60
"""Maximum nesting of schemas that are converted."""

MAX_NODES: Final = 50_000
"""Maximum number of schemas converted. A schema counts at each position where it is used."""

_ANY: Final = Scalar(ScalarKind.ANY)
_LEFT_OUT: Final = {
    **dict.fromkeys(("if", "then", "else"), "CONDITION"),
    "not": "NOT",
    **dict.fromkeys(("dependencies", "dependentSchemas", "dependentRequired"), "DEPENDENT"),
    **dict.fromkeys(("contains", "minContains", "maxContains"), "CONTAINS"),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), "UNEVALUATED"),
    **dict.fromkeys(("$dynamicRef", "$recursiveRef"), "DYNAMIC_REF"),
}
_ANNOTATIONS: Final = frozenset(
    ["examples", "$comment", "readOnly", "writeOnly", "deprecated", "contentMediaType", "contentSchema"]
)
_CONVERTED: Final = frozenset(
    [
        *("$schema", "$id", "id", "$ref", "$vocabulary", "$recursiveAnchor", "title", "description", "default"),
        *("type", "enum", "const", "allOf", "anyOf", "oneOf", "properties", "required", "additionalProperties"),
        *("patternProperties", "propertyNames", "minProperties", "maxProperties", "items", "prefixItems"),
        *("additionalItems", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "format"),
        *("contentEncoding", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    ]
)


class _PlaceType(NamedTuple):
    """The type of one schema, whether null is allowed, and further constraints on its values."""

    type: Type
    nullable: bool = False
    constraints: dict[str, Any] = {}  # noqa: RUF012 - never written to


def to_model(parsed: ParsedJsonSchema) -> tuple[Model, list[Loss]]:
    """Return the model and the losses. Raises `CannotConvert` for the schema `false`, and `TooLarge`.

    A schema that is not valid, and was only parsed leniently, also raises `CannotConvert`.
    """
    try:
        _ = parsed.validator
    except MalformedSchema as error:
        raise CannotConvert(f"the schema is not valid: {error}") from None
    if parsed.root is False:
        raise CannotConvert("no datum fits the schema `false`")
    reader = _ModelBuilder(parsed)
    try:
        place = reader.convert_place(parsed.root, "", join_names("", parsed.type_name) or "Root")
        reader.read_pending()
    except RecursionError:  # only where the caller's own stack is deep already
        raise _too_deep_error() from None
    types = {name: declared for name, declared in reader.types.items() if declared is not None}
    doc = "" if isinstance(place.type, TypeReference) else _doc_text(parsed.root, place.type)
    return Model(place.type, types, place.nullable, doc, place.constraints), reader.losses


def _too_deep_error() -> TooLarge:
    return TooLarge(f"the schema nests deeper than {MAX_DEPTH} levels")


class _ModelBuilder:
    """Walks the schema. Named types are known by the identity of their schema.

    The members of a record are read after the types around it.
    """

    def __init__(self, parsed: ParsedJsonSchema) -> None:
        self.merger = SchemaMerger(parsed)
        self.names = SchemaNames(parsed)
        self.types: dict[str, NamedType | None] = {}
        self.losses: list[Loss] = []
        self.known: dict[int, _PlaceType] = {}
        self.pending: list[tuple[str, dict[str, Json], str]] = []
        self.distinct = UniqueNames()
        self.open: set[int] = set()
        self.nodes = 0

    def add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        """Note a loss."""
        self.losses.append(Loss(path, what, why, data))

    def convert_place(self, written: Json, path: str, hint: str) -> _PlaceType:
        """Return the type of a schema as written at a path. hint is its name if it needs one and has none."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise TooLarge(f"expanded, the schema has more than {MAX_NODES} parts")
        schema = self.merger.resolve_target(written)
        if not isinstance(schema, dict):
            if schema is False:
                self.add_loss(path, "NOT", "The rule that no value is allowed here is left out.")
            return _PlaceType(_ANY, True)
        if id(schema) in self.known:
            return self.known[id(schema)]
        if id(schema) in self.open:
            self.add_loss(path, "RECURSION", "A schema that contains itself and is not an object becomes any value.")
            return _PlaceType(_ANY, True)
        if len(self.open) >= MAX_DEPTH:
            raise _too_deep_error()
        self.open.add(id(schema))
        flat = self.merger.flatten_schema(schema, partial(self.add_loss, path))
        self._leave_out(flat, path)
        if written is not schema:
            self._leave_out({key: value for key, value in written.items() if key not in IGNORED}, path)
        place_type = self._convert_schema(schema, flat, path, self.names.name_of(schema) or hint)
        self.open.discard(id(schema))
        if _has_names_only(place_type.type):
            self.known[id(schema)] = place_type
        return place_type

    def read_pending(self) -> None:
        """Read the members of the records found so far, and of those found while reading them."""
        while self.pending:
            name, flat, path = self.pending.pop(0)
            self._build_record(name, flat, path)

    def _leave_out(self, flat: dict[str, Json], path: str) -> None:
        """Report the keywords that are not converted."""
        for key in sorted(flat.keys() & _LEFT_OUT.keys()):
            if key == "unevaluatedProperties" and flat_schema.is_closed(flat):
                continue
            dynamic = key in ("$dynamicRef", "$recursiveRef")
            why = (
                f"`{key}` is followed once, to where it leads here."
                if dynamic
                else f"The constraint of `{key}` is left out."
            )
            self.add_loss(path, _LEFT_OUT[key], why, data=dynamic)
        annotations = sorted(flat.keys() & _ANNOTATIONS)
        if annotations:
            self.add_loss(path, "ANNOTATION", f"Annotations are not kept: {', '.join(annotations)}.")
        unknown = sorted(
            key for key in flat if key not in _CONVERTED and key not in _LEFT_OUT and key not in _ANNOTATIONS
        )
        if unknown:
            self.add_loss(path, "ATTRIBUTE", f"Unknown keywords are not kept: {', '.join(unknown)[:200]}.")

    def _convert_schema(self, schema: dict[str, Json], flat: dict[str, Json], path: str, hint: str) -> _PlaceType:
        symbols = constant_symbols(self.merger.resolve_target, flat)
        if symbols is not None:
            return self._build_enumeration(flat, *symbols, path, hint)
        for keyword in ("anyOf", "oneOf"):
            branches = flat.get(keyword)
            if isinstance(branches, list) and branches:
                if keyword == "oneOf" and flat_schema.exclusive_group(flat, branches):
                    continue
                if not flat_schema.has_structure(flat):
                    return self._convert_branches(flat, keyword, branches, path, hint)
                self.add_loss(path, "CONSTRAINT", f"Which of the alternatives of {keyword} hold is left out.")
        if any(flat_schema.exclusive_group(flat, factor.get("oneOf")) is None for factor in flat.get("allOf", ())):
            self.add_loss(path, "CONSTRAINT", "Which of further alternatives hold is left out.")
        return self._convert_types(schema, flat, path, hint)

    # --- alternatives -----------------------------------------------------------------------------------------------

    def _convert_branches(
        self, flat: dict[str, Json], keyword: str, branches: list[Json], path: str, hint: str
    ) -> _PlaceType:
        siblings = sorted(flat.keys() & {"anyOf", "oneOf", "enum", "const", "type", "format", "pattern"} - {keyword})
        if siblings:
            self.add_loss(path, "CONSTRAINT", f"The constraint of {', '.join(siblings)} next to {keyword} is left out.")
        single = len(branches) == 1
        places = [
            self.convert_place(branch, path, hint if single else f"{hint}Option{at}")
            for at, branch in enumerate(branches, 1)
        ]
        return self._build_union(places, path)

    def _build_union(self, places: list[_PlaceType], path: str) -> _PlaceType:
        """Return the union of several types.

        Null makes it nullable, equal types count once, and any value absorbs all other types.
        """
        nullable = any(place.nullable for place in places)
        options: list[Type] = []
        constrained = []
        for place in places:
            members = [option.type for option in place.type.options] if isinstance(place.type, Union) else [place.type]
            real = [member for member in members if member != Scalar(ScalarKind.NULL)]
            options += [member for member in real if member not in options]
            constrained += [place.constraints] if real and place.constraints else []
        if _ANY in options:
            if len(options) > 1:
                self.add_loss(path, "UNION", "One alternative is any value, so the others say nothing.")
            return _PlaceType(_ANY, nullable)
        if not options:
            return _PlaceType(Scalar(ScalarKind.NULL), True)
        if len(options) == 1:
            same = constrained[0] if constrained and all(one == constrained[0] for one in constrained) else {}
            same = same if len(constrained) == sum(place.type != Scalar(ScalarKind.NULL) for place in places) else {}
            if constrained and not same:
                self._add_unchecked_loss(constrained, path)
            return _PlaceType(options[0], nullable, same)
        self._add_unchecked_loss(constrained, path)
        return _PlaceType(Union(tuple(UnionOption(option) for option in options)), nullable)

    def _add_unchecked_loss(self, constraints: Iterable[dict[str, Any]], path: str) -> None:
        keys = sorted({key for one in constraints for key in one})
        if keys:
            self.add_loss(path, "CONSTRAINT", f"The model has no place for {', '.join(keys)} here.")

    def _convert_without_constraints(self, written: Json, path: str, hint: str) -> _PlaceType:
        """Return the type of a schema where the model cannot keep constraints, and report the lost ones."""
        place_type = self.convert_place(written, path, hint)
        if place_type.constraints:
            self._add_unchecked_loss([place_type.constraints], path)
        return place_type

    # --- one type ---------------------------------------------------------------------------------------------------

    def _convert_types(self, schema: dict[str, Json], flat: dict[str, Json], path: str, hint: str) -> _PlaceType:
        words, nullable, implied = json_types_of(flat)
        if implied:
            types = " or ".join(words)
            why = f"The schema requires no type: values other than {types} are also valid, and cannot be represented."
            self.add_loss(path, "IMPLIED_TYPE", why, data=True)
        values: dict[str, Any] = {key: to_builtin(flat[key]) for key in ("enum", "const") if key in flat}
        if not words:
            place_type = _PlaceType(Scalar(ScalarKind.NULL), True) if nullable else _PlaceType(_ANY, True)
        elif words == ["object"]:
            place_type = self._convert_object(schema, flat, path, hint, nullable=nullable)
        else:
            place_type = self._build_union([self._convert_type(word, schema, flat, path, hint) for word in words], path)
        return _PlaceType(place_type.type, place_type.nullable or nullable, {**place_type.constraints, **values})

    def _convert_type(
        self, word: str, schema: dict[str, Json], flat: dict[str, Json], path: str, hint: str
    ) -> _PlaceType:
        match word:
            case "object":
                return self._convert_object(schema, flat, path, hint)
            case "array":
                return self._convert_array(flat, path, hint)
            case "string":
                kind = string_type(flat, partial(self.add_loss, path))
                if isinstance(kind, int):
                    return _PlaceType(self._build_fixed(kind, flat, hint))
                return _PlaceType(kind[0], False, kind[1])
            case "integer" | "number":
                number, rest = number_type(flat, partial(self.add_loss, path), is_integer=word == "integer")
                return _PlaceType(number, False, rest)
        return _PlaceType(Scalar(ScalarKind.BOOLEAN))

    def _convert_array(self, flat: dict[str, Json], path: str, hint: str) -> _PlaceType:
        constraints: dict[str, Any] = {
            key: to_builtin(flat[key]) for key in ("minItems", "maxItems", "uniqueItems") if key in flat
        }
        items, prefix = flat.get("items", True), flat.get("prefixItems")
        rest = items
        if isinstance(items, list):
            prefix, rest = items, flat.get("additionalItems", True)
        inside = f"{path}[]"
        if not isinstance(prefix, list) or not prefix:
            item = (
                self._convert_without_constraints(rest, inside, hint) if rest is not False else _PlaceType(_ANY, True)
            )
            return _PlaceType(Array(item.type, item.nullable), False, constraints)
        self.add_loss(path, "TUPLE", "The types of the single positions of the array are not kept.")
        full = isinstance(flat.get("maxItems"), int) and flat["maxItems"] <= len(prefix)
        schemas = [*prefix, *([] if rest is False or full else [rest])]
        places = [self.convert_place(schema, inside, f"{hint}Item{at}") for at, schema in enumerate(schemas, 1)]
        item = self._build_union(places, inside)
        if item.constraints:
            self._add_unchecked_loss([item.constraints], inside)
        return _PlaceType(Array(item.type, item.nullable), False, constraints)

    def _convert_object(
        self, schema: dict[str, Json], flat: dict[str, Json], path: str, hint: str, *, nullable: bool | None = None
    ) -> _PlaceType:
        """Convert an object to a record or a map.

        nullable is None if values of other types are allowed too. A reference back to this schema is then not a
        reference to the record alone.
        """
        if flat_schema.is_map(flat):
            place = self._convert_map(flat, path, hint)
            return _PlaceType(place.type, False, {**_member_constraints(flat), **place.constraints})
        name = self.distinct.claim_name(hint)
        self.types[name] = None
        if nullable is not None:
            self.known[id(schema)] = _PlaceType(TypeReference(name), nullable)
        self.pending.append((name, flat, path))
        return _PlaceType(TypeReference(name))

    def _build_record(self, name: str, flat: dict[str, Json], path: str) -> None:
        unchecked = [
            *_member_constraints(flat),
            *(["additionalProperties"] if flat_schema.has_typed_rest(flat) else []),
        ]
        if unchecked:
            self.add_loss(path, "CONSTRAINT", f"The model has no place for {', '.join(unchecked)} of a record.")
        fields = tuple(
            self._build_field(member, written, path, join_names(name, member), required=required)
            for member, written, required in flat_schema.list_members(flat)
        )
        groups = {f"oneOf{at}": group for at, group in enumerate(flat_schema.exclusive_groups(flat), 1)}
        doc = _doc_text(flat, TypeReference(name))
        self.types[name] = RecordType(name, fields, doc, open=not flat_schema.is_closed(flat), at_most_one=groups)

    def _convert_map(self, flat: dict[str, Json], path: str, hint: str) -> _PlaceType:
        inside = f"{path}{{}}"
        schemas, exact, total = flat_schema.map_values(flat)
        if not exact:
            why = (
                "Members with other names are also valid, and cannot be represented."
                if not total
                else "Names are not checked."
            )
            self.add_loss(path, "PATTERN", why, data=not total)
        places = [self.convert_place(schema, inside, hint) for schema in schemas]
        value = self._build_union(places, inside) if len(places) > 1 else places[0]
        if value.constraints:
            self._add_unchecked_loss([value.constraints], inside)
        required = {"required": list(flat["required"])} if flat.get("required") else {}
        return _PlaceType(Map(value.type, nullable=value.nullable), False, required)

    def _build_field(self, name: str, written: Json, path: str, hint: str, *, required: bool) -> RecordField:
        place = f"{path}.{name}" if path else name
        place_type = self.convert_place(written, place, hint)
        target = self.merger.resolve_target(written)
        texts = [part for part in (written, target) if isinstance(part, dict)]
        default = next((to_builtin(text["default"]) for text in texts if "default" in text), ABSENT)
        # The description of a named type belongs to the type; one beside the reference belongs to the field.
        doc = (
            ""
            if written is target and isinstance(place_type.type, TypeReference)
            else _doc_text(written, place_type.type)
        )
        if doc and isinstance(written.get("title"), str) and doc != written["title"]:
            self.add_loss(place, "ANNOTATION", "The title is not kept.")
        return RecordField(
            name,
            place_type.type,
            place_type.nullable,
            required,
            default=default,
            doc=doc,
            constraints=place_type.constraints,
        )

    # --- named types ------------------------------------------------------------------------------------------------

    def _build_enumeration(
        self, flat: dict[str, Json], symbols: tuple[EnumSymbol, ...], nullable: bool, path: str, hint: str
    ) -> _PlaceType:
        unchecked = sorted(flat.keys() & set(STRING_CONSTRAINTS))
        if unchecked:
            self.add_loss(path, "CONSTRAINT", f"The model has no place for {', '.join(unchecked)} of an enumeration.")
        name = self.distinct.claim_name(hint)
        self.types[name] = Enumeration(name, symbols, doc=_doc_text(flat, TypeReference(name)))
        return _PlaceType(TypeReference(name), nullable)

    def _build_fixed(self, size: int, flat: dict[str, Json], hint: str) -> TypeReference:
        name = self.distinct.claim_name(hint)
        self.types[name] = Fixed(name, size, _doc_text(flat, TypeReference(name)))
        return TypeReference(name)


def _has_names_only(kind: Type) -> bool:
    """Return whether a type holds names and scalars only, so that using it twice declares nothing twice."""
    if isinstance(kind, Union):
        return all(isinstance(option.type, TypeReference | Scalar) for option in kind.options)
    return isinstance(kind, TypeReference)


def _member_constraints(flat: dict[str, Json]) -> dict[str, Any]:
    return {key: to_builtin(flat[key]) for key in ("minProperties", "maxProperties", "propertyNames") if key in flat}


def _doc_text(schema: Json, kind: Type) -> str:
    """Return the description, else the title unless it is the name of the type."""
    if not isinstance(schema, dict):
        return ""
    doc = next((schema[key] for key in ("description", "title") if isinstance(schema.get(key), str)), "")
    return "" if isinstance(kind, TypeReference) and doc == schema.get("title") and join_names("", doc) == doc else doc


FORMATS: Final[Mapping[str, Type]] = {
    "date": Scalar(ScalarKind.DATE),
    "date-time": Timestamp(TimeUnit.MICRO),
    "date-time-local": Timestamp(TimeUnit.MICRO, utc=False),
    "time-local": Time(TimeUnit.MICRO),
    "duration": Duration(TimeUnit.MILLI, calendar=True),
    "uuid": Scalar(ScalarKind.UUID),
}
"""Types of strings, by `format`."""

NUMBER_FORMATS: Final[Mapping[str, ScalarKind]] = {
    "float": ScalarKind.FLOAT32,
    "double": ScalarKind.FLOAT64,
    "int32": ScalarKind.INT32,
    "int64": ScalarKind.INT64,
}
"""Types of numbers, by `format`."""

STRING_CONSTRAINTS: Final = ("minLength", "maxLength", "pattern", "format", "contentEncoding")
NUMBER_CONSTRAINTS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")

_DECIMAL: Final = re.compile(r"\^-\?\(0\|\[1-9\]\[0-9\]\{0,(\d{1,5})\}\)(?:\(\\\.\[0-9\]\{1,(\d{1,5})\}\)\?)?\$")
_FRACTION: Final = re.compile(r"\^-\?0\(\\\.\[0-9\]\{1,(\d{1,5})\}\)\?\$")
_FIXED: Final = re.compile(r"\^\[A-Za-z0-9\+/\]\{(\d{1,9})\}(={0,2})\$")
_MAX_REPEAT: Final = 1_000
"""Greatest repetition count in a pattern that is written; engines limit it."""

AddLoss = Callable[..., None]
"""Notes a loss: (what, why, data=…)."""

TypeWithConstraints = tuple[Type, dict[str, Any]]
"""A type, and the keywords left over as constraints."""


def to_builtin(value: Json) -> Any:
    """Return a JSON value with numbers as int or float. Raises `CannotConvert` for numbers beyond a double."""
    if isinstance(value, dict):
        return {name: to_builtin(member) for name, member in value.items()}
    if isinstance(value, list):
        return [to_builtin(item) for item in value]
    if not isinstance(value, Number):
        return value
    if value.adjusted() > 308 or not isfinite(float(value)):
        raise CannotConvert(f"the number {str(value)[:40]} is beyond the range of a double")
    return int(value) if value == value.to_integral_value(context=EXACT_CONTEXT) else float(value)


def string_type(schema: Mapping[str, Json], lose: AddLoss) -> TypeWithConstraints | int:
    """Return the type of a string. An int is the size in bytes of a fixed-size byte string."""
    rest = {key: to_builtin(schema[key]) for key in STRING_CONSTRAINTS if key in schema}
    pattern = schema.get("pattern")
    word = schema.get("format")
    if schema.get("contentEncoding") == "base64":
        del rest["contentEncoding"]
        size = _parse_fixed_pattern(pattern)
        if size is not None:
            return size
        lose("FORMAT", "`contentEncoding` asserts nothing: text that is not base64 has no place.", data=True)
        return Scalar(ScalarKind.BYTES), rest
    if word == "decimal" and isinstance(pattern, str):
        decimal = parse_decimal_pattern(pattern)
        if decimal is not None:
            return decimal, {key: value for key, value in rest.items() if key not in ("format", "pattern")}
    if isinstance(word, str) and word in FORMATS:
        del rest["format"]
        lose("FORMAT", f"`format` asserts nothing: text that is not a valid {word} cannot be represented.", data=True)
        return FORMATS[word], rest
    return Scalar(ScalarKind.STRING), rest


def number_type(schema: Mapping[str, Json], lose: AddLoss, *, is_integer: bool) -> TypeWithConstraints:
    """Return the type of a number or integer."""
    rest = _number_constraints(schema)
    word = NUMBER_FORMATS.get(str(schema.get("format")))
    low, high = _integer_bounds(rest)
    if not is_integer:
        if word in (ScalarKind.FLOAT32, ScalarKind.FLOAT64):
            lose("FORMAT", f"`format` asserts nothing: numbers beyond {word.value} have no place.", data=True)
            return Scalar(word), rest
        return Scalar(ScalarKind.NUMBER), rest
    if low is None or high is None:
        if word in (ScalarKind.INT32, ScalarKind.INT64):
            lose("FORMAT", f"`format` asserts nothing: numbers beyond {word.value} have no place.", data=True)
            return Scalar(word), rest
        return Scalar(ScalarKind.INTEGER), rest
    for kind, bounds in INTEGERS.items():
        if (low, high) == bounds:
            return Scalar(kind), {key: rest[key] for key in ("multipleOf",) if key in rest}
    for kind in (ScalarKind.INT32, ScalarKind.INT64, ScalarKind.UINT64):
        least, greatest = INTEGERS[kind]
        if least <= low and high <= greatest:
            return Scalar(kind), rest
    return Scalar(ScalarKind.INTEGER), rest


def _number_constraints(schema: Mapping[str, Json]) -> dict[str, Any]:
    """Return the keywords on numbers as in current drafts. Draft-04 has exclusive bounds as booleans."""
    rest = {key: to_builtin(schema[key]) for key in NUMBER_CONSTRAINTS if key in schema}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(rest.get(exclusive), bool) and rest.pop(exclusive) and bound in rest:
            rest[exclusive] = rest.pop(bound)
    return {key: value for key, value in rest.items() if not isinstance(value, bool)}


def _integer_bounds(rest: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the least and greatest whole number allowed; None without a bound or for a huge one."""
    lows = [ceil(rest["minimum"])] if _is_writable_bound(rest.get("minimum")) else []
    lows += [floor(rest["exclusiveMinimum"]) + 1] if _is_writable_bound(rest.get("exclusiveMinimum")) else []
    highs = [floor(rest["maximum"])] if _is_writable_bound(rest.get("maximum")) else []
    highs += [ceil(rest["exclusiveMaximum"]) - 1] if _is_writable_bound(rest.get("exclusiveMaximum")) else []
    return max(lows, default=None), min(highs, default=None)


def _is_writable_bound(value: Any) -> bool:
    return isinstance(value, int | float) and Number(value).adjusted() < 30


def decimal_pattern(kind: Decimal) -> str | None:
    """Return the pattern of a decimal's text; None if its precision is not bounded, or too large for a pattern."""
    if kind.precision is None or kind.precision > _MAX_REPEAT:
        return None
    fraction = rf"(\.[0-9]{{1,{kind.scale}}})?" if kind.scale else ""
    whole = kind.precision - kind.scale
    return rf"^-?(0|[1-9][0-9]{{0,{whole - 1}}}){fraction}$" if whole else f"^-?0{fraction}$"


def parse_decimal_pattern(pattern: str) -> Decimal | None:
    """Return the decimal for which `decimal_pattern` returns this pattern, None for other patterns."""
    match = _FRACTION.fullmatch(pattern)
    if match:
        return Decimal(int(match[1]), int(match[1]))
    match = _DECIMAL.fullmatch(pattern)
    if not match:
        return None
    scale = int(match[2] or 0)
    return Decimal(int(match[1]) + 1 + scale, scale)


def fixed_pattern(size: int) -> str:
    """Return the pattern of the base64 text of that many bytes."""
    padding = -size % 3
    return f"^[A-Za-z0-9+/]{{{(size + padding) // 3 * 4 - padding}}}{'=' * padding}$"


def _parse_fixed_pattern(pattern: Json) -> int | None:
    match = _FIXED.fullmatch(pattern) if isinstance(pattern, str) else None
    if match is None or (int(match[1]) + len(match[2])) % 4:
        return None
    return (int(match[1]) + len(match[2])) // 4 * 3 - len(match[2])
