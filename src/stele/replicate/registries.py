"""The interfaces of the source and the target of a replication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from stele.protocol.replication import ImportAnswer, ReplicaState, ReplicaVersion, SubjectName
from stele.replicate.plan import ReplicationPlan


class SourceListing(NamedTuple):
    """Versions that a source lists, and the position of its change log at that time; '' where it has none."""

    rows: list[ReplicaVersion]
    position: str


class Changes(NamedTuple):
    """The subjects that changed after a position, None if any may have changed; and the next position."""

    subjects: frozenset[SubjectName] | None
    position: str


class ReplicaSource(Protocol):
    """A registry that is replicated. All methods raise `SteleError` where it does not answer."""

    name: str
    """Name of the source in messages and reports, without credentials."""
    poll_seconds: float
    """Seconds to wait between two checks for changes; 0: the source reports its changes by itself."""

    def get_authority(self) -> str:
        """Return the URI that is the authority of all versions without another one."""
        ...

    def read(self, namespace: str | None, subjects: Sequence[SubjectName] | None, *, texts: bool) -> SourceListing:
        """Return its versions in a namespace or in subjects; None: in all. Texts may be included without request."""
        ...

    def fetch(self, rows: Sequence[ReplicaVersion]) -> list[ReplicaVersion]:
        """Return these versions with their texts. Deleted ones are left out."""
        ...

    def find_fates(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return the states of versions that it does not list, by uid. Unknown versions are left out."""
        ...

    def wait_for_changes(self, position: str, seconds: float) -> Changes:
        """Return the changes after a position. A source that reports its changes waits for one if there are none."""
        ...

    def rename_revived(self, rows: list[ReplicaVersion], buried: Mapping[str, ReplicaState]) -> list[ReplicaVersion]:
        """Return the rows, with new uids for buried versions where the source made the uids itself."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class ReplicaTarget(Protocol):
    """A registry that receives replicas. All methods raise `SteleError` where it does not answer."""

    name: str
    """Name of the target in messages and reports, without credentials."""
    compares_texts: bool
    """Whether it identifies versions by their texts, so that a comparison needs the texts of the source."""

    def get_authority(self) -> str:
        """Return the URI that is the authority of all versions without another one."""
        ...

    def read_target_versions(
        self, subjects: Sequence[SubjectName] | None, like: Sequence[ReplicaVersion]
    ) -> list[ReplicaVersion]:
        """Return its versions in subjects or in all. `like` has the versions that they will be compared with."""
        ...

    def find_buried(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return the states of those versions that it has known but does not list, by uid."""
        ...

    def apply(self, plan: ReplicationPlan) -> ImportAnswer:
        """Apply a part of a plan."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...
