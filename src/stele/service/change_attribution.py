"""Attributes each finding to the change that causes it: the other pure part of a semantic diff.

A finding belongs to the change of the declaration it is about. Otherwise it belongs to a change around that
declaration, inside it, or of a type it refers to, if the finding's words point there or no other change is possible. A
finding without a related change stands alone. Like the comparison, the attribution treats both sides equally.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

from msgspec.structs import replace

from stele.core.findings import Direction, Finding
from stele.formats.capabilities import OutlineLocation
from stele.service.changes import ChangeKind, DeclarationChange, DeclarationTree, DirectedFinding, TreeComparison

MAX_CANDIDATES: Final = 64
"""Maximum number of changes inside one declaration that are considered for one finding."""

MAX_USES: Final = 256
"""Declarations that are visited from type to type for one finding."""

_WORD: Final = re.compile(r"[^\W\d]\w*|\d+(?:\.\d+)?")
_STEP: Final = re.compile(r"[/.\[{#]")
_WHOLE: Final = frozenset({ChangeKind.ADDED, ChangeKind.REMOVED})
"""Kinds of changes that also cover everything inside the declaration."""

_TAIL: Final = 200
"""Number of characters at a path's end in which its last step is searched: paths through references grow long."""

_TELLING: Final = 2
"""The score of a change that the words of a finding point to."""

Locator = Callable[[str], OutlineLocation | None]


class ComparedSide(NamedTuple):
    """One version: its outline, and the function that locates paths of findings in it."""

    tree: DeclarationTree
    locate: Locator


def longest_prefix_locator(tree: DeclarationTree) -> Locator:
    """Return a locator for formats whose findings name declarations by path.

    It locates the longest prefix of a path that is a declaration.
    """

    def locate(path: str) -> OutlineLocation | None:
        ends = [match.start() for match in _STEP.finditer(path)]
        parts = (path[:end] for end in (len(path), *reversed(ends)))
        prefix = next((part for part in parts if part in tree.nodes), None)
        return None if prefix is None else OutlineLocation(prefix, partial=prefix != path)

    return locate


def attribute_findings(
    comparison: TreeComparison, old: Locator, new: Locator, reasons: Iterable[DirectedFinding]
) -> list[DeclarationChange]:
    """Return the changes with the findings that they cause.

    Findings that belong to no change come last, each as a change of its own.
    """
    attribution = _Attribution(comparison, ComparedSide(comparison.old, old), ComparedSide(comparison.new, new))
    findings: defaultdict[int, list[DirectedFinding]] = defaultdict(list)
    broken: defaultdict[int, set[Direction]] = defaultdict(set)
    alone: list[DeclarationChange] = []
    for reason in reasons:
        responsible = attribution.matching_changes(reason)
        if responsible:
            findings[responsible[0]].append(reason)
        else:
            alone.append(_unattributed_change(reason))
        if reason.breaks:
            for index in responsible:
                broken[index].add(reason.direction)
    changes = [
        _with_findings(change, findings[index], broken[index]) for index, change in enumerate(comparison.changes)
    ]
    return changes + alone


def _with_findings(
    change: DeclarationChange, reasons: Iterable[DirectedFinding], broken: Container[Direction]
) -> DeclarationChange:
    return replace(
        change,
        backward=Direction.BACKWARD not in broken,
        forward=Direction.FORWARD not in broken,
        findings=tuple(reasons),
    )


def _unattributed_change(reason: DirectedFinding) -> DeclarationChange:
    """Return a change for a finding that belongs to no visible difference."""
    sides = (reason.writer, reason.reader)
    before, after = sides if reason.direction is Direction.BACKWARD else reversed(sides)
    broken = {reason.direction} if reason.breaks else set()
    return _with_findings(
        DeclarationChange(ChangeKind.CHANGED, reason.path or "/", reason.rule, before, after), [reason], broken
    )


class _Which(Enum):
    """One of the two versions."""

    OLD = "old"
    NEW = "new"


_Table = dict[_Which, defaultdict[str, list[int]]]
"""Indexes of changes by path, in each version."""


