"""Runs the rules over two schemas that may be recursive, huge or hostile.

A rule looks at one pair of shapes and yields what changed there and which inner pairs to look at. Whether a pair is
compatible may depend on itself through a cycle of references: such a pair is assumed compatible until something speaks
against it, so the answer is the greatest fixed point, found with a worklist. Nothing here recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from stele.errors import TooLarge
from stele.formats.jsonschema.confluent.changes import SchemaChange
from stele.formats.jsonschema.confluent.shapes import SchemaShape
from stele.formats.jsonschema.json_text import escape_token

MAX_EVALUATIONS = 60_000
"""Pairs of schemas looked at before a comparison is given up; a pair of long ones counts several times."""

MAX_QUESTIONS = 1_000_000
"""Questions for the compatibility of a pair before a comparison is given up."""

_MEMBERS_PER_STEP = 50

MAX_REPORTED = 5_000
"""Places reported in full; beyond them a pair that was reported already is left out."""

Path: TypeAlias = tuple[str, ...]


class LocalChange(NamedTuple):
    """A change at a path relative to the pair looked at."""

    type: str
    path: Path = ()


class InnerPair(NamedTuple):
    """A pair whose changes count as changes here, at a relative path."""

    old: SchemaShape
    new: SchemaShape
    path: Path = ()


class CombinationBranch(NamedTuple):
    """A member of a combination with a text to tell it by."""

    text: bytes
    shape: SchemaShape


Pair: TypeAlias = tuple[SchemaShape, SchemaShape]
Rule: TypeAlias = Callable[["SchemaDiff", SchemaShape, SchemaShape], Iterator[LocalChange | InnerPair]]


class SchemaDiff:
    """One comparison under one policy.

    rule      what to say about one pair
    allowed   the types of change that are compatible
    branches  the different members of combinations, where they were asked for
    """

    def __init__(self, rule: Rule, allowed: frozenset[str]) -> None:
        self._rule = rule
        self._allowed = allowed
        self.branches: dict[SchemaShape, list[CombinationBranch]] = {}
        self._verdicts: dict[Pair, bool] = {}
        self._dependents: dict[Pair, set[Pair]] = {}
        self._queue: dict[Pair, None] = {}
        self._current: Pair | None = None
        self._weights: dict[SchemaShape, int] = {}
        self._evaluations = 0
        self._questions = 0
        self._reported = 0
        self._seen: set[Pair] = set()

    def list_changes(self, old: SchemaShape, new: SchemaShape) -> list[SchemaChange]:
        """Return all changes from old to new, outer before inner. Raises `TooLarge`."""
        self.is_compatible(old, new)
        self._settle_verdicts()
        return list(self._report_changes((old, new)))

    def is_compatible(self, old: SchemaShape, new: SchemaShape) -> bool:
        """Return whether new reads all that old allows, as far as known; a change queues the asking pair again."""
        self._questions += 1
        if self._questions > MAX_QUESTIONS:
            raise TooLarge(f"comparing the schemas takes more than {MAX_QUESTIONS} steps")
        pair = (old, new)
        if self._current is not None:
            self._dependents.setdefault(pair, set()).add(self._current)
        verdict = self._verdicts.get(pair)
        if verdict is None:
            if len(self._verdicts) >= MAX_EVALUATIONS:
                raise TooLarge(f"comparing the schemas takes more than {MAX_EVALUATIONS} steps")
            verdict = self._verdicts[pair] = True
            self._queue[pair] = None
        return verdict

    def _settle_verdicts(self) -> None:
        """Evaluate in rounds: pairs that a round asked for come before pairs to evaluate again."""
        while self._queue:
            current, self._queue = self._queue, {}
            for pair in current:
                if self._verdicts[pair] and not self._is_compatible_now(pair):
                    self._verdicts[pair] = False
                    self._queue.update(dict.fromkeys(self._dependents.get(pair, ())))

    def _extra_cost(self, shape: SchemaShape) -> int:
        """Return how many steps a schema with long lists costs beyond the first."""
        known = self._weights.get(shape)
        if known is None:
            long = sum(len(value) for value in shape.source.values() if isinstance(value, list | dict))
            known = self._weights[shape] = long // _MEMBERS_PER_STEP
        return known

    def _is_compatible_now(self, pair: Pair) -> bool:
        self._evaluations += 1 + self._extra_cost(pair[0]) + self._extra_cost(pair[1])
        if self._evaluations > MAX_EVALUATIONS:
            raise TooLarge(f"comparing the schemas takes more than {MAX_EVALUATIONS} steps")
        self._current = pair
        try:
            for step in self._rule(self, *pair):
                if isinstance(step, LocalChange):
                    if step.type not in self._allowed:
                        return False
                elif not self.is_compatible(step.old, step.new):
                    return False
            return True
        finally:
            self._current = None

    def _report_changes(
        self, root: Pair, at: Path = (), around: Sequence[Pair] = (), *, again: bool = False
    ) -> Iterator[SchemaChange]:
        """Walk the pairs again with every verdict known.

        A compatible pair met inside itself says nothing new; an incompatible one says once again what is wrong with it,
        for that is wrong at the inner place too. around are pairs the walk is inside of; again is True in such a
        repetition, where a third meeting says nothing.
        """
        open_pairs: set[Pair] = {*around, root}
        stack: list[tuple[Pair, Path, Iterator[LocalChange | InnerPair]]] = [(root, at, self._rule(self, *root))]
        while stack:
            pair, path, steps = stack[-1]
            step = next(steps, None)
            if step is None:
                stack.pop()
                open_pairs.discard(pair)
                continue
            here = path + step.path
            if isinstance(step, LocalChange):
                yield SchemaChange(step.type, "#/" + "/".join(map(escape_token, here)))
                continue
            inner = (step.old, step.new)
            self._reported += 1
            if inner in open_pairs:
                if not again and not self._verdicts[inner] and self._reported <= MAX_REPORTED:
                    outer = [entry[0] for entry in stack]
                    yield from self._report_changes(inner, here, outer[: outer.index(inner)], again=True)
                continue
            if self._reported > MAX_REPORTED and inner in self._seen:
                continue
            if inner not in self._verdicts:  # a rule stopped early while verdicts were sought
                self.is_compatible(*inner)
                self._settle_verdicts()
            self._seen.add(inner)
            open_pairs.add(inner)
            stack.append((inner, here, self._rule(self, *inner)))
