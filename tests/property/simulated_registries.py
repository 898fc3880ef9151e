"""Registries that replicate each other over a network that cuts links and delays messages.

A simulated registry has only the rules of `stele.service.replication`, so thousands of histories run quickly. Comparing
and applying use the code of the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from msgspec.structs import replace

from stele.protocol.replication import (
    ConflictCode,
    ImportAnswer,
    ImportedVersionRefusal,
    ReadAnswer,
    ReadRequest,
    ReplicaImportRequest,
    ReplicaState,
    ReplicaVersion,
    SubjectName,
)
from stele.replicate.plan import ReplicationPlan
from stele.replicate.replicator import Replicator, Scope
from stele.replicate.stele_registry import EventsRead, SteleRegistry

_uids = count(1)


class SimulatedRegistry:
    """One registry: its calls as `ReplicationApi`, and the actions of its users."""

    def __init__(self, name: str) -> None:
        self.authority = f"http://{name}.example"
        self.rows: dict[str, ReplicaVersion] = {}
        """Versions that are listed or archived, by uid."""
        self.tombstones: dict[str, str] = {}
        self.registrations: list[str] = []
        """Uids in the order of their registration here, own ones and replicas."""

    def list_versions(self) -> list[ReplicaVersion]:
        """Return all versions that lists show, including deleted ones."""
        return [row for row in self.rows.values() if row.state.is_listed]

    def own(self) -> set[tuple[str, ReplicaState, str, int]]:
        """Return the listed versions of which this registry is the authority."""
        return {
            (row.uid, row.state, row.subject, row.version)
            for row in self.list_versions()
            if row.authority == self.authority
        }

    def of(self, authority: str) -> set[tuple[str, ReplicaState, str, int]]:
        """Return the listed versions of an authority."""
        return {
            (row.uid, row.state, row.subject, row.version) for row in self.list_versions() if row.authority == authority
        }

    # --- its users ------------------------------------------------------------------------------------------------

    def register(self, subject: str) -> None:
        """Add a version. Its number follows the highest one that exists, as in Confluent's registry."""
        there = [row for row in self.list_versions() if row.subject == subject]
        if any(row.authority != self.authority for row in there):
            return  # replicas are closed
        number = max((row.version for row in there), default=0) + 1
        uid = f"{next(_uids):032x}"
        uri = f"{self.authority}/schemagroups/default/schemas/{subject}/versions/{number}"
        self.rows[uid] = ReplicaVersion(
            uid, subject=subject, version=number, authority=self.authority, uri=uri, text=uid, sha256=uid
        )
        self.registrations.append(uid)

    def soft_delete(self, subject: str) -> None:
        """Soft-delete the newest active version of an own subject."""
        live = [row for row in self._own_of(subject) if row.state is ReplicaState.ACTIVE]
        if live:
            self.rows[live[-1].uid] = replace(live[-1], state=ReplicaState.DELETED)

    def purge(self, subject: str) -> None:
        """Purge all versions of an own subject. No trace of them remains."""
        for row in self._own_of(subject):
            del self.rows[row.uid]

    def end(self, subject: str) -> None:
        """End an own subject: its versions can be read by id."""
        for row in self._own_of(subject):
            self.rows[row.uid] = replace(row, state=ReplicaState.ARCHIVED)

    def _own_of(self, subject: str) -> list[ReplicaVersion]:
        versions = [row for row in self.list_versions() if (row.subject, row.authority) == (subject, self.authority)]
        return sorted(versions, key=lambda row: row.version)

    # --- its calls ------------------------------------------------------------------------------------------------

    def read_versions(self, request: ReadRequest) -> ReadAnswer:
        """Return versions."""
        if request.uids is not None:
            versions = [self.rows[uid] for uid in request.uids if uid in self.rows]
            purged_uids = [uid for uid in request.uids if uid in self.tombstones]
            versions += [
                ReplicaVersion(uid, ReplicaState.PURGED, authority=self.tombstones[uid]) for uid in purged_uids
            ]
            return ReadAnswer(self.authority, "", versions)
        rows = sorted(self.list_versions(), key=lambda row: row.key)
        return ReadAnswer(
            self.authority, "", [row for row in rows if request.subjects is None or row.place in request.subjects]
        )

    def import_versions(self, request: ReplicaImportRequest) -> ImportAnswer:
        """Import replicas."""
        removed = registered = 0
        refused: list[ImportedVersionRefusal] = []
        for uid, state in request.removed:
            row = self.rows.get(uid)
            if row is None or not row.state.is_listed:
                continue
            removed += 1
            if state is ReplicaState.PURGED:
                self.tombstones[uid] = row.authority
                del self.rows[uid]
            else:
                self.rows[uid] = replace(row, state=ReplicaState.ARCHIVED)
        for row in request.versions:
            if row.uid in self.rows or row.uid in self.tombstones:
                continue
            there = [known for known in self.list_versions() if known.place == row.place]
            if any(known.authority != row.authority for known in there):
                refused.append(ImportedVersionRefusal(row.uid, ConflictCode.AUTHORITY_DIFFERS, ""))
            elif any(known.version == row.version for known in there):
                refused.append(ImportedVersionRefusal(row.uid, ConflictCode.NUMBER_TAKEN, ""))
            else:
                self.rows[row.uid] = row
                self.registrations.append(row.uid)
                registered += 1
        for uid in request.deleted:
            row = self.rows.get(uid)
            if row is not None and row.state is ReplicaState.ACTIVE:
                self.rows[uid] = replace(row, state=ReplicaState.DELETED)
                removed += 1
        return ImportAnswer(registered, removed, refused, [])

    def wait_for_events(self, after: str, seconds: float) -> EventsRead:
        """Return no events: the simulation itself decides when a registry is compared."""
        return EventsRead((), after)

    def close(self) -> None:
        """Do nothing: no resource is open."""


@dataclass
class Link:
    """One replication. It can be cut, and it can be slow, so that its plans are based on an old state."""

    source: SimulatedRegistry
    target: SimulatedRegistry
    is_cut: bool = False
    under_way: list[ReplicationPlan] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Build the replication of the product."""
        ends = (SteleRegistry(self.source, "source"), SteleRegistry(self.target, "target"))
        self.replicator = Replicator(*ends, Scope())

    def look(self, subject: str | None = None) -> None:
        """Compare one subject, or all, and queue the plan."""
        if not self.is_cut:
            subjects = None if subject is None else [SubjectName("", subject)]
            self.under_way.append(self.replicator.make_plan(subjects)[0])

    def arrive(self) -> None:
        """Apply the oldest queued plan, unless the link is cut."""
        if self.under_way and not self.is_cut:
            self.replicator.apply(self.under_way.pop(0))

    def sync(self) -> None:
        """Compare and apply without delay."""
        if not self.is_cut:
            self.replicator.synchronize()

    def lose(self) -> None:
        """Apply only a part of the oldest queued plan, as if its process was killed."""
        if self.under_way and not self.is_cut:
            plan = self.under_way.pop(0)
            self.replicator.apply(
                ReplicationPlan(removed=plan.removed, versions=plan.versions[: len(plan.versions) // 2])
            )


def reachable(links: list[Link], start: SimulatedRegistry) -> Iterator[SimulatedRegistry]:
    """Yield the registries that changes of one get to."""
    seen: list[SimulatedRegistry] = [start]
    for registry in seen:
        seen += [row.target for row in links if row.source is registry and row.target not in seen]
    yield from seen[1:]
