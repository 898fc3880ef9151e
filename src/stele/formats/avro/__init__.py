"""Apache Avro (specification 1.12): parsing, canonical texts, compatibility, fields, Arrow schema and data.

`AVRO` is the `stele.core.ports.Format`; the other modules implement it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from stele.core.findings import Finding, SourcePosition
from stele.core.ports import Field, TextForm
from stele.formats.avro import canonical as _canonical
from stele.formats.avro import compat as _compat
from stele.formats.avro import lint as _lint
from stele.formats.avro import outline as _outline
from stele.formats.avro import parse as _parse
from stele.formats.avro.model import AvroSchema
from stele.formats.capabilities import OutlineLocation, OutlineNode, SplitDocument
from stele.formats.conversion.model import Loss, Model
from stele.formats.rulesets import Ruleset, Rulesets

if TYPE_CHECKING:
    import pyarrow as pa

    from stele.formats.avro.codec import AvroCodec

__all__ = ["AVRO", "AvroFormat", "AvroSchema"]


def _check_java(reader: AvroSchema, writer: AvroSchema) -> list[Finding]:
    return _compat.check_compatibility(reader, writer)


def _check_ruby(reader: AvroSchema, writer: AvroSchema) -> list[Finding]:
    return _compat.check_compatibility(reader, writer, ruby=True)


RULESETS = Rulesets(
    "avro",
    Ruleset("avro@1", _check_java, "Schema resolution as Java's SchemaCompatibility checks it."),
    Ruleset("confluent@1", _check_java, "The same rules as avro, under the name a Confluent client knows."),
    Ruleset("avro-ruby@1", _check_ruby, "Schema resolution as the Ruby library checks it."),
)
"""avro and confluent are the rules of Java's SchemaCompatibility; for avro-ruby see `stele.formats.avro.compat`."""


class AvroFormat:
    """Avro as an implementation of the format port. Stateless, safe to share between threads."""

    name: str = "avro"
    media_types: Sequence[str] = (
        "application/vnd.apache.avro+json",
        "application/vnd.apache.avro.schema+json",
        "application/json",
    )
    rulesets: Sequence[str] = RULESETS.names
    ruleset_summaries: Mapping[str, str] = RULESETS.summaries
    quick_bytes: int = 2048
    prints_faithfully: bool = True

    def parse(self, text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True) -> AvroSchema:
        """Parse a schema document.

        references map full names to documents, dependencies first. name has no effect.

        Raises `MalformedSchema` and `UnresolvedReference` with line and column (JSON) or JSON Pointer (schema).
        """
        return _parse.parse(text, references, strict=strict)

    def parse_with_any_default(self, text: bytes, references: Mapping[str, bytes]) -> AvroSchema:
        """Parse as `parse` does, but accept defaults that do not fit their type."""
        return _parse.parse(text, references, strict=True, checks_defaults=False)

    def canonical(self, parsed: AvroSchema, form: TextForm) -> bytes:
        """Return the text in the given form: PRINTED, NORMALIZED or CANONICAL; see the module `canonical`."""
        return _canonical.print_canonical(parsed, form)

    def identity_text(self, parsed: AvroSchema) -> bytes:
        """Return a text that is equal for schemas that Java's `Schema.equals` and Confluent call equal."""
        return _canonical.print_identity(parsed)

    def digest_text(self, parsed: AvroSchema) -> bytes:
        """Return the text that the digest `normalized` is computed from. It never changes."""
        return _canonical.print_digest_text(parsed)

    def render(self, parsed: AvroSchema, style: str) -> str | None:
        """Return the printed schema with its references inlined for the style `resolved`, None for any other style."""
        return _canonical.print_resolved(parsed).decode() if style == "resolved" else None

    def fingerprints(self, parsed: AvroSchema) -> Mapping[str, bytes]:
        """Return the digests rabin (8 bytes), md5 and sha256.

        rabin is big-endian; the single-object encoding requires its bytes in reverse order.
        """
        return _canonical.compute_fingerprints(_canonical.print_canonical(parsed, TextForm.CANONICAL))

    def check(self, reader: AvroSchema, writer: AvroSchema, ruleset: str = "") -> list[Finding]:
        """Return why data of writer cannot be read with reader; see `stele.formats.avro.compat`.

        Raises `UnknownRuleset`.
        """
        return RULESETS.check(reader, writer, ruleset)

    def fields(self, parsed: AvroSchema) -> list[Field]:
        """Return all fields, depth first (10 000 at most)."""
        return _outline.list_fields(parsed)

    def outline(self, parsed: AvroSchema) -> list[OutlineNode]:
        """Return the named types with their fields and symbols; see `stele.formats.avro.outline`."""
        return _outline.build_outline(parsed)

    def locator(self, parsed: AvroSchema) -> Callable[[str], OutlineLocation | None]:
        """Return a function from the path of a finding to the declaration in the outline."""
        return _outline.make_locator(parsed)

    def positions(self, parsed: AvroSchema, text: bytes) -> Mapping[str, SourcePosition]:
        """Return where declarations stand, by the paths of findings and of the outline."""
        return _outline.locate_declarations(text)

    def list_imports(self, text: bytes) -> Sequence[str]:
        """Return the names of the documents that this one refers to."""
        from stele.formats.avro.imports import list_imports

        return list_imports(text)

    def list_exports(self, text: bytes) -> Sequence[str]:
        """Return the names by which others refer to this document."""
        from stele.formats.avro.imports import list_exports

        return list_exports(text)

    def split_types(self, text: bytes) -> SplitDocument:
        """Return the document without the named types it defines inside, and these types as documents of their own."""
        from stele.formats.avro.imports import split_types

        return split_types(text)

    def arrow_schema(self, parsed: AvroSchema) -> pa.Schema:
        """Return the Arrow schema of a table of the data.

        Raises `NotInstalled` without pyarrow, `Invalid` when no Arrow schema can hold the data.
        """
        from stele.formats.avro.arrow import arrow_schema

        return arrow_schema(parsed)

    def codec(self, writer: AvroSchema, reader: AvroSchema | None = None) -> AvroCodec:
        """Return a codec that encodes and decodes data; see `stele.formats.avro.codec`."""
        from stele.formats.avro.codec import AvroCodec

        return AvroCodec(writer, reader)

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """The rules of the module `lint`, each with a sentence on what it requires."""
        return _lint.RULES

    def lint(self, parsed: AvroSchema, before: AvroSchema | None = None) -> list[Finding]:
        """Return the findings of the lint rules, as warnings; see `stele.formats.avro.lint`."""
        return _lint.lint_schema(parsed, before)

    def to_model(self, parsed: AvroSchema) -> tuple[Model, list[Loss]]:
        """Return the neutral model of the schema and the losses; see `to_model`. Raises `TooLarge`."""
        from stele.formats.avro import to_model as _to_model  # a check needs no conversion

        return _to_model.to_model(parsed)

    def from_model(self, model: Model) -> tuple[bytes, list[Loss]]:
        """Return a schema document for a neutral model and the losses; see `stele.formats.avro.from_model`.

        Raises `CannotConvert`, `TooLarge`.
        """
        from stele.formats.avro import from_model as _from_model  # a check needs no conversion

        return _from_model.from_model(model)


AVRO = AvroFormat()
"""The format object that the entry point in the group `stele.formats` names."""
