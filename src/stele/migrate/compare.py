"""Compares a source with a target: the plan before a migration, the verification after it.

Only what the source contains is compared. Subjects that only the target has are ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from stele.migrate.extras import differing_members
from stele.migrate.model import (
    DEFAULT_LEVEL,
    REGISTRY_LEVEL,
    Dump,
    DumpVersion,
    context_level,
    effective_level,
    is_context,
    level_rank,
    placeholder_version,
)
from stele.protocol.confluent import Config


class DifferenceKind(StrEnum):
    """Kind of a difference between source and target."""

    REGISTER = "register"
    """The target lacks the version, or has it deleted while the source has not."""
    DELETE = "delete"
    """The version is deleted in the source and not at the target."""
    RESERVE = "reserve ids"
    """The target lacks the context, or might assign ids of it again."""
    CONFIG = "config"
    MODE = "mode"
    NUMBER_TAKEN = "number taken"
    """The target has that version number of the subject with another id or schema."""
    ID_TAKEN = "id taken"
    """The id belongs to another schema in that context of the target, or to two schemas in the source."""
    EXTRA = "extra"
    """The target has a version of the subject that the source lacks."""
    TIME = "time"
    """The target has another registration time. Registered versions keep their time."""
    BESIDE = "beside"
    """A key, an association or an exporter is missing at the target or differs there."""


CONFLICTS = frozenset({DifferenceKind.NUMBER_TAKEN, DifferenceKind.ID_TAKEN})
"""Differences that no import resolves: a user has to decide."""


class Difference(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One difference of the target. name is a subject, level or context; why is an explanation."""

    kind: DifferenceKind
    name: str
    version: int | None = None
    id: int | None = None
    why: str = ""


class Comparison(msgspec.Struct, frozen=True, rename="camel"):
    """The differences, in the order in which an import resolves them; same counts the equal versions."""

    differences: tuple[Difference, ...]
    same: int

    @property
    def conflicts(self) -> tuple[Difference, ...]:
        """The differences that no import resolves."""
        return tuple(row for row in self.differences if row.kind in CONFLICTS)

    @property
    def counts(self) -> dict[str, int]:
        """Number of differences of each kind."""
        return dict(Counter(row.kind.value for row in self.differences))

    def of_kinds(self, *kinds: DifferenceKind) -> Iterator[Difference]:
        """Yield the differences of these kinds."""
        return (row for row in self.differences if row.kind in kinds)


def compare_dumps(source: Dump, target: Dump, *, modes: bool = True) -> Comparison:
    """Return all differences. With modes=False, READWRITE is expected everywhere, whatever the source has."""
    there = {row.key: row for row in target.versions}
    differences = list(_compare_versions(source, there, _compare_ids(target.versions)))
    same = len(source.versions) - len({(row.name, row.version) for row in differences})
    rest = (
        _compare_times(source, there),
        _extra_versions(source, there),
        _ids_to_reserve(source, target),
        _compare_configs(source, target),
        _compare_extras(source, target),
    )
    for part in (*rest, _compare_modes(source if modes else msgspec.structs.replace(source, modes={}), target)):
        differences.extend(part)
    return Comparison(tuple(differences), same)


def expected_config(source: Dump, level: str) -> Config | None:
    """Return the settings that a level must have: its own, with the effective compatibility level if it has none."""
    own = source.configs.get(level)
    if own is None:
        return Config(compatibility_level=effective_level(source.configs, level)) if level == DEFAULT_LEVEL else None
    return msgspec.structs.replace(own, compatibility_level=effective_level(source.configs, level))


# --- versions -------------------------------------------------------------------------------------------------------


def _compare_ids(versions: Iterable[DumpVersion]) -> dict[tuple[str, int], DumpVersion]:
    """Return one version for each pair of context and id."""
    return {(row.context, row.id): row for row in versions}


def _compare_versions(
    source: Dump, there: dict[tuple[str, int], DumpVersion], ids: dict[tuple[str, int], DumpVersion]
) -> Iterator[Difference]:
    own: dict[tuple[str, int], DumpVersion] = {}
    for row in source.versions:
        known = there.get(row.key)
        first = own.setdefault((row.context, row.id), row)
        holder = ids.get((row.context, row.id))
        if first.content_digest() != row.content_digest():
            parts = _differing_parts(first, row)
            why = f"the source has it for {first.subject} version {first.version}, too, with {parts}"
            yield _version_difference(DifferenceKind.ID_TAKEN, row, why)
        elif known is not None and (known.id != row.id or known.content_digest() != row.content_digest()):
            yield _version_difference(DifferenceKind.NUMBER_TAKEN, row, f"there with {_differing_parts(known, row)}")
        elif known is not None and known.deleted == row.deleted:
            continue
        elif known is not None and row.deleted:
            yield _version_difference(DifferenceKind.DELETE, row, "live at the target")
        elif known is None and holder is not None and holder.content_digest() != row.content_digest():
            why = f"there it is {holder.subject} version {holder.version}, with {_differing_parts(holder, row)}"
            yield _version_difference(DifferenceKind.ID_TAKEN, row, why)
        else:
            yield _version_difference(
                DifferenceKind.REGISTER,
                row,
                "deleted" if row.deleted else "" if known is None else "deleted at the target, active in the source",
            )


