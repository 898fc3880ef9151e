"""A registry of any make that speaks the Confluent API, written in IMPORT mode, in which ids and numbers are given."""

from __future__ import annotations

from collections.abc import Sequence

from stele.client import SchemaRegistryClient
from stele.migrate import registry_reader
from stele.migrate.model import DumpVersion
from stele.migrate.registry_writer import IMPORT, Refusal, VersionWriter
from stele.replicate.dump_target import DumpTarget, Memory


class ConfluentTarget(DumpTarget):
    """A registry that gets replicas; the subjects that get them stay in IMPORT mode, closed to other writers.

    Args:
        client: Talks to it; it is closed with this.
        name: What people are told of it.
        authority: URI that is the authority of what is its own.
        memory: What was brought there.
    """

    def __init__(self, client: SchemaRegistryClient, name: str, authority: str, memory: Memory) -> None:
        super().__init__(name, authority, memory)
        self._client = client
        self._writer = VersionWriter(client)
        self._open: set[str] = set()

    def read_dump(self, subjects: Sequence[str] | None) -> list[DumpVersion]:
        """Return the versions of subjects, or (None) of all."""
        if subjects is None:
            return registry_reader.read_versions(self._client)
        return registry_reader.read_subject_versions(self._client, subjects)

    def write_dump(self, rows: list[DumpVersion]) -> list[Refusal]:
        """Register versions, and soft-delete those that are to be; return what is refused."""
        for subject in sorted({row.subject for row in rows} - self._open):
            self._client.set_mode(IMPORT, subject, force=True)
            self._open.add(subject)
        return self._writer.write_versions(rows)

    def remove_version(self, subject: str, version: int) -> list[Refusal]:
        """Delete a version for good; with its last one a subject loses its mode."""
        self._open.discard(subject)
        return self._writer.delete_version(subject, version)

    def close(self) -> None:
        """Close connections."""
        self._client.close()
