"""The differences between two outlines: the pure part of a semantic diff.

Declarations are matched from the top down. Below matched parents, those with the same identity match first, then those
that share a name or an alias. Last, equal subtrees match wherever they are. The comparison treats both sides equally:
with the outlines exchanged, every change is its own mirror image.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from hashlib import sha256
from typing import Final

import msgspec

from stele.core.findings import Direction, Finding
from stele.formats.capabilities import ANNOTATIONS, TRUNCATED, OutlineNode

MAX_TEXT: Final = 200
"""Characters of a text that describes an added or removed declaration."""

_MAX_NAMESAKES: Final = 8
"""A name is not used for matching if more declarations of one parent share it: it is ambiguous and costs time."""

_MAX_ORDER: Final = 20
"""Maximum number of names that describe an order."""


class ChangeKind(Enum):
    """What happened to a declaration."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    RENAMED = "renamed"
    MOVED = "moved"


class DirectedFinding(Finding, frozen=True, kw_only=True):
    """A finding about a change, and the direction it was found in."""

    direction: Direction

    @classmethod
    def from_finding(cls, finding: Finding, direction: Direction) -> DirectedFinding:
        """Return the finding with its direction."""
        return cls(**msgspec.structs.asdict(finding), direction=direction)


class DeclarationChange(msgspec.Struct, frozen=True):
    """One difference between two versions.

    path        path of the declaration in the new version, of a removed one in the old version
    what        kind of declaration for ADDED, REMOVED, RENAMED and MOVED (`order` where only the order of its members
                changed), the attribute for CHANGED; the rule of a finding that belongs to no visible difference
    before      text in the old version; '' for nothing
    after       text in the new version; '' for nothing
    was         path in the old version where it differs, else None
    annotation  True if the difference affects only readers of the text: documentation, comments, titles
    backward    False when a breaking finding says that because of it the new schema cannot read data of the old one
    forward     False when one says that because of it the old schema cannot read data of the new one
    findings    findings of the ruleset about it; a finding about several changes at once stands with the first of them
    """

    kind: ChangeKind
    path: str
    what: str
    before: str = ""
    after: str = ""
    was: str | None = None
    annotation: bool = False
    backward: bool = True
    forward: bool = True
    findings: tuple[DirectedFinding, ...] = ()

    @property
    def old_path(self) -> str | None:
        """Path in the old version; None for an added declaration."""
        return None if self.kind is ChangeKind.ADDED else self.was or self.path

    @property
    def new_path(self) -> str | None:
        """Path in the new version; None for a removed declaration."""
        return None if self.kind is ChangeKind.REMOVED else self.path


class DeclarationTree:
    """An outline by its paths: `nodes` in order, and the children of each (of None: the topmost).

    A parent that does not come before its children is ignored, so that there are no cycles.
    """

    def __init__(self, outline: Iterable[OutlineNode]) -> None:
        self.nodes: dict[str, OutlineNode] = {}
        self.children: defaultdict[str | None, list[OutlineNode]] = defaultdict(list)
        self._parents: dict[str, str] = {}
        for node in outline:
            if node.kind != TRUNCATED and node.path not in self.nodes:
                if node.parent in self.nodes:
                    self._parents[node.path] = str(node.parent)
                self.nodes[node.path] = node
                self.children[self.parent(node)].append(node)

    @property
    def top(self) -> str:
        """Path of the first declaration, which stands for the whole; '' when there is none."""
        return next(iter(self.nodes), "")

    def parent(self, node: OutlineNode) -> str | None:
        """Path of the parent, None when there is none."""
        return self._parents.get(node.path)

    def above(self, path: str) -> Iterator[str]:
        """Yield the paths of the declarations around one, the nearest first."""
        parent = self._parents.get(path)
        while parent is not None:
            yield parent
            parent = self._parents.get(parent)


