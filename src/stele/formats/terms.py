"""Regular expressions over any alphabet, as values: patterns over characters and content models over elements alike.

A `Term` is interned by its `Algebra`, so equal terms are the same object and sets of them are cheap. `first_steps`
returns the linear form of a term (Antimirov): every label it can start with, and what remains after it. Counters stay
numbers, so `a{0,1000000}` is one small term. `find_missing_word` compares two terms by walking both at once, within a
budget of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

import msgspec

Steps = tuple[tuple[Any, "Term"], ...]
"""Labels a term can start with, each with the term that remains after it."""


class BudgetExceeded(Exception):
    """A comparison needs more steps than its budget has."""


class SharedBudgetExceeded(BudgetExceeded):
    """Raised when the comparisons that share a budget need more steps together than it has."""


class StepBudget:
    """Steps left for one comparison. They also count against the shared budget around it (see `share_budget`).

    A step is about two microseconds: one transition of an automaton, or a few ranges of two sets of characters.
    """

    __slots__ = ("_shared", "left")

    def __init__(self, steps: int) -> None:
        self.left = steps
        self._shared = _SHARED.get()

    def spend_steps(self, steps: int = 1) -> None:
        """Subtract steps from this budget and the shared one. Raises `BudgetExceeded` when none are left here.

        Raises `SharedBudgetExceeded` when none are left in the shared budget; callers must not take this for a result
        of their own comparison.
        """
        self.left -= steps
        if self._shared is not None:
            self._shared.left -= steps
            if self._shared.left < 0:
                raise SharedBudgetExceeded
        if self.left < 0:
            raise BudgetExceeded


_SHARED: ContextVar[StepBudget | None] = ContextVar("shared", default=None)


@contextmanager
def share_budget(steps: int) -> Iterator[None]:
    """Limit the total steps of all comparisons and matches inside the block, whatever budgets they have themselves."""
    token = _SHARED.set(StepBudget(steps))
    try:
        yield
    finally:
        _SHARED.reset(token)


class Term(msgspec.Struct, gc=False, eq=False):
    """One expression.

    The garbage collector does not track terms: there are hundreds of thousands of them, and none contains itself.

    kind      never · empty · leaf · seq · choice · repeat · all · open · both
    label     of a leaf: what it matches
    parts     sub-terms; of seq always (head, tail) where head is no seq
    bounds    of repeat one (low, high) pair, of all one per part; high is None when unbounded
    nullable  whether the term matches the empty word
    """

    kind: str
    label: Any = None
    parts: tuple[Term, ...] = ()
    bounds: tuple[tuple[int, int | None], ...] = ()
    nullable: bool = False


def _one_less(low: int, high: int | None) -> tuple[int, int | None]:
    return max(low - 1, 0), None if high is None else high - 1


class Algebra:
    """Builds terms and computes their first steps.

    meet returns the label that matches what two labels both match, None when there is nothing. label_steps returns the
    cost of looking at a label, in steps. remembered is the number of steps of terms that are cached.
    """

    def __init__(
        self,
        meet: Callable[[Any, Any], Hashable | None] | None = None,
        *,
        steps: int = 1_000_000,
        label_steps: Callable[[Any], int] = lambda _label: 1,
    ) -> None:
        self._table: dict[Hashable, Term] = {}
        self._steps: dict[Term, Steps] = {}
        self._met: dict[Term, int] = {}
        self._meet = meet
        self._meetings: dict[tuple[Any, Any], Hashable | None] = {}
        self.remembered = 0
        self.label_steps = label_steps
        self.budget = StepBudget(steps)
        self.never: Final = Term("never")
        self.empty: Final = Term("empty", nullable=True)

    def forget_terms(self) -> None:
        """Clear the caches. Terms in use stay valid, but are not identical to equal terms that are made later."""
        self._table.clear()
        self._steps.clear()
        self._meetings.clear()
        self.remembered = 0

    def _intern_term(self, key: Hashable, term: Term) -> Term:
        return self._table.setdefault(key, term)

    def make_leaf(self, label: Hashable) -> Term:
        """Return a term that matches exactly one symbol, one that label matches."""
        return self._intern_term(("leaf", label), Term("leaf", label))

    def make_sequence(self, *items: Term) -> Term:
        """Return a term that matches the items one after the other."""
        result = self.empty
        for item in reversed(items):
            result = self._sequence_of_two(item, result)
        return result

    def _sequence_of_two(self, head: Term, tail: Term) -> Term:
        if head is self.never or tail is self.never:
            return self.never
        if head is self.empty:
            return tail
        heads = []
        while head.kind == "seq":
            heads.append(head.parts[0])
            head = head.parts[1]
        heads.append(head)
        self.budget.spend_steps(len(heads))
        for item in reversed(heads):
            if tail is self.empty:
                tail = item
            else:
                term = Term("seq", parts=(item, tail), nullable=item.nullable and tail.nullable)
                tail = self._intern_term(("seq", item, tail), term)
        return tail

    def make_choice(self, items: Iterable[Term]) -> Term:
        """Return a term that matches one of the items; without items it matches nothing."""
        flat: dict[Term, None] = {}
        for item in items:
            for part in item.parts if item.kind == "choice" else (item,):
                if part is not self.never:
                    flat[part] = None
        self.budget.spend_steps(len(flat))
        if len(flat) <= 1:
            return next(iter(flat), self.never)
        parts = tuple(flat)
        return self._intern_term(
            ("choice", parts), Term("choice", parts=parts, nullable=any(p.nullable for p in parts))
        )

    def make_repeat(self, body: Term, low: int, high: int | None) -> Term:
        """Return a term that matches body between low and high times in a row; high is None when unbounded."""
        if high == 0 or body is self.empty:
            return self.empty
        if body is self.never:
            return self.empty if low == 0 else self.never
        if body.nullable:
            low = 0
        if (low, high) == (1, 1):
            return body
        if body.kind == "repeat" and body.bounds[0] == (0, None):
            return body
        term = Term("repeat", parts=(body,), bounds=((low, high),), nullable=low == 0)
        return self._intern_term(("repeat", body, low, high), term)

    def make_all(self, members: Iterable[tuple[Term, int, int | None]]) -> Term:
        """Return a term that matches each member between its bounds, the members in any order."""
        remaining = [(part, 0 if part.nullable else low, high) for part, low, high in members if high != 0]
        remaining = [member for member in remaining if member[0] is not self.empty]
        if any(part is self.never and low for part, low, _ in remaining):
            return self.never
        self.budget.spend_steps(len(remaining))
        if len(remaining) <= 1:
            return self.make_repeat(*remaining[0]) if remaining else self.empty
        # Members are sorted by their first use, so that equal sets of members become the same term.
        remaining.sort(key=lambda member: self._met.setdefault(member[0], len(self._met)))
        term = Term(
            "all",
            parts=tuple(part for part, _, _ in remaining),
            bounds=tuple((low, high) for _, low, high in remaining),
            nullable=all(low == 0 for _, low, _ in remaining),
        )
        return self._intern_term(("all", tuple(remaining)), term)

    def make_open(self, body: Term, between: Term) -> Term:
        """Return a term for body with any number of the leaf between, at any place (open content of XSD 1.1)."""
        if body is self.never:
            return body
        return self._intern_term(("open", body, between), Term("open", parts=(body, between), nullable=body.nullable))

    def make_intersection(self, one: Term, other: Term) -> Term:
        """Return a term that matches what both terms match. The algebra must have meet."""
        if one is self.never or other is self.never:
            return self.never
        if one is other:
            return one
        return self._intern_term(
            ("both", one, other), Term("both", parts=(one, other), nullable=one.nullable and other.nullable)
        )

    def first_steps(self, term: Term) -> Steps:
        """Return the labels the term can start with, each with what remains after it. Raises `BudgetExceeded`."""
        known = self._steps.get(term)
        if known is None:
            self.budget.spend_steps()
            steps: dict[tuple[Any, Term], None] = {}
            for step in self._find_steps(term):
                self.budget.spend_steps()
                steps[step] = None
            known = self._steps[term] = tuple(steps)
            self.remembered += len(known)
        return known

    def _find_steps(self, term: Term) -> Iterator[tuple[Any, Term]]:
        match term.kind:
            case "leaf":
                yield term.label, self.empty
            case "seq":
                yield from self._sequence_steps(term)
            case "choice":
                for part in term.parts:
                    yield from self.first_steps(part)
            case "repeat":
                again = self.make_repeat(term.parts[0], *_one_less(*term.bounds[0]))
                for label, rest in self.first_steps(term.parts[0]):
                    yield label, self._sequence_of_two(rest, again)
            case "all":
                yield from self._all_steps(term)
            case "open":
                body, between = term.parts
                for label, rest in self.first_steps(body):
                    yield label, self.make_open(rest, between)
                yield between.label, term
            case "both":
                yield from self._both_steps(*term.parts)

    def _sequence_steps(self, term: Term) -> Iterator[tuple[Any, Term]]:
        while term.kind == "seq":
            head, tail = term.parts
            for label, rest in self.first_steps(head):
                yield label, self._sequence_of_two(rest, tail)
            if not head.nullable:
                return
            self.budget.spend_steps()
            term = tail
        yield from self.first_steps(term)

    def _all_steps(self, term: Term) -> Iterator[tuple[Any, Term]]:
        members = [(part, *bounds) for part, bounds in zip(term.parts, term.bounds, strict=True)]
        for index, (part, low, high) in enumerate(members):
            others = [*members[:index], *members[index + 1 :], (part, *_one_less(low, high))]
            for label, rest in self.first_steps(part):
                yield label, self._sequence_of_two(rest, self.make_all(others))
            self.budget.spend_steps(len(members))

    def _both_steps(self, one: Term, other: Term) -> Iterator[tuple[Any, Term]]:
        for label, rest in self.first_steps(one):
            for label2, rest2 in self.first_steps(other):
                self.budget.spend_steps()
                common = self._meet_labels(label, label2)
                if common is not None:
                    yield common, self.make_intersection(rest, rest2)

    def _meet_labels(self, one: Any, other: Any) -> Hashable | None:
        assert self._meet is not None
        if (one, other) not in self._meetings:
            self.budget.spend_steps(self.label_steps(one) + self.label_steps(other))
            self._meetings[one, other] = self._meet(one, other)
        return self._meetings[one, other]


def sequence_items(term: Term) -> Iterator[Term]:
    """Yield the items of a seq; a term of another kind is its own only item."""
    while term.kind == "seq":
        yield term.parts[0]
        term = term.parts[1]
    yield term


class MissingWord(NamedTuple):
    """A word of the writer's term that the reader's term does not match.

    word    labels and symbols so far; the last one is what does not fit, unless the word only ends too early
    rest    what the writer's term requires after the word
    early   whether the word ends where the reader's term requires more
    wanted  labels that the reader's term allows at that position
    """

    word: tuple[tuple[Any, Any], ...]
    rest: Term
    early: bool
    wanted: tuple[Any, ...]


Split = Callable[[Any, Sequence[Any]], Iterable[tuple[Any, Sequence[Any]]]]
"""Splits a writer's label by the reader's labels into symbols, each with those of the reader's labels that match it."""


