"""How much one registry takes. Every limit has a setting, and an error that names it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from stele.errors import TooLarge

if TYPE_CHECKING:
    from stele.core.events import Event
    from stele.core.state import State


MAX_REFERENCE_DEPTH: Final = 200
"""References that may follow one another, from a schema down to one without any: types nest no deeper either."""


class RegistryFull(TooLarge):
    """The registry, or a subject, has as many schemas as it takes; the schema itself is not too large."""


class Limits(msgspec.Struct, frozen=True):
    """Upper bounds, checked before anything expensive happens.

    schema_bytes      length of one schema text in bytes of UTF-8
    references        direct and indirect references of one schema
    versions          versions of one subject, soft-deleted ones included
    schemas           distinct schema texts in the registry
    text_bytes        length of all of them together, before compression
    waiting_writes    changes that may wait for the log at a time
    associations      bindings of subjects to resources of data systems
    keys              keys of the DEK registry, of each kind
    places            places whose last census is recorded
    """

    schema_bytes: int = 1024 * 1024
    references: int = 1000
    versions: int = 100_000
    schemas: int = 10_000_000
    text_bytes: int = 16 * 1024**3
    waiting_writes: int = 4096
    associations: int = 100_000
    keys: int = 10_000
    places: int = 10_000

    def check_text(self, text: bytes) -> None:
        """Raise `TooLarge` for a text over the limit."""
        if len(text) > self.schema_bytes:
            raise TooLarge(f"the schema has {len(text)} bytes, the limit (max_schema_bytes) is {self.schema_bytes}")

    def check_growth(self, state: State, events: Iterable[Event]) -> None:
        """Raise `RegistryFull` when what was decided on a state would add a version or a text over the limit."""
        from stele.core.events import VersionRegistered  # a check of files needs no events

        text_bytes = state.text_bytes
        for event in events:
            if not isinstance(event, VersionRegistered):
                continue
            subject = state.find_subject(event.key)
            if subject is not None and len(subject.versions) - len(event.replaces) >= self.versions:
                raise RegistryFull(f"the subject has {self.versions} versions, which is the limit (max_versions)")
            if event.sha not in state.contents and len(state.contents) >= self.schemas:
                raise RegistryFull(f"the registry has {self.schemas} schemas, which is the limit (max_schemas)")
            if event.sha not in state.contents:
                text_bytes += len(event.text or b"")
            if text_bytes > self.text_bytes:
                raise RegistryFull(
                    f"the registry holds {state.text_bytes} bytes of schemas, and one more would pass the limit"
                    f" of {self.text_bytes} (max_text_bytes)"
                )

    def check_reference_depth(self, depth: int) -> None:
        """Raise `TooLarge` for references that refer to others too often in a row."""
        if depth > MAX_REFERENCE_DEPTH:
            raise TooLarge(
                f"the references of the schema form a chain of {depth}; the longest one taken is {MAX_REFERENCE_DEPTH}"
            )

    def check_references(self, count: int) -> None:
        """Raise `TooLarge` for a closure over the limit."""
        if count > self.references:
            raise TooLarge(f"the schema needs {count} references, the limit (max_references) is {self.references}")
