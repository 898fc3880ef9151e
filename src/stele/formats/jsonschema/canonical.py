"""Prints the stable texts of a schema, computes its digests, and bundles a schema with its references."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from stele.core.ports import TextForm
from stele.formats.jsonschema.drafts import ANNOTATIONS, SCHEMA_KEYWORDS, SCHEMA_LIST_KEYWORDS, SCHEMA_MAP_KEYWORDS
from stele.formats.jsonschema.json_text import Json, json_pointer, write_json
from stele.formats.jsonschema.parse import ParsedJsonSchema
from stele.formats.jsonschema.resolve import REF_KEYWORDS

_FRAGMENT = "#/~!$&'()*+,;=:@?"
_IDENTITY = frozenset(("id", "$id", "$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor"))


def print_schema(parsed: ParsedJsonSchema, form: TextForm) -> bytes:
    """Return a schema as text.

    PRINTED keeps the order of members and the spelling of numbers. NORMALIZED sorts members by name. CANONICAL also
    leaves out `title`, `description`, `$comment` and `examples`, which do not constrain data.
    """
    if form is TextForm.PRINTED:
        return parsed.printed
    root = parsed.root if form is TextForm.NORMALIZED else _without_annotations(parsed.root)
    return write_json(root, order="sorted")


def compute_fingerprints(parsed: ParsedJsonSchema) -> Mapping[str, bytes]:
    """Return MD5 (16 bytes) and SHA-256 (32 bytes) of the CANONICAL form; it does not contain texts of references."""
    text = print_schema(parsed, TextForm.CANONICAL)
    return {"md5": hashlib.md5(text, usedforsecurity=False).digest(), "sha256": hashlib.sha256(text).digest()}


def _without_annotations(root: Json) -> Json:
    """Return a copy without annotations. Only keywords of schemas are removed: a property named `title` stays."""
    holder = {"": root}
    stack: list[tuple[Json, str | int]] = [(holder, "")]
    while stack:
        container, place = stack.pop()
        schema = container[place]
        if not isinstance(schema, dict):
            continue
        bare = container[place] = {name: value for name, value in schema.items() if name not in ANNOTATIONS}
        for keyword, value in bare.items():
            if isinstance(value, dict) and keyword in SCHEMA_MAP_KEYWORDS:
                bare[keyword] = inner = dict(value)
                stack.extend((inner, name) for name in inner)
            elif isinstance(value, dict) and keyword in SCHEMA_KEYWORDS:
                stack.append((bare, keyword))
            elif isinstance(value, list) and keyword in SCHEMA_LIST_KEYWORDS:
                bare[keyword] = items = list(value)
                stack.extend((items, index) for index in range(len(items)))
    return holder[""]


def bundle_references(parsed: ParsedJsonSchema) -> str:
    """Return the schema as one document: it holds the reference texts in its definitions.

    Every `$ref` becomes a pointer into the document.
    """
    used = parsed.links.used
    if not used or not isinstance(parsed.root, dict):
        return parsed.printed.decode()
    keyword = parsed.draft.definitions_keyword
    own = parsed.root.get(keyword)
    taken = set(own) if isinstance(own, dict) else set()
    labels = {label: _free_name(label, taken) for label in used}
    texts: list[tuple[Json, tuple[str | int, ...]]] = [(parsed.root, ())]
    texts += [(parsed.references[label], (keyword, name)) for label, name in labels.items()]
    places = {identity: place for text, path in texts for identity, place in _pointers_by_identity(text, path)}
    root, *others = (_rewrite_references(parsed, text, places, keep_identity=not path) for text, path in texts)
    root[keyword] = {**(root.get(keyword) or {}), **dict(zip(labels.values(), others, strict=True))}
    return write_json(root).decode()


def _free_name(label: str, taken: set[str]) -> str:
    name, count = label, 1
    while name in taken:
        count += 1
        name = f"{label}-{count}"
    taken.add(name)
    return name


def _pointers_by_identity(root: Json, path: tuple[str | int, ...]) -> Iterator[tuple[int, str]]:
    """Yield (identity, JSON Pointer) of every object in root. path is the path of root."""
    stack = [(root, path)]
    while stack:
        value, here = stack.pop()
        if isinstance(value, dict):
            yield id(value), quote(json_pointer(here), safe=_FRAGMENT)
            stack.extend((inner, (*here, name)) for name, inner in value.items())
        elif isinstance(value, list):
            stack.extend((inner, (*here, index)) for index, inner in enumerate(value))


def _rewrite_references(parsed: ParsedJsonSchema, root: Json, places: dict[int, str], *, keep_identity: bool) -> Json:
    """Return a copy of root with its references turned into pointers; only the outermost may keep its own id."""
    holder: dict[str, Json] = {"": root}
    stack: list[tuple[Json, str | int]] = [(holder, "")]
    while stack:
        container, place = stack.pop()
        value = container[place]
        if isinstance(value, dict):
            outermost = keep_identity and container is holder
            value = container[place] = _point_reference(
                parsed, value, places, dropped=frozenset() if outermost else _IDENTITY
            )
            stack.extend((value, name) for name in value)
        elif isinstance(value, list):
            value = container[place] = list(value)
            stack.extend((value, index) for index in range(len(value)))
    return holder[""]


def _point_reference(
    parsed: ParsedJsonSchema, schema: dict[str, Json], places: dict[int, str], *, dropped: frozenset[str]
) -> dict[str, Json]:
    result = {name: value for name, value in schema.items() if name not in dropped or not isinstance(value, str | bool)}
    target = parsed.links.targets.get(id(schema))
    if isinstance(target, bool):
        result = {name: value for name, value in result.items() if name not in REF_KEYWORDS}
        return result if target else {**result, "not": {}}
    if target is not None and id(target) in places:
        result.update((keyword, places[id(target)]) for keyword in REF_KEYWORDS if keyword in result)
    return result
