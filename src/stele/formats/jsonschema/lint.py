"""Lint rules for JSON Schemas; see `stele.formats.lint` for the rules all languages share and how to silence one.

Only the document itself is checked, by the draft it is read as. Names of properties can be lowerCamelCase (Google's
style guide) or lower_snake_case. Branches of `allOf`, `not`, `if` and the like are parts of a schema, so they need not
repeat declarations of the whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from stele.core.findings import Finding
from stele.formats import lint as common
from stele.formats.graph import strongly_connected
from stele.formats.jsonschema.drafts import (
    FORMATS,
    WORDS,
    Draft,
    detect_draft,
    explain_unknown_format,
    explain_unknown_keyword,
    is_anchored_at_end,
    is_asserting,
    is_known_format,
    is_known_keyword,
    list_subschemas,
)
from stele.formats.jsonschema.json_text import Json, escape_token, is_equal, json_pointer, write_json
from stele.formats.jsonschema.parse import ParsedJsonSchema
from stele.formats.lint import LintReport

_DEFINITIONS = frozenset(("$defs", "definitions"))
_OPTIONAL_APPLICATORS = frozenset(("anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"))
MAX_OBJECTS = 20_000
"""Maximum number of objects of one document that are compared with those of another."""


def reachable_schemas(parsed: ParsedJsonSchema) -> set[int]:
    """Return the identities of the schemas that apply to data: all except unused definitions."""
    identities: set[int] = set()
    waiting = [parsed.root]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, dict) and id(schema) not in identities:
            identities.add(id(schema))
            waiting += _applied_schemas(parsed, schema)
    return identities


def find_recursion(parsed: ParsedJsonSchema, schemas: Sequence[dict[str, Json]]) -> Iterator[tuple[str, list[int]]]:
    """Yield the groups of schemas that contain each other, as (rule they break, their identities)."""
    known = {id(schema): schema for schema in schemas}

    def list_applied(key: int) -> list[int]:
        return _identities(known, _applied_schemas(parsed, known[key]))

    def list_required(key: int) -> list[int]:
        return _identities(known, _required_schemas(parsed, known[key]))

    yield from (("RECURSIVE_TYPE", group) for group in strongly_connected(list(known), list_applied))
    yield from (("UNBOUNDED_RECURSION", group) for group in strongly_connected(list(known), list_required))


def _identities(known: dict[int, dict[str, Json]], schemas: Iterator[Json]) -> list[int]:
    identities = []
    for schema in schemas:
        if isinstance(schema, dict):
            known.setdefault(id(schema), schema)
            identities.append(id(schema))
    return identities


def _applied_schemas(parsed: ParsedJsonSchema, schema: dict[str, Json]) -> Iterator[Json]:
    """Yield the schemas that a schema applies to a value or its parts."""
    if id(schema) in parsed.links.targets:
        yield parsed.links.targets[id(schema)]
        if parsed.draft.ref_hides_siblings:
            return
    yield from (child for path, child in list_subschemas(schema) if path[0] not in _DEFINITIONS)


def _required_schemas(parsed: ParsedJsonSchema, schema: dict[str, Json]) -> Iterator[Json]:
    """Yield the schemas that apply to what every valid value holds: itself, required properties and items."""
    if id(schema) in parsed.links.targets:
        yield parsed.links.targets[id(schema)]
        if parsed.draft.ref_hides_siblings:
            return
    branches = schema.get("allOf")
    yield from branches if isinstance(branches, list) else ()
    properties, required = schema.get("properties"), schema.get("required")
    if schema.get("type") == "object" and isinstance(properties, dict) and isinstance(required, list):
        yield from (properties[name] for name in required if isinstance(name, str) and name in properties)
    least = schema.get("minItems")
    if schema.get("type") == "array" and isinstance(least, int) and least > 0:
        yield schema.get("items")


def list_objects(parsed: ParsedJsonSchema) -> Iterator[tuple[str, frozenset[str], dict[str, Json]]]:
    """Yield path, required names and properties of every object outside choices. Equal paths mean the same object."""
    waiting: list[tuple[str, Json]] = [("#", parsed.root)]
    object_count = 0
    while waiting and object_count < MAX_OBJECTS:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        object_count += 1
        required, properties = schema.get("required"), schema.get("properties")
        if isinstance(required, list) or isinstance(properties, dict):
            names = required if isinstance(required, list) else []
            named = properties if isinstance(properties, dict) else {}
            yield path, frozenset(name for name in names if isinstance(name, str)), named
        for steps, child in list_subschemas(schema):
            if steps[0] not in _OPTIONAL_APPLICATORS:
                waiting.append(("/".join([path, *(escape_token(str(step)) for step in steps)]), child))


IGNORE: Final = "x-stele-lint-ignore"
"""The keyword that silences rules."""

RULES: Final[Mapping[str, str]] = common.select_rules(
    *("CASE_CLASH", "CONTENT_DECLARED", "DEFAULT_FITS", "DOC_REQUIRED", "DRAFT_DECLARED", "FIELD_DEFAULT"),
    *(
        "FORMAT_KNOWN",
        "LINT_INCOMPLETE",
        "MEMBER_REPEATED",
        "NAMING",
        "PATTERN_ANCHORED",
        "RECURSIVE_TYPE",
        "REF_SIBLINGS",
    ),
    *("REQUIRED_UNDEFINED", "TYPE_DECLARED", "UNBOUNDED_RECURSION", "UNKNOWN_KEYWORD", "UNUSED_DEFINITION"),
)

_PARTS: Final = frozenset(("allOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"))
"""Keywords whose schemas are parts of the enclosing schema."""

_CHOICES: Final = frozenset(("anyOf", "oneOf"))
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "object": frozenset(("properties", "patternProperties", "additionalProperties", "required", "minProperties")),
    "array": frozenset(("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")),
    "string": frozenset(("minLength", "maxLength", "pattern", "format")),
    "number": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
}
_TYPING_KEYWORDS: Final = frozenset(
    ("type", "$ref", "$dynamicRef", "$recursiveRef", "enum", "const", "allOf", "anyOf", "oneOf")
)
"""Keywords that declare which values are allowed; one of them is enough."""

_TYPES: Final[Mapping[str, Callable[[Json], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: not isinstance(value, bool | str | list | dict) and value is not None,
    "integer": lambda value: _TYPES["number"](value) and value == int(value),
}


class _LintedSchema(NamedTuple):
    """A schema in the document: its path, the rules silenced there, and whether it is only a part of another one.

    keyword and name are its position in the enclosing schema, such as `properties` and the name of the property.
    """

    schema: dict[str, Json]
    path: str
    ignored: frozenset[str]
    partial: bool
    keyword: str
    name: str


def lint(parsed: ParsedJsonSchema, before: ParsedJsonSchema | None) -> list[Finding]:
    """Return the findings of the rules, in the order of the document."""
    notes = LintReport()
    places: dict[int, _LintedSchema] = {}
    if isinstance(parsed.root, dict):
        for place in _walk_schemas(parsed):
            if not notes.count_declaration():
                break
            places[id(place.schema)] = place
            _check_schema(notes, place, parsed)
        _check_repeated(notes, parsed, silenced=places[id(parsed.root)].ignored)
        _check_draft(notes, parsed, silenced=places[id(parsed.root)].ignored)
        _check_recursion(notes, parsed, places)
        _check_unused_definitions(notes, parsed, places)
        if before is not None:
            _check_changes(notes, parsed, before, places[id(parsed.root)].ignored)
    return notes.list_findings("#")


def _walk_schemas(parsed: ParsedJsonSchema) -> Iterator[_LintedSchema]:
    """Yield the schemas of the document that are objects, outer ones first."""
    hides = parsed.draft.ref_hides_siblings
    seen: set[int] = set()
    waiting = [_LintedSchema(parsed.root, "#", frozenset(), False, "", "")]
    while waiting:
        place = waiting.pop()
        schema = place.schema
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        if IGNORE in schema:
            place = place._replace(ignored=place.ignored | common.ignored_rules(schema[IGNORE]))
        yield place
        if hides and "$ref" in schema and place.path != "#":
            continue
        inner: list[_LintedSchema] = []
        for (keyword, *steps), child in list_subschemas(schema):
            if not isinstance(child, dict):
                continue
            path = "/".join([place.path, *(escape_token(str(step)) for step in (keyword, *steps))])
            partial = keyword in _PARTS or (keyword in _CHOICES and "type" not in child)
            inner.append(
                _LintedSchema(child, path, place.ignored, partial, str(keyword), str(steps[0]) if steps else "")
            )
        waiting += reversed(inner)


def _check_schema(notes: LintReport, place: _LintedSchema, parsed: ParsedJsonSchema) -> None:
    """Check all rules about one schema by itself."""
    schema = place.schema
    _check_keywords(notes, place, parsed)
    _check_documented(notes, place, parsed)
    if place.keyword == "properties":
        name = place.name.removeprefix("$").removeprefix("@").removeprefix("_")
        what = f"the property {common.shorten_text(place.name, 60)!r}"
        common.check_name(notes, place.path, name, what, common.CAMEL_NAME, place.ignored)
    if parsed.draft.ref_hides_siblings and "$ref" in schema:
        _check_ref_siblings(notes, place)
        return
    properties = schema.get("properties")
    if isinstance(properties, dict):
        common.report_case_clashes(notes, properties, place.path, place.ignored, what="properties")
    if not place.partial:
        _check_type(notes, place)
        _check_content_model(notes, place, parsed.draft)
        _check_required(notes, place)
    _check_texts(notes, place, parsed.draft)
    _check_default(notes, place)


# --- words ----------------------------------------------------------------------------------------------------------


def _check_draft(notes: LintReport, parsed: ParsedJsonSchema, *, silenced: frozenset[str]) -> None:
    uri = parsed.root.get("$schema")
    read = parsed.draft.value.removeprefix("json-schema.org/").removesuffix("/schema")
    if uri is None:
        why = f"The document does not say which draft it is written in; it is read as {read}, elsewhere as another."
    elif detect_draft({"$schema": uri}).value not in str(uri):
        why = f"{common.shorten_text(str(uri), 100)!r} is not a known draft; the document is read as {read}."
    else:
        return
    fix = f'Add "$schema": "https://{Draft.DRAFT2020.value}", or the draft that is meant.'
    notes.add_finding("DRAFT_DECLARED", "#", why, fix, current="" if uri is None else str(uri), ignored=silenced)


def _check_repeated(notes: LintReport, parsed: ParsedJsonSchema, *, silenced: frozenset[str]) -> None:
    waiting: list[tuple[Json, tuple[str | int, ...]]] = [(parsed.root, ())] if parsed.repeated else []
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, dict):
            for name in parsed.repeated.get(id(value), (value, ()))[1]:
                why = f"The member {common.shorten_text(name, 60)!r} occurs several times; only the last one is used."
                place = json_pointer(path)
                notes.add_finding("MEMBER_REPEATED", place, why, "Keep one of them.", current=name, ignored=silenced)
            waiting += [(inner, (*path, name)) for name, inner in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(inner, (*path, index)) for index, inner in reversed(list(enumerate(value)))]


def _check_keywords(notes: LintReport, place: _LintedSchema, parsed: ParsedJsonSchema) -> None:
    for word in place.schema:
        if is_known_keyword(word, parsed.draft):
            continue
        why, fix = explain_unknown_keyword(word, parsed.draft, notes.nearest_word(word, WORDS))
        notes.add_finding("UNKNOWN_KEYWORD", place.path, why, fix, current=word, ignored=place.ignored)


def _check_documented(notes: LintReport, place: _LintedSchema, parsed: ParsedJsonSchema) -> None:
    """Check that the whole schema, properties and definitions have a text.

    For a reference, a text of its target is enough.
    """
    if place.path == "#":
        what = "The schema"
    elif place.keyword in ("properties", "$defs", "definitions"):
        kind = "property" if place.keyword == "properties" else "definition"
        what = f"The {kind} {common.shorten_text(place.name, 60)!r}"
    else:
        return
    sources = (place.schema, parsed.links.follow_references(place.schema))
    texts = (source.get(word) for source in sources if isinstance(source, dict) for word in ("description", "title"))
    if not any(isinstance(text, str) and text.strip() for text in texts):
        common.report_missing_doc(notes, place.path, what, 'Add a "description".', place.ignored)


def _check_ref_siblings(notes: LintReport, place: _LintedSchema) -> None:
    lost = [word for word in place.schema if is_asserting(word) and word != "$ref"]
    if lost and place.path != "#":
        why = f"{', '.join(lost[:6])} next to the $ref: up to draft-07 everything next to a $ref is ignored."
        fix = 'Write "allOf": [{"$ref": …}] next to them, or use a newer draft.'
        notes.add_finding("REF_SIBLINGS", place.path, why, fix, current=", ".join(lost), ignored=place.ignored)


def _check_texts(notes: LintReport, place: _LintedSchema, draft: Draft) -> None:
    pattern, name = place.schema.get("pattern"), place.schema.get("format")
    if isinstance(pattern, str) and not (pattern.startswith("^") and is_anchored_at_end(pattern)):
        why = "The pattern matches anywhere inside the text: any text before or after the match is allowed."
        fix = "Put ^ in front and $ behind; write .* where anything may follow."
        notes.add_finding("PATTERN_ANCHORED", place.path, why, fix, current=pattern, ignored=place.ignored)
    if isinstance(name, str) and not is_known_format(name, draft):
        why, fix = explain_unknown_format(name, draft, notes.nearest_word(name, FORMATS))
        notes.add_finding("FORMAT_KNOWN", place.path, why, fix, current=name, ignored=place.ignored)


# --- meaning --------------------------------------------------------------------------------------------------------


def _check_type(notes: LintReport, place: _LintedSchema) -> None:
    schema = place.schema
    if not _TYPING_KEYWORDS.isdisjoint(schema) or "if" in schema or "not" in schema:
        return
    kind = next((kind for kind, words in _KINDS.items() if not words.isdisjoint(schema)), None)
    if kind is not None:
        words = [word for word in schema if word in _KINDS[kind]]
        why = f"Without a type, only values that happen to be of type {kind} are held to {', '.join(words[:4])}."
        notes.add_finding("TYPE_DECLARED", place.path, why, f'Add "type": "{kind}".', ignored=place.ignored)
    elif place.keyword in ("properties", "items", "prefixItems"):
        why = "The schema has no type, so it accepts any value."
        notes.add_finding("TYPE_DECLARED", place.path, why, 'Add a "type", or write true.', ignored=place.ignored)


def _check_content_model(notes: LintReport, place: _LintedSchema, draft: Draft) -> None:
    schema = place.schema
    is_object = schema.get("type") == "object" or "properties" in schema
    if is_object and not {"additionalProperties", "unevaluatedProperties"}.intersection(schema):
        combined = not {"allOf", "$ref", "anyOf", "oneOf"}.isdisjoint(schema) and not draft.ref_hides_siblings
        word = "unevaluatedProperties" if combined else "additionalProperties"
        why = "Nothing says whether other properties are allowed, so they are, and a misspelled one is never noticed."
        fix = f'Add "{word}": false for a closed object, true for an open one.'
        notes.add_finding("CONTENT_DECLARED", place.path, why, fix, ignored=place.ignored)


def _check_required(notes: LintReport, place: _LintedSchema) -> None:
    schema = place.schema
    names, properties = schema.get("required"), schema.get("properties", {})
    elsewhere = ("patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if", "$dynamicRef", "$recursiveRef")
    rest = schema.get("additionalProperties")
    if not isinstance(names, list) or not isinstance(properties, dict) or isinstance(rest, dict):
        return
    if any(word in schema for word in elsewhere):
        return
    for name in dict.fromkeys(name for name in names if isinstance(name, str)):
        if name in properties:
            continue
        current = common.shorten_text(name, 60)
        why = f"{current!r} is required, but no property of that name is defined"
        why += ": no document can be valid." if rest is False else ", so its value may be anything."
        near = notes.nearest_word(name, properties)
        fix = f"Did you mean {near!r}?" if near else f"Define {current!r} in properties, or stop requiring it."
        notes.add_finding("REQUIRED_UNDEFINED", place.path, why, fix, current=name, ignored=place.ignored)


def _check_default(notes: LintReport, place: _LintedSchema) -> None:
    schema = place.schema
    if "default" not in schema:
        return
    value = schema["default"]
    names = schema.get("type")
    names = [names] if isinstance(names, str) else names if isinstance(names, list) else []
    tests = [_TYPES[name] for name in names if isinstance(name, str) and name in _TYPES]
    choices = schema.get("enum")
    if tests and not any(test(value) for test in tests):
        why = f"The default is not a value of type {' or '.join(str(name) for name in names)}."
    elif isinstance(choices, list) and not any(is_equal(value, choice) for choice in choices):
        why = "The default is not one of the values of the enum."
    else:
        return
    current = write_json(value)[:400].decode("utf-8", "replace")
    notes.add_finding("DEFAULT_FITS", place.path, why, "Mend the default.", current=current, ignored=place.ignored)


# --- the whole ------------------------------------------------------------------------------------------------------


def _check_recursion(notes: LintReport, parsed: ParsedJsonSchema, places: Mapping[int, _LintedSchema]) -> None:
    for rule, group in find_recursion(parsed, [place.schema for place in places.values()]):
        inside = [places[each] for each in group if each in places]
        if inside:
            # Report named schemas if possible: the whole schema, or a definition.
            named = [place for place in inside if place.keyword in ("", "$defs", "definitions")] or inside
            paths = [place.path for place in named]
            common.report_recursion(notes, rule, paths[0], paths, named[0].ignored)


def _check_unused_definitions(notes: LintReport, parsed: ParsedJsonSchema, places: Mapping[int, _LintedSchema]) -> None:
    if not any(is_asserting(word) for word in parsed.root):
        return  # a collection of definitions for other documents
    used = reachable_schemas(parsed)
    below = sorted(place.path for key, place in places.items() if key in used)
    for key, place in places.items():
        if place.keyword not in ("$defs", "definitions") or key in used or "$dynamicAnchor" in place.schema:
            continue
        inside = bisect_left(below, place.path + "/")
        if inside == len(below) or not below[inside].startswith(place.path + "/"):
            why = f"Nothing refers to the definition {common.shorten_text(place.name, 60)!r}."
            notes.add_finding(
                "UNUSED_DEFINITION", place.path, why, "Remove it.", current=place.name, ignored=place.ignored
            )


def _check_changes(
    notes: LintReport, parsed: ParsedJsonSchema, before: ParsedJsonSchema, ignored: frozenset[str]
) -> None:
    """Report properties that are now required and may be missing in documents written before."""
    old = {path: required for path, required, _ in list_objects(before)}
    for path, required, properties in list_objects(parsed):
        if path not in old:
            continue
        for name in required - old[path]:
            schema = parsed.links.follow_references(properties.get(name))
            quiet = ignored | (common.ignored_rules(schema.get(IGNORE)) if isinstance(schema, dict) else frozenset())
            if isinstance(schema, dict) and "default" in schema:
                continue
            current = common.shorten_text(name, 60)
            why = f"{current!r} is required now and has no default: documents written before need not have it."
            place = f"{path}/properties/{escape_token(name)}" if name in properties else path
            notes.add_finding("FIELD_DEFAULT", place, why, "Give it a default, or leave it optional.", ignored=quiet)
