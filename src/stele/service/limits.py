"""Limits of one registry. Every limit has a setting, and an error that names it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from stele.errors import QuotaUsedUp, TooLarge

if TYPE_CHECKING:
    from stele.core.events import Event, VersionRegistered
    from stele.core.state import State


MAX_REFERENCE_DEPTH: Final = 200
"""Maximum number of references in a chain, down to a schema without references. Types nest no deeper either."""


class RegistryFull(TooLarge):
    """The registry, or a subject, has its maximum number of schemas; the schema itself is not too large."""


class Limits(msgspec.Struct, frozen=True):
    """Upper bounds, checked before any expensive work.

    schema_bytes      length of one schema text in bytes of UTF-8
    references        direct and indirect references of one schema
    versions          versions of one subject, soft-deleted ones included
    schemas           distinct schema texts in the registry
    text_bytes        total length of all texts in bytes, before compression
    waiting_writes    changes that may wait for the log at a time
    associations      bindings of subjects to resources of data systems
    keys              keys of the DEK registry, of each kind
    caller_schemas    versions that one caller registered and that are not purged; 0: any number
    caller_bytes      total length of their texts in bytes, each version counted; 0: any number
    places            places whose last census is recorded
    refusals          refused registrations that are kept in memory if the audit trail has no file
    refused_text_bytes  length up to which the audit trail has the text of a refused registration; 0: never
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
    caller_schemas: int = 0
    caller_bytes: int = 0
    refusals: int = 200
    refused_text_bytes: int = 0

    @property
    def has_quotas(self) -> bool:
        """Whether there is a limit on the registrations of one caller."""
        return bool(self.caller_schemas or self.caller_bytes)

    def check_text(self, text: bytes) -> None:
        """Raise `TooLarge` for a text over the limit."""
        if len(text) > self.schema_bytes:
            raise TooLarge(f"the schema has {len(text)} bytes; the limit (max_schema_bytes) is {self.schema_bytes}")

    def check_growth(self, state: State, events: Iterable[Event]) -> None:
        """Raise `RegistryFull` if events would add more versions or texts to a state than the limits allow."""
        from stele.core.events import VersionRegistered  # a check of files needs no events

        text_bytes = state.text_bytes
        for event in events:
            if not isinstance(event, VersionRegistered):
                continue
            subject = state.find_subject(event.key)
            if subject is not None and len(subject.versions) - len(event.replaces) >= self.versions:
                raise RegistryFull(f"the subject has {self.versions} versions; the limit is reached (max_versions)")
            if event.sha not in state.contents and len(state.contents) >= self.schemas:
                raise RegistryFull(f"the registry has {self.schemas} schemas; the limit is reached (max_schemas)")
            if event.sha not in state.contents:
                text_bytes += len(event.text or b"")
            if text_bytes > self.text_bytes:
                raise RegistryFull(
                    f"the registry holds {state.text_bytes} bytes of schemas, and one more would pass the limit"
                    f" of {self.text_bytes} (max_text_bytes)"
                )

    def check_quota(self, state: State, events: Iterable[Event], creator: str) -> None:
        """Raise `QuotaUsedUp` if events would give a caller more than the quota.

        creator is the name of the caller. All callers without a name share one quota.
        """
        from stele.core.events import VersionRegistered
        from stele.core.queries import find_usage_of_creator

        added = [event for event in events if isinstance(event, VersionRegistered)]
        if not self.has_quotas or not added:
            return
        usage = find_usage_of_creator(state, creator)
        who = creator or "callers without a name"
        if self.caller_schemas and usage.versions + len(added) > self.caller_schemas:
            raise QuotaUsedUp(
                f"{usage.versions} schemas are registered by {who}; the limit of one caller (max_caller_schemas) is"
                f" {self.caller_schemas}: delete some for good"
            )
        length = sum(_measure_text(state, event) for event in added)
        if self.caller_bytes and usage.text_bytes + length > self.caller_bytes:
            raise QuotaUsedUp(
                f"{usage.text_bytes} bytes of schemas are registered by {who}; with {length} more they would pass"
                f" the limit of one caller (max_caller_bytes), {self.caller_bytes}: delete some for good"
            )

    def check_reference_depth(self, depth: int) -> None:
        """Raise `TooLarge` for a chain of references that is too long."""
        if depth > MAX_REFERENCE_DEPTH:
            raise TooLarge(f"the references of the schema form a chain of {depth}; the limit is {MAX_REFERENCE_DEPTH}")

    def check_references(self, count: int) -> None:
        """Raise `TooLarge` for more direct and indirect references than the limit."""
        if count > self.references:
            raise TooLarge(f"the schema needs {count} references; the limit (max_references) is {self.references}")


def _measure_text(state: State, event: VersionRegistered) -> int:
    """Return the length of the text of a new version, which is in the event or known already."""
    known = state.contents.get(event.sha)
    if event.text is not None or known is None:
        return len(event.text or b"")
    return state.get_text_length(known)
