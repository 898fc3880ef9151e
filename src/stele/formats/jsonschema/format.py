"""JSON Schema as a format of the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from stele.core.findings import Finding, Severity
from stele.core.ports import Field, TextForm
from stele.errors import TooLarge
from stele.formats.capabilities import OutlineLocation, OutlineNode
from stele.formats.conversion.model import Loss, Model
from stele.formats.jsonschema import arrow, canonical, confluent, containment, fields, neutral, outline, parsed
from stele.formats.jsonschema import lint as _lint
from stele.formats.jsonschema.codec import JsonCodec
from stele.formats.jsonschema.parsed import ParsedJsonSchema
from stele.formats.rulesets import Ruleset, Rulesets

if TYPE_CHECKING:
    import pyarrow as pa


_SUMMARIES = {
    "confluent": "Changes between the two texts, each allowed or not by Confluent's table.",
    "confluent-lenient": "The same changes by Confluent's lenient table: properties may come and go in open models.",
    "containment": "Every document the writer's schema allows is allowed by the reader's; doubt is undecided.",
    "containment-lenient": "The same, with doubt as a warning: only a document that proves the break refuses.",
}


def _check_changes(name: str, reader: ParsedJsonSchema, writer: ParsedJsonSchema) -> list[Finding]:
    allowed = confluent.RULESETS[name]
    try:
        changes = confluent.list_changes(reader, writer, allowed=allowed)
    except TooLarge as error:
        why = f"The schemas are too large to be compared with each other: {error}."
        return [Finding("TOO_COMPLEX", "#", why=why, fix="Make the schema smaller.", level=Severity.UNKNOWN)]
    return confluent.build_findings(changes, allowed, reader, writer)


def _check_containment(name: str, reader: ParsedJsonSchema, writer: ParsedJsonSchema) -> list[Finding]:
    return containment.check_containment(reader, writer, containment.RULESETS[name])


RULESETS = Rulesets(
    "json",
    *(Ruleset(f"{name}@1", partial(_check_changes, name), _SUMMARIES[name]) for name in confluent.RULESETS),
    *(Ruleset(f"{name}@1", partial(_check_containment, name), _SUMMARIES[name]) for name in containment.RULESETS),
    Ruleset("apicurio@1", partial(_check_containment, "containment"), "What Apicurio's checker aims at: containment."),
)
"""`confluent` is the default; `apicurio` is another name of `containment`."""


class JsonSchemaFormat:
    """The format `json`: JSON Schema draft-04, 06, 07, 2019-09 and 2020-12. Implements `stele.core.ports.Format`."""

    @property
    def name(self) -> str:
        """`json`."""
        return "json"

    @property
    def media_types(self) -> Sequence[str]:
        """`application/schema+json`, then plain JSON."""
        return ("application/schema+json", "application/json")

    @property
    def rulesets(self) -> Sequence[str]:
        """`confluent` (default), `confluent-lenient`, `containment` and `containment-lenient`, in all versions."""
        return RULESETS.names

    @property
    def ruleset_summaries(self) -> Mapping[str, str]:
        """What each looks at."""
        return RULESETS.summaries

    def parse(
        self, text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True
    ) -> ParsedJsonSchema:
        """Parse one schema; see `stele.formats.jsonschema.parsed.parse`."""
        return parsed.parse(text, references, name=name, strict=strict)

    def canonical(self, parsed: ParsedJsonSchema, form: TextForm) -> bytes:
        """Compact JSON; sorted when NORMALIZED; sorted and without annotations when CANONICAL."""
        return canonical.print_schema(parsed, form)

    def render(self, parsed: ParsedJsonSchema, style: str) -> str | None:
        """`resolved`: one document with its references built in. None for other styles."""
        return canonical.bundle_references(parsed) if style == "resolved" else None

    def fingerprints(self, parsed: ParsedJsonSchema) -> Mapping[str, bytes]:
        """`md5` and `sha256` of the CANONICAL form."""
        return canonical.compute_fingerprints(parsed)

    def check(self, reader: ParsedJsonSchema, writer: ParsedJsonSchema, ruleset: str = "") -> list[Finding]:
        """Findings of the ruleset; one of level UNKNOWN for schemas too entangled. Raises `UnknownRuleset`."""
        return RULESETS.check(reader, writer, ruleset)

    def fields(self, parsed: ParsedJsonSchema) -> list[Field]:
        """All properties at any depth."""
        return fields.list_fields(parsed)

    def outline(self, parsed: ParsedJsonSchema) -> list[OutlineNode]:
        """Every subschema at its JSON Pointer; see `stele.formats.jsonschema.outline`."""
        return outline.build_outline(parsed)

    def locator(self, parsed: ParsedJsonSchema) -> Callable[[str], OutlineLocation | None]:
        """Where in the outline a finding's path leads, references followed."""
        return outline.build_locator(parsed)

    def arrow_schema(self, parsed: ParsedJsonSchema) -> pa.Schema:
        """The columns of data of this schema; see `stele.formats.jsonschema.arrow`."""
        return arrow.arrow_schema(parsed)

    def codec(self, writer: ParsedJsonSchema, reader: ParsedJsonSchema | None = None) -> JsonCodec:
        """A codec for JSON data. Raises `MalformedSchema` for schemas only accepted with strict=False."""
        return JsonCodec(writer, reader)

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """The rules of `lint`, each with a sentence."""
        return _lint.RULES

    def lint(self, parsed: ParsedJsonSchema, before: ParsedJsonSchema | None = None) -> list[Finding]:
        """Advice, as warnings; see `stele.formats.jsonschema.lint`."""
        return _lint.lint(parsed, before)

    def to_model(self, parsed: ParsedJsonSchema) -> tuple[Model, list[Loss]]:
        """The schema in neutral words; see `stele.formats.jsonschema.neutral.reading`.

        Raises `CannotConvert` when no datum fits the schema, `TooLarge` past its limits.
        """
        return neutral.to_model(parsed)

    def from_model(self, model: Model) -> tuple[bytes, list[Loss]]:
        """A schema of draft 2020-12 for a model; see `stele.formats.jsonschema.neutral.writing`.

        Raises `CannotConvert` and `TooLarge`.
        """
        return neutral.from_model(model)


JSON_SCHEMA = JsonSchemaFormat()
"""The one instance; entry point `json` of the group `stele.formats`."""
