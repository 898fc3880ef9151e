"""Runs one replication: compare, apply, and follow. It can be stopped at any point and started again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from stele.core.model import SubjectKey
from stele.errors import Conflict
from stele.migrate.progress import Progress, report_nothing
from stele.protocol.replication import (
    ConflictCode,
    ImportAnswer,
    LevelName,
    LevelSettings,
    ReplicaState,
    ReplicaVersion,
    SettingsScope,
    SubjectName,
)
from stele.replicate.numbering import number_versions
from stele.replicate.plan import (
    RegistryComparison,
    ReplicationConflict,
    ReplicationPlan,
    find_fate,
    is_same_authority,
    make_plan,
    rename_version,
)
from stele.replicate.registries import ReplicaSource, ReplicaTarget
from stele.replicate.settings_plan import SettingsSource, SettingsTarget, plan_settings
from stele.service.subject_patterns import SAME_NAMES, Renaming, match_any

_ROWS_AT_ONCE: Final = 500
_BYTES_AT_ONCE: Final = 4 * 1024 * 1024
"""Limits of one request to the target: number of versions, and bytes of their texts."""
_WAIT_SECONDS: Final = 20.0
"""Longest time in seconds that a source that reports its changes is asked to wait for one."""
_BURST_SECONDS: Final = 1.0
"""The same right after a change, so that the observer soon learns that nothing follows. It doubles with each wait."""
RECHECK_SECONDS: Final = 300.0
"""Seconds after which everything is compared again, whatever changes the source reported."""
_RETRY_SECONDS: Final = 5.0
"""Seconds after a comparison until subjects with conflicts are compared again. It doubles each time."""
_MOST_RETRIED: Final = 500
"""Highest number of subjects with conflicts that are compared again between comparisons of everything."""
_POLL_SHARE: Final = 1.0
"""Shortest pause after a check of a polled source, as a multiple of the time that reading took."""
_OTHER_NODE_SECONDS: Final = 1.0
"""Seconds until a node checks again whether another node has applied the changes."""
_MANY_GONE: Final = 100
"""Number of removals from which they are refused when the source lists no version of its own."""
_MOST_ROUNDS: Final = 50
"""Highest number of steps in which references to versions outside of the scope are followed."""
_MOST_COMPARISONS: Final = 3
"""Highest number of comparisons of subjects that change at the target while a plan for them is applied."""
_PLANNED_CODES: Final = frozenset({ConflictCode.AUTHORITY_DIFFERS, ConflictCode.NUMBER_TAKEN, ConflictCode.URI_TAKEN})
"""Conflicts that planning detects. If the target reports one, it has changed since the comparison."""


class Scope(NamedTuple):
    """The subjects and settings to replicate, and their names at the target.

    Attributes:
        patterns: Subjects: `orders-*`, `:.namespace:name`, `:*:name`. One matching pattern is enough.
        renaming: Names at the target.
        settings: The levels whose settings are replicated.
    """

    patterns: tuple[str, ...] = (":*:",)
    renaming: Renaming = SAME_NAMES
    settings: SettingsScope = SettingsScope.SUBJECTS

    @property
    def namespace(self) -> str | None:
        """The one namespace of all patterns; None: there are several."""
        namespaces = {
            None if row.startswith(":*:") else row[2:].partition(":")[0] if row.startswith(":.") else ""
            for row in self.patterns
        }
        return namespaces.pop() if len(namespaces) == 1 else None


EVERYTHING: Final = Scope()
"""All subjects, under their own names."""


class ReplicationOutcome(NamedTuple):
    """The result of one comparison and its application.

    Attributes:
        registered: Number of versions that are new at the target.
        removed: Number of versions that were removed or soft-deleted there.
        same: Number of versions that were equal already.
        mapped: Number of versions that got another schema id there, since theirs was taken.
        conflicts: Versions and settings that could not be replicated.
        position: Position of the source that the result is about.
        settings: Number of levels whose settings were changed.
    """

    registered: int = 0
    removed: int = 0
    same: int = 0
    mapped: int = 0
    conflicts: tuple[ReplicationConflict, ...] = ()
    position: str = ""
    settings: int = 0

    def add(self, later: ReplicationOutcome) -> ReplicationOutcome:
        """Return the combined outcome of this and of a later comparison of the same subjects."""
        return later._replace(
            registered=self.registered + later.registered,
            removed=self.removed + later.removed,
            mapped=self.mapped + later.mapped,
            settings=self.settings + later.settings,
        )


class SourceEmptied(Conflict):
    """Raised when a source lists none of its own versions any more: it has probably lost its data."""


class Observer(Protocol):
    """Receives the progress of a replication, and decides whether it may continue."""

    def claim(self) -> bool:
        """Return whether this node may apply changes; another node may be applying them. `note_pass` ends a claim."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; raise an error to stop the replication."""
        ...

    def note_part(self, outcome: ReplicationOutcome) -> None:
        """Record the counts of a part of the changes that is applied. The counts of `note_pass` include them."""
        ...

    def note_pass(self, outcome: ReplicationOutcome, subjects: frozenset[SubjectName] | None) -> None:
        """Record that target and source are equal, in these subjects or (None) in everything."""
        ...

    def note_waiting(self, position: str) -> None:
        """Record that there is nothing to apply at present."""
        ...


