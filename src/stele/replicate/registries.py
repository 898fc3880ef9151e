"""What replication wants of a registry that it reads, and of one that it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from stele.protocol.replication import ImportAnswer, ReplicaState, ReplicaVersion, SubjectName
from stele.replicate.plan import ReplicationPlan


class SourceListing(NamedTuple):
    """Versions that a source lists, and the position among its changes at which it did; '' where it has none."""

    rows: list[ReplicaVersion]
    position: str


class Changes(NamedTuple):
    """What changed behind a position: subjects, None for whatever there is; and the position to go on from."""

    subjects: frozenset[SubjectName] | None
    position: str


class ReplicaSource(Protocol):
    """A registry that is replicated. All methods raise `SteleError` where it does not answer."""

    name: str
    """What people are told of it; without credentials."""
    poll_seconds: float
    """How long to wait between looks; 0: it tells by itself that something changed."""

    def get_authority(self) -> str:
        """Return the URI that is the authority of whatever has no other one."""
        ...

    def read(self, namespace: str | None, subjects: Sequence[SubjectName] | None, *, texts: bool) -> SourceListing:
        """Return what it lists: of a namespace, or of subjects; None: of all. Texts may come without being asked."""
        ...

    def fetch(self, rows: Sequence[ReplicaVersion]) -> list[ReplicaVersion]:
        """Return these versions with their texts; those that are gone are left out."""
        ...

    def find_fates(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return what became of versions that it does not list, by uid; what it does not know is left out."""
        ...

    def wait_for_changes(self, position: str, seconds: float) -> Changes:
        """Return what changed behind a position; wait for something where there is nothing."""
        ...

    def rename_revived(self, rows: list[ReplicaVersion], buried: Mapping[str, ReplicaState]) -> list[ReplicaVersion]:
        """Return the rows, with other uids where it made the uids itself and the target has buried them."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class ReplicaTarget(Protocol):
    """A registry that gets replicas. All methods raise `SteleError` where it does not answer."""

    name: str
    """What people are told of it; without credentials."""
    compares_texts: bool
    """Whether it knows versions by their texts, so that the source has to bring them for a comparison."""

    def get_authority(self) -> str:
        """Return the URI that is the authority of whatever has no other one."""
        ...

    def read_there(
        self, subjects: Sequence[SubjectName] | None, like: Sequence[ReplicaVersion]
    ) -> list[ReplicaVersion]:
        """Return what it lists, of subjects or of all; like is what it is going to be compared with."""
        ...

    def find_buried(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return what it knows of versions that it does not list where they were looked for, by uid."""
        ...

    def apply(self, plan: ReplicationPlan) -> ImportAnswer:
        """Carry out a part of a plan."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...
