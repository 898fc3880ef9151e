"""Decides whether a history is linearizable: whether its operations have an order that explains every answer.

In such an order, an operation that ended before another one began comes before it. The search is the algorithm of Wing
and Gong with Lowe's cache of positions. A position is a set of ordered operations with the state after them. An
operation of unknown outcome may come anywhere after its begin, or not at all. Many of these make the search too long
even if a few explain the answers. So a search that gives up is repeated with none of them, one, two …

Source: J. M. Wing, C. Gong, "Testing and verifying concurrent objects" (1993); G. Lowe, "Testing for
linearizability" (2017).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple, TypeVar

from tests.system.linearizability.history import WRITES, Operation

POSITIONS: Final = 300_000
"""Number of positions after which a search gives up."""

_FEW: Final = 4
"""A search that gave up is repeated with fewer open writes than this."""

S = TypeVar("S", bound=Hashable)


class Verdict(StrEnum):
    """Result of a search."""

    LINEARIZABLE = "linearizable"
    VIOLATED = "not linearizable"
    UNDECIDED = "undecided"


class Finding(NamedTuple):
    """A verdict with the number of positions that were tried.

    If no order was found, `explained` is the most operations that any order explains, and `stuck_at` are the operations
    that could come next there.
    """

    verdict: Verdict
    positions: int
    explained: int = 0
    stuck_at: tuple[Operation, ...] = ()


def check_linearizability(
    operations: Iterable[Operation],
    initial: S,
    follow: Callable[[S, Operation], S | None],
    positions: int = POSITIONS,
) -> Finding:
    """Search for an order of operations that explains their answers.

    Args:
        operations: The history of one object.
        initial: The state of the object before the history.
        follow: Returns the state after an operation, or None when the operation's answer contradicts the state.
        positions: Largest number of positions to try.
    """
    rows = list(operations)
    ended = sorted((row for row in rows if row.completed is not None), key=lambda row: row.invoked)
    open_writes = [row for row in rows if row.completed is None and row.action in WRITES]
    search = partial(_search_order, ended, open_writes, initial, follow, positions)
    finding = search(len(open_writes))
    for most in range(_FEW if finding.verdict is Verdict.UNDECIDED else 0):
        # Only a found order is a proof: if none is found, there may be one with more open writes.
        if (attempt := search(most)).verdict is Verdict.LINEARIZABLE:
            return attempt
    return finding


def _search_order(
    ended: Sequence[Operation],
    open_writes: Sequence[Operation],
    initial: S,
    follow: Callable[[S, Operation], S | None],
    positions: int,
    most: int,
) -> Finding:
    """Search for an order of all completed operations and at most `most` open writes."""
    everything = (1 << len(ended)) - 1
    stack = [(0, 0, initial)]
    tried: set[tuple[int, int, S]] = set()
    deepest, stuck_at = -1, ()
    while stack:
        position = stack.pop()
        ordered, opened, state = position
        if ordered == everything:
            return Finding(Verdict.LINEARIZABLE, len(tried))
        if position in tried:
            continue
        if len(tried) >= positions:
            return Finding(Verdict.UNDECIDED, len(tried), deepest, stuck_at)
        tried.add(position)
        candidates, until = _find_candidates(ended, ordered)
        next_positions: list[tuple[int, int, S]] = []
        for index in candidates:
            after = follow(state, ended[index])
            if after == state and not _can_change(ended[index]):
                # It fits here and changes no state, so the rest has an order after it if it has one at all.
                next_positions = [(ordered | 1 << index, opened, state)]
                break
            if after is not None:
                next_positions.append((ordered | 1 << index, opened, after))
        else:
            for index, operation in enumerate(open_writes if opened.bit_count() < most else ()):
                if not opened >> index & 1 and operation.invoked < until:
                    after = follow(state, operation)
                    if after is not None and after != state:
                        next_positions.append((ordered, opened | 1 << index, after))
        if ordered.bit_count() > deepest:
            deepest, stuck_at = ordered.bit_count(), tuple(ended[index] for index in candidates)
        stack.extend(reversed(next_positions))
    return Finding(Verdict.VIOLATED, len(tried), deepest, stuck_at)


def _can_change(operation: Operation) -> bool:
    """Return whether an operation changes some state, even if it does not change the present one.

    A registration of an existing text changes nothing. With the same answer it restores the text after a deletion.
    """
    return operation.action in WRITES and operation.result is not None and operation.result.code == 200


def _find_candidates(ended: Sequence[Operation], ordered: int) -> tuple[list[int], float]:
    """Return the operations that may come next, and the time before which an open write must have begun to be next."""
    until = float("inf")
    candidates = []
    for index in range((~ordered & ordered + 1).bit_length() - 1, len(ended)):
        if ordered >> index & 1:
            continue
        operation = ended[index]
        if operation.invoked > until:
            break
        candidates.append(index)
        assert operation.completed is not None
        until = min(until, operation.completed)
    return [index for index in candidates if ended[index].invoked <= until], until