def _version_difference(kind: DifferenceKind, row: DumpVersion, why: str) -> Difference:
    return Difference(kind, row.subject, row.version, row.id, why)


def _differing_parts(one: DumpVersion, other: DumpVersion) -> str:
    """Return a text that names the parts in which two versions differ."""
    parts = [f"id {one.id}"] if one.id != other.id else []
    parts += [f"another {word}" for name, word in _WORDS.items() if getattr(one, name) != getattr(other, name)]
    return " and ".join(parts)


_WORDS = {
    "schema_type": "type",
    "schema": "text",
    "references": "list of references",
    "metadata": "metadata",
    "rule_set": "rule set",
}


def _extra_versions(source: Dump, there: dict[tuple[str, int], DumpVersion]) -> Iterator[Difference]:
    subjects = {row.subject for row in source.versions}
    own = {row.key for row in source.versions}
    for row in there.values():
        if row.subject in subjects and row.key not in own:
            yield _version_difference(DifferenceKind.EXTRA, row, "only at the target")


def _compare_times(source: Dump, there: dict[tuple[str, int], DumpVersion]) -> Iterator[Difference]:
    """Yield the versions that differ only in their registration time."""
    for row in source.versions:
        known = there.get(row.key)
        if known is None or None in (row.ts, known.ts) or row.ts == known.ts:
            continue
        if (known.id, known.deleted, known.content_digest()) == (row.id, row.deleted, row.content_digest()):
            yield _version_difference(DifferenceKind.TIME, row, f"registered there at {known.ts}, here at {row.ts}")


def _compare_extras(source: Dump, target: Dump) -> Iterator[Difference]:
    there = {row.key: row for row in target.extras.items()}
    for row in source.extras.items():
        known = there.get(row.key)
        why = "not at the target" if known is None else differing_members(row, known)
        if why:
            kind, *name = row.key
            yield Difference(DifferenceKind.BESIDE, " ".join(name), why=f"{kind}: {why}")


# --- contexts and settings ------------------------------------------------------------------------------------------


def _ids_to_reserve(source: Dump, target: Dump) -> Iterator[Difference]:
    filled, own = {row.context for row in source.versions}, {row.key for row in source.versions}
    present = {row.key: row for row in target.versions}
    for context in source.contexts:
        most = source.max_ids.get(context)
        left = present.get(placeholder_version(context, 0).key)
        # For a context that exists and stays empty, the ids that it assigned cannot be read.
        visible = context in filled or context not in target.contexts
        if left is not None and left.key not in own:
            yield Difference(DifferenceKind.RESERVE, context, id=left.id, why="begun by an import that was cut off")
        elif most is not None and visible and most > max(target.max_ids.get(context, 0), _highest_ids(target, context)):
            yield Difference(DifferenceKind.RESERVE, context, id=most, why=f"ids up to {most} were given")
        elif context not in target.contexts and context not in filled:
            yield Difference(DifferenceKind.RESERVE, context, why="not at the target")


def _highest_ids(dump: Dump, context: str) -> int:
    return max((row.id for row in dump.versions if row.context == context), default=0)


def _compare_configs(source: Dump, target: Dump) -> Iterator[Difference]:
    for level in _levels_of(source, target):
        wanted, known = expected_config(source, level), expected_config(target, level)
        if wanted != known:
            yield Difference(DifferenceKind.CONFIG, level, why=_changed_settings(known, wanted))


def _changed_settings(known: Config | None, wanted: Config | None) -> str:
    if wanted is None:
        return "to be removed"
    before = known or Config()
    names = [name for name in wanted.__struct_fields__ if getattr(wanted, name) != getattr(before, name)]
    return ", ".join(names)


def _compare_modes(source: Dump, target: Dump) -> Iterator[Difference]:
    for level in _levels_of(source, target):
        wanted, known = source.modes.get(level), target.modes.get(level)
        if wanted != known:
            yield Difference(DifferenceKind.MODE, level, why=f"{known or 'none'}, to be {wanted or 'none'}")


def _levels_of(source: Dump, target: Dump) -> list[str]:
    """Return the levels to compare: those of the source, and levels of the target that stand above them."""
    spoken = set(source.levels())
    contexts = {context_level(context) for context in source.contexts}
    above = {level for level in (*target.configs, *target.modes) if is_context(level) and level in contexts}
    return sorted(spoken | above | {REGISTRY_LEVEL}, key=level_rank)
