"""The structural diff: its types of change, which of them a policy allows, and how rules are run over two schemas.

Schemas may be recursive, huge or hostile. A rule compares one pair of shapes, and yields the changes there and the
inner pairs to compare. Through a cycle of references, the verdict on a pair can depend on itself. Such a pair is
assumed compatible until a change contradicts that, so the answer is the greatest fixed point, found with a worklist. No
function here recurses without bound.

The names of changes are those that the Confluent registry reports, so that its users recognize them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from stele.core.findings import Finding
from stele.errors import TooLarge
from stele.formats.jsonschema.confluent.shapes import SchemaShape
from stele.formats.jsonschema.json_text import escape_token
from stele.formats.jsonschema.parse import ParsedJsonSchema, excerpt_at

MAX_EVALUATIONS = 60_000
"""Maximum number of pairs that one comparison evaluates; a pair of long schemas counts several times."""

MAX_QUESTIONS = 1_000_000
"""Maximum number of calls of `is_compatible` in one comparison."""

_MEMBERS_PER_STEP = 50

MAX_REPORTED = 5_000
"""Number of pairs that are reported in full. After them, a pair that was already reported is left out."""

Path: TypeAlias = tuple[str, ...]


class LocalChange(NamedTuple):
    """A change at a path relative to the pair looked at."""

    type: str
    path: Path = ()


class InnerPair(NamedTuple):
    """An inner pair at a relative path. Its changes are also changes of the outer pair."""

    old: SchemaShape
    new: SchemaShape
    path: Path = ()


class CombinationBranch(NamedTuple):
    """A member of a combination, with a text that identifies it."""

    text: bytes
    shape: SchemaShape


Pair: TypeAlias = tuple[SchemaShape, SchemaShape]
Rule: TypeAlias = Callable[["SchemaDiff", SchemaShape, SchemaShape], Iterator[LocalChange | InnerPair]]


class SchemaDiff:
    """One comparison under one policy.

    rule      yields the changes and inner pairs of one pair
    allowed   the types of change that are compatible
    branches  the distinct members of combinations, cached when they are first needed
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
        """Return whether new reads all that old allows, as far as known.

        If the verdict changes later, the pair under evaluation that called this is evaluated again.
        """
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
        """Evaluate pairs in rounds until no verdict changes. New pairs come before pairs to evaluate again."""
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
        """Yield the changes: walk the pairs again after all verdicts are final.

        A compatible pair that occurs inside itself yields nothing there. An incompatible one yields its changes a
        second time, at the inner path. around are the pairs that enclose the walk. again is whether the walk is such a
        repetition, in which further occurrences yield nothing.
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


class SchemaChange(NamedTuple):
    """One difference between two schemas.

    type  name of the kind of change, upper case
    path  its position, as `#/` and JSON Pointer tokens from the root of the schema (`#/` is the root)
    """

    type: str
    path: str


_UPPER = ("MAX_LENGTH", "MAXIMUM", "EXCLUSIVE_MAXIMUM", "MAX_PROPERTIES", "MAX_ITEMS", "MAX_CONTAINS")
_LOWER = ("MIN_LENGTH", "MINIMUM", "EXCLUSIVE_MINIMUM", "MIN_PROPERTIES", "MIN_ITEMS", "MIN_CONTAINS")
_CONTENT = ("ADDITIONAL_PROPERTIES", "UNEVALUATED_PROPERTIES", "ADDITIONAL_ITEMS", "UNEVALUATED_ITEMS")

STRICT: frozenset[str] = frozenset(
    [
        *("ID_CHANGED", "DESCRIPTION_CHANGED", "TITLE_CHANGED", "DEFAULT_CHANGED"),
        *("SCHEMA_REMOVED", "TYPE_EXTENDED", "PATTERN_REMOVED", "UNIQUE_ITEMS_REMOVED"),
        *(f"{bound}_REMOVED" for bound in (*_UPPER, *_LOWER)),
        *(f"{bound}_INCREASED" for bound in _UPPER),
        *(f"{bound}_DECREASED" for bound in _LOWER),
        *("MULTIPLE_OF_REMOVED", "MULTIPLE_OF_REDUCED"),
        *("REQUIRED_ATTRIBUTE_REMOVED", "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED"),
        *("DEPENDENCY_ARRAY_REMOVED", "DEPENDENCY_ARRAY_NARROWED", "DEPENDENCY_SCHEMA_REMOVED"),
        *(f"{content}_{verb}" for content in _CONTENT for verb in ("ADDED", "EXTENDED")),
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ENUM_ARRAY_EXTENDED",
        *("COMBINED_TYPE_EXTENDED", "PRODUCT_TYPE_NARROWED", "SUM_TYPE_EXTENDED", "NOT_TYPE_NARROWED"),
    ]
)
"""Changes after which every document of the writer stays readable, as far as the rules check."""

LENIENT: frozenset[str] = STRICT | frozenset(
    [
        *(f"{content}_{verb}" for content in _CONTENT[:2] for verb in ("NARROWED", "REMOVED")),
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ]
)
"""STRICT, and changes that are safe if writers only send the properties that their schema names."""

BREAKING: frozenset[str] = frozenset(
    [
        *("SCHEMA_ADDED", "TYPE_CHANGED", "TYPE_NARROWED", "PATTERN_ADDED", "PATTERN_CHANGED", "UNIQUE_ITEMS_ADDED"),
        *(f"{bound}_ADDED" for bound in (*_UPPER, *_LOWER)),
        *(f"{bound}_DECREASED" for bound in _UPPER),
        *(f"{bound}_INCREASED" for bound in _LOWER),
        *("MULTIPLE_OF_ADDED", "MULTIPLE_OF_EXPANDED", "MULTIPLE_OF_CHANGED"),
        "REQUIRED_ATTRIBUTE_ADDED",
        *(f"DEPENDENCY_ARRAY_{verb}" for verb in ("ADDED", "EXTENDED", "CHANGED")),
        "DEPENDENCY_SCHEMA_ADDED",
        *(f"{content}_{verb}" for content in _CONTENT[2:] for verb in ("NARROWED", "REMOVED")),
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        *("ENUM_ARRAY_NARROWED", "ENUM_ARRAY_CHANGED"),
        *("COMBINED_TYPE_CHANGED", "COMBINED_TYPE_SUBSCHEMAS_CHANGED"),
        *("PRODUCT_TYPE_EXTENDED", "SUM_TYPE_NARROWED", "NOT_TYPE_EXTENDED"),
    ]
)
"""Changes that no policy allows."""

ALL: frozenset[str] = LENIENT | BREAKING
"""All types of change."""


class _Advice(NamedTuple):
    why: str
    fix: str


_REFUSED = "The reader refuses documents the writer may have written: "
_EXACT = {
    "TYPE_CHANGED": _Advice(
        _REFUSED + "the two schemas describe values of different kinds.",
        "Keep the kind of value, or allow both by anyOf.",
    ),
    "TYPE_NARROWED": _Advice(_REFUSED + "numbers with a fraction are no integers.", "Keep the type number."),
    "SCHEMA_ADDED": _Advice(_REFUSED + "items were free and now have to fit a schema.", "Leave the items free."),
    "PATTERN_ADDED": _Advice(_REFUSED + "strings were free and now have to match.", "Leave the pattern out."),
    "PATTERN_CHANGED": _Advice(
        "It cannot be decided whether all strings that matched the old pattern match the new one.", "Keep the pattern."
    ),
    "UNIQUE_ITEMS_ADDED": _Advice(_REFUSED + "items may repeat.", "Leave uniqueItems out."),
    "MULTIPLE_OF_ADDED": _Advice(_REFUSED + "numbers were free.", "Leave multipleOf out."),
    "MULTIPLE_OF_EXPANDED": _Advice(_REFUSED + "fewer numbers are multiples.", "Keep multipleOf, or a divisor of it."),
    "MULTIPLE_OF_CHANGED": _Advice(_REFUSED + "other numbers are multiples.", "Keep multipleOf, or a divisor of it."),
    "REQUIRED_ATTRIBUTE_ADDED": _Advice(
        _REFUSED + "the property may be absent.", "Do not require the property, or give it a default."
    ),
    "DEPENDENCY_ARRAY_ADDED": _Advice(_REFUSED + "the property did not need others.", "Leave the dependency out."),
    "DEPENDENCY_ARRAY_EXTENDED": _Advice(_REFUSED + "the property needs more others now.", "Keep the dependency."),
    "DEPENDENCY_ARRAY_CHANGED": _Advice(_REFUSED + "the property needs others than before.", "Keep the dependency."),
    "DEPENDENCY_SCHEMA_ADDED": _Advice(_REFUSED + "the property added no schema.", "Leave the dependency out."),
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _Advice(
        "The writer's objects are open: a member of this name may hold any value, which the reader now checks.",
        "Close the object (additionalProperties: false) before adding properties, or compare with confluent-lenient.",
    ),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": _Advice(
        "The writer's objects are open: a member of this name may hold any value, which the reader now checks.",
        "Close the object (additionalProperties: false) before adding properties, or compare with confluent-lenient.",
    ),
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _Advice(
        _REFUSED + "they need not have the property.", "Do not require the property, or give it a default."
    ),
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": _Advice(
        _REFUSED + "they do not have the property.", "Do not require the property, or give it a default."
    ),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": _Advice(
        _REFUSED + "the reader's objects are closed, so the property is one too many.",
        "Keep the property, or open the object; confluent-lenient lets this pass.",
    ),
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": _Advice(
        "The writer's arrays may hold anything at this position, which the reader now checks.",
        "Close the tuple (additionalItems: false) before adding positions.",
    ),
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": _Advice(
        _REFUSED + "the reader's tuple is closed, so the item is one too many.", "Keep the item, or open the tuple."
    ),
    "ENUM_ARRAY_NARROWED": _Advice(_REFUSED + "a value is no longer listed.", "Keep every value ever listed."),
    "ENUM_ARRAY_CHANGED": _Advice(_REFUSED + "a value is no longer listed.", "Keep every value ever listed."),
    "COMBINED_TYPE_CHANGED": _Advice(
        _REFUSED + "the branches add up in another way.", "Keep the keyword, or change it to anyOf."
    ),
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": _Advice(
        _REFUSED + "not every branch of the writer has a branch of its own that reads it.",
        "Change branches compatibly, or add new ones.",
    ),
    "PRODUCT_TYPE_EXTENDED": _Advice(_REFUSED + "there is one more condition to meet.", "Leave allOf as it is."),
    "SUM_TYPE_NARROWED": _Advice(_REFUSED + "a branch was removed.", "Keep every branch."),
    "NOT_TYPE_EXTENDED": _Advice(_REFUSED + "more is forbidden now.", "Forbid less, not more."),
}
_BY_ENDING = {
    "_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _Advice(
        _REFUSED + "the schema for additional members does not accept it.",
        "Give the member the schema that covers its name.",
    ),
    "_NARROWED": _Advice(_REFUSED + "additional members must now match a schema.", "Leave them free."),
    "_REMOVED": _Advice(_REFUSED + "additional members are no longer allowed.", "Keep allowing them."),
    "_ADDED": _Advice(_REFUSED + "there was no such limit.", "Leave the limit out."),
    "_INCREASED": _Advice(_REFUSED + "smaller ones were allowed.", "Keep the lower limit, or lower it."),
    "_DECREASED": _Advice(_REFUSED + "larger ones were allowed.", "Keep the upper limit, or raise it."),
}


def build_findings(
    changes: list[SchemaChange],
    allowed: frozenset[str],
    reader: ParsedJsonSchema,
    writer: ParsedJsonSchema,
    advice: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> list[Finding]:
    """Return one finding for each change that is not allowed, once for each path.

    advice overrides `change_advice`: it has (why, fix) by type of change.
    """
    return [
        _build_finding(change, reader, writer, advice.get(change.type) or change_advice(change.type))
        for change in dict.fromkeys(changes)
        if change.type not in allowed
    ]


def change_advice(change: str) -> tuple[str, str]:
    """Return why a type of change matters and what to do about it; ('', '') for types that every policy allows."""
    if change in STRICT:
        return "", ""
    if change in _EXACT:
        return _EXACT[change]
    advice = next((text for ending, text in _BY_ENDING.items() if change.endswith(ending)), None)
    return advice or _EXACT["TYPE_CHANGED"]


def _build_finding(
    change: SchemaChange, reader: ParsedJsonSchema, writer: ParsedJsonSchema, advice: tuple[str, str]
) -> Finding:
    why, fix = advice
    return Finding(
        rule=change.type,
        path=change.path,
        reader=_excerpt_at(reader, change.path),
        writer=_excerpt_at(writer, change.path),
        why=why,
        fix=fix,
    )


def _excerpt_at(parsed: ParsedJsonSchema, path: str) -> str:
    """Return what a schema has at the path of a change, '' where the text has no such path."""
    tokens = path.removeprefix("#/").split("/") if path != "#/" else ()
    return excerpt_at(parsed, (token.replace("~1", "/").replace("~0", "~") for token in tokens))


RULESETS = {"confluent": STRICT, "confluent-lenient": LENIENT}
"""The rulesets of this family, each with the types of change that it allows."""
