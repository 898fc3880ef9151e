"""One self-contained document from a parsed schema, in its own draft or a later one.

Both halves of the ruleset want schemas they need not look around in: every `$ref` becomes a pointer into the
definitions of the same document, identifiers and annotations are gone, and keywords the schema's own draft does not
know (which say nothing there, but would in a later draft) are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from stele.formats.jsonschema.branch_limits import has_reference_loops
from stele.formats.jsonschema.drafts import (
    SCHEMA_KEYWORDS,
    SCHEMA_LIST_KEYWORDS,
    SCHEMA_MAP_KEYWORDS,
    Draft,
    detect_draft,
)
from stele.formats.jsonschema.json_text import Json
from stele.formats.jsonschema.parse import ParsedJsonSchema
from stele.formats.jsonschema.resolve import REF_KEYWORDS

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
    """A schema that refers to nothing outside itself.

    root   the schema: a boolean, or an object whose only keywords are `$ref` and the definitions
    exact  whether it allows exactly what the original allows; False where the meaning of a reference depends on the
           way taken to it or on itself, or a keyword has no counterpart in the later draft
    """

    root: Json
    exact: bool

    @property
    def definitions(self) -> Mapping[str, Json]:
        """Every schema that something refers to, by name."""
        if not isinstance(self.root, dict):
            return {}
        found: Mapping[str, Json] = self.root.get("$defs") or self.root.get("definitions") or {}
        return found


def build_document(parsed: ParsedJsonSchema, draft: Draft, *, formats: bool) -> BundledDocument:
    """Return a parsed schema as one document of `draft`, which is its own or a later one; linear in the schema.

    formats keeps `format`; a document without it reads it as an annotation. Between drafts an integer is an integer
    however it is spelled: that draft-04 takes 1.0 for none is not carried over.
    """
    return _Translation(parsed, draft, formats=formats).translate_all()


class _Translation:
    """One run; `exact` is taken back when something cannot be carried over."""

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
        """Translate all that is reached from the root."""
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
        """Return a pointer to a target, which becomes a definition when it is met for the first time."""
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
        if ambiguous or any(draft.value in schema[keyword] for keyword in written for draft in Draft):
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
        """Return whether a dynamic reference could lead to several places, counting the anchors of all texts."""
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
        """Rewrite keywords of the earlier draft for the later one; content keywords and formats make that inexact."""
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