class TreeComparison:
    """Two outlines, which of their declarations are the same, and what changed.

    same     paths of the old outline to those of the new one
    changes  changes in the order of the new outline; a removed declaration stands at its old place
    """

    def __init__(self, old: Sequence[OutlineNode], new: Sequence[OutlineNode]) -> None:
        self.old = DeclarationTree(old)
        self.new = DeclarationTree(new)
        self.same: dict[str, str] = {}
        self._order: list[DeclarationChange] = []
        self._match([(None, None)])
        self._moved = dict(self._equal_subtrees())
        self.same |= self._moved
        self._match(list(self._moved.items()))
        self.changes = self._changes()

    # --- what is the same -------------------------------------------------------------------------------------------

    def _match(self, waiting: Sequence[tuple[str | None, str | None]]) -> None:
        """Match the declarations below pairs of parents, at every depth."""
        waiting = list(waiting)
        while waiting:
            old, new = waiting.pop()
            pairs = list(self._pairs(old, new))
            self.same |= {mine.path: theirs.path for mine, theirs in pairs}
            waiting += [(mine.path, theirs.path) for mine, theirs in pairs]
            self._order += self._reordered(old, new, pairs)

    def _pairs(self, old: str | None, new: str | None) -> Iterator[tuple[OutlineNode, OutlineNode]]:
        """Yield pairs of children of two parents that are the same declaration."""
        mine = {_sibling_key(node, old): node for node in reversed(self.old.children[old])}
        theirs = {_sibling_key(node, new): node for node in reversed(self.new.children[new])}
        common = mine.keys() & theirs.keys()
        yield from ((node, theirs[key]) for key, node in reversed(mine.items()) if key in common)
        yield from _pair_by_name(
            [node for key, node in mine.items() if key not in common],
            [node for key, node in theirs.items() if key not in common],
        )

    def _reordered(
        self, old: str | None, new: str | None, pairs: Iterable[tuple[OutlineNode, OutlineNode]]
    ) -> Iterator[DeclarationChange]:
        """Yield one change if the members of a parent stand in another order than before.

        The change covers the part that differs.
        """
        then = {node.path: index for index, node in enumerate(self.old.children[old])}
        now = {node.path: index for index, node in enumerate(self.new.children[new])}
        ordered = [pair for pair in pairs if pair[0].ordered and pair[1].ordered]
        mine = sorted(ordered, key=lambda pair: then[pair[0].path])
        theirs = sorted(ordered, key=lambda pair: now[pair[1].path])
        places = [index for index, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a is not b]
        if places and old is not None and new is not None:
            part = slice(places[0], places[-1] + 1)
            before, after = _name_list(node for node, _ in mine[part]), _name_list(node for _, node in theirs[part])
            yield DeclarationChange(ChangeKind.MOVED, new, "order", before, after, "" if old == new else old)

    def _equal_subtrees(self) -> Iterator[tuple[str, str]]:
        """Yield old and new path of declarations with members that moved elsewhere and are otherwise unchanged."""
        counterparts = set(self.same.values())
        mine = _digest_subtrees(self.old, [path for path in self.old.nodes if path not in self.same])
        theirs = _digest_subtrees(self.new, [path for path in self.new.nodes if path not in counterparts])
        taken: set[str] = set()
        for digest, path in mine.items():
            if digest in theirs and taken.isdisjoint(self.old.above(path)):
                taken.add(path)
                yield path, theirs[digest]

    # --- what is different ------------------------------------------------------------------------------------------

    def _changes(self) -> list[DeclarationChange]:
        old_paths = {new: old for old, new in self.same.items()}
        places = {path: place for place, path in enumerate(self.new.nodes)}
        placed: list[tuple[int, int, int, DeclarationChange]] = []
        for path, node in self.new.nodes.items():
            before = old_paths.get(path)
            if before is not None:
                changes = list(self._pair(self.old.nodes[before], node))
            elif (parent := self.new.parent(node)) is None or parent in old_paths:
                changes = [
                    DeclarationChange(ChangeKind.ADDED, path, node.kind, after=_summarize_declaration(node, self.new))
                ]
            else:
                changes = []
            placed += [(places[path], 0, number, change) for number, change in enumerate(changes)]
        last = -1
        for number, (path, node) in enumerate(self.old.nodes.items()):
            if path in self.same:
                last = places[self.same[path]]
            elif (parent := self.old.parent(node)) is None or parent in self.same:
                removal = DeclarationChange(
                    ChangeKind.REMOVED, path, node.kind, before=_summarize_declaration(node, self.old)
                )
                placed.append((last, 2, number, removal))
        placed += [(places.get(change.path, -1), 1, number, change) for number, change in enumerate(self._order)]
        return [change for *_, change in sorted(placed, key=lambda item: item[:3])]

    def _pair(self, old: OutlineNode, new: OutlineNode) -> Iterator[DeclarationChange]:
        """Yield the changes of one declaration."""
        was = None if old.path == new.path else old.path
        if old.name and new.name and old.name != new.name:
            kind = new.kind if new.kind == old.kind else "declaration"
            yield DeclarationChange(ChangeKind.RENAMED, new.path, kind, old.name, new.name, was)
        elif self._elsewhere(old, new):
            yield DeclarationChange(ChangeKind.MOVED, new.path, new.kind, old.path, new.path, was)
        if old.kind != new.kind:
            yield DeclarationChange(ChangeKind.CHANGED, new.path, "kind", old.kind, new.kind, was)
        for word in dict.fromkeys((*new.attributes, *old.attributes)):
            before, after = old.attributes.get(word, ""), new.attributes.get(word, "")
            if before != after and not self._same_names(before, after, old, new):
                yield DeclarationChange(ChangeKind.CHANGED, new.path, word, before, after, was, word in ANNOTATIONS)

    def _elsewhere(self, old: OutlineNode, new: OutlineNode) -> bool:
        if old.path in self._moved:
            return True
        unlike = _sibling_key(old, self.old.parent(old)) != _sibling_key(new, self.new.parent(new))
        return unlike and old.kind == new.kind and bool(old.name) and not (old.identity or new.identity)

    def _same_names(self, before: str, after: str, old: OutlineNode, new: OutlineNode) -> bool:
        """Return whether two texts differ only in the new names of the types they refer to."""
        if len(old.uses) != len(new.uses) or old.uses == new.uses or not all((*old.uses, *new.uses)):
            return False
        for mine, theirs in zip(old.uses, new.uses, strict=True):
            if mine != theirs and self.same.get(mine) != theirs:
                return False
            before, after = before.replace(mine, "\0"), after.replace(theirs, "\0")
        return before == after


