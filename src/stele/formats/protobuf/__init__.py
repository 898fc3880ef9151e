"""Protocol Buffers: proto2, proto3 and editions.

Importing this package loads neither the Protobuf library nor the compiler: both are loaded when they are first used.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from stele.core.ports import Field, Format, TextForm
from stele.formats.protobuf.buf.rules import CATEGORIES
from stele.formats.rulesets import Ruleset, Rulesets

if TYPE_CHECKING:
    import pyarrow as pa

    from stele.core.findings import Finding, SourcePosition
    from stele.formats.capabilities import OutlineNode
    from stele.formats.conversion.model import Loss, Model
    from stele.formats.protobuf.arrow import arrow_schema
    from stele.formats.protobuf.buf.breaking import check_modules
    from stele.formats.protobuf.codec import ProtobufCodec
    from stele.formats.protobuf.model import (
        ProtobufSchema,
        file_descriptor_set,
        indexes_of,
        message_by_indexes,
        message_class,
    )

_EXPORTS: Final = {
    "ProtobufCodec": "codec",
    "ProtobufSchema": "model",
    "arrow_schema": "arrow",
    "check_modules": "buf.breaking",
    "file_descriptor_set": "model",
    "indexes_of": "model",
    "message_by_indexes": "model",
    "message_class": "model",
}
"""Names of this package that load the Protobuf library, with the modules that define them."""


def __getattr__(name: str) -> Any:
    """Load one of `_EXPORTS` on first use."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)


def _check_with(module: str, reader: ProtobufSchema, writer: ProtobufSchema) -> list[Finding]:
    """Run the ruleset that a module of this package holds."""
    findings: list[Finding] = import_module(f"{__name__}.{module}").check(reader, writer)
    return findings


def _check_buf(category: str, reader: ProtobufSchema, writer: ProtobufSchema) -> list[Finding]:
    from stele.formats.protobuf.buf.breaking import check_category

    return check_category(category, reader, writer)


RULESETS = Rulesets(
    "protobuf",
    Ruleset(
        "confluent@1",
        partial(_check_with, "confluent"),
        "Messages, fields and types, changed as Confluent's registry allows.",
    ),
    *(
        Ruleset(
            f"buf:{category}@1",
            partial(_check_buf, category),
            f"The breaking-change rules of buf's category {category}.",
        )
        for category in CATEGORIES
    ),
    Ruleset(
        "apicurio@1",
        partial(_check_with, "apicurio"),
        "Fields and values keep number, name and type, and go only when reserved.",
    ),
    Ruleset(
        "xregistry@1",
        partial(_check_with, "xregistry"),
        "Declarations stay by name, fields by number; what goes is reserved.",
    ),
)
"""`confluent` is for policies, `buf:…` for users of buf; the others give the verdicts of other registries."""


