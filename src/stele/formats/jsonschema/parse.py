"""Parses text into a schema that is well formed, with all references resolved and a validator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import jsonschema_rs

from stele.errors import MalformedSchema, UnresolvedReference
from stele.formats.jsonschema.drafts import Draft, detect_draft, find_metaschema, rename_host, restore_host
from stele.formats.jsonschema.json_text import (
    Json,
    RepeatedMembers,
    json_pointer,
    parse_json,
    shorten_message,
    to_builtin,
    write_json,
)
from stele.formats.jsonschema.patterns import PATTERN_LIMITS, OversizedPattern, measure_patterns
from stele.formats.jsonschema.resolve import ROOT_BASE, Links, join_uri, refuse_branch_explosion

_EXPECTED = {
    "type": "the name of a type, or a list of them",
    "required": "a list of property names",
    "enum": "a list of values",
    "pattern": "a regular expression",
    "properties": "an object of schemas",
    "patternProperties": "an object of schemas by regular expression",
    "items": "a schema or a list of schemas",
    "additionalProperties": "a schema or a boolean",
    "dependencies": "an object of schemas or lists of names",
    "allOf": "a list of at least one schema",
    "anyOf": "a list of at least one schema",
    "oneOf": "a list of at least one schema",
}
_EXPECTED_INSIDE = {
    "dependencies": "a schema or a list of property names",
    "dependentRequired": "a list of property names",
    **dict.fromkeys(("properties", "patternProperties", "definitions", "$defs", "dependentSchemas"), "a schema"),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), "a schema"),
}
_MAX_FORGIVEN = 100
_SCHEMA_BYTES = 24 << 10
_BYTES_PER_BYTE = 12
"""Memory of a parsed schema for each byte of its text and of its references, as measured."""


class ParsedJsonSchema:
    """A JSON Schema after parsing; immutable by convention, safe to share.

    root          the document: an object or a boolean
    draft         the draft it is read by
    links         the targets of its references
    references    the parsed texts of references, by name
    printed       the PRINTED form
    pattern_size  approximate size in bytes of its compiled patterns
    repeated      members that the document has several times
    """

    __slots__ = (
        "_asserting",
        "_base",
        "_validator",
        "draft",
        "links",
        "pattern_size",
        "printed",
        "references",
        "repeated",
        "root",
    )

    def __init__(
        self,
        root: Json,
        draft: Draft,
        links: Links,
        references: Mapping[str, Json],
        validator: jsonschema_rs.Validator | MalformedSchema,
        base: str,
        pattern_size: int,
    ) -> None:
        self.root = root
        self.draft = draft
        self.links = links
        self.references = references
        self.printed = write_json(root)
        self.pattern_size = pattern_size
        self.repeated: RepeatedMembers = {}
        self._validator = validator
        self._asserting: jsonschema_rs.Validator | None = None
        self._base = base

    @property
    def type_name(self) -> str:
        """The title of the schema, or ''."""
        title = self.root.get("title") if isinstance(self.root, dict) else None
        return title if isinstance(title, str) else ""

    @property
    def memory_size(self) -> int:
        """Approximate size of the schema in memory in bytes, including its compiled patterns."""
        texts = len(self.printed) + sum(len(write_json(text)) for text in self.references.values())
        compiled = 1 + (self._asserting is not None)
        return _SCHEMA_BYTES + _BYTES_PER_BYTE * texts + compiled * self.pattern_size

    @property
    def validator(self) -> jsonschema_rs.Validator:
        """The compiled schema. Raises `MalformedSchema` for a schema that only strict=False accepted."""
        if isinstance(self._validator, MalformedSchema):
            raise self._validator
        return self._validator

    @property
    def asserting_validator(self) -> jsonschema_rs.Validator:
        """The schema compiled with `format` as an assertion, as some validators read it. Compiled on first access."""
        if self._asserting is None:
            self._asserting = compile_schema(self.root, self.links, self.draft, base=self._base, formats=True)
        return self._asserting


def parse(text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True) -> ParsedJsonSchema:
    """Parse one schema and the texts of its references.

    The draft is that of `$schema`, else draft-07 (the Confluent registry's default). A schema without `$schema` that
    only draft-04 accepts (boolean `exclusiveMaximum`, for example) is read as draft-04. A `$schema` that names a
    reference is a custom meta-schema: its draft and its vocabularies are used.

    Raises `MalformedSchema` (line and column for syntax, JSON Pointer for the rest) and `UnresolvedReference`.
    """
    repeated: RepeatedMembers = {}
    root = _read_schema(text, strict=strict, repeated=repeated)
    known = {label: _read_reference(label, body, strict=strict) for label, body in references.items()}
    draft = _choose_draft(root, known)
    try:
        parsed = _assemble_schema(root, known, draft, name=name, strict=strict)
    except MalformedSchema as error:
        same_in_all_drafts = isinstance(error, UnresolvedReference | OversizedPattern)
        if same_in_all_drafts or draft is not Draft.DRAFT7 or "$schema" in root:
            raise
        try:
            parsed = _assemble_schema(root, known, Draft.DRAFT4, name=name, strict=strict)
        except MalformedSchema:
            raise error from None
    parsed.repeated = repeated
    return parsed


def _choose_draft(root: Json, known: Mapping[str, Json]) -> Draft:
    """Return the draft of a schema; meta-schemas among its references are followed."""
    seen: set[str] = set()
    while isinstance(root, dict) and isinstance(uri := root.get("$schema"), str) and uri in known and uri not in seen:
        seen.add(uri)
        root = known[uri]
    return detect_draft(root)


def _assemble_schema(root: Json, known: dict[str, Json], draft: Draft, *, name: str, strict: bool) -> ParsedJsonSchema:
    links = Links(root, known, name=name, draft=draft, strict=strict)
    base = join_uri(ROOT_BASE, name)
    own = root.get("$schema") if isinstance(root, dict) else None
    if isinstance(own, str) and own in known:
        links.documents.setdefault(own.partition("#")[0], known[own])
    size = 0
    try:
        size = measure_patterns(root, known, links)
        validator: jsonschema_rs.Validator | MalformedSchema = compile_schema(root, links, draft, base=base)
    except MalformedSchema as error:
        if strict:
            raise
        validator = error
    return ParsedJsonSchema(root, draft, links, known, validator, base, size)


def _read_schema(text: bytes, *, strict: bool, repeated: RepeatedMembers | None = None) -> Json:
    if not text.strip():
        raise MalformedSchema("the text is empty", line=1, column=1, expected="a JSON Schema")
    root = parse_json(text, strict=strict, repeated=repeated)
    if not isinstance(root, dict | bool):
        raise MalformedSchema("the document is not a schema", path="#", expected="an object, true or false")
    return root


def _read_reference(label: str, text: bytes, *, strict: bool) -> Json:
    try:
        return _read_schema(text, strict=strict)
    except MalformedSchema as error:
        raise MalformedSchema(
            f"reference {label!r}: {error.why}",
            line=error.line,
            column=error.column,
            path=error.path,
            expected=error.expected,
        ) from None


def compile_schema(
    root: Json, links: Links, draft: Draft, *, base: str, formats: bool = False
) -> jsonschema_rs.Validator:
    """Return a validator for root that reads its references from links and never from the network.

    In all drafts `format` is an annotation, not an assertion, unless formats is set. Raises `MalformedSchema`.
    """
    refuse_branch_explosion(root, links)
    document = _validator_document(root, links)
    for _ in range(_MAX_FORGIVEN):
        try:
            return draft.validator(
                document,
                validate_formats=formats,
                base_uri=base,
                retriever=_build_retriever(links, draft),
                pattern_options=PATTERN_LIMITS,
            )
        except jsonschema_rs.ValidationError as error:
            if not _forgive_fault(document, error, draft):
                raise _explain_error(error, draft) from None
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            raise MalformedSchema(shorten_message(str(error)), path="#") from None
    raise MalformedSchema("the schema has too many faults", path="#")


def _forgive_fault(document: Json, error: jsonschema_rs.ValidationError, draft: Draft) -> bool:
    """Remove a fault that the meta-schema refuses and every validator ignores; return whether there was one.

    That is an empty `$dynamicAnchor`, and in draft-04 an exclusive bound without the bound.
    """
    *parents, last = error.instance_path or [""]
    if last == "$dynamicAnchor" and error.instance == "":
        for step in parents:
            document = document[step]
        del document[last]
        return True
    kind = error.kind
    if draft is Draft.DRAFT4 and isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        for step in error.instance_path:
            document = document[step]
        exclusive = f"exclusive{kind.property.capitalize()}"
        if "dependencies" in error.schema_path and isinstance(document.get(exclusive), bool):
            del document[exclusive]
            return True
    return False


def _build_retriever(links: Links, draft: Draft) -> Callable[[str], Json]:
    def retrieve_document(uri: str) -> Json:
        document = links.documents.get(restore_host(uri.partition("#")[0]))
        if document is None:
            document = find_metaschema(restore_host(uri.partition("#")[0])) if links.has_metaschemas else None
        if document is None:
            document = True
        if isinstance(document, dict) and "$schema" not in document:
            document = {
                "$schema": f"http://{draft.value}#" if draft.ref_hides_siblings else f"https://{draft.value}",
                **document,
            }
        return _validator_document(document, links)

    return retrieve_document


def _validator_document(document: Json, links: Links) -> Json:
    """Return a document of the schema or its references in the form that the validator accepts."""
    plain = to_builtin(document)
    return rename_host(plain) if links.has_metaschemas else plain


def _deepest_error(error: jsonschema_rs.ValidationError) -> jsonschema_rs.ValidationError:
    """Return the fault behind a failed choice of the meta-schema: the one deepest in the schema."""
    while isinstance(error.kind, jsonschema_rs.ValidationErrorKind.AnyOf):
        inner = [fault for branch in error.kind.context for fault in branch]
        best = max(inner, key=lambda fault: len(fault.instance_path), default=error)
        if len(best.instance_path) <= len(error.instance_path):
            break
        error = best
    return error


def _explain_error(error: jsonschema_rs.ValidationError, draft: Draft) -> MalformedSchema:
    kinds = jsonschema_rs.ValidationErrorKind
    error = _deepest_error(error)
    path = json_pointer(error.instance_path)
    if isinstance(error.kind, kinds.Referencing):
        return UnresolvedReference(shorten_message(error.message), path=path)
    keyword = next((part for part in reversed(error.instance_path) if isinstance(part, str)), "")
    expected = _EXPECTED.get(keyword)
    if isinstance(error.kind, kinds.Type):
        expected = " or ".join(error.kind.types)
    elif isinstance(error.kind, kinds.Format):
        expected = "a regular expression" if error.kind.format == "regex" else f"a {error.kind.format}"
    elif isinstance(error.kind, kinds.Minimum):
        expected = f"a number of at least {error.kind.limit}"
    elif isinstance(error.kind, kinds.ExclusiveMinimum):
        expected = f"a number above {error.kind.limit}"
    elif expected is None:
        parent = next((part for part in reversed(error.instance_path[:-1]) if isinstance(part, str)), "")
        expected = _EXPECTED_INSIDE.get(parent)
    message = error.message
    if isinstance(error.kind, kinds.AnyOf):
        message = f"{shorten_message(str(write_json(error.instance), 'utf-8'))} is not allowed here"
    return MalformedSchema(shorten_message(message), path=path, expected=expected or f"what {draft.value} allows here")


_TEXT_LIMIT = 80


def excerpt_at(parsed: ParsedJsonSchema, path: Iterable[str | int]) -> str:
    """Return the value at a path of a schema as shortened JSON, with references followed; '' when there is none."""
    value: Json = parsed.root
    for step in path:
        value = parsed.links.follow_references(value)
        name = str(step)
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return ""
    text = write_json(value).decode()
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"