def _sibling_key(node: OutlineNode, parent: str | None) -> tuple[str, str]:
    """Return the key by which a declaration is matched among the children of its parent."""
    if node.identity:
        return "identity", node.identity
    return "path", node.path.removeprefix(parent) if parent else node.path


def _pair_by_name(old: Sequence[OutlineNode], new: Sequence[OutlineNode]) -> Iterator[tuple[OutlineNode, OutlineNode]]:
    """Yield pairs that share a name or an alias. Their order does not depend on which side is the old one."""
    mine, theirs = _group_by_word(old), _group_by_word(new)
    pairs = {
        (a.path, b.path): (a, b)
        for word in mine.keys() & theirs.keys()
        if len(mine[word]) <= _MAX_NAMESAKES and len(theirs[word]) <= _MAX_NAMESAKES
        for a in mine[word]
        for b in theirs[word]
        if word in a.aliases or word in b.aliases or not (a.identity and b.identity)
    }
    taken: set[tuple[bool, str]] = set()
    for a, b in sorted(pairs, key=lambda pair: (sorted(pair), pair)):
        if (False, a) not in taken and (True, b) not in taken:
            taken |= {(False, a), (True, b)}
            yield pairs[a, b]


def _group_by_word(nodes: Iterable[OutlineNode]) -> dict[str, list[OutlineNode]]:
    groups: defaultdict[str, list[OutlineNode]] = defaultdict(list)
    for node in nodes:
        for word in {node.name, *node.aliases} - {""}:
            groups[word].append(node)
    return groups


def _name_list(nodes: Iterable[OutlineNode]) -> str:
    names = [node.name or node.path.rpartition("/")[2] for node in nodes]
    return ", ".join(names[:_MAX_ORDER]) + (f" … ({len(names)} in all)" if len(names) > _MAX_ORDER else "")


def _summarize_declaration(node: OutlineNode, tree: DeclarationTree) -> str:
    """Return a short description of a declaration."""
    parts = [
        text if word == "type" else f"{word} {text}"
        for word, text in node.attributes.items()
        if word not in ANNOTATIONS
    ]
    text = ", ".join(parts)
    text = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
    inside, waiting = 0, [node.path]
    while waiting:
        children = tree.children.get(waiting.pop(), [])
        inside += len(children)
        waiting += [child.path for child in children]
    more = f"({inside} declaration{'s' if inside > 1 else ''} inside)" if inside else ""
    return " ".join(part for part in (text, more) if part)


def _digest_subtrees(tree: DeclarationTree, paths: Sequence[str]) -> dict[bytes, str]:
    """Return the declarations that have members, by the digest of all their content, where the digest is unique.

    `paths` has each declaration before the ones inside it.
    """
    digests: dict[str, bytes] = {}
    for path in reversed(paths):
        node = tree.nodes[path]
        inside = [digests.get(child.path, b"") for child in tree.children.get(path, ())]
        members = [node.kind, node.name, *(part for pair in sorted(node.attributes.items()) for part in pair)]
        digests[path] = sha256(msgspec.json.encode(members) + b"".join(inside)).digest()
    times = Counter(digests.values())
    return {digests[path]: path for path in paths if tree.children.get(path) and times[digests[path]] == 1}
