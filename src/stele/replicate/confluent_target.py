"""A registry of any make that speaks the Confluent API, written in IMPORT mode, in which ids and numbers are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stele.client import SchemaRegistryClient
from stele.errors import NotFound, SteleError
from stele.migrate import registry_reader
from stele.migrate.model import DumpVersion
from stele.migrate.registry_writer import IMPORT, Refusal, VersionWriter
from stele.replicate.dump_target import DumpTarget, Memory

_NO_ROUTE: Final = (204, 405, 501)
"""What makes without the mode answer besides 404; Apicurio has no content to answer with."""
_NO_IMPORT: Final = "that registry has no IMPORT mode: it would give the version another id and number"


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
        closed = {
            subject for subject in sorted({row.subject for row in rows} - self._open) if not self._open_up(subject)
        }
        refused = [Refusal(row.subject, row.version, _NO_IMPORT) for row in rows if row.subject in closed]
        return refused + self._writer.write_versions([row for row in rows if row.subject not in closed])

    def _open_up(self, subject: str) -> bool:
        """Put a subject into the mode in which ids are given; return whether the registry has such a mode.

        Some makes have no route for it, and others answer that it is done and do nothing, so it is read back.
        """
        try:
            self._client.set_mode(IMPORT, subject, force=True)
            is_open = self._client.mode(subject) == IMPORT
        except NotFound:
            return False
        except SteleError as error:
            if getattr(error, "status", None) in _NO_ROUTE:
                return False
            raise
        if is_open:
            self._open.add(subject)
        return is_open

    def remove_version(self, subject: str, version: int) -> list[Refusal]:
        """Delete a version for good; with its last one a subject loses its mode."""
        self._open.discard(subject)
        return self._writer.delete_version(subject, version)

    def close(self) -> None:
        """Close connections."""
        self._client.close()
