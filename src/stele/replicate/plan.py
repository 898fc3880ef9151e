"""Computes the steps that make a target equal to its source: pure functions, tested on arbitrary histories.

A version is identified by its uid. Its state changes in one direction only (`ReplicaState`), so the later of two states
wins. Only the registry that is the authority of a version can show by not listing it that it is deleted: other
registries may not have it yet. Versions of the target's own authority are never replicated to it, which prevents loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from stele.core.model import SubjectKey
from stele.migrate.dependency_order import sort_by_dependency
from stele.protocol.replication import (
    ConflictCode,
    ReplicaReference,
    ReplicaState,
    ReplicaVersion,
    SettingsChange,
    SubjectName,
)
from stele.service.subject_patterns import Renaming


class ReplicationConflict(msgspec.Struct, frozen=True, rename="camel"):
    """A version that cannot be replicated: its place at the target, and the reason."""

    uid: str
    namespace: str
    subject: str
    version: int
    code: ConflictCode
    why: str

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the conflict among those of a run."""
        return (self.uid,) if self.uid else (self.namespace, self.subject)


class ReplicationPlan(msgspec.Struct, frozen=True):
    """The steps of a replication, in their order.

    Attributes:
        removed: Versions of the target to remove: uid and final state, each before the versions it refers to.
        versions: Versions to register, under the target's names, each after the versions it refers to.
        deleted: uids of versions of the target to soft-delete.
        conflicts: Versions and settings that cannot be replicated.
        same: Number of versions that are equal at the target already.
        settings: Settings of levels of the target, to be set after the versions.
        places: Versions of the target that are to be removed or deleted, by uid.
    """

    removed: tuple[tuple[str, ReplicaState], ...] = ()
    versions: tuple[ReplicaVersion, ...] = ()
    deleted: tuple[str, ...] = ()
    conflicts: tuple[ReplicationConflict, ...] = ()
    same: int = 0
    settings: tuple[SettingsChange, ...] = ()
    places: Mapping[str, ReplicaVersion] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the plan has no steps."""
        return not (self.removed or self.versions or self.deleted or self.settings)


class RegistryComparison(msgspec.Struct, frozen=True):
    """The versions of two registries, as input of a plan.

    Attributes:
        rows: Versions that the source lists, under the target's names.
        fates: States in the source of versions that the target lists and the source does not.
        there: Versions that the target lists, by uid.
        buried: States in the target of versions that the source lists and the target does not.
        source: Authority of the source.
        target: Authority of the target.
    """

    rows: Sequence[ReplicaVersion]
    there: Mapping[str, ReplicaVersion]
    source: str
    target: str
    fates: Mapping[str, ReplicaState] = {}
    buried: Mapping[str, ReplicaState] = {}


def is_same_authority(one: str, other: str) -> bool:
    """Return whether two URIs name the same authority. A slash at the end is ignored."""
    return one.rstrip("/") == other.rstrip("/")


def rename_version(row: ReplicaVersion, renaming: Renaming) -> ReplicaVersion:
    """Return a version under the names that the target uses for it and for the subjects it refers to."""

    def rename(place: SubjectName) -> SubjectName:
        return SubjectName(*renaming.rename_subject(SubjectKey(*place)))

    references = tuple(ReplicaReference(each.name, *rename(each.place), each.version) for each in row.references)
    namespace, subject = rename(row.place)
    return replace(row, namespace=namespace, subject=subject, references=references)


def find_fate(row: ReplicaVersion, source_state: ReplicaState | None, source: str) -> ReplicaState | None:
    """Return the state of a version that a source does not list; None: the source does not know it.

    Args:
        row: The version as the target has it.
        source_state: State in the source when it is asked for the version; None: it has none.
        source: Authority of the source.
    """
    if source_state is not None:
        return source_state
    return ReplicaState.PURGED if is_same_authority(row.authority, source) else None


def make_plan(comparison: RegistryComparison) -> ReplicationPlan:
    """Return the plan for a comparison. Raises `InvalidRequest` for circular references."""
    there = comparison.there
    removals = {uid: fate for uid, fate in comparison.fates.items() if uid in there and not fate.is_listed}
    remaining = [row for uid, row in there.items() if uid not in removals]
    places = _Places(remaining)
    new: list[ReplicaVersion] = []
    deleted = [uid for uid, fate in comparison.fates.items() if _is_newly_deleted(there.get(uid), fate)]
    conflicts: list[ReplicationConflict] = []
    same = 0
    for row in comparison.rows:
        known = there.get(row.uid)
        if is_same_authority(row.authority, comparison.target) and known is None:
            continue
        if known is not None:
            if _is_newly_deleted(known, row.state):
                deleted.append(row.uid)
            elif row.state.rank < known.state.rank and is_same_authority(row.authority, comparison.source):
                conflicts.append(_make_conflict(row, ConflictCode.DELETED_AT_TARGET, "soft-deleted there"))
            else:
                same += 1
        elif row.uid in comparison.buried:
            if comparison.buried[row.uid].is_listed:
                same += 1
            elif is_same_authority(row.authority, comparison.source):
                why = f"{comparison.buried[row.uid]} there"
                conflicts.append(_make_conflict(row, ConflictCode.DELETED_AT_TARGET, why))
        elif (conflict := places.find_conflict(row)) is not None:
            conflicts.append(conflict)
        else:
            new.append(row)
            places.add(row)
    going = reversed(sort_by_dependency(there[uid] for uid in removals))
    return ReplicationPlan(
        tuple((row.uid, removals[row.uid]) for row in going),
        sort_by_dependency(new),
        tuple(dict.fromkeys(deleted)),
        tuple(conflicts),
        same,
        places={uid: there[uid] for uid in {*removals, *deleted}},
    )


def _is_newly_deleted(known: ReplicaVersion | None, state: ReplicaState) -> bool:
    return known is not None and state is ReplicaState.DELETED and known.state is ReplicaState.ACTIVE


def _make_conflict(row: ReplicaVersion, code: ConflictCode, why: str) -> ReplicationConflict:
    return ReplicationConflict(row.uid, row.namespace, row.subject, row.version, code, why)


class _Places:
    """The places of the target that are taken, and by which versions."""

    def __init__(self, rows: Iterable[ReplicaVersion]) -> None:
        self._authorities: dict[SubjectName, str] = {}
        self._numbers: dict[tuple[Any, ...], str] = {}
        self._uris: dict[str, str] = {}
        for row in rows:
            self.add(row)

    def add(self, row: ReplicaVersion) -> None:
        self._authorities[row.place] = row.authority
        self._numbers[row.key] = row.uid
        if row.state is ReplicaState.ACTIVE:
            self._uris[row.uri] = row.uid

    def find_conflict(self, row: ReplicaVersion) -> ReplicationConflict | None:
        """Return the conflict that prevents a version from being registered, None if there is none."""
        authority = self._authorities.get(row.place)
        if authority is not None and not is_same_authority(authority, row.authority):
            why = f"there its authority is {authority or 'unknown'}, not {row.authority}"
            return _make_conflict(row, ConflictCode.AUTHORITY_DIFFERS, why)
        if row.key in self._numbers:
            return _make_conflict(row, ConflictCode.NUMBER_TAKEN, "the number belongs to another version at the target")
        if row.uri in self._uris:
            return _make_conflict(row, ConflictCode.URI_TAKEN, f"{row.uri} is another version there")
        return None
