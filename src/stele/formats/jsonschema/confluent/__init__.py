"""The rulesets `confluent` and `confluent-lenient`: a structural diff, and a table of harmless changes for each.

Written from the published behaviour of the Confluent registry (names of changes, content models, matching of branches).
What those rules ignore is ignored here: `patternProperties` as such, `propertyNames`, `format`, of `contains` all but
its bounds, `if`/`then`/`else`, names in `required` that are in no `properties`, the boolean bounds of draft-04.

Three faults of the Confluent registry are left out. There, a default that is an object or array counts as changed
whenever it is compared, multiples are compared without their fractions, and a lowered `exclusiveMaximum` may fail.

Source: docs/protocols/json-schema.md#confluents-rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from stele.formats.jsonschema.confluent.keyword_rules import (
    compare_annotations,
    compare_arrays,
    compare_constants,
    compare_enums,
    compare_numbers,
    compare_objects,
    compare_strings,
)
from stele.formats.jsonschema.confluent.schema_diff import (
    ALL,
    LENIENT,
    RULESETS,
    STRICT,
    CombinationBranch,
    InnerPair,
    LocalChange,
    SchemaChange,
    SchemaDiff,
    build_findings,
)
from stele.formats.jsonschema.confluent.shapes import (
    Criterion,
    Member,
    ReferencePart,
    SchemaShape,
    ShapeKind,
    ShapeModel,
)
from stele.formats.jsonschema.json_text import write_json
from stele.formats.jsonschema.parse import ParsedJsonSchema

__all__ = ["ALL", "LENIENT", "RULESETS", "STRICT", "SchemaChange", "build_findings", "list_changes"]


def into_combination(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    """Compare a plain schema with a combination: one branch of `anyOf` or `oneOf`, or the only branch, must read it."""
    if len(new.members) > 1 and new.criterion is Criterion.ALL:
        return
    for index in range(len(new.members)):
        branch = new.get_member(index)
        if comparison.is_compatible(old, branch):
            yield InnerPair(old, branch)
            if len(new.members) > 1:
                yield LocalChange("SUM_TYPE_EXTENDED")
            return


def out_of_combination(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    """Compare a combination with a plain schema, which must read one member of `allOf`, or the only branch."""
    if len(old.members) > 1 and old.criterion is not Criterion.ALL:
        return
    for index in range(len(old.members)):
        branch = old.get_member(index)
        if comparison.is_compatible(branch, new):
            yield InnerPair(branch, new)
            if len(old.members) > 1:
                yield LocalChange("PRODUCT_TYPE_NARROWED")
            return


def compare_combinations(
    comparison: SchemaDiff, old: SchemaShape, new: SchemaShape
) -> Iterator[LocalChange | InnerPair]:
    """Compare two combinations: their criteria, their sizes, and their branches, paired off."""
    if old.criterion is not new.criterion:
        if not _criterion_may_change(old, new):
            yield LocalChange("COMBINED_TYPE_CHANGED")
            return
        yield LocalChange("COMBINED_TYPE_EXTENDED")
    before, after = _distinct_branches(comparison, old), _distinct_branches(comparison, new)
    if len(before) < len(after):
        yield LocalChange("PRODUCT_TYPE_EXTENDED" if new.criterion is Criterion.ALL else "SUM_TYPE_EXTENDED")
    elif len(before) > len(after):
        yield LocalChange("PRODUCT_TYPE_NARROWED" if old.criterion is Criterion.ALL else "SUM_TYPE_NARROWED")
    matched = _pair_off(comparison, before, after)
    for index, partner in matched:
        yield InnerPair(before[index].shape, after[partner].shape, (old.criterion.value, str(index)))
    if len(matched) < min(len(before), len(after)):
        yield LocalChange("COMBINED_TYPE_SUBSCHEMAS_CHANGED")


def compare_negations(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    """Compare two negations. The change is a narrowing if the new schema forbids no more than the old one."""
    before, after = old.model.get_shape(old.source["not"]), new.model.get_shape(new.source["not"])
    yield LocalChange("NOT_TYPE_NARROWED" if comparison.is_compatible(after, before) else "NOT_TYPE_EXTENDED", ("not",))


def _criterion_may_change(old: SchemaShape, new: SchemaShape) -> bool:
    """Return whether the criterion may change: always to anyOf, otherwise only if one side has a single member."""
    if new.criterion is Criterion.ANY:
        return True
    if len(new.members) == 1:
        return len(old.members) == 1 or old.criterion is Criterion.ALL
    return new.criterion is Criterion.ONE and len(old.members) == 1


def _distinct_branches(comparison: SchemaDiff, combination: SchemaShape) -> list[CombinationBranch]:
    """Return the members without repetitions; parts of a split schema are equal when kind and keywords are."""
    known = comparison.branches.get(combination)
    if known is None:
        index_by_text: dict[bytes, int] = {}
        for index, member in enumerate(combination.members):
            index_by_text.setdefault(_member_text(member), index)
        known = [CombinationBranch(text, combination.get_member(index)) for text, index in index_by_text.items()]
        comparison.branches[combination] = known
    return known


def _member_text(member: Member) -> bytes:
    if isinstance(member, SchemaShape):
        kind = f"{member.kind.value} {member.criterion.value} {member.integer} "
        return kind.encode() + write_json(member.source, order="sorted")
    if isinstance(member, ReferencePart):
        return b"reference " + write_json(member.target, order="sorted")
    return write_json(member, order="sorted")


def _pair_off(
    comparison: SchemaDiff, old: list[CombinationBranch], new: list[CombinationBranch]
) -> list[tuple[int, int]]:
    """Return a maximum matching of old branches with new ones that read them, as (old, new) in order.

    Equal branches are paired first, so that long lists with few changes need few comparisons.
    """
    places = {branch.text: index for index, branch in enumerate(new)}
    pairs: dict[int, int] = {}
    for index, branch in enumerate(old):
        place = places.get(branch.text)
        if place is not None and comparison.is_compatible(branch.shape, new[place].shape):
            pairs[index] = place

    def list_readers(index: int) -> list[int]:
        return [i for i, branch in enumerate(new) if comparison.is_compatible(old[index].shape, branch.shape)]

    return maximum_matching(len(old), len(new), list_readers, pairs)


def maximum_matching(
    lefts: int, rights: int, partners: Callable[[int], list[int]], start: dict[int, int]
) -> list[tuple[int, int]]:
    """Return a maximum bipartite matching as (left, right) pairs.

    It is found with augmenting paths, breadth first, from the matching `start` (left to right). partners returns the
    right nodes that a left node can be matched with; it is called only for nodes where the result depends on it.
    """
    right_of = dict(start)
    left_of = {right: left for left, right in right_of.items()}
    for first in range(lefts):
        if len(right_of) == rights:
            break
        if first in right_of:
            continue
        end, came_from = _augmenting_path(first, partners, left_of)
        while end is not None:
            left = came_from[end]
            following = right_of.get(left)
            right_of[left], left_of[end] = end, left
            end = following
    return sorted(right_of.items())


def _augmenting_path(
    first: int, partners: Callable[[int], list[int]], left_of: dict[int, int]
) -> tuple[int | None, dict[int, int]]:
    """Return the free right node where a shortest augmenting path ends (None without one), and the way back."""
    came_from: dict[int, int] = {}
    queue = deque([first])
    while queue:
        left = queue.popleft()
        for right in partners(left):
            if right in came_from:
                continue
            came_from[right] = left
            if right not in left_of:
                return right, came_from
            queue.append(left_of[right])
    return None, came_from


def list_changes(
    reader: ParsedJsonSchema, writer: ParsedJsonSchema, *, allowed: frozenset[str] = STRICT
) -> list[SchemaChange]:
    """Return the changes from the writer's schema (the original) to the reader's (the update), harmless ones included.

    allowed is the table of compatible changes: it decides which branches of combinations are matched.
    Raises `TooLarge` when the comparison needs too many steps.
    """
    return SchemaDiff(compare_pair, allowed).list_changes(
        ShapeModel(writer).get_shape(writer.root), ShapeModel(reader).get_shape(reader.root)
    )


def compare_pair(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    """Yield the changes between one pair, and the pairs inside it."""
    across: list[LocalChange | InnerPair] = []
    if new.kind is ShapeKind.COMBINED and old.kind is not ShapeKind.COMBINED:
        across = list(into_combination(comparison, old, new))
    elif old.kind is ShapeKind.COMBINED and new.kind is not ShapeKind.COMBINED:
        across = list(out_of_combination(comparison, old, new))
    if across:
        yield from across
    elif old.kind is not new.kind or (old.kind is ShapeKind.EMPTY and old.whole is not new.whole):
        if old.kind is not ShapeKind.FALSE and new.kind is not ShapeKind.EMPTY and not _both_bytes(old, new):
            yield LocalChange("TYPE_CHANGED")
    else:
        yield from compare_annotations(old, new)
        yield from _same_kind(comparison, old, new)


def _same_kind(comparison: SchemaDiff, old: SchemaShape, new: SchemaShape) -> Iterator[LocalChange | InnerPair]:
    match old.kind:
        case ShapeKind.STRING:
            yield from compare_strings(old, new)
        case ShapeKind.NUMBER:
            yield from compare_numbers(old, new)
        case ShapeKind.ENUM:
            yield from compare_enums(old, new)
        case ShapeKind.CONST:
            yield from compare_constants(old, new)
        case ShapeKind.OBJECT:
            yield from compare_objects(comparison, old, new)
        case ShapeKind.ARRAY:
            yield from compare_arrays(comparison, old, new)
        case ShapeKind.COMBINED:
            yield from compare_combinations(comparison, old, new)
        case ShapeKind.NOT:
            yield from compare_negations(comparison, old, new)
        case _:
            return


def _both_bytes(old: SchemaShape, new: SchemaShape) -> bool:
    """Return whether both schemas are Kafka Connect's bytes.

    Kafka Connect writes bytes as string or as number and marks them by `connect.type`. The rules use the same mark.
    """
    return all(shape.whole and shape.source.get("connect.type") == "bytes" for shape in (old, new))
