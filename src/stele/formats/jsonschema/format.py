"""JSON Schema as a format of the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stele.core.findings import Finding
from stele.core.ports import Field, Form
from stele.errors import UnknownRuleset
from stele.formats.jsonschema import arrow, canonical, confluent, containment, fields, parsed
from stele.formats.jsonschema.codec import JsonCodec
from stele.formats.jsonschema.parsed import ParsedJsonSchema

if TYPE_CHECKING:
    import pyarrow as pa


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
        """`confluent` (default), `confluent-lenient`, `containment` and `containment-lenient`."""
        return (*confluent.RULESETS, *containment.RULESETS)

    def parse(
        self, text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True
    ) -> ParsedJsonSchema:
        """Parse one schema; see `stele.formats.jsonschema.parsed.parse`."""
        return parsed.parse(text, references, name=name, strict=strict)

    def canonical(self, parsed: ParsedJsonSchema, form: Form) -> bytes:
        """Compact JSON; sorted when NORMALIZED; sorted and without annotations when CANONICAL."""
        return canonical.printed(parsed, form)

    def render(self, parsed: ParsedJsonSchema, style: str) -> str | None:
        """`resolved`: one document with its references built in. None for other styles."""
        return canonical.bundled(parsed) if style == "resolved" else None

    def fingerprints(self, parsed: ParsedJsonSchema) -> Mapping[str, bytes]:
        """`md5` and `sha256` of the CANONICAL form."""
        return canonical.fingerprints(parsed)

    def check(self, reader: ParsedJsonSchema, writer: ParsedJsonSchema, ruleset: str = "") -> list[Finding]:
        """Findings of the ruleset. Raises `UnknownRuleset`; `TooLarge` for schemas too entangled to compare."""
        if ruleset in containment.RULESETS:
            return containment.findings(reader, writer, containment.RULESETS[ruleset])
        allowed = confluent.RULESETS.get(ruleset or "confluent")
        if allowed is None:
            raise UnknownRuleset(f"the format json has no ruleset {ruleset!r}, but {', '.join(self.rulesets)}")
        found = confluent.changes(reader, writer, allowed=allowed)
        return confluent.findings(found, allowed, reader, writer)

    def fields(self, parsed: ParsedJsonSchema) -> list[Field]:
        """All properties at any depth."""
        return fields.fields(parsed)

    def arrow_schema(self, parsed: ParsedJsonSchema) -> pa.Schema:
        """The columns of data of this schema; see `stele.formats.jsonschema.arrow`."""
        return arrow.arrow_schema(parsed)

    def codec(self, writer: ParsedJsonSchema, reader: ParsedJsonSchema | None = None) -> JsonCodec:
        """A codec for JSON data. Raises `MalformedSchema` for schemas only accepted with strict=False."""
        return JsonCodec(writer, reader)


JSON_SCHEMA = JsonSchemaFormat()
"""The one instance; entry point `json` of the group `stele.formats`."""
