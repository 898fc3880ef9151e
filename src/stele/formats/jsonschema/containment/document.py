"""One self-contained document from a parsed schema, in its own draft or a later one, and a view of it.

The provers and the search need schemas without outside references. Every `$ref` becomes a pointer into the definitions
of the same document. Identifiers and annotations are removed, and so are keywords that the schema's own draft does not
know: they have no effect there, but would have one in a later draft. A view of such a document lists what a value must
fit, lists all schemas that apply to it, and tests values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, islice, product
from typing import Any, NamedTuple, TypeAlias

import jsonschema_rs

from stele.formats.jsonschema.drafts import (
    SCHEMA_KEYWORDS,
    SCHEMA_LIST_KEYWORDS,
    SCHEMA_MAP_KEYWORDS,
    Draft,
    detect_draft,
    list_subschemas,
)
from stele.formats.jsonschema.json_text import Json, to_builtin
from stele.formats.jsonschema.parse import ParsedJsonSchema
from stele.formats.jsonschema.patterns import PATTERN_LIMITS, pattern_matches
from stele.formats.jsonschema.resolve import REF_KEYWORDS, has_reference_loops

_SINCE = {
    Draft.DRAFT4: (
        *("type", "enum", "allOf", "anyOf", "oneOf", "not", "format", "pattern", "minLength", "maxLength"),
        *("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "dependencies", "required"),
        *("properties", "patternProperties", "additionalProperties", "minProperties", "maxProperties"),
    ),
    Draft.DRAFT6: ("const", "contains", "propertyNames", "contentEncoding", "contentMediaType"),
    Draft.DRAFT7: ("if", "then", "else"),
    Draft.DRAFT2019: (
        *("minContains", "maxContains", "dependentRequired", "dependentSchemas"),
        *("unevaluatedItems", "unevaluatedProperties"),
    ),
    Draft.DRAFT2020: ("prefixItems",),
}
_ORDER = tuple(Draft)
_REFERENCES = {
    Draft.DRAFT4: frozenset(["$ref"]),
    Draft.DRAFT6: frozenset(["$ref"]),
    Draft.DRAFT7: frozenset(["$ref"]),
    Draft.DRAFT2019: frozenset(["$ref", "$recursiveRef"]),
    Draft.DRAFT2020: frozenset(["$ref", "$dynamicRef"]),
}
_BOUNDS = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))


@cache
def asserting_keywords(draft: Draft) -> frozenset[str]:
    """Return the keywords that assert something in a draft, references aside, as the validator reads it."""
    known = set(chain.from_iterable(_SINCE[each] for each in _ORDER[: _ORDER.index(draft) + 1]))
    if not draft.ref_hides_siblings:
        known -= {"contentEncoding", "contentMediaType"}
    if draft is Draft.DRAFT2020:
        known -= {"additionalItems"}
    return frozenset(known)


class BundledDocument(NamedTuple):
    """A schema without references to other documents.

    root   the schema: a boolean, or an object whose only keywords are `$ref` and the definitions
    exact  whether it allows exactly what the original allows; False where the meaning of a reference depends on the
           path taken to it or on itself, or a keyword has no counterpart in the later draft
    """

    root: Json
    exact: bool

    @property
    def definitions(self) -> Mapping[str, Json]:
        """All schemas that references lead to, by name."""
        if not isinstance(self.root, dict):
            return {}
        definitions: Mapping[str, Json] = self.root.get("$defs") or self.root.get("definitions") or {}
        return definitions


def build_document(parsed: ParsedJsonSchema, draft: Draft, *, formats: bool) -> BundledDocument:
    """Return a parsed schema as one document of `draft`, which is its own or a later one; linear in the schema.

    formats keeps `format`; without it `format` is an annotation. Draft-04 does not count 1.0 as an integer; this
    difference is not translated.
    """
    return _Translation(parsed, draft, formats=formats).translate_all()


class _Translation:
    """The translation of one schema. `_exact` becomes False when something cannot be translated."""

    def __init__(self, parsed: ParsedJsonSchema, draft: Draft, *, formats: bool) -> None:
        self._parsed = parsed
        self._draft = draft
        self._keyword = draft.definitions_keyword
        self._known = asserting_keywords(parsed.draft) - (frozenset() if formats else {"format"})
        self._names: dict[int, str] = {}
        self._definitions: dict[str, Json] = {}
        self._todo: list[tuple[Any, str | int]] = []
        self._exact = not parsed.links.missing and not has_reference_loops(parsed.links)
        self._anchors: dict[str, int] = {}
        self._dynamic = False

    def translate_all(self) -> BundledDocument:
        """Translate all schemas that are reachable from the root."""
        if not isinstance(self._parsed.root, dict):
            return BundledDocument(self._parsed.root, exact=True)
        reference = self._add_definition(self._parsed.root)
        while self._todo:
            container, place = self._todo.pop()
            schema = container[place]
            if isinstance(schema, dict):
                container[place] = self._translate_schema(schema)
        if self._dynamic and self._is_ambiguous():
            self._exact = False
        return BundledDocument({"$ref": reference, self._keyword: self._definitions}, self._exact)

    def _add_definition(self, target: Json) -> str:
        """Return a pointer to a target. It becomes a definition on the first call."""
        name = self._names.get(id(target))
        if name is None:
            name = self._names[id(target)] = str(len(self._names))
            self._definitions[name] = target
            self._todo.append((self._definitions, name))
        return f"#/{self._keyword}/{name}"

    def _translate_schema(self, schema: dict[str, Json]) -> dict[str, Json]:
        if isinstance(schema.get("$schema"), str) and detect_draft(schema) is not self._parsed.draft:
            self._exact = False
        out: dict[str, Json] = {}
        if id(schema) in self._parsed.links.targets:
            out.update(self._translate_reference(schema))
            if self._parsed.draft.ref_hides_siblings:
                return out
        out.update((name, value) for name, value in schema.items() if name in self._known)
        _drop_lone_exclusives(out)
        if self._draft is not self._parsed.draft:
            self._translate_upward(out)
        self._queue_subschemas(out)
        return out

    def _translate_reference(self, schema: dict[str, Json]) -> dict[str, Json]:
        written = [keyword for keyword in REF_KEYWORDS if isinstance(schema.get(keyword), str)]
        ambiguous = len(written) > 1 or not _REFERENCES[self._parsed.draft].issuperset(written)
        if ambiguous or any("json-schema.org/draft" in schema[keyword] for keyword in written):
            self._exact = False
        self._dynamic = self._dynamic or written != ["$ref"]
        target = self._parsed.links.targets[id(schema)]
        if target is True:
            return {}
        if target is False:
            self._definitions["false"] = False
            return {"$ref": f"#/{self._keyword}/false"}
        return {"$ref": self._add_definition(target)}

    def _is_ambiguous(self) -> bool:
        """Return whether a dynamic reference could have several targets; the anchors of all texts count."""
        texts = [self._parsed.root, *(self._parsed.references[label] for label in self._parsed.links.used)]
        count = 0
        while texts:
            value = texts.pop()
            if isinstance(value, dict):
                count += ("$dynamicAnchor" in value) + (value.get("$recursiveAnchor") is True)
                texts.extend(value.values())
            elif isinstance(value, list):
                texts.extend(value)
        return count > 1

    def _translate_upward(self, out: dict[str, Json]) -> None:
        """Rewrite keywords of the earlier draft for the later one.

        Content keywords and formats make the result inexact.
        """
        if not {"contentEncoding", "contentMediaType", "format", "unevaluatedItems"}.isdisjoint(out):
            self._exact = False
        for bound, exclusive in _BOUNDS:
            if isinstance(out.get(exclusive), bool) and out.pop(exclusive):
                out[exclusive] = out.pop(bound)
        if self._parsed.draft.ref_hides_siblings and not self._draft.ref_hides_siblings and "dependencies" in out:
            needs = out.pop("dependencies")
            out["dependentRequired"] = {name: value for name, value in needs.items() if isinstance(value, list)}
            out["dependentSchemas"] = {name: value for name, value in needs.items() if not isinstance(value, list)}
        if self._draft is Draft.DRAFT2020 and isinstance(out.get("items"), list):
            out["prefixItems"] = out.pop("items")
            if "additionalItems" in out:
                out["items"] = out["additionalItems"]
        if self._draft is Draft.DRAFT2020:
            out.pop("additionalItems", None)

    def _queue_subschemas(self, out: dict[str, Json]) -> None:
        """Queue the schemas inside a schema, in copies of their containers."""
        for keyword, value in out.items():
            if isinstance(value, dict) and keyword in SCHEMA_MAP_KEYWORDS:
                out[keyword] = inner = dict(value)
                self._todo.extend((inner, name) for name in inner)
            elif isinstance(value, dict) and keyword in SCHEMA_KEYWORDS:
                self._todo.append((out, keyword))
            elif isinstance(value, list) and keyword in SCHEMA_LIST_KEYWORDS:
                out[keyword] = items = list(value)
                self._todo.extend((items, index) for index in range(len(items)))


def _drop_lone_exclusives(out: dict[str, Json]) -> None:
    """Drop the boolean exclusive bounds of draft-04 that stand without their bound: the meta-schema refuses them."""
    for bound, exclusive in _BOUNDS:
        if isinstance(out.get(exclusive), bool) and bound not in out:
            del out[exclusive]


Schemas: TypeAlias = tuple[Json, ...]
"""Schemas that apply to one value together."""

Parts: TypeAlias = list[dict[str, Json]]
"""Schema objects that apply to one value together, with references followed."""

MAX_WAYS_LOOKED_AT = 2_000
"""Maximum number of schemas entered while the ways to fit a value's schemas are listed."""

