"""Schemas of an unknown language: stored and returned byte for byte, never parsed, never compared.

Pravega's `Custom` and `Any` types and RocketMQ's unknown ones use this format.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from stele.core.findings import Finding
from stele.core.ports import Field, TextForm
from stele.errors import EncodeError, NotInstalled, UnknownRuleset

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OPAQUE", "OpaqueCodec", "OpaqueFormat", "OpaqueSchema"]


class OpaqueSchema(msgspec.Struct, frozen=True):
    """The bytes of a schema in an unknown language."""

    text: bytes

    @property
    def type_name(self) -> str:
        """Always '': the text is not looked at."""
        return ""


class OpaqueCodec:
    """Data of an opaque schema is bytes, passed through."""

    def encode(self, datum: Any) -> bytes:
        """Return the same bytes. Raises `EncodeError` for anything else."""
        if not isinstance(datum, (bytes, bytearray, memoryview)):
            raise EncodeError(f"data of an opaque schema is bytes, not {type(datum).__name__}")
        return bytes(datum)

    def decode(self, data: bytes) -> bytes:
        """Return the same bytes."""
        return bytes(data)

    def validate(self, datum: Any) -> list[str]:
        """Return an empty list for bytes, and one sentence for anything else."""
        try:
            self.encode(datum)
        except EncodeError as error:
            return [str(error)]
        return []

    def example(self) -> bytes:
        """Return five bytes."""
        return b"bytes"


class OpaqueFormat:
    """The format of schemas in an unknown language. Stateless, safe to share between threads."""

    name: str = "opaque"
    media_types: Sequence[str] = ("application/octet-stream",)
    rulesets: Sequence[str] = ()

    def parse(
        self, text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True
    ) -> OpaqueSchema:
        """Take any bytes. references, name and strict have no meaning."""
        return OpaqueSchema(bytes(text))

    def canonical(self, parsed: OpaqueSchema, form: TextForm) -> bytes:
        """Return the bytes themselves, in every form."""
        return parsed.text

    def render(self, parsed: OpaqueSchema, style: str) -> str | None:
        """Return None: no style is known."""
        return None

    def fingerprints(self, parsed: OpaqueSchema) -> Mapping[str, bytes]:
        """Return the MD5 and SHA-256 of the bytes, under `md5` and `sha256`."""
        return {
            "md5": hashlib.md5(parsed.text, usedforsecurity=False).digest(),
            "sha256": hashlib.sha256(parsed.text).digest(),
        }

    def check(self, reader: OpaqueSchema, writer: OpaqueSchema, ruleset: str = "") -> NoReturn:
        """Raise `UnknownRuleset`: schemas of an unknown language cannot be compared."""
        raise UnknownRuleset("opaque schemas cannot be compared; choose a policy that allows or denies every change")

    def fields(self, parsed: OpaqueSchema) -> list[Field]:
        """Return no fields: the text is not looked at."""
        return []

    def arrow_schema(self, parsed: OpaqueSchema) -> pa.Schema:
        """Return one binary column `value`. Raises `NotInstalled` without pyarrow."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise NotInstalled("pyarrow", "spark") from error
        return pa.schema([pa.field("value", pa.binary())])

    def codec(self, writer: OpaqueSchema, reader: OpaqueSchema | None = None) -> OpaqueCodec:
        """Return a codec that passes bytes through unchanged."""
        return OpaqueCodec()

    @property
    def lint_rules(self) -> Mapping[str, str]:
        """No rules: schemas of an unknown language cannot be checked."""
        return {}

    def lint(self, parsed: OpaqueSchema, before: OpaqueSchema | None = None) -> list[Finding]:
        """Return no findings."""
        return []


OPAQUE = OpaqueFormat()
"""The format object that the entry point in the group `stele.formats` names."""