class _Look(NamedTuple):
    """The result of a comparison that was applied: the next position, and how long reading both registries took."""

    position: str
    reading_seconds: float


class Replicator:
    """Makes a target equal to its source.

    Args:
        source: Registry that is read.
        target: Registry that is written.
        scope: What is replicated.
        progress: Called with the progress of long work.
    """

    def __init__(
        self,
        source: ReplicaSource,
        target: ReplicaTarget,
        scope: Scope = EVERYTHING,
        progress: Progress = report_nothing,
    ) -> None:
        scope.renaming.require_valid()
        self.source = source
        self.target = target
        self.scope = scope
        self._progress = progress
        self._is_chosen = match_any(scope.patterns)
        self._names_there: dict[SubjectName, SubjectName] = {}
        """Subjects of the source in the last comparison, by their names at the target."""
        self._conflicting: frozenset[SubjectName] = frozenset()
        """Subjects of the source with conflicts. A change at the target may resolve them, but is not reported."""
        self._retry_wait = _RETRY_SECONDS
        self._retry_at = inf

    # --- comparing ------------------------------------------------------------------------------------------------

    def make_plan(self, subjects: Sequence[SubjectName] | None = None) -> tuple[ReplicationPlan, str]:
        """Return the plan for subjects of the source or (None) for all, and the position of the source.

        Raises `SteleError` where a registry does not answer.
        """
        chosen = None if subjects is None else [row for row in subjects if self._is_chosen(SubjectKey(*row))]
        if chosen is not None and not chosen:
            return ReplicationPlan(), ""
        source, target = self.source.get_authority(), self.target.get_authority()
        with_texts = chosen is not None or self.target.compares_texts
        reading = self.source.read(self.scope.namespace, chosen, texts=with_texts)
        listed = self._add_referenced([row for row in reading.rows if self._is_chosen(SubjectKey(*row.place))])
        rows = [row for row in listed if not is_same_authority(row.authority, target)]
        renamed = [rename_version(row, self.scope.renaming) for row in rows]
        self._names_there = {new.place: old.place for old, new in zip(rows, renamed, strict=True)}
        places = None if chosen is None else self._name_places(chosen, renamed)
        there = {row.uid: row for row in self.target.read_target_versions(places, renamed)}
        renamed, buried = self._find_buried(renamed, there)
        renamed = number_versions(renamed, there)
        fates = self._find_fates(renamed, there, source, target)
        if chosen is None and not any(is_same_authority(row.authority, source) for row in rows):
            _require_life(fates)
        plan = make_plan(RegistryComparison(renamed, there, source, target, fates, buried))
        if self.scope.settings is not SettingsScope.NONE:
            plan = self._add_settings(plan, rows, source, is_whole=chosen is None)
        return plan, reading.position

    def _add_settings(
        self, plan: ReplicationPlan, rows: Sequence[ReplicaVersion], source: str, *, is_whole: bool
    ) -> ReplicationPlan:
        """Return the plan with changes of settings added, if both registries support settings."""
        if not isinstance(self.source, SettingsSource) or not isinstance(self.target, SettingsTarget):
            return plan
        rename = self.scope.renaming.rename_subject
        places = {row.place: SubjectName(*rename(SubjectKey(*row.place))) for row in rows}
        authorities = {places[row.place]: row.authority for row in rows}
        in_the_way = {SubjectName(row.namespace, row.subject) for row in plan.conflicts}
        names = {LevelName(*old): LevelName(*new) for old, new in places.items() if new not in in_the_way}
        if self.scope.settings is SettingsScope.ALL and is_whole:
            names |= {LevelName(old.namespace): LevelName(new.namespace) for old, new in places.items()}
            names |= {LevelName(): LevelName()}
        source_settings = self.source.read_level_settings(list(names))
        there = self.target.read_level_settings(list(names.values())) if source_settings else None
        if not source_settings or there is None:
            return plan
        wanted = [
            LevelSettings(*names[row.level], self.target.fit_settings(row.values))
            for row in source_settings
            if row.level in names
        ]
        settings_plan = plan_settings(wanted, {row.level: row for row in there}, source, authorities)
        return replace(plan, settings=settings_plan.changes, conflicts=(*plan.conflicts, *settings_plan.conflicts))

    def _find_buried(
        self, rows: list[ReplicaVersion], there: Mapping[str, ReplicaVersion]
    ) -> tuple[list[ReplicaVersion], dict[str, ReplicaState]]:
        """Return the rows, and the states in the target of those versions that it does not list.

        Rows that returned after their deletion have the uid of their next life.
        """
        buried: dict[str, ReplicaState] = {}
        while unknown_rows := [row for row in rows if row.uid not in there and row.uid not in buried]:
            newly_buried = self.target.find_buried(unknown_rows)
            if not newly_buried:
                break
            buried |= newly_buried
            rows = self.source.rename_revived(rows, buried)
        return rows, buried

    def _name_places(self, chosen: Sequence[SubjectName], renamed: Sequence[ReplicaVersion]) -> list[SubjectName]:
        names = {SubjectName(*self.scope.renaming.rename_subject(SubjectKey(*row))) for row in chosen}
        return sorted(names | {row.place for row in renamed})

    def _add_referenced(self, rows: list[ReplicaVersion]) -> list[ReplicaVersion]:
        """Return the versions, and all versions outside of the scope that they refer to, directly or indirectly."""
        versions = {row.uid: row for row in rows}
        known_places = {row.place for row in rows}
        for _ in range(_MOST_ROUNDS):
            wanted = {each.place for row in versions.values() for each in row.references} - known_places
            if not wanted:
                break
            known_places |= wanted
            more = self.source.read(None, sorted(wanted), texts=self.target.compares_texts).rows
            needed = {(*each.place, each.version) for row in versions.values() for each in row.references}
            needed |= {(*each.place, each.version) for row in more for each in row.references}
            versions |= {row.uid: row for row in more if row.key in needed}
        return list(versions.values())

    def _find_fates(
        self, rows: Sequence[ReplicaVersion], there: Mapping[str, ReplicaVersion], source: str, target: str
    ) -> dict[str, ReplicaState]:
        """Return the states of replicas that the source does not list, as far as known."""
        listed = {row.uid for row in rows}
        absent = [
            row for row in there.values() if row.uid not in listed and not is_same_authority(row.authority, target)
        ]
        if not absent:
            return {}
        states = self.source.find_fates(absent)
        fates = {row.uid: find_fate(row, states.get(row.uid), source) for row in absent}
        return {uid: fate for uid, fate in fates.items() if fate is not None}

    # --- applying -------------------------------------------------------------------------------------------------

    def synchronize(self, subjects: Sequence[SubjectName] | None = None) -> ReplicationOutcome:
        """Compare and apply once. Raises `SteleError` where a registry does not answer."""
        return self._apply_to_moving_target(*self.make_plan(subjects), subjects)

    def _apply_to_moving_target(
        self,
        plan: ReplicationPlan,
        position: str,
        subjects: Sequence[SubjectName] | None,
        note_part: Callable[[ReplicationOutcome], None] = lambda outcome: None,
    ) -> ReplicationOutcome:
        """Apply a plan. If another replication has changed the target meanwhile, compare again and continue."""
        outcome = self.apply(plan, position, note_part)
        for _ in range(_MOST_COMPARISONS - 1):
            planned = {row.uid for row in plan.versions}
            if not any(row.uid in planned and row.code in _PLANNED_CODES for row in outcome.conflicts):
                break
            plan, _ = self.make_plan(subjects)
            outcome = outcome.add(self.apply(plan, position, note_part))
        return outcome

    def apply(
        self,
        plan: ReplicationPlan,
        position: str = "",
        note_part: Callable[[ReplicationOutcome], None] = lambda outcome: None,
    ) -> ReplicationOutcome:
        """Apply a plan. note_part is called with the counts of each part.

        Raises `SteleError` where a registry does not answer. The parts before that are applied.
        """
        conflicts = {row.key: row for row in plan.conflicts}
        rows = {row.uid: row for row in plan.versions}
        outcome, done = ReplicationOutcome(), 0
        for part in self._split_plan(plan):
            answer = self.target.apply(part)
            counts = ReplicationOutcome(
                answer.registered, answer.removed, mapped=len(answer.mapped), settings=answer.settings
            )
            note_part(counts)
            outcome = outcome.add(counts)
            conflicts |= _conflicts_of(answer, rows)
            done += len(part.versions)
            self._progress("replicate", done, len(plan.versions))
        return outcome._replace(same=plan.same, conflicts=tuple(conflicts.values()), position=position)

    def _split_plan(self, plan: ReplicationPlan) -> Iterator[ReplicationPlan]:
        """Yield parts of a plan, with the texts of their versions."""
        if plan.removed:
            yield ReplicationPlan(removed=plan.removed)
        part: list[ReplicaVersion] = []
        size = 0
        for row in self._fetch_texts(plan.versions):
            length = len(row.text or row.base64 or "")
            if part and (len(part) >= _ROWS_AT_ONCE or size + length > _BYTES_AT_ONCE):
                yield ReplicationPlan(versions=tuple(part))
                part, size = [], 0
            part.append(row)
            size += length
        if part:
            yield ReplicationPlan(versions=tuple(part))
        if plan.deleted:
            yield ReplicationPlan(deleted=plan.deleted)
        for start in range(0, len(plan.settings), _ROWS_AT_ONCE):
            yield ReplicationPlan(settings=plan.settings[start : start + _ROWS_AT_ONCE])

    def _fetch_texts(self, rows: Sequence[ReplicaVersion]) -> Iterator[ReplicaVersion]:
        """Yield versions with their texts. Versions deleted meanwhile are left to the next comparison."""
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            lacking = [row for row in part if not row.has_text]
            rows_by_uid = {row.uid: row for row in (self.source.fetch(lacking) if lacking else ())}
            for row in part:
                if row.has_text:
                    yield row
                elif row.uid in rows_by_uid:
                    yield replace(row, text=rows_by_uid[row.uid].text, base64=rows_by_uid[row.uid].base64)

    # --- following ------------------------------------------------------------------------------------------------

    def follow(self, observer: Observer, position: str = "") -> None:
        """Replicate without end, from a position or from a comparison of everything.

        Raises `SteleError` where a registry does not answer. Then call it again with the last recorded position.
        """
        # At a polled source the first check finds that everything changed.
        if not position and not self.source.poll_seconds:
            position = self._look(observer, None).position
        checked = time.monotonic()
        wait = _BURST_SECONDS
        while True:
            if time.monotonic() - checked > RECHECK_SECONDS:
                position = self._look(observer, None).position or position
                checked = time.monotonic()
            elif time.monotonic() > self._retry_at:
                self._look(observer, self._conflicting, position)
            began = time.monotonic()
            changes = self.source.wait_for_changes(position, min(wait, max(0.0, self._retry_at - began)))
            reading_seconds = time.monotonic() - began
            wait = min(wait * 2, _WAIT_SECONDS) if changes.subjects == frozenset() else _BURST_SECONDS
            if changes.subjects is None:
                looked = self._look(observer, None)
                position = looked.position or changes.position
                checked = time.monotonic()
                reading_seconds += looked.reading_seconds
            elif changes.subjects:
                reading_seconds += self._look(observer, changes.subjects, changes.position).reading_seconds
                position = changes.position
            else:
                position = changes.position
                observer.note_waiting(position)
            if self.source.poll_seconds:
                observer.note_waiting(position)
                observer.sleep(max(self.source.poll_seconds, _POLL_SHARE * reading_seconds))

    def _look(self, observer: Observer, subjects: frozenset[SubjectName] | None, position: str = "") -> _Look:
        chosen = None if subjects is None else sorted(subjects)
        started = time.monotonic()
        plan, began = self.make_plan(chosen)
        reading_seconds = time.monotonic() - started
        while not plan.is_empty and not observer.claim():
            observer.sleep(_OTHER_NODE_SECONDS)
            plan, began = self.make_plan(chosen)
        outcome = self._apply_to_moving_target(plan, began, chosen, observer.note_part)
        outcome = outcome._replace(position=position or outcome.position)
        observer.note_pass(outcome, subjects)
        self._note_conflicts(outcome, subjects)
        return _Look(outcome.position, reading_seconds)

    def _note_conflicts(self, outcome: ReplicationOutcome, subjects: frozenset[SubjectName] | None) -> None:
        """Schedule the next comparison of subjects with conflicts.

        It comes soon for a new conflict, and later each time for an old one.
        """
        there = (SubjectName(row.namespace, row.subject) for row in outcome.conflicts)
        conflicting_subjects = frozenset(self._names_there[name] for name in there if name in self._names_there)
        before = self._conflicting
        self._conflicting = conflicting_subjects if subjects is None else conflicting_subjects | (before - subjects)
        if not conflicting_subjects <= before:
            self._retry_wait = _RETRY_SECONDS
        elif subjects is None or before <= subjects:
            self._retry_wait = min(2 * self._retry_wait, RECHECK_SECONDS)
        else:
            return
        is_due = 0 < len(self._conflicting) <= _MOST_RETRIED
        self._retry_at = time.monotonic() + self._retry_wait if is_due else inf


def _require_life(fates: Mapping[str, ReplicaState]) -> None:
    """Raise `SourceEmptied` if very many versions would be removed because the source lists none of its own."""
    purged_count = sum(fate is ReplicaState.PURGED for fate in fates.values())
    if purged_count >= _MANY_GONE:
        raise SourceEmptied(
            f"the source lists no schemas of its own, so {purged_count} replicas would be deleted: it may have lost"
            " its data. To delete them anyway, delete them at the target"
        )


def _conflicts_of(
    answer: ImportAnswer, rows: Mapping[str, ReplicaVersion]
) -> dict[tuple[str, ...], ReplicationConflict]:
    conflicts = {}
    for level in answer.refused_settings:
        place, why = (level.namespace or "", level.subject or ""), "the target cannot have these settings"
        conflict = ReplicationConflict("", *place, 0, ConflictCode.SETTINGS_DIFFER, why)
        conflicts[conflict.key] = conflict
    for refusal in answer.refused:
        row = rows.get(refusal.uid) or ReplicaVersion(refusal.uid)
        code = ConflictCode(refusal.code)
        conflict = ReplicationConflict(row.uid, row.namespace, row.subject, row.version, code, refusal.why)
        conflicts[conflict.key] = conflict
    return conflicts
