"""XML Schema (XSD 1.0 and 1.1): the format `xsd`.

A document that uses something of 1.1 is read as 1.1, any other as 1.0. Nothing is fetched or opened: include, import
and redefine refer to the given reference texts, by schemaLocation or by namespace.

Source: docs/protocols/xsd.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from stele.core.findings import Finding, SourcePosition
from stele.core.ports import Field, TextForm
from stele.formats.capabilities import OutlineLocation, OutlineNode
from stele.formats.conversion.model import Loss, Model
from stele.formats.rulesets import Ruleset, Rulesets
from stele.formats.xsd import lint as _lint
from stele.formats.xsd import parse as _parse
from stele.formats.xsd.canonical import canonicalize
from stele.formats.xsd.parse import ParsedXsd

if TYPE_CHECKING:
    import pyarrow as pa

    from stele.formats.xsd.codec import XsdCodec

__all__ = ["XSD", "ParsedXsd", "XsdFormat"]


def _check_containment(reader: ParsedXsd, writer: ParsedXsd) -> list[Finding]:
    from stele.formats.xsd.compat import check_containment

    return check_containment(reader, writer)


RULESETS = Rulesets(
    "xsd",
    Ruleset(
        "containment@1",
        _check_containment,
        "Every document valid under the writer's schema is valid under the reader's.",
    ),
    Ruleset("apicurio@1", _check_containment, "The same rules as containment, under the name an Apicurio user knows."),
)
"""containment: every document valid under the writer's schema is valid under the reader's; apicurio is the same."""


class XsdFormat:
    """Implements the port `Format` for XML Schema. Stateless, safe to share between threads; needs the extra `xsd`."""

    name: str = "xsd"
    media_types: Sequence[str] = ("application/xsd+xml", "application/xml", "text/xml")
    rulesets: Sequence[str] = RULESETS.names
    ruleset_summaries: Mapping[str, str] = RULESETS.summaries

    def parse(self, text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True) -> ParsedXsd:
        """Parse a schema document; see `stele.formats.xsd.parse`. `strict` has no effect.

        Raises `MalformedSchema` and `UnresolvedReference` with line and column, `NotInstalled` without the extra.
        """
        return _parse.parse(text, references, name=name)

    def canonical(self, parsed: ParsedXsd, form: TextForm) -> bytes:
        """Return the document in Canonical XML; see `stele.formats.xsd.canonical`."""
        return canonicalize(parsed, form)

    def render(self, parsed: ParsedXsd, style: str) -> str | None:
        """Return None: there are no other representations."""
        return None

    def fingerprints(self, parsed: ParsedXsd) -> Mapping[str, bytes]:
        """Return `md5` and `sha256` of the CANONICAL form."""
        text = canonicalize(parsed, TextForm.CANONICAL)
        return {
            "sha256": hashlib.sha256(text).digest(),
            "md5": hashlib.md5(text, usedforsecurity=False).digest(),
        }

    def check(self, reader: ParsedXsd, writer: ParsedXsd, ruleset: str = "") -> list[Finding]:
        """Return why documents of writer may be invalid for reader; see `compat`. Raises `UnknownRuleset`."""
        return RULESETS.check(reader, writer, ruleset)

    def fields(self, parsed: ParsedXsd) -> list[Field]:
        """Return elements and attributes at any depth; see `stele.formats.xsd.outline`."""
        from stele.formats.xsd.outline import list_fields

        return list_fields(parsed)

    def outline(self, parsed: ParsedXsd) -> list[OutlineNode]:
        """Return the document with all it declares; see `stele.formats.xsd.outline`."""
        from stele.formats.xsd.outline import build_outline

        return build_outline(parsed)

    def locator(self, parsed: ParsedXsd) -> Callable[[str], OutlineLocation | None]:
        """Return a function from a finding's path to its location in the outline, through types and groups."""
        from stele.formats.xsd.outline import build_locator

        return build_locator(parsed)

    def positions(self, parsed: ParsedXsd, text: bytes) -> Mapping[str, SourcePosition]:
        """Return the positions of declarations, by the paths of findings and of the outline."""
        from stele.formats.xsd.outline import locate_declarations

        return locate_declarations(parsed, text)

    def list_imports(self, text: bytes) -> Sequence[str]:
        """Return the names of the documents that this one refers to."""
        from stele.formats.xsd.parse import list_imports

        return list_imports(text)

    def list_exports(self, text: bytes) -> Sequence[str]:
        """Return the names by which others refer to this document."""
        from stele.formats.xsd.parse import list_exports

        return list_exports(text)

    def arrow_schema(self, parsed: ParsedXsd) -> pa.Schema:
        """Return the columns of documents with the first global element as root; see `stele.formats.xsd.arrow`."""
        from stele.formats.xsd.arrow import arrow_schema

        return arrow_schema(parsed)

    def codec(self, writer: ParsedXsd, reader: ParsedXsd | None = None) -> XsdCodec:
        """Return a codec for documents; see `stele.formats.xsd.codec`."""
        from stele.formats.xsd.codec import XsdCodec

        return XsdCodec(writer, reader)

    def to_model(self, parsed: ParsedXsd, element: str = "") -> tuple[Model, list[Loss]]:
        """Return the model of documents with a root element ('' is the first); see `stele.formats.xsd.to_model`."""
        from stele.formats.xsd.to_model import to_model

        return to_model(parsed, element)

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """Return the rules of `lint`, each with a sentence that explains it."""
        return _lint.RULES

    def lint(self, parsed: ParsedXsd, before: ParsedXsd | None = None) -> list[Finding]:
        """Return advice, as warnings; see `stele.formats.xsd.lint`."""
        return _lint.lint(parsed, before)


XSD = XsdFormat()
"""The format, as the entry point `stele.formats` names it."""
