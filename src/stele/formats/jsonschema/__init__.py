"""JSON Schema, draft-04 to 2020-12: the format `json`.

A schema without `$schema` is read as draft-07. Nothing is ever fetched: a `$ref` leads into the document or into the
texts that are passed as references. `format` is an annotation in every draft. User patterns run only in an engine with
limits. Importing this package loads no validator: the modules that need one are loaded when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from stele.core.findings import Finding, Severity, SourcePosition
from stele.core.ports import Field, TextForm
from stele.errors import TooLarge
from stele.formats.json_reader import locate_values
from stele.formats.rulesets import Ruleset, Rulesets

if TYPE_CHECKING:
    import pyarrow as pa

    from stele.formats.capabilities import OutlineLocation, OutlineNode
    from stele.formats.conversion.model import Loss, Model
    from stele.formats.jsonschema.codec import JsonCodec
    from stele.formats.jsonschema.confluent import list_changes
    from stele.formats.jsonschema.confluent.schema_diff import SchemaChange
    from stele.formats.jsonschema.parse import ParsedJsonSchema

_EXPORTS: Final = {
    "SchemaChange": "confluent.schema_diff",
    "ParsedJsonSchema": "parse",
    "list_changes": "confluent",
}
"""Names of this package that load the validator, with the modules that define them."""


def __getattr__(name: str) -> Any:
    """Load one of `_EXPORTS` on first use."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)


def _check_changes(name: str, reader: ParsedJsonSchema, writer: ParsedJsonSchema) -> list[Finding]:
    from stele.formats.jsonschema import confluent

    allowed = confluent.RULESETS[name]
    try:
        changes = confluent.list_changes(reader, writer, allowed=allowed)
    except TooLarge as error:
        return [_too_complex(error)]
    return confluent.build_findings(changes, allowed, reader, writer)


def _check_karapace(reader: ParsedJsonSchema, writer: ParsedJsonSchema) -> list[Finding]:
    from stele.formats.jsonschema import karapace

    try:
        return karapace.check(reader, writer)
    except TooLarge as error:
        return [_too_complex(error)]


def _too_complex(error: TooLarge) -> Finding:
    why = f"The schemas are too large to be compared with each other: {error}."
    return Finding("TOO_COMPLEX", "#", why=why, fix="Make the schema smaller.", level=Severity.UNKNOWN)


def _check_containment(
    undecided: Severity, languages: bool, reader: ParsedJsonSchema, writer: ParsedJsonSchema
) -> list[Finding]:
    from stele.formats.jsonschema.containment import check_containment

    return check_containment(reader, writer, undecided, languages=languages)


RULESETS = Rulesets(
    "json",
    Ruleset(
        "confluent@1",
        partial(_check_changes, "confluent"),
        "Changes between the two texts, each allowed or not by Confluent's table.",
    ),
    Ruleset(
        "confluent-lenient@1",
        partial(_check_changes, "confluent-lenient"),
        "The same changes by Confluent's lenient table: properties may be added and removed in open models.",
    ),
    Ruleset(
        "containment@1",
        partial(_check_containment, Severity.UNKNOWN, False),
        "Every document the writer's schema allows is allowed by the reader's; a pair without proof is undecided.",
    ),
    Ruleset(
        "containment-lenient@1",
        partial(_check_containment, Severity.WARNING, False),
        "The same, with doubt as a warning: only a document that proves the break refuses.",
    ),
    Ruleset(
        "apicurio@1",
        partial(_check_containment, Severity.UNKNOWN, False),
        "What Apicurio's checker aims at: containment.",
    ),
    Ruleset(
        "containment@2",
        partial(_check_containment, Severity.UNKNOWN, True),
        "As version 1, and patterns and lengths of strings and names are compared as languages.",
    ),
    Ruleset(
        "containment-lenient@2",
        partial(_check_containment, Severity.WARNING, True),
        "As version 1, with patterns and lengths compared as languages; doubt is a warning.",
    ),
    Ruleset("karapace@2", _check_karapace, "Changes between the two texts, allowed or not as Karapace decides."),
)
"""`confluent` is the default; `apicurio` is another name of `containment@1`, which compares patterns as texts."""


