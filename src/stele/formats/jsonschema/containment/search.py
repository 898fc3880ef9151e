"""Searches for a document that the writer's schema allows and the reader's refuses.

Values are made for each position from what both schemas require there: at, beside and between their bounds, of every
type, of every branch. Each position passes only a few values to the enclosing one, first those that a schema of the
reader refuses. Objects and arrays are made of the values of their positions. All values are guesses: the two validators
decide. Nothing is random, so the same two schemas get the same answer. The work is limited by steps, not by seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from stele.formats.jsonschema.containment.document import DocumentView, Parts, Schemas, item_schemas, member_schemas
from stele.formats.jsonschema.containment.provers import StructuralProver, listed_values
from stele.formats.jsonschema.containment.samples import make_arrays, make_numbers, make_objects, make_strings
from stele.formats.jsonschema.json_text import Json, to_hashable


class SearchPass(NamedTuple):
    """Limits of one pass of a search through a pair of schemas.

    depth   maximum nesting
    share   fraction of the steps of a search
    tries   values made for a position right below the root; half as many on each further level, but at least `fewest`
    fewest  least number of values made for a position
    """

    depth: int
    share: float
    tries: int = 120
    fewest: int = 40


PASSES = (SearchPass(2, 0.1, tries=12, fewest=6), SearchPass(2, 0.15), SearchPass(4, 0.25), SearchPass(16, 0.6))
"""The passes of a search: first a quick one for obvious cases, then wide and shallow, then deep."""

MAX_VALUES = 14
"""Maximum number of values that one position passes to the enclosing one."""

LONGEST = 0.25
"""Processor seconds after which a search ends even with steps left: a guard against slow validation.