MAX_HINTS = 80
"""Maximum number of schema objects of one value that are searched for limits."""

_LISTS = ("allOf", "anyOf", "oneOf")
_ONES = ("not", "if", "then", "else")


class DocumentView:
    """One document, read as 2020-12: its values are builtin types (Decimal for fractions)."""

    def __init__(self, document: BundledDocument, *, compiles: bool = True) -> None:
        """Read a document. compiles is whether its parts may be compiled; large patterns take too long for that."""
        self._compiles = compiles
        self.root: Json = to_builtin(document.root)
        self._definitions = BundledDocument(self.root, exact=document.exact).definitions
        self._targets = self._find_targets()
        self._validators: dict[tuple[int, ...], jsonschema_rs.Validator | None] = {}

    def is_accepted(self, schemas: Schemas, value: Json) -> bool:
        """Return whether a value fits all the schemas.

        It is also True when they cannot be compiled: the result only ranks guesses.
        """
        if not self._compiles:
            return True
        key = tuple(map(id, schemas))
        if key not in self._validators:
            self._validators[key] = self._compile_validator(schemas)
        validator = self._validators[key]
        return validator is None or is_valid_value(validator, value) is True

    def has_reference(self, schema: dict[str, Json]) -> bool:
        """Return whether a schema with a reference belongs to this document."""
        return id(schema) in self._targets

    def reference_target(self, schema: dict[str, Json]) -> Json:
        """Return the target of a reference in this document."""
        return self._targets[id(schema)]

    def _find_targets(self) -> dict[int, Json]:
        targets: dict[int, Json] = {}
        pending = [self.root]
        while pending:
            schema = pending.pop()
            if isinstance(schema, dict):
                name = _definition_name(schema)
                if name is not None:
                    targets[id(schema)] = self._definitions.get(name, True)
                pending.extend(inner for _, inner in list_subschemas(schema))
        return targets

    def _compile_validator(self, schemas: Schemas) -> jsonschema_rs.Validator | None:
        used: dict[str, Json] = {}
        pending = list(schemas)
        while pending:
            schema = pending.pop()
            if not isinstance(schema, dict):
                continue
            pending.extend(inner for _, inner in list_subschemas(schema))
            name = _definition_name(schema)
            if name is not None and name not in used:
                used[name] = self._definitions.get(name, True)
                pending.append(used[name])
        try:
            return jsonschema_rs.Draft202012Validator(
                {"allOf": list(schemas) or [True], "$defs": used},
                validate_formats=False,
                pattern_options=PATTERN_LIMITS,
            )
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
            return None

    def list_alternatives(self, schemas: Schemas, limit: int) -> list[Parts]:
        """Return at most limit ways to fit all the schemas; each takes one branch of every choice."""
        return _WayLister(self._definitions, limit).list_all(schemas)

    def list_hints(self, schemas: Schemas) -> Parts:
        """Return the schema objects that apply to the value in any way, at most `MAX_HINTS`."""
        hints: dict[int, dict[str, Json]] = {}
        pending = list(schemas)
        while pending and len(hints) < MAX_HINTS:
            schema = pending.pop(0)
            if not isinstance(schema, dict) or id(schema) in hints:
                continue
            hints[id(schema)] = schema
            name = _definition_name(schema)
            if name is not None:
                pending.append(self._definitions.get(name, True))
            for keyword in _LISTS:
                pending.extend(schema.get(keyword, ()))
            pending.extend(schema[keyword] for keyword in _ONES if keyword in schema)
            pending.extend(needed for _, needed in _dependent_schemas(schema))
        return list(hints.values())