class _Attribution:
    def __init__(self, comparison: TreeComparison, old: ComparedSide, new: ComparedSide) -> None:
        self.changes = comparison.changes
        self.sides = {_Which.OLD: old, _Which.NEW: new}
        self.twins = {_Which.OLD: comparison.same, _Which.NEW: {new: old for old, new in comparison.same.items()}}
        self.at: _Table = {which: defaultdict(list) for which in _Which}
        self.inside: _Table = {which: defaultdict(list) for which in _Which}
        for index in sorted(range(len(self.changes)), key=lambda index: _direction_free_key(self.changes[index])):
            self._index_change(index)

    def _index_change(self, index: int) -> None:
        change = self.changes[index]
        if change.annotation:
            return
        for which, path in ((_Which.OLD, change.old_path), (_Which.NEW, change.new_path)):
            if path is not None:
                self.at[which][path].append(index)
                for above in self.sides[which].tree.above(path):
                    if len(self.inside[which][above]) < MAX_CANDIDATES:
                        self.inside[which][above].append(index)

    # --- one finding ------------------------------------------------------------------------------------------------

    def matching_changes(self, reason: DirectedFinding) -> list[int]:
        """Return indexes of the changes a finding is about: its own first, then others to which its words point."""
        which, place = self._locate_finding(reason)
        words = _finding_words(reason)
        for suspects, only in self._candidate_groups(which, place.path):
            scores = {index: self._score_change(self.changes[index], reason, place, words) for index in suspects}
            best = max(scores.values(), default=0)
            if scores and (only or len(scores) == 1 or (best >= _TELLING and len(scores) < MAX_CANDIDATES)):
                chosen = [index for index, score in scores.items() if score == best]
                chosen.sort(key=lambda index: _direction_free_key(self.changes[index]))
                return chosen if best >= _TELLING else chosen[:1]
        return []

    def _candidate_groups(self, which: _Which, path: str) -> Iterator[tuple[Sequence[int], bool]]:
        """Yield groups of changes, the likeliest first, each with whether one of the group must be the cause."""
        tree = self.sides[which].tree
        yield self._changes_in_both(self.at, which, path), path != tree.top
        for above in tree.above(path):
            yield [index for index in self.at[which].get(above, ()) if self.changes[index].kind in _WHOLE], True
        yield self._changes_in_both(self.inside, which, path), False
        for used in self._changes_of_referenced(which, path):
            yield self._changes_in_both(self.at, which, used), True
            yield self._changes_in_both(self.inside, which, used), False
        for above in tree.above(path):
            yield self._changes_in_both(self.at, which, above), False

    def _changes_in_both(self, table: _Table, which: _Which, path: str) -> list[int]:
        """Return the indexes that a table has for a declaration in both versions."""
        same_text = self.twins[which].get(path)
        other = _Which.OLD if which is _Which.NEW else _Which.NEW
        more = [] if same_text is None else table[other].get(same_text, [])
        return list(dict.fromkeys([*table[which].get(path, []), *more]))

    def _changes_of_referenced(self, which: _Which, path: str) -> Iterator[str]:
        """Yield the paths of declarations that a declaration refers to, the nearest first."""
        nodes = self.sides[which].tree.nodes
        waiting, seen = deque([path]), {path}
        while waiting and len(seen) <= MAX_USES:
            node = nodes.get(waiting.popleft())
            for used in node.uses if node is not None else ():
                if used in nodes and used not in seen:
                    seen.add(used)
                    waiting.append(used)
                    yield used

    def _locate_finding(self, reason: DirectedFinding) -> tuple[_Which, OutlineLocation]:
        """Return the version in which the finding's path leads furthest, and the location there.

        Usually that is the reader's schema. For a removed declaration it is the writer's schema.
        """
        backward = reason.direction is Direction.BACKWARD
        readers_first = (_Which.NEW, _Which.OLD) if backward else (_Which.OLD, _Which.NEW)
        locations = [(which, self._locate_path(which, reason.path)) for which in readers_first]
        return locations[0] if not locations[0][1].partial else max(locations, key=lambda item: self._path_depth(*item))

    def _locate_path(self, which: _Which, path: str) -> OutlineLocation:
        side = self.sides[which]
        place = side.locate(path)
        if place is not None and place.path in side.tree.nodes:
            return place
        label = f"reference({path.partition('#')[0]})"
        return OutlineLocation(label if label in side.tree.nodes else side.tree.top, partial=True)

    def _path_depth(self, which: _Which, place: OutlineLocation) -> tuple[bool, int]:
        tree = self.sides[which].tree
        return not place.partial, 0 if place.path == tree.top else 1 + sum(1 for _ in tree.above(place.path))

    @staticmethod
    def _score_change(
        change: DeclarationChange, finding: Finding, place: OutlineLocation, words: frozenset[str]
    ) -> int:
        """Return a score of how strongly the words of a finding point to a change."""
        score = 0
        if place.attribute and place.attribute in (change.what, change.what.partition(" ")[0]):
            score += 8
        values = {finding.reader, finding.writer} - {""}
        if change.kind is ChangeKind.CHANGED and values & ({change.before, change.after} - {""}):
            score += _TELLING
        names = {path.rpartition("/")[2].rpartition(".")[2] for path in (change.path, change.was) if path}
        if any(words.issuperset(_WORD.findall(name)) for name in (*names, change.what) if name):
            score += _TELLING
        if change.what.replace("_", "").upper() in finding.rule.replace("_", ""):
            score += _TELLING
        if change.what == "type" or change.kind is not ChangeKind.CHANGED:
            score += 1
        return score


def _finding_words(finding: Finding) -> frozenset[str]:
    """Return the names and numbers in the text of a finding."""
    tail = _STEP.split(finding.path[-_TAIL:])[-1]
    return frozenset(_WORD.findall(f"{finding.reader[:2000]} {finding.writer[:2000]} {tail}"))


def _direction_free_key(change: DeclarationChange) -> tuple[str, ...]:
    """Return a key that is the same for a change and for its mirror image."""
    paths = sorted(path for path in (change.old_path, change.new_path) if path is not None)
    return (*paths, change.what, *sorted((change.before, change.after)))
