"""Apache Thrift: the interface definition language, and data in the binary protocol.

`THRIFT` is the `stele.core.ports.Format`; the other modules implement it. The parser keeps annotations, documentation
and the three kinds of requiredness, which thriftpy2 drops. The codec checks each size against the remaining bytes, and
checks that required fields are present, which thriftpy2 does not. So neither uses that library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stele.core.findings import Finding, SourcePosition
from stele.core.ports import Field, Format, TextForm
from stele.formats.capabilities import OutlineNode
from stele.formats.conversion.model import Loss, Model
from stele.formats.rulesets import Ruleset, Rulesets
from stele.formats.thrift import compat
from stele.formats.thrift import lint as _lint
from stele.formats.thrift.arrow import arrow_schema
from stele.formats.thrift.canonical import compute_fingerprints, print_canonical
from stele.formats.thrift.codec import ThriftCodec
from stele.formats.thrift.outline import build_outline, list_fields, locate_declarations
from stele.formats.thrift.parse import parse
from stele.formats.thrift.schema import ThriftSchema
from stele.formats.thrift.to_model import to_model

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["THRIFT", "ThriftCodec", "ThriftFormat", "ThriftSchema", "arrow_schema"]

RULESETS = Rulesets(
    "thrift",
    Ruleset("thrift-wire@1", compat.check_wire, "Whether bytes written with one file are read rightly with the other."),
    Ruleset(
        "thrift-audit@1", compat.check_audit, "What the Apache compiler's audit warns of: data, calls, generated code."
    ),
)
"""`thrift-wire` is about data and is used by policies. `thrift-audit` is about files, calls and generated code."""


class ThriftFormat:
    """Implements the port `Format` for Thrift. Stateless, safe to share between threads."""

    name: str = "thrift"
    media_types: Sequence[str] = ("text/x-thrift", "application/x-thrift")
    rulesets: Sequence[str] = RULESETS.names
    ruleset_summaries: Mapping[str, str] = RULESETS.summaries

    def parse(
        self, text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True
    ) -> ThriftSchema:
        """Parse a document; references map include paths to documents. See `stele.formats.thrift.parse`."""
        return parse(text, references, name=name, strict=strict)

    def canonical(self, parsed: ThriftSchema, form: TextForm) -> bytes:
        """Return the schema's text as PRINTED, NORMALIZED or CANONICAL; see `stele.formats.thrift.canonical`."""
        return print_canonical(parsed, form)

    def render(self, parsed: ThriftSchema, style: str) -> str | None:
        """Return None: there are no other representations."""
        return None

    def fingerprints(self, parsed: ThriftSchema) -> Mapping[str, bytes]:
        """Return `sha256` and `md5` of the CANONICAL form."""
        return compute_fingerprints(parsed)

    def check(self, reader: ThriftSchema, writer: ThriftSchema, ruleset: str = "") -> list[Finding]:
        """Return why reader cannot take the place of writer, by the rules of the ruleset. Raises `UnknownRuleset`."""
        return RULESETS.check(reader, writer, ruleset)

    def fields(self, parsed: ThriftSchema) -> list[Field]:
        """Return all fields, depth first (10 000 at most); see `stele.formats.thrift.outline`."""
        return list_fields(parsed)

    def outline(self, parsed: ThriftSchema) -> list[OutlineNode]:
        """Return the document with all it declares; see `stele.formats.thrift.outline`."""
        return build_outline(parsed)

    def positions(self, parsed: ThriftSchema, text: bytes) -> Mapping[str, SourcePosition]:
        """Return the positions of declarations, by the paths of findings and of the outline."""
        return locate_declarations(parsed)

    def list_imports(self, text: bytes) -> Sequence[str]:
        """Return the names of the documents that this one refers to."""
        from stele.formats.thrift.parse import list_imports

        return list_imports(text)

    def list_exports(self, text: bytes) -> Sequence[str]:
        """Return an empty sequence: files refer to each other by path."""
        return ()

    def arrow_schema(self, parsed: ThriftSchema) -> pa.Schema:
        """Return the columns of the struct that `type_name` names; `arrow.arrow_schema` also takes another one."""
        return arrow_schema(parsed)

    def codec(self, writer: ThriftSchema, reader: ThriftSchema | None = None) -> ThriftCodec:
        """Return a codec for the struct that `type_name` names; `codec.ThriftCodec` also takes another one."""
        return ThriftCodec(writer, reader)

    def to_model(self, parsed: ThriftSchema, struct: str = "") -> tuple[Model, list[Loss]]:
        """Return the model of a struct ('' is the one that `type_name` names).

        See `stele.formats.thrift.to_model`.
        """
        return to_model(parsed, struct)

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """Return the rules of `lint`, each with a sentence that explains it."""
        return _lint.RULES

    def lint(self, parsed: ThriftSchema, before: ThriftSchema | None = None) -> list[Finding]:
        """Return advice, as warnings; see `stele.formats.thrift.lint`."""
        return _lint.lint_schema(parsed, before)


THRIFT: Format[ThriftSchema] = ThriftFormat()
"""The format, as the entry point `stele.formats` names it."""
