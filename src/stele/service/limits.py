"""How much one registry takes. Every limit has a setting, and an error that names it."""

from __future__ import annotations

import msgspec

from stele.errors import TooLarge


class Limits(msgspec.Struct, frozen=True):
    """Upper bounds, checked before anything expensive happens.

    schema_bytes      length of one schema text in bytes of UTF-8
    references        direct and indirect references of one schema
    versions          versions of one subject, soft-deleted ones included
    schemas           distinct schema texts in the registry
    associations      bindings of subjects to resources of data systems
    keys              keys of the DEK registry, of each kind
    """

    schema_bytes: int = 1024 * 1024
    references: int = 1000
    versions: int = 100_000
    schemas: int = 10_000_000
    associations: int = 100_000
    keys: int = 10_000

    def check_text(self, text: bytes) -> None:
        """Raise `TooLarge` for a text over the limit."""
        if len(text) > self.schema_bytes:
            raise TooLarge(f"the schema has {len(text)} bytes, the limit (max_schema_bytes) is {self.schema_bytes}")

    def check_references(self, count: int) -> None:
        """Raise `TooLarge` for a closure over the limit."""
        if count > self.references:
            raise TooLarge(f"the schema needs {count} references, the limit (max_references) is {self.references}")