class ProtobufFormat:
    """Implements the port `Format` for Protobuf. The modules of this package describe the details of each method."""

    name = "protobuf"
    media_types: Sequence[str] = ("application/vnd.google.protobuf", "application/x-protobuf", "text/x-protobuf")
    rulesets: Sequence[str] = RULESETS.names
    ruleset_summaries: Mapping[str, str] = RULESETS.summaries

    def parse(
        self,
        text: bytes,
        references: Mapping[str, bytes],
        *,
        name: str = "",
        strict: bool = True,
    ) -> ProtobufSchema:
        """Compile source text or a serialized descriptor; references are by import path. See `parse.parse`."""
        from stele.formats.protobuf.parse import parse

        return parse(text, references, name=name, strict=strict)

    def list_unresolved(self, parsed: ProtobufSchema) -> Sequence[str]:
        """Return the types that the schema names and no file declares. Empty unless it was parsed with strict=False."""
        return (*parsed.unresolved, *parsed.rejected)

    def canonical(self, parsed: ProtobufSchema, form: TextForm) -> bytes:
        """Return the schema as `.proto` text without comments.

        PRINTED is the text that Confluent's registry stores, with names spelled as in the source. NORMALIZED writes
        full names and sorts everything whose order has no meaning. CANONICAL has the content of NORMALIZED in the
        layout that fingerprints have always used. It keeps everything that some reader of data can see: JSON names,
        features, custom options.
        """
        from stele.formats.protobuf import canonical

        printers = {
            TextForm.PRINTED: canonical.print_schema,
            TextForm.NORMALIZED: canonical.normalize_schema,
            TextForm.CANONICAL: canonical.canonicalize_schema,
        }
        return printers[form](parsed).encode()

    def identity_text(self, parsed: ProtobufSchema) -> bytes:
        """Return the text that a schema and its own descriptor share: PRINTED, with full names and folded maps."""
        from stele.formats.protobuf.canonical import resolve_schema

        return resolve_schema(parsed).encode()

    def digest_text(self, parsed: ProtobufSchema) -> bytes:
        """Return the text of the digest `normalized`, which is the CANONICAL text."""
        return self.canonical(parsed, TextForm.CANONICAL)

    def render(self, parsed: ProtobufSchema, style: str) -> str | None:
        """Return another representation of the schema, None for an unknown style.

        `serialized` is the file's FileDescriptorProto in base64, `ignore_extensions` the text without custom options
        and `extend` blocks, `descriptor_set` the file with its imports as a FileDescriptorSet in base64, and `json`
        that set as JSON with the names of descriptor.proto.
        """
        from google.protobuf import json_format

        from stele.formats.protobuf.canonical import print_schema
        from stele.formats.protobuf.model import file_descriptor_set

        if style == "serialized":
            return base64.b64encode(parsed.proto.SerializeToString(deterministic=True)).decode()
        if style == "ignore_extensions":
            return print_schema(parsed, extensions=False)
        if style == "descriptor_set":
            return base64.b64encode(file_descriptor_set(parsed).SerializeToString(deterministic=True)).decode()
        if style == "json":
            return json_format.MessageToJson(file_descriptor_set(parsed), preserving_proto_field_name=True, indent=None)
        return None

    def fingerprints(self, parsed: ProtobufSchema) -> Mapping[str, bytes]:
        """Return `sha256` and `md5` of the CANONICAL text, and `descriptor`.

        `descriptor` is the SHA-256 of the normalized descriptors with imports. Two schemas of equal text that import
        different files differ in `descriptor` only.
        """
        from stele.formats.protobuf.canonical import descriptor_bytes

        text = self.canonical(parsed, TextForm.CANONICAL)
        suffix = text if parsed.is_partial else b""
        return {
            "sha256": hashlib.sha256(text).digest(),
            "md5": hashlib.md5(text, usedforsecurity=False).digest(),
            "descriptor": hashlib.sha256(descriptor_bytes(parsed) + suffix).digest(),
        }

    def check(self, reader: ProtobufSchema, writer: ProtobufSchema, ruleset: str = "") -> list[Finding]:
        """Return why reader cannot read data of writer, by the rules of the ruleset. Raises `UnknownRuleset`."""
        return RULESETS.check(reader, writer, ruleset)

    def fields(self, parsed: ProtobufSchema) -> list[Field]:
        """Return all fields, depth first. See `outline.list_fields`."""
        from stele.formats.protobuf.outline import list_fields

        return list_fields(parsed)

    def outline(self, parsed: ProtobufSchema) -> list[OutlineNode]:
        """Return the file with all it declares. See `outline.outline`."""
        from stele.formats.protobuf.outline import outline

        return outline(parsed)

    def positions(self, parsed: ProtobufSchema, text: bytes) -> Mapping[str, SourcePosition]:
        """Return the positions of declarations, by the paths of findings and of the outline."""
        from stele.formats.protobuf.outline import locate_declarations

        return locate_declarations(parsed)

    def list_imports(self, text: bytes) -> Sequence[str]:
        """Return the names of the documents that this one refers to."""
        from stele.formats.protobuf.parse import list_imports

        return list_imports(text)

    def list_exports(self, text: bytes) -> Sequence[str]:
        """Return an empty sequence: files refer to each other by path."""
        return ()

    def arrow_schema(self, parsed: ProtobufSchema) -> pa.Schema:
        """Return the columns of the first message. See `arrow.arrow_schema`, which also takes another message."""
        from stele.formats.protobuf.arrow import arrow_schema

        return arrow_schema(parsed)

    def codec(self, writer: ProtobufSchema, reader: ProtobufSchema | None = None) -> ProtobufCodec:
        """Return a codec for the first message of writer. `codec.ProtobufCodec` also takes another message."""
        from stele.formats.protobuf.codec import ProtobufCodec

        return ProtobufCodec(writer, reader)

    def to_model(self, parsed: ProtobufSchema, message: str = "") -> tuple[Model, list[Loss]]:
        """Return the model of a message by full name ('' is the first of the file). See `to_model.to_model`."""
        from stele.formats.protobuf.to_model import to_model

        return to_model(parsed, message)

    def from_model(self, model: Model) -> tuple[bytes, list[Loss]]:
        """Return a proto3 file for a model. See `from_model.from_model`."""
        from stele.formats.protobuf.from_model import from_model

        return from_model(model)

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """Return the rules of `lint`, each with a sentence that explains it."""
        from stele.formats.protobuf.lint import RULES

        return RULES

    def lint(self, parsed: ProtobufSchema, before: ProtobufSchema | None = None) -> list[Finding]:
        """Return advice, as warnings; see `stele.formats.protobuf.lint`."""
        from stele.formats.protobuf.lint import lint

        return lint(parsed, before)


PROTOBUF: Format[ProtobufSchema] = ProtobufFormat()

__all__ = [
    "PROTOBUF",
    "ProtobufCodec",
    "ProtobufFormat",
    "ProtobufSchema",
    "arrow_schema",
    "check_modules",
    "file_descriptor_set",
    "indexes_of",
    "message_by_indexes",
    "message_class",
]
