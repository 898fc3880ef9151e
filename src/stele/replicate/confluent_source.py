"""A registry of any make with the Confluent API, checked for changes by polling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from stele.client import SchemaRegistryClient
from stele.migrate import registry_reader
from stele.protocol.replication import ReplicaState, ReplicaVersion, SubjectName
from stele.replicate.confluent_changes import ListWatcher
from stele.replicate.dump_versions import give_next_lives, next_life, parse_uri, qualify_place, to_replica
from stele.replicate.foreign_api import ForeignApi
from stele.replicate.registries import Changes, SourceListing

_MOST_LIVES: Final = 16
"""Number of times that a version can return unchanged and still be recognised."""


class ConfluentSource:
    """A registry that does not report its changes.

    Args:
        client: Sends requests to the registry. Closing the source closes it.
        api: Checks the registry for changes. Closing the source closes it, too.
        name: Name of the registry in messages and reports.
        authority: URI that is the authority of its schemas.
        poll_seconds: Pause between two checks for changes.
    """

    def __init__(
        self, client: SchemaRegistryClient, api: ForeignApi, name: str, authority: str, poll_seconds: float = 1.0
    ) -> None:
        self.name = name
        self.poll_seconds = poll_seconds
        self._client = client
        self._api = api
        self._watcher = ListWatcher(api)
        self._authority = authority.rstrip("/")

    def get_authority(self) -> str:
        """Return the authority of its schemas."""
        return self._authority

    def read(self, namespace: str | None, subjects: Sequence[SubjectName] | None, *, texts: bool) -> SourceListing:
        """Return its versions, always with their texts."""
        if subjects is None:
            rows = registry_reader.read_versions(self._client)
        else:
            rows = registry_reader.read_subject_versions(self._client, map(qualify_place, subjects))
        versions = [to_replica(self._authority, row) for row in rows]
        return SourceListing([row for row in versions if namespace in (None, row.namespace)], "")

    def fetch(self, rows: Sequence[ReplicaVersion]) -> list[ReplicaVersion]:
        """Return the rows unchanged: they have their texts."""
        return list(rows)

    def find_fates(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return the states of those versions that exist after all: a list may have left them out."""
        own = {row.uid: place for row in rows if (place := parse_uri(self._authority, row.uri)) is not None}
        subjects = {subject for subject, _ in own.values()}
        there = {
            (row.subject, row.version): to_replica(self._authority, row)
            for row in registry_reader.read_subject_versions(self._client, subjects)
        }
        fates: dict[str, ReplicaState] = {}
        for uid, place in own.items():
            version = there.get(place)
            if version is not None and uid in _list_lives(version.uid):
                fates[uid] = version.state
        if len(fates) < len(own):
            self._api.require_answer("/subjects")
        return fates

    def wait_for_changes(self, position: str, seconds: float) -> Changes:
        """Return whether the lists changed since the last call. Does not wait: the caller sleeps between calls."""
        return self._watcher.look(position)

    def rename_revived(self, rows: list[ReplicaVersion], buried: Mapping[str, ReplicaState]) -> list[ReplicaVersion]:
        """Return the rows, with the uid of the next life for those that the target has buried."""
        return give_next_lives(rows, buried)

    def close(self) -> None:
        """Close connections."""
        self._client.close()
        self._api.close()


def _list_lives(uid: str) -> list[str]:
    lives = [uid]
    for _ in range(_MOST_LIVES):
        lives.append(next_life(lives[-1]))
    return lives
