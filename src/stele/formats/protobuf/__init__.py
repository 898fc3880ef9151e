"""Protocol Buffers: proto2, proto3 and editions."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from google.protobuf import json_format

from stele.core.findings import Finding
from stele.core.ports import Field, Format, TextForm
from stele.formats.capabilities import OutlineNode
from stele.formats.conversion.model import Loss, Model
from stele.formats.protobuf import apicurio, buf, confluent, xregistry
from stele.formats.protobuf import lint as _lint
from stele.formats.protobuf.arrow import arrow_schema
from stele.formats.protobuf.buf import check_modules
from stele.formats.protobuf.codec import ProtobufCodec
from stele.formats.protobuf.convert import from_model, to_model
from stele.formats.protobuf.fields import list_fields
from stele.formats.protobuf.model import (
    ProtobufSchema,
    file_descriptor_set,
    indexes_of,
    message_by_indexes,
    message_class,
)
from stele.formats.protobuf.normalize import descriptor_bytes
from stele.formats.protobuf.outline import outline
from stele.formats.protobuf.parse import parse
from stele.formats.protobuf.printer import print_schema
from stele.formats.rulesets import Ruleset, Rulesets

if TYPE_CHECKING:
    import pyarrow as pa

RULESETS = Rulesets(
    "protobuf",
    Ruleset("confluent@1", confluent.check, "Messages, fields and types, changed as Confluent's registry allows."),
    *(
        Ruleset(f"{name}@1", rules, f"The breaking-change rules of buf's category {name.removeprefix(buf.PREFIX)}.")
        for name, rules in buf.RULESETS.items()
    ),
    Ruleset("apicurio@1", apicurio.check, "Fields and values keep number, name and type, and go only when reserved."),
    Ruleset("xregistry@1", xregistry.check, "Declarations stay by name, fields by number; what goes is reserved."),
)
"""`confluent` for policies; `buf:…` for whoever builds with buf; the others for whoever comes from those registries."""


class ProtobufFormat:
    """The port `Format` for Protobuf; see the modules of this package for the details of each method."""

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
        return parse(text, references, name=name)

    def canonical(self, parsed: ProtobufSchema, form: TextForm) -> bytes:
        """The schema as `.proto` text without comments.

        PRINTED keeps the order of declarations and the author's spelling of type names. NORMALIZED sorts what has no
        order (see `normalize.normalized`) and writes full names. CANONICAL is the same text: nothing more can be left
        out without changing what some reader of data sees (JSON names, features, custom options).
        """
        return print_schema(parsed, normal=form is not TextForm.PRINTED).encode()

    def render(self, parsed: ProtobufSchema, style: str) -> str | None:
        """Another representation of the schema, None for an unknown style.

        `serialized` is the file's FileDescriptorProto in base64, `ignore_extensions` the text without custom options
        and `extend` blocks, `descriptor_set` the file with its imports as a FileDescriptorSet in base64, and `json`
        that set as JSON with the names of descriptor.proto.
        """
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
        """`sha256` and `md5` of the CANONICAL text, `descriptor`: SHA-256 of the normalized descriptors with imports.

        Two schemas of equal text that import different files differ in `descriptor` only.
        """
        text = self.canonical(parsed, TextForm.CANONICAL)
        return {
            "sha256": hashlib.sha256(text).digest(),
            "md5": hashlib.md5(text, usedforsecurity=False).digest(),
            "descriptor": hashlib.sha256(descriptor_bytes(parsed)).digest(),
        }

    def check(self, reader: ProtobufSchema, writer: ProtobufSchema, ruleset: str = "") -> list[Finding]:
        """Why reader cannot read data of writer, by the rules of the ruleset. Raises `UnknownRuleset`."""
        return RULESETS.check(reader, writer, ruleset)

    def fields(self, parsed: ProtobufSchema) -> list[Field]:
        """All fields, depth first. See `fields.fields`."""
        return list_fields(parsed)

    def outline(self, parsed: ProtobufSchema) -> list[OutlineNode]:
        """The file with all it declares. See `outline.outline`."""
        return outline(parsed)

    def arrow_schema(self, parsed: ProtobufSchema) -> pa.Schema:
        """The columns of the first message. See `arrow.arrow_schema`, which also takes another message."""
        return arrow_schema(parsed)

    def codec(self, writer: ProtobufSchema, reader: ProtobufSchema | None = None) -> ProtobufCodec:
        """A codec for the first message of writer. See `codec.ProtobufCodec`, which also takes another message."""
        return ProtobufCodec(writer, reader)

    def to_model(self, parsed: ProtobufSchema, message: str = "") -> tuple[Model, list[Loss]]:
        """A message by full name ('' is the first of the file) in neutral words. See `neutral.to_model`."""
        return to_model(parsed, message)

    def from_model(self, model: Model) -> tuple[bytes, list[Loss]]:
        """A proto3 file for a schema in neutral words. See `convert.from_model`."""
        return from_model(model)

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """The rules of `lint`, each with a sentence."""
        return _lint.RULES

    def lint(self, parsed: ProtobufSchema, before: ProtobufSchema | None = None) -> list[Finding]:
        """Advice, as warnings; see `stele.formats.protobuf.lint`."""
        return _lint.lint(parsed, before)


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