def find_missing_word(
    algebra: Algebra,
    writer: Term,
    reader: Term,
    split: Split,
    *,
    met: Callable[[Any, Any, Any], None] = lambda _label, _symbol, _other: None,
    covered: Callable[[Term, Term], bool] = lambda _reader, _writer: False,
) -> MissingWord | None:
    """Return a shortest word of writer that reader does not match; None when writer is contained in reader.

    met(writer's label, symbol, reader's label) is called for labels that meet. covered(reader, writer) can end a branch
    by returning True when it proves inclusion without a walk. Raises `BudgetExceeded`.
    """
    start = (writer, frozenset({reader}))
    seen = {start}
    layer: list[tuple[tuple[Term, frozenset[Term]], Any]] = [(start, None)]
    pieces: dict[tuple[Any, tuple[Any, ...]], list[tuple[Any, Sequence[Any]]]] = {}
    while layer:
        following = []
        for (term, others), trail in layer:
            algebra.budget.spend_steps(1 + len(others))
            if any(covered(other, term) for other in others):
                continue
            options = [step for other in others for step in algebra.first_steps(other)]
            algebra.budget.spend_steps(len(options))
            wanted = tuple(dict.fromkeys(label for label, _ in options))
            if term.nullable and not any(other.nullable for other in others):
                return MissingWord(_word_of_trail(trail), algebra.empty, True, wanted)
            for label, rest in algebra.first_steps(term):
                if (label, wanted) not in pieces:
                    algebra.budget.spend_steps(sum(map(algebra.label_steps, (label, *wanted))))
                    pieces[label, wanted] = list(split(label, wanted))
                for symbol, matching in pieces[label, wanted]:
                    algebra.budget.spend_steps(len(options))
                    step = (trail, label, symbol)
                    if not matching:
                        return MissingWord(_word_of_trail(step), rest, False, wanted)
                    for other in matching:
                        met(label, symbol, other)
                    state = (rest, frozenset(after for other, after in options if other in matching))
                    if state not in seen:
                        seen.add(state)
                        following.append((state, step))
        layer = following
    return None


def _word_of_trail(trail: Any) -> tuple[tuple[Any, Any], ...]:
    word = []
    while trail is not None:
        trail, label, symbol = trail
        word.append((label, symbol))
    return tuple(reversed(word))