class _WayLister:
    """Lists the ways to fit several schemas."""

    def __init__(self, definitions: Mapping[str, Json], limit: int) -> None:
        self._definitions = definitions
        self._limit = limit
        self._looks = 0

    def list_all(self, schemas: Schemas) -> list[Parts]:
        """Return the ways to fit all of them at once."""
        ways: list[Parts] = [[]]
        for schema in schemas:
            ways = self._combine_ways(ways, self._list_ways(schema, ()))
        return ways

    def _list_ways(self, schema: Json, above: tuple[int, ...]) -> list[Parts]:
        if not isinstance(schema, dict):
            return [] if schema is False else [[]]
        self._looks += 1
        if id(schema) in above or len(above) > 30 or self._looks > MAX_WAYS_LOOKED_AT:
            return [[]]
        inside = (*above, id(schema))
        ways: list[Parts] = [[schema]]
        name = _definition_name(schema)
        if name is not None:
            ways = self._combine_ways(ways, self._list_ways(self._definitions.get(name, True), inside))
        for branch in schema.get("allOf", ()):
            ways = self._combine_ways(ways, self._list_ways(branch, inside))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = schema[keyword][: self._limit]
                ways = self._combine_ways(
                    ways, self._interleave_ways([self._list_ways(branch, inside) for branch in branches])
                )
        if "if" in schema:
            met = self._combine_ways(
                self._list_ways(schema["if"], inside), self._list_ways(schema.get("then", True), inside)
            )
            ways = self._combine_ways(ways, [*met[:4], *self._list_ways(schema.get("else", True), inside)[:4]])
        for trigger, needed in _dependent_schemas(schema):
            met = self._combine_ways([[{"required": [trigger]}]], self._list_ways(needed, inside))
            ways = self._combine_ways(ways, [[], *met[:2]])
        return ways

    def _combine_ways(self, left: list[Parts], right: list[Parts]) -> list[Parts]:
        """Return combinations of both lists, at most the limit.

        Pairs of equal index are first, so that the limit omits no branch early.
        """
        if not left or not right:
            return []
        order = [(i % len(left), i % len(right)) for i in range(max(len(left), len(right)))]
        if len(left) > 1 and len(right) > 1:
            order += list(islice(product(range(len(left)), range(len(right))), 2 * self._limit))
        return [left[i] + right[j] for i, j in list(dict.fromkeys(order))[: self._limit]]

    def _interleave_ways(self, each: list[list[Parts]]) -> list[Parts]:
        """Return one way of every branch before a second one of any."""
        longest = max(map(len, each), default=0)
        return [ways[i] for i in range(longest) for ways in each if i < len(ways)][: self._limit]


