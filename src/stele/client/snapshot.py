"""Schemas without a server: everything a decoder needs to know about a schema, and a pinned set of schemas for a file.

A snapshot has the methods of a client and sends no requests. A job with a snapshot reads the same schemas at any time,
also offline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Protocol
from uuid import UUID

import msgspec

from stele.client.types import Version
from stele.core.metadata import Metadata
from stele.errors import ContentNotFound, InvalidRequest, SubjectNotFound, VersionNotFound
from stele.protocol.confluent import RuleSet


class ResolvedSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """A schema with all it refers to: enough to parse it without further requests.

    text         the document
    schema_type  AVRO, PROTOBUF, JSON …
    references   texts of the documents it refers to, by reference name, dependencies before dependants
    id, guid, subject, version   where it was found; 0 or '' when that is not known
    context      the context of the id, '' for the default one
    metadata, rule_set   those registered with the text
    """

    text: str
    schema_type: str = "AVRO"
    references: dict[str, str] = {}
    id: int = 0
    guid: str = ""
    subject: str = ""
    version: int = 0
    context: str = ""
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None


class SchemaResolver(Protocol):
    """A source of schemas: a client or a snapshot."""

    def resolve(self, schema: int | UUID, *, context: str = "") -> ResolvedSchema:
        """Return the schema with that id or guid. Raises `ContentNotFound` when there is none."""
        ...

    def resolve_version(self, subject: str, number: Version = "latest") -> ResolvedSchema:
        """Return one version of a subject. Raises `SubjectNotFound` or `VersionNotFound`."""
        ...

    def resolve_metadata(self, subject: str, properties: Mapping[str, str]) -> ResolvedSchema:
        """Return the newest version whose metadata has all these properties. Raises `ContentNotFound`."""
        ...

    def lineage(self, subject: str, schema: ResolvedSchema, number: int) -> list[ResolvedSchema]:
        """Return the subject's versions from the one that holds the schema to version number, both included.

        Empty when the subject does not hold the schema. Soft-deleted versions are included.
        """
        ...


class SchemaSnapshot(msgspec.Struct, frozen=True, dict=True):
    """A fixed set of schemas, found by id, guid, or subject and version. Small enough to ship with a job."""

    schemas: tuple[ResolvedSchema, ...]

    def resolve(self, schema: int | UUID, *, context: str = "") -> ResolvedSchema:
        """Return the schema with that id or guid; see `SchemaResolver.resolve`."""
        key = (context, schema) if isinstance(schema, int) else str(schema)
        resolved_schema = self._by_id.get(key)
        if resolved_schema is None:
            raise ContentNotFound(str(schema))
        return resolved_schema

    def resolve_version(self, subject: str, number: Version = "latest") -> ResolvedSchema:
        """Return one version of a subject; see `SchemaResolver.resolve_version`."""
        versions = self._by_subject.get(subject)
        if versions is None:
            raise SubjectNotFound(subject)
        version = versions.get(max(versions) if number == "latest" else number)
        if version is None:
            raise VersionNotFound(number)
        return version

    def resolve_metadata(self, subject: str, properties: Mapping[str, str]) -> ResolvedSchema:
        """Return the newest version with these metadata properties; see `SchemaResolver.resolve_metadata`."""
        for _, schema in sorted(self._by_subject.get(subject, {}).items(), reverse=True):
            if schema.metadata is not None and properties.items() <= (schema.metadata.properties or {}).items():
                return schema
        raise ContentNotFound(f"of {subject!r} with these properties")

    def lineage(self, subject: str, schema: ResolvedSchema, number: int) -> list[ResolvedSchema]:
        """Return a subject's versions between two; see `SchemaResolver.lineage`. Missing versions are left out."""
        versions = self._by_subject.get(subject, {})
        own = next((at for at, known in sorted(versions.items()) if _is_same_schema(known, schema)), 0)
        return [versions[at] for at in versions_between(versions, own, number)] if own else []

    def to_json(self) -> bytes:
        """Return the snapshot as a JSON document."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, document: bytes) -> SchemaSnapshot:
        """Return a snapshot from its document. Raises `InvalidRequest` for any other document."""
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


def versions_between(versions: Iterable[int], first: int, last: int) -> list[int]:
    """Return the version numbers from first to last, descending if last is lower."""
    low, high = sorted((first, last))
    return sorted((number for number in versions if low <= number <= high), reverse=first > last)


def _is_same_schema(one: ResolvedSchema, other: ResolvedSchema) -> bool:
    if other.id:
        return (one.context, one.id) == (other.context, other.id)
    return bool(other.guid) and one.guid == other.guid
