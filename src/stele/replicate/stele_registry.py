"""Registries of Stele as sources and targets: over HTTP, or in the process that serves one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import unquote

from stele.client import SchemaRegistryClient
from stele.client.request import JSON, Effect, Request, encode_body, json_decoder
from stele.protocol.cncf import DELETED, CloudEvent, namespace_of
from stele.protocol.replication import (
    IMPORT_PATH,
    READ_PATH,
    ImportAnswer,
    LevelName,
    LevelSettings,
    ReadAnswer,
    ReadRequest,
    ReplicaImportRequest,
    ReplicaState,
    ReplicaVersion,
    SubjectName,
)
from stele.replicate.plan import ReplicationPlan
from stele.replicate.registries import Changes, SourceListing

_UIDS_AT_ONCE: Final = 1000
_SUBJECTS_AT_ONCE: Final = 1000
_LEVELS_AT_ONCE: Final = 1000
_EVENTS: Final = 500
"""Highest number of log records that one response about changes covers."""

_read = json_decoder(ReadAnswer)
_imported = json_decoder(ImportAnswer)


class EventsRead(NamedTuple):
    """Events in order, and the next position."""

    events: Sequence[CloudEvent]
    next: str


class ReplicationApi(Protocol):
    """The calls of a registry that replication needs."""

    def read_versions(self, request: ReadRequest) -> ReadAnswer:
        """Return versions with all their attributes."""
        ...

    def import_versions(self, request: ReplicaImportRequest) -> ImportAnswer:
        """Import versions as replicas."""
        ...

    def wait_for_events(self, after: str, seconds: float) -> EventsRead:
        """Return the changes after a position; if there are none, wait for one."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class HttpApi:
    """The calls over HTTP.

    Args:
        client: Sends the requests; its timeout is longer than the wait for events. Closing this object closes it.
    """

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client

    def read_versions(self, request: ReadRequest) -> ReadAnswer:
        """Return versions with all their attributes."""
        return self._client.send(Request("POST", READ_PATH, _read, body=encode_body(request), media=JSON))

    def import_versions(self, request: ReplicaImportRequest) -> ImportAnswer:
        """Import versions as replicas."""
        sent = Request("POST", IMPORT_PATH, _imported, body=encode_body(request), media=JSON, effect=Effect.WRITE)
        return self._client.send(sent)

    def wait_for_events(self, after: str, seconds: float) -> EventsRead:
        """Return the changes after a position; if there are none, wait for one."""
        page = self._client.events(after, wait=round(seconds), limit=_EVENTS)
        return EventsRead(page.events, page.next)

    def close(self) -> None:
        """Close connections."""
        self._client.close()