def is_valid_value(validator: jsonschema_rs.Validator, value: Json) -> bool | None:
    """Return whether a value fits; None when the validator gives up (nesting, a pattern that takes too long)."""
    try:
        return bool(validator.is_valid(value))
    except (ValueError, jsonschema_rs.ValidationError):
        return None


def has_member_schema(part: dict[str, Json], name: str) -> bool:
    """Return whether a schema has a schema for a member, by its name or by a pattern."""
    return name in part.get("properties", ()) or any(True for _ in _matching_patterns(part, name))


def member_schemas(parts: Parts, name: str, *, guess: bool = False) -> Schemas:
    """Return the schemas of a member; guess adds `unevaluatedProperties` where nothing else seems to apply."""
    schemas: dict[int, Json] = {}
    covered = not guess or any(has_member_schema(part, name) for part in parts)
    for part in parts:
        own = [part["properties"][name]] if name in part.get("properties", ()) else []
        own += [part["patternProperties"][pattern] for pattern in _matching_patterns(part, name)]
        if not own and "additionalProperties" in part:
            own = [part["additionalProperties"]]
        elif not covered and "unevaluatedProperties" in part:
            own = [part["unevaluatedProperties"]]
        schemas.update((id(schema), schema) for schema in own)
    return tuple(schemas.values())


def item_schemas(parts: Parts, index: int, *, guess: bool = False) -> Schemas:
    """Return the schemas of an item; guess adds `unevaluatedItems` where nothing else seems to apply."""
    schemas: dict[int, Json] = {}
    covered = not guess or any("items" in part or index < len(part.get("prefixItems", ())) for part in parts)
    for part in parts:
        prefix = part.get("prefixItems", ())
        if index < len(prefix):
            schemas[id(prefix[index])] = prefix[index]
        elif "items" in part:
            schemas[id(part["items"])] = part["items"]
        elif not covered and "unevaluatedItems" in part:
            schemas[id(part["unevaluatedItems"])] = part["unevaluatedItems"]
    return tuple(schemas.values())


def required_with(part: dict[str, Json]) -> Iterator[tuple[str, list[str]]]:
    """Yield each member with the names of the members that it requires."""
    for keyword in ("dependentRequired", "dependencies"):
        for name, wanted in part.get(keyword, {}).items():
            if isinstance(wanted, list):
                yield name, wanted


def _matching_patterns(part: dict[str, Json], name: str) -> Iterator[str]:
    return (pattern for pattern in part.get("patternProperties", ()) if pattern_matches(pattern, name))


def _dependent_schemas(schema: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    for keyword in ("dependentSchemas", "dependencies"):
        for name, needed in schema.get(keyword, {}).items():
            if not isinstance(needed, list):
                yield name, needed


def _definition_name(schema: dict[str, Json]) -> str | None:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return None
    return reference.removeprefix("#/$defs/").removeprefix("#/definitions/")