It is not reached otherwise. It counts processor time, so other processes do not influence a verdict.
"""

_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_DEEP = frozenset(["$ref", "items", "prefixItems", "properties", "additionalProperties", "anyOf", "oneOf", "allOf"])
_TURNS = (3, 4, 6, 10, 20, 40)
_SHOWN = 100
_ENOUGH_OF_THE_SAME = 4


class Witness(NamedTuple):
    """A counter-example. It is wrapped because the document can be null."""

    document: Json


def find_witness(
    reader: DocumentView, writer: DocumentView, structure: StructuralProver, steps: int, proves: Callable[[Json], bool]
) -> Witness | None:
    """Return the first document found for which proves returns True; None when steps run out."""
    end = time.thread_time() + LONGEST
    for each in PASSES:
        witness = Search(reader, writer, structure, SearchBudget(int(steps * each.share), end), each).find_witness(
            proves
        )
        if witness is not None:
            return witness
    return None


class SearchBudget:
    """Steps that are left; one step is one value made. end is a value of `time.thread_time()`."""

    def __init__(self, steps: int, end: float) -> None:
        self._steps = steps
        self._end = end
        self._look_at = time.monotonic() + end - time.thread_time()

    @property
    def is_over(self) -> bool:
        """Whether no step or no time is left; the search must then end."""
        return self._steps < 0 or self._has_ended()

    def try_spend(self) -> bool:
        """Spend a step. Return False when none is left."""
        self._steps -= 1
        return self._steps >= 0 and (self._steps % 16 != 0 or not self._has_ended())

    def _has_ended(self) -> bool:
        """Return whether the time is over.

        The wall clock is read first because that is faster; it never lags behind processor time.
        """
        return time.monotonic() >= self._look_at and time.thread_time() >= self._end


class Search:
    """One pass of the search for one pair of schemas."""

    def __init__(
        self,
        reader: DocumentView,
        writer: DocumentView,
        structure: StructuralProver,
        budget: SearchBudget,
        manner: SearchPass,
    ) -> None:
        self._structure = structure
        self._manner = manner
        self._reader = reader
        self._writer = writer
        self._budget = budget
        self._known: dict[tuple[object, ...], list[Json]] = {}

    def find_witness(self, proves: Callable[[Json], bool]) -> Witness | None:
        """Return the first document found for which proves returns True; None when there is none or no step is left."""
        for value in self._make_candidates((self._writer.root,), (self._reader.root,), 0):
            if not self._budget.try_spend():
                return None
            if proves(value):
                return Witness(value)
        return None

    def choose_values(self, writer: Schemas, reader: Schemas, depth: int) -> list[Json]:
        """Return a few values that fit the writer's schemas: a plain one, then those that the reader's refuse."""
        key = (tuple(map(id, writer)), tuple(map(id, reader)), depth)
        if key in self._known:
            return self._known[key]
        if False in writer or depth > self._manner.depth:
            return []
        groups: dict[tuple[object, ...], list[Json]] = {}
        marks: set[object] = set()
        most = max(self._manner.fewest, self._manner.tries * 2 >> depth)
        enough = most if self._is_promising(writer, reader) else _ENOUGH_OF_THE_SAME
        for tries, value in enumerate(self._make_candidates(writer, reader, depth)):
            if tries > most or len(marks) >= enough or not self._budget.try_spend():
                break
            mark = to_hashable(value)
            if mark in marks or not self._writer.is_accepted(writer, value):
                continue
            marks.add(mark)
            why = (type(value).__name__, *(self._reader.is_accepted((schema,), value) for schema in reader))
            groups.setdefault(why, []).append(value)
        self._known[key] = chosen = _choose_fairly(groups)
        return chosen

    def _is_promising(self, writer: Schemas, reader: Schemas) -> bool:
        """Return whether the reader might refuse a value here: containment is not proved."""
        proves = self._structure.can_prove
        return not all(any(proves(mine, theirs) for theirs in writer or (True,)) for mine in reader)

    def _rank_place(self, writer: Schemas, reader: Schemas) -> int:
        """Return the rank of a position: 2 if a refusal is not possible there.

        Otherwise it is 0 if no deeper search is needed, and 1 if one is.
        """
        if not self._is_promising(writer, reader):
            return 2
        return int(any(isinstance(schema, dict) and not _DEEP.isdisjoint(schema) for schema in (*writer, *reader)))

    def _make_candidates(self, writer: Schemas, reader: Schemas, depth: int) -> Iterator[Json]:
        """Yield values that may fit the writer's schemas."""
        own_hints = self._writer.list_hints(writer)
        hints = self._reader.list_hints(reader)
        yield from _mentioned_values(own_hints, hints)
        alternatives = self._writer.list_alternatives(writer, limit=200 if depth == 0 else 12)
        # Schemas that list their values allow no others, and these were already yielded.
        alternatives = [parts for parts in alternatives if all(listed_values(part) is None for part in parts)]
        sources = [
            self._make_of_type(kind, parts, [*own_hints, *hints], hints, depth)
            for parts in alternatives
            for kind in _types_of_parts(parts)
        ]
        if self._structure.strings is not None:
            sources.append(self._structure.strings.find_words(reader, writer))
        yield from _in_turns(sources)

    def _make_of_type(self, kind: str, own: Parts, everything: Parts, hints: Parts, depth: int) -> Iterator[Json]:
        if kind == "null":
            yield None
        elif kind == "boolean":
            yield from (True, False)
        elif kind == "integer":
            yield from (value for value in make_numbers(everything) if isinstance(value, int))
        elif kind == "number":
            yield from make_numbers(everything)
        elif kind == "string":
            yield from make_strings(own, everything)
        elif kind == "array":
            yield from make_arrays(
                own,
                everything,
                lambda index: self._item_values(own, hints, index, depth),
                lambda: self._contained_values(own, hints, depth),
            )
        else:
            strings = self._structure.strings
            yield from make_objects(
                own,
                everything,
                strings.find_names(hints, own) if strings is not None else (),
                lambda name: self._member_values(own, hints, name, depth),
                lambda name: self._member_rank(own, hints, name),
            )

    def _member_rank(self, own: Parts, hints: Parts, name: str) -> int:
        if self._budget.is_over:
            return 2
        return self._rank_place(member_schemas(own, name, guess=True), member_schemas(hints, name))

    def _member_values(self, own: Parts, hints: Parts, name: str, depth: int) -> list[Json]:
        if self._budget.is_over:
            return []
        return self.choose_values(member_schemas(own, name, guess=True), member_schemas(hints, name), depth + 1)

    def _item_values(self, own: Parts, hints: Parts, index: int, depth: int) -> list[Json]:
        if self._budget.is_over:
            return []
        return self.choose_values(
            item_schemas(own, index, guess=True), (*item_schemas(hints, index), *_contains_schemas(hints)), depth + 1
        )

    def _contained_values(self, own: Parts, hints: Parts, depth: int) -> list[Json]:
        wanted = _contains_schemas(own)
        return (
            self.choose_values(
                (*item_schemas(own, 0, guess=True), *wanted),
                (*item_schemas(hints, 0), *_contains_schemas(hints)),
                depth + 1,
            )
            if wanted
            else []
        )