class SteleRegistry:
    """A registry of Stele: a source that reports its changes, and a target that keeps uids, URIs and numbers.

    Args:
        api: Its calls.
        name: Name of the registry in messages and reports.
    """

    poll_seconds = 0.0
    compares_texts = False

    def __init__(self, api: ReplicationApi, name: str) -> None:
        self.name = name
        self._api = api
        self._authority = ""

    def get_authority(self) -> str:
        """Return its base URI."""
        if not self._authority:
            self._authority = self._api.read_versions(ReadRequest(uids=())).authority
        return self._authority

    # --- as a source ----------------------------------------------------------------------------------------------

    def read(self, namespace: str | None, subjects: Sequence[SubjectName] | None, *, texts: bool) -> SourceListing:
        """Return its versions, and the position after which changes are to be followed."""
        if subjects is None:
            return self._read_pages(ReadRequest(namespace=namespace, texts=texts))
        rows: list[ReplicaVersion] = []
        position = ""
        for start in range(0, len(subjects), _SUBJECTS_AT_ONCE):
            part = tuple(subjects[start : start + _SUBJECTS_AT_ONCE])
            reading = self._read_pages(ReadRequest(subjects=part, texts=texts))
            rows += reading.rows
            position = position or reading.position
        return SourceListing(rows, position)

    def _read_pages(self, request: ReadRequest) -> SourceListing:
        rows: list[ReplicaVersion] = []
        position = ""
        after: tuple[str, str] | None = None
        while True:
            page = self._api.read_versions(
                ReadRequest(request.namespace, request.subjects, after=after, texts=request.texts)
            )
            rows += page.versions
            position = position or page.position
            after = page.next
            if after is None:
                return SourceListing(rows, position)

    def fetch(self, rows: Sequence[ReplicaVersion]) -> list[ReplicaVersion]:
        """Return these versions with their texts. Long texts take several requests."""
        versions: list[ReplicaVersion] = []
        left = [row.uid for row in rows]
        while left:
            answer = [row for row in self._read_uids(left, texts=True) if row.state.is_listed]
            versions += [row for row in answer if row.has_text]
            left = [row.uid for row in answer if not row.has_text]
        return versions

    def find_fates(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return the states of versions that it does not list."""
        return {row.uid: row.state for row in self._read_uids([row.uid for row in rows], texts=False)}

    def _read_uids(self, uids: Sequence[str], *, texts: bool) -> list[ReplicaVersion]:
        versions: list[ReplicaVersion] = []
        for start in range(0, len(uids), _UIDS_AT_ONCE):
            part = tuple(uids[start : start + _UIDS_AT_ONCE])
            versions += self._api.read_versions(ReadRequest(uids=part, texts=texts)).versions
        return versions

    def wait_for_changes(self, position: str, seconds: float) -> Changes:
        """Return the subjects that changed after a position."""
        page = self._api.wait_for_events(position, seconds)
        subjects: set[SubjectName] = set()
        for event in page.events:
            subject = find_event_subject(event)
            if subject is not None:
                subjects.add(subject)
            elif event.type == DELETED:  # A whole namespace was deleted. Its content cannot be read any more.
                return Changes(None, page.next)
        return Changes(frozenset(subjects), page.next)

    def rename_revived(self, rows: list[ReplicaVersion], buried: Mapping[str, ReplicaState]) -> list[ReplicaVersion]:
        """Return the rows unchanged: uids of Stele are never used again."""
        return rows

    # --- as a target ----------------------------------------------------------------------------------------------

    def read_target_versions(
        self, subjects: Sequence[SubjectName] | None, like: Sequence[ReplicaVersion]
    ) -> list[ReplicaVersion]:
        """Return its versions."""
        return self.read(None, subjects, texts=False).rows

    def find_buried(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return the states of those versions that it has known but does not list."""
        return self.find_fates(rows)

    def apply(self, plan: ReplicationPlan) -> ImportAnswer:
        """Apply a part of a plan."""
        return self._api.import_versions(
            ReplicaImportRequest(list(plan.removed), list(plan.versions), list(plan.deleted), list(plan.settings))
        )

    # --- settings, as both ----------------------------------------------------------------------------------------

    def read_level_settings(self, levels: Sequence[LevelName]) -> list[LevelSettings] | None:
        """Return the settings of levels; None if its release does not support that."""
        level_settings: list[LevelSettings] = []
        for start in range(0, len(levels), _LEVELS_AT_ONCE):
            part = tuple(levels[start : start + _LEVELS_AT_ONCE])
            settings = self._api.read_versions(ReadRequest(uids=(), levels=part)).settings
            if settings is None:
                return None
            level_settings += settings
        return level_settings

    def fit_settings(self, values: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the settings unchanged."""
        return values

    def close(self) -> None:
        """Close connections."""
        self._api.close()


def find_event_subject(event: CloudEvent) -> SubjectName | None:
    """Return the subject that an event is about; None for one about a namespace or the registry."""
    parts = event.subject.split("/")
    if len(parts) < 5 or parts[1] != "schemagroups" or parts[3] != "schemas":
        return None
    return SubjectName(namespace_of(unquote(parts[2])), unquote(parts[4]))
