"""Schemas without a server: what a decoder needs to know about a schema, and a pinned set of them that fits a file.

A snapshot answers like a client and never asks anybody: a job that holds one reads the same tomorrow, and off line.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Protocol
from uuid import UUID

import msgspec

from stele.client.types import Version
from stele.errors import ContentNotFound, InvalidRequest, SubjectNotFound, VersionNotFound


class ResolvedSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """A schema with all it refers to: enough to parse it without asking again.

    text         the document
    schema_type  AVRO, PROTOBUF, JSON …
    references   texts of the documents it refers to, by reference name, dependencies before dependants
    id, guid, subject, version   where it was found; 0 or '' when that was not said
    context      the context in which id counts, '' for the default one
    """

    text: str
    schema_type: str = "AVRO"
    references: dict[str, str] = {}
    id: int = 0
    guid: str = ""
    subject: str = ""
    version: int = 0
    context: str = ""


class SchemaSource(Protocol):
    """Whoever knows schemas: a client or a snapshot."""

    def resolve(self, schema: int | UUID, *, context: str = "") -> ResolvedSchema:
        """The schema with that id or guid. Raises `ContentNotFound` when there is none."""
        ...

    def resolve_version(self, subject: str, number: Version = "latest") -> ResolvedSchema:
        """One version of a subject. Raises `SubjectNotFound` or `VersionNotFound`."""
        ...


class SchemaSnapshot(msgspec.Struct, frozen=True, dict=True):
    """A fixed set of schemas, found by id, guid, or subject and version. Small enough to ship with a job."""

    schemas: tuple[ResolvedSchema, ...]

    def resolve(self, schema: int | UUID, *, context: str = "") -> ResolvedSchema:
        """See `SchemaSource`."""
        key = (context, schema) if isinstance(schema, int) else str(schema)
        found = self._by_id.get(key)
        if found is None:
            raise ContentNotFound(str(schema))
        return found

    def resolve_version(self, subject: str, number: Version = "latest") -> ResolvedSchema:
        """See `SchemaSource`."""
        versions = self._by_subject.get(subject)
        if versions is None:
            raise SubjectNotFound(subject)
        found = versions.get(max(versions) if number == "latest" else number)
        if found is None:
            raise VersionNotFound(number)
        return found

    def to_json(self) -> bytes:
        """The snapshot as a document."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, document: bytes) -> SchemaSnapshot:
        """A snapshot from its document. Raises `InvalidRequest` when it is none."""
        try:
            return msgspec.json.decode(document, type=cls)
        except msgspec.MsgspecError as error:
            raise InvalidRequest(f"not a schema snapshot: {error}") from error

    def save(self, path: Path) -> None:
        """Write the snapshot to a file. Raises `OSError`."""
        path.write_bytes(self.to_json())

    @classmethod
    def load(cls, path: Path) -> SchemaSnapshot:
        """Read a snapshot from a file. Raises `OSError` and `InvalidRequest`."""
        return cls.from_json(path.read_bytes())

    @cached_property
    def _by_id(self) -> dict[tuple[str, int] | str, ResolvedSchema]:
        by_id: dict[tuple[str, int] | str, ResolvedSchema] = {}
        for schema in self.schemas:
            if schema.id:
                by_id.setdefault((schema.context, schema.id), schema)
            if schema.guid:
                by_id.setdefault(schema.guid, schema)
        return by_id

    @cached_property
    def _by_subject(self) -> dict[str, dict[int, ResolvedSchema]]:
        by_subject: dict[str, dict[int, ResolvedSchema]] = {}
        for schema in self.schemas:
            if schema.subject and schema.version:
                by_subject.setdefault(schema.subject, {})[schema.version] = schema
        return by_subject