def _choose_fairly(groups: dict[tuple[object, ...], list[Json]]) -> list[Json]:
    """Return the value that fewest schemas refuse, then one value of each group in turn, refused groups first."""
    ordered = sorted(groups.items(), key=lambda group: sum(group[0][1:]))  # type: ignore[arg-type]  # booleans
    chosen: list[Any] = [ordered[-1][1].pop(0)] if ordered else []
    for turn in range(MAX_VALUES):
        for _, values in ordered:
            if turn < len(values) and len(chosen) < MAX_VALUES:
                chosen.append(values[turn])
    return chosen


def _contains_schemas(parts: Parts) -> Schemas:
    return tuple(part["contains"] for part in parts if "contains" in part)


def _in_turns(sources: list[Iterator[Json]]) -> Iterator[Json]:
    """Yield a few values of each source, then some more of each, then the rest."""
    for count in (*_TURNS, None):
        for source in sources:
            yield from islice(source, count)


def _mentioned_values(own: Parts, hints: Parts) -> Iterator[Json]:
    """Yield the values that the schemas list, first those that only the writer lists."""
    known = {to_hashable(value) for part in hints for value in listed_values(part) or ()}
    spelled_out = [value for part in own for value in listed_values(part) or ()]
    yield from (value for value in spelled_out if to_hashable(value) not in known)
    yield from islice((value for value in spelled_out if to_hashable(value) in known), _SHOWN)
    yield from islice((value for part in hints for value in listed_values(part) or ()), _SHOWN)


def _types_of_parts(parts: Parts) -> list[str]:
    """Return the types all parts allow."""
    allowed = list(_TYPES)
    for part in parts:
        names = part.get("type", _TYPES)
        names = (names,) if isinstance(names, str) else tuple(names)
        if "number" in names and "integer" not in names:
            names = (*names, "integer")
        allowed = [name for name in allowed if name in names]
    return [name for name in allowed if name != "integer" or "number" not in allowed]


MAX_TRIES = 300
"""Maximum number of smaller documents that are tried."""


def shrink_document(value: Json, proves: Callable[[Json], bool]) -> Json:
    """Return the document without the members and items that a counter-example does not need."""
    tries = 0
    progress = True
    while progress:
        progress = False
        for smaller in _smaller_documents(value):
            tries += 1
            if tries > MAX_TRIES:
                return value
            if proves(smaller):
                value, progress = smaller, True
                break
    return value


def _smaller_documents(value: Json) -> Iterator[Json]:
    """Yield documents with one member or item less, outer ones first."""
    if isinstance(value, dict):
        for name in value:
            yield {each: inner for each, inner in value.items() if each != name}
        for name, inner in value.items():
            yield from ({**value, name: smaller} for smaller in _smaller_documents(inner))
    elif isinstance(value, list):
        if len(value) > 3:
            yield value[: len(value) // 2]
        for index in range(min(len(value), 50)):
            yield value[:index] + value[index + 1 :]
        for index, inner in enumerate(value[:50]):
            yield from ([*value[:index], smaller, *value[index + 1 :]] for smaller in _smaller_documents(inner))
