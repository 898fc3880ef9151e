"""Computes the changes that make the settings of a target equal to those of the source: pure functions.

At the target, only settings that this replication has set are changed. All others are conflicts, so that no policy is
loosened without the knowledge of its owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from stele.protocol.replication import ConflictCode, LevelName, LevelSettings, SettingsChange, SubjectName
from stele.replicate.plan import ReplicationConflict, is_same_authority


@runtime_checkable
class SettingsSource(Protocol):
    """A source that can return its settings."""

    def read_level_settings(self, levels: Sequence[LevelName]) -> list[LevelSettings] | None:
        """Return the settings of levels, in their order; None where the registry does not support that."""
        ...


@runtime_checkable
class SettingsTarget(Protocol):
    """A target that accepts settings."""

    def read_level_settings(self, levels: Sequence[LevelName]) -> list[LevelSettings] | None:
        """Return the settings of levels and those that replication has set, in their order; None if not supported."""
        ...

    def fit_settings(self, values: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the settings in a form that the target supports."""
        ...


class SettingsPlan(NamedTuple):
    """The changes to apply, and the conflicts."""

    changes: tuple[SettingsChange, ...] = ()
    conflicts: tuple[ReplicationConflict, ...] = ()


def plan_settings(
    wanted: Iterable[LevelSettings],
    there: Mapping[LevelName, LevelSettings],
    source: str,
    authorities: Mapping[SubjectName, str],
) -> SettingsPlan:
    """Return the changes and the conflicts.

    Args:
        wanted: Settings of the source, under the target's names.
        there: Settings of the target.
        source: Authority of the source.
        authorities: Authorities of the subjects.
    """
    changes: list[SettingsChange] = []
    conflicts: list[ReplicationConflict] = []
    for row in wanted:
        target_row = there[row.level]
        if row.values == target_row.values:
            continue
        authority = authorities.get(SubjectName(row.namespace or "", row.subject or "")) if row.subject else None
        is_from_here = is_same_authority(target_row.brought_from, source)
        is_decisive = authority is not None and is_same_authority(authority, source)
        if target_row.brought_from and not is_from_here and not is_decisive:
            if row.subject is None:
                conflicts.append(_make_conflict(row, f"there they are those of {target_row.brought_from}"))
            continue  # Another replication brings the settings of a subject, sooner or later.
        is_untouched = target_row.values == target_row.brought if target_row.brought_from else target_row.values is None
        if is_untouched:
            changes.append(SettingsChange(row.namespace, row.subject, row.values, target_row.values, source))
        elif target_row.brought_from or row.values is not None:
            conflicts.append(_make_conflict(row, "they were changed at the target by another writer"))
    return SettingsPlan(tuple(changes), tuple(conflicts))


def _make_conflict(row: LevelSettings, why: str) -> ReplicationConflict:
    return ReplicationConflict("", row.namespace or "", row.subject or "", 0, ConflictCode.SETTINGS_DIFFER, why)