class JsonSchemaFormat:
    """The format `json`: JSON Schema draft-04, 06, 07, 2019-09 and 2020-12. Implements `stele.core.ports.Format`."""

    name: str = "json"
    media_types: Sequence[str] = ("application/schema+json", "application/json")
    rulesets: Sequence[str] = RULESETS.names
    ruleset_summaries: Mapping[str, str] = RULESETS.summaries

    def parse(
        self, text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True
    ) -> ParsedJsonSchema:
        """Parse one schema; see `stele.formats.jsonschema.parse.parse`."""
        from stele.formats.jsonschema.parse import parse

        return parse(text, references, name=name, strict=strict)

    def canonical(self, parsed: ParsedJsonSchema, form: TextForm) -> bytes:
        """Return compact JSON: sorted when NORMALIZED, sorted and without annotations when CANONICAL."""
        from stele.formats.jsonschema.canonical import print_schema

        return print_schema(parsed, form)

    def render(self, parsed: ParsedJsonSchema, style: str) -> str | None:
        """Return one document with its references built in for the style `resolved`, None for other styles."""
        from stele.formats.jsonschema.canonical import bundle_references

        return bundle_references(parsed) if style == "resolved" else None

    def fingerprints(self, parsed: ParsedJsonSchema) -> Mapping[str, bytes]:
        """Return `md5` and `sha256` of the CANONICAL form."""
        from stele.formats.jsonschema.canonical import compute_fingerprints

        return compute_fingerprints(parsed)

    def check(self, reader: ParsedJsonSchema, writer: ParsedJsonSchema, ruleset: str = "") -> list[Finding]:
        """Return the findings of the ruleset; one of level UNKNOWN for schemas that are too large to compare.

        Raises `UnknownRuleset`.
        """
        return RULESETS.check(reader, writer, ruleset)

    def fields(self, parsed: ParsedJsonSchema) -> list[Field]:
        """Return all properties at any depth."""
        from stele.formats.jsonschema.outline import list_fields

        return list_fields(parsed)

    def outline(self, parsed: ParsedJsonSchema) -> list[OutlineNode]:
        """Return every subschema at its JSON Pointer; see `stele.formats.jsonschema.outline`."""
        from stele.formats.jsonschema.outline import build_outline

        return build_outline(parsed)

    def locator(self, parsed: ParsedJsonSchema) -> Callable[[str], OutlineLocation | None]:
        """Return a function from the path of a finding, through references, to the declaration in the outline."""
        from stele.formats.jsonschema.outline import build_locator

        return build_locator(parsed)

    def positions(self, parsed: ParsedJsonSchema, text: bytes) -> Mapping[str, SourcePosition]:
        """Return where declarations stand, by the paths of findings and of the outline."""
        return {f"#{pointer}": position for pointer, position in locate_values(text).items()}

    def list_imports(self, text: bytes) -> Sequence[str]:
        """Return the names of the documents that this one refers to."""
        from stele.formats.jsonschema.resolve import list_imports

        return list_imports(text)

    def list_exports(self, text: bytes) -> Sequence[str]:
        """Return the names by which others refer to this document."""
        from stele.formats.jsonschema.resolve import list_exports

        return list_exports(text)

    def arrow_schema(self, parsed: ParsedJsonSchema) -> pa.Schema:
        """Return the columns of data of this schema; see `stele.formats.jsonschema.arrow`."""
        from stele.formats.jsonschema.arrow import arrow_schema

        return arrow_schema(parsed)

    def codec(self, writer: ParsedJsonSchema, reader: ParsedJsonSchema | None = None) -> JsonCodec:
        """Return a codec for JSON data. Raises `MalformedSchema` for schemas only accepted with strict=False."""
        from stele.formats.jsonschema.codec import JsonCodec

        return JsonCodec(writer, reader)

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """The rules of the module `lint`, each with a sentence on what it requires."""
        from stele.formats.jsonschema.lint import RULES

        return RULES

    def lint(self, parsed: ParsedJsonSchema, before: ParsedJsonSchema | None = None) -> list[Finding]:
        """Return the findings of the lint rules, as warnings; see `stele.formats.jsonschema.lint`."""
        from stele.formats.jsonschema.lint import lint

        return lint(parsed, before)

    def to_model(self, parsed: ParsedJsonSchema) -> tuple[Model, list[Loss]]:
        """Return the neutral model of the schema and the losses; see `stele.formats.jsonschema.to_model`.

        Raises `CannotConvert` when no datum fits the schema, `TooLarge` past its limits.
        """
        from stele.formats.jsonschema.to_model import to_model

        return to_model(parsed)

    def from_model(self, model: Model) -> tuple[bytes, list[Loss]]:
        """Return a schema of draft 2020-12 for a neutral model and the losses; see `from_model`.

        Raises `CannotConvert` and `TooLarge`.
        """
        from stele.formats.jsonschema.from_model import from_model

        return from_model(model)


JSON_SCHEMA = JsonSchemaFormat()
"""The one instance; entry point `json` of the group `stele.formats`."""

__all__ = ["JSON_SCHEMA", "JsonSchemaFormat", "ParsedJsonSchema", "SchemaChange", "list_changes"]
