"""Targets that support subjects, numbers and ids, but no uids: registries of other makes, and `_schemas` topics.

The replicated versions are recorded: which version of which source is at a place, and a digest of its content. So a
version that the source replaced is replaced there, too, and a version that another client put there is a conflict.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from stele.migrate.model import DumpVersion
from stele.migrate.registry_writer import Refusal
from stele.protocol.replication import (
    ConflictCode,
    ImportAnswer,
    ImportedVersionRefusal,
    ReplicaState,
    ReplicaVersion,
    SubjectName,
)
from stele.replicate.dump_versions import (
    SCHEMA_TYPES,
    digest_version,
    make_uid,
    make_uri,
    qualify_place,
    to_dump_version,
    to_replica,
)
from stele.replicate.plan import ReplicationPlan


class Carried(msgspec.Struct, frozen=True, omit_defaults=True):
    """A version that was replicated to a target: its place and digest there, authority and URI of the original."""

    subject: str
    version: int
    digest: str
    authority: str
    uri: str
    is_gone: bool = False


class Memory(Protocol):
    """Stores the versions that were replicated to a target, by uid."""

    def load(self) -> dict[str, Carried]:
        """Return all entries."""
        ...

    def save(self, changes: Mapping[str, Carried]) -> None:
        """Add or replace some entries."""
        ...


class ProcessMemory:
    """A memory that lasts as long as the process."""

    def __init__(self) -> None:
        self._rows: dict[str, Carried] = {}

    def load(self) -> dict[str, Carried]:
        """Return all entries."""
        return dict(self._rows)

    def save(self, changes: Mapping[str, Carried]) -> None:
        """Add or replace some entries."""
        self._rows.update(changes)


class DumpTarget(ABC):
    """Base class of targets without uids.

    Args:
        name: Name of the target in messages and reports.
        authority: URI that is the authority of the target's own versions.
        memory: Stores what was replicated to the target.
    """

    compares_texts = True

    def __init__(self, name: str, authority: str, memory: Memory) -> None:
        self.name = name
        self._authority = authority.rstrip("/")
        self._memory = memory
        self._carried: dict[str, Carried] | None = None
        self._digests: dict[tuple[str, int], str] = {}

    @abstractmethod
    def read_dump(self, subjects: Sequence[str] | None) -> list[DumpVersion]:
        """Return the versions of subjects; of all subjects if None."""

    @abstractmethod
    def write_dump(self, rows: list[DumpVersion]) -> list[Refusal]:
        """Register versions, and soft-delete those that are deleted in the source; return what is refused."""

    @abstractmethod
    def remove_version(self, subject: str, version: int) -> list[Refusal]:
        """Delete a version permanently."""

    def get_authority(self) -> str:
        """Return the authority of the target's own versions."""
        return self._authority

    def _load(self) -> dict[str, Carried]:
        if self._carried is None:
            self._carried = self._memory.load()
        return self._carried

    def _note(self, changes: Mapping[str, Carried]) -> None:
        if changes:
            self._load().update(changes)
            self._memory.save(changes)

    # --- reading --------------------------------------------------------------------------------------------------

    def read_target_versions(
        self, subjects: Sequence[SubjectName] | None, like: Sequence[ReplicaVersion]
    ) -> list[ReplicaVersion]:
        """Return the versions of the target. Those that equal or replicate an original get the uid of the original."""
        self._carried = self._memory.load()  # Another node may have changed it since.
        rows = self.read_dump(None if subjects is None else [qualify_place(row) for row in subjects])
        wanted = {(qualify_place(row.place), row.version): row for row in like}
        brought = {(row.subject, row.version): uid for uid, row in self._load().items() if not row.is_gone}
        replicas: list[ReplicaVersion] = []
        adopted: dict[str, Carried] = {}
        for row in rows:
            self._digests[row.key] = digest_version(row)
            original = wanted.get(row.key)
            uid = brought.get(row.key, "")
            if uid and self._load()[uid].digest == self._digests[row.key]:
                known = self._load()[uid]
                replicas.append(self._make_row(row, uid, known.authority, known.uri))
            elif original is not None and is_alike(original, row):
                adopted[original.uid] = self._describe(original)
                replicas.append(self._make_row(row, original.uid, original.authority, original.uri))
            else:
                uid = make_uid(self._authority, row)
                replicas.append(self._make_row(row, uid, self._authority, make_uri(self._authority, row)))
        self._note({uid: row for uid, row in adopted.items() if self._load().get(uid) != row})
        return replicas

    def _make_row(self, row: DumpVersion, uid: str, authority: str, uri: str) -> ReplicaVersion:
        replica = to_replica(self._authority, row)
        return msgspec.structs.replace(replica, uid=uid, authority=authority, uri=uri)

    def _describe(self, row: ReplicaVersion) -> Carried:
        key = (qualify_place(row.place), row.version)
        return Carried(*key, self._digests.get(key, ""), row.authority, row.uri)

    def find_buried(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return which of these versions were replicated to the target and removed again."""
        carried = self._load()
        return {row.uid: ReplicaState.PURGED for row in rows if row.uid in carried and carried[row.uid].is_gone}

    # --- writing --------------------------------------------------------------------------------------------------

    def apply(self, plan: ReplicationPlan) -> ImportAnswer:
        """Apply a part of a plan."""
        refused: list[ImportedVersionRefusal] = []
        removed = self._remove(plan.removed, refused)
        fitting: list[ReplicaVersion] = []
        for row in plan.versions:
            if row.format.upper() in SCHEMA_TYPES:
                fitting.append(row)
            else:
                why = f"the Confluent API has no schema type {row.format.upper()}"
                refused.append(ImportedVersionRefusal(row.uid, ConflictCode.REFUSED, why))
        uids: dict[tuple[str, int | None], str] = {(qualify_place(row.place), row.version): row.uid for row in fitting}
        failed = self.write_dump([to_dump_version(row) for row in fitting]) if fitting else []
        lost = {uids[row.name, row.version]: row.why for row in failed if (row.name, row.version) in uids}
        refused += [ImportedVersionRefusal(uid, ConflictCode.REFUSED, why) for uid, why in lost.items()]
        written = [row for row in fitting if row.uid not in lost]
        self._remember(written)
        removed += self._soft_delete(plan.deleted, refused)
        return ImportAnswer(len(written), removed, refused, [])

    def _remember(self, written: Sequence[ReplicaVersion]) -> None:
        """Record the versions that were written, with the digests of their content at the target."""
        if not written:
            return
        for row in self.read_dump(sorted({qualify_place(row.place) for row in written})):
            self._digests[row.key] = digest_version(row)
        self._note({row.uid: self._describe(row) for row in written})

    def _remove(self, removed: Iterable[tuple[str, ReplicaState]], refused: list[ImportedVersionRefusal]) -> int:
        removed_versions: dict[str, Carried] = {}
        for uid, _ in removed:
            known = self._load().get(uid)
            if known is None:
                continue
            failed = self.remove_version(known.subject, known.version)
            if failed:
                refused.append(ImportedVersionRefusal(uid, ConflictCode.IN_USE, failed[0].why))
            else:
                removed_versions[uid] = msgspec.structs.replace(known, is_gone=True)
        self._note(removed_versions)
        return len(removed_versions)

    def _soft_delete(self, uids: Iterable[str], refused: list[ImportedVersionRefusal]) -> int:
        count = 0
        for uid in uids:
            known = self._load().get(uid)
            if known is None:
                continue
            rows = [row for row in self.read_dump([known.subject]) if row.version == known.version]
            failed = self.write_dump([msgspec.structs.replace(row, deleted=True) for row in rows])
            refused += [ImportedVersionRefusal(uid, ConflictCode.IN_USE, row.why) for row in failed]
            count += not failed
        return count


def is_alike(original: ReplicaVersion, there: DumpVersion) -> bool:
    """Return whether a version of a target equals the original, ignoring the layout of texts."""
    wanted = to_dump_version(original)
    return (
        (wanted.id, wanted.schema_type, wanted.references) == (there.id, there.schema_type, there.references)
        and (wanted.metadata, wanted.rule_set) == (there.metadata, there.rule_set)
        and _reduce_text(wanted.schema) == _reduce_text(there.schema)
    )


def _reduce_text(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return "".join(text.split())
