"""The flags `filter` and `sort`: which entities of the tree are shown, and in which order.

Both name members of entities by paths: `labels.env`, `info['my.name']`, `stack[3]`. In filters, `*` matches any member
or item.

Source: docs/protocols/xregistry.md#filters
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from stele.apis.xregistry.attributes import normalize_time
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.params import ATTRIBUTES, Level

_STEP = re.compile(
    r"""\.?(?P<name>[A-Za-z0-9_:@~$*-]+)|\[(?P<index>\d{1,9}|\*)\]|\[(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)")\]"""
)
_MOST_STEPS: Final = 32


class Step(NamedTuple):
    """One step of a path: a name, an index, or any member or item."""

    name: str = ""
    position: int = -1
    is_any: bool = False


def parse_path(text: str) -> tuple[Step, ...]:
    """Return the steps of a path. Raises `ValueError` for an invalid path."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or len(steps) == _MOST_STEPS or (position and text[position] not in ".["):
            raise ValueError(f"{text[:80]!r} is not a path")
        if match["index"] is not None:
            steps.append(Step(is_any=True) if match["index"] == "*" else Step(position=int(match["index"])))
        elif match["name"] is not None:
            steps.append(Step(is_any=True) if match["name"] == "*" else Step(match["name"]))
        else:
            steps.append(Step(match["single"] if match["single"] is not None else match["double"]))
        position = match.end()
    if not steps:
        raise ValueError("the path is empty")
    return tuple(steps)


def find_values(value: Any, path: Sequence[Step]) -> Iterator[Any]:
    """Yield the values at a path, except None."""
    if not path:
        if value is not None:
            yield value
        return
    step, rest = path[0], path[1:]
    if step.is_any:
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for member in members:
            yield from find_values(member, rest)
    elif step.position >= 0:
        if isinstance(value, list) and step.position < len(value):
            yield from find_values(value[step.position], rest)
    elif isinstance(value, dict) and step.name in value:
        yield from find_values(value[step.name], rest)


COLLECTIONS: Final = {Level.REGISTRY: "schemagroups", Level.GROUP: "schemas", Level.SCHEMA: "versions"}
"""Name of the collection in an entity, by the level of the entity."""
_BELOW: Final = {Level.REGISTRY: Level.GROUP, Level.GROUP: Level.SCHEMA, Level.SCHEMA: Level.VERSION}
_TIMES: Final = frozenset({"createdat", "modifiedat", "effective", "removal"})
"""Names of attributes that are timestamps."""
EXCLUDE_ALL: Final = "excludeall"
"""Filter that excludes all entities."""

_OPERATOR = re.compile(r"(<=|>=|!=|<>|=|<|>)")
_MOST_EXPRESSIONS: Final = 100
_QUOTED = re.compile(r"\['[^']*'\]|\[\"[^\"]*\"\]")


class FilterExpression(NamedTuple):
    """One comparison: the collections on its path, the path of the attribute, operator and value.

    Attributes:
        collections: Names of the collections from where the filter begins.
        path: Steps to the attribute in the entity.
        operator: `` (is present), `=`, `!=`, `<`, `<=`, `>` or `>=`.
        value: Value to compare with; None is `null`.
        text: The expression without its collections.
    """

    collections: tuple[str, ...]
    path: tuple[Step, ...]
    operator: str
    value: str | None
    text: str

    def matches(self, entity: dict[str, Any]) -> bool:
        """Return whether an entity has an attribute that satisfies the expression."""
        values = [_shorten_time(each, self.path) for each in find_values(entity, self.path)]
        if self.operator == "":
            return bool(values)
        if self.value is None:
            return bool(values) if self.operator == "!=" else not values
        has_match = any(_compare(self.operator if self.operator != "!=" else "=", each, self.value) for each in values)
        return not has_match if self.operator == "!=" else has_match

    def step_down(self) -> FilterExpression:
        """Return the expression relative to its first collection."""
        return self._replace(collections=self.collections[1:])

    def __str__(self) -> str:
        return ".".join((*self.collections, self.text))


Filter = tuple[FilterExpression, ...]
"""Expressions that must all hold."""
Filters = tuple[Filter, ...]
"""Filters of which at least one must hold. Without filters, all entities pass."""


def parse_filters(texts: Iterable[str], level: Level) -> Filters | None:
    """Return the filters of a request.

    Args:
        texts: Values of the flag.
        level: Level at which they begin.

    Returns:
        The filters; None for the filter that excludes all entities.

    Raises:
        RegistryError: `bad_filter`.
    """
    flag_values = tuple(texts)
    if any(EXCLUDE_ALL in text.split(",") for text in flag_values):
        if flag_values != (EXCLUDE_ALL,):
            raise RegistryError(
                "bad_filter", value=flag_values[0][:200], error_detail=f"{EXCLUDE_ALL} must be the only filter"
            )
        return None
    filters = tuple(tuple(_parse_expression(part, level) for part in _split(text)) for text in flag_values)
    if sum(map(len, filters)) > _MOST_EXPRESSIONS:
        raise RegistryError(
            "bad_filter", value=flag_values[0][:200], error_detail=f"at most {_MOST_EXPRESSIONS} are taken"
        )
    return filters


def _split(text: str) -> list[str]:
    """Return the expressions between the commas; commas in quotes do not separate."""
    masked = _QUOTED.sub(lambda match: match[0].replace(",", "\0"), text)
    return [part.replace("\0", ",") for part in masked.split(",")]


def _parse_expression(text: str, level: Level) -> FilterExpression:
    def refuse(why: str) -> RegistryError:
        return RegistryError("bad_filter", value=text[:200], error_detail=why)

    masked = _QUOTED.sub(lambda match: "x" * len(match[0]), text)
    match = _OPERATOR.search(masked)
    name = text[: match.start()] if match is not None else text
    operator = {"<>": "!="}.get(match[0], match[0]) if match is not None else ""
    value = text[match.end() :] if match is not None else ""
    try:
        path = parse_path(name)
    except ValueError as error:
        raise refuse(str(error)) from None
    collections: list[str] = []
    at = level
    while at in COLLECTIONS and len(path) > 1 and path[0].name == COLLECTIONS[at]:
        collections.append(path[0].name)
        path, at = path[1:], _BELOW[at]
        name = name[len(collections[-1]) + 1 :] if name[len(collections[-1])] == "." else name[len(collections[-1]) :]
    if operator in {"<", "<=", ">", ">="} and value == "null":
        raise refuse("null is neither less nor greater than anything")
    if operator in {"<", "<=", ">", ">="} and re.search(r"(?<!\\)\*", value):
        raise refuse("a wildcard may follow only = and !=")
    if value and value not in {"null", "*"} and not _is_scalar(path, at):
        raise refuse("a map, an object or a collection has no value to compare")
    if path[-1].name in _TIMES:
        value = _shorten_time(value, path)
    rest = name + (match[0] + value if match is not None else "")
    return FilterExpression(
        tuple(collections), path, operator, None if operator in {"=", "!="} and value == "null" else value, rest
    )


def _is_scalar(path: Sequence[Step], level: Level) -> bool:
    """Return whether a path may name a scalar: any path but that of a known map, object or array."""
    kind = ATTRIBUTES[level].get(path[0].name, {}).get("type")
    return len(path) > 1 or kind not in {"map", "object", "array"}


def _shorten_time(value: Any, path: Sequence[Step]) -> Any:
    """Return a timestamp in UTC without its last character, for comparison; other values are returned unchanged."""
    if path[-1].name not in _TIMES or not isinstance(value, str):
        return value
    try:
        return normalize_time(value, path[-1].name, "").removesuffix("Z")
    except RegistryError:
        return value


def _compare(operator: str, own: Any, value: str) -> bool:
    if isinstance(own, bool):
        if value not in {"true", "false"}:
            return operator == "=" and value == "*"
        return _relate(operator, own, value == "true")
    if isinstance(own, int | float):
        try:
            return _relate(operator, own, float(value))
        except ValueError:
            return operator == "=" and value == "*"
    if not isinstance(own, str):
        return operator == "=" and value == "*"
    if operator == "=":
        return _fits(value.casefold(), own.casefold())
    return _relate(operator, own.casefold(), value.casefold())


def _relate(operator: str, left: Any, right: Any) -> bool:
    match operator:
        case "=":
            return bool(left == right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


def _fits(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern in which `*` stands for any characters, in linear time."""
    parts = [part.replace(r"\*", "*") for part in re.split(r"(?<!\\)\*", pattern)]
    if len(parts) == 1:
        return text == parts[0]
    first, *middle, last = parts
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        position = text.find(part, at, end)
        if position < 0:
            return False
        at = position + len(part)
    return True


# --- the tree


def select_own(filters: Filters, entity: Callable[[], dict[str, Any]]) -> Filters | None:
    """Return the rest of the filters for the collection in an entity, or None if the entity passes none of them.

    Args:
        filters: Filters that begin at the entity.
        entity: Builds the entity's attributes.
    """
    if not filters:
        return ()
    attributes = entity()
    left: list[Filter] = []
    for each in filters:
        own = [row for row in each if not row.collections]
        if all(row.matches(attributes) for row in own):
            left.append(tuple(row.step_down() for row in each if row.collections))
    if not left:
        return None
    return () if any(not each for each in left) else tuple(left)


# --- order


class SortOrder(NamedTuple):
    """Attribute to sort by, and whether the order is descending."""

    path: tuple[Step, ...]
    is_descending: bool


def parse_sort(text: str, level: Level) -> SortOrder:
    """Return the order that the flag `sort` requests for a collection of entities. Raises `RegistryError`."""

    def refuse(why: str) -> RegistryError:
        return RegistryError("bad_sort", value=text[:200], error_detail=why)

    name, separator, direction = text.partition("=")
    if separator and direction not in {"asc", "desc"}:
        raise refuse("the order must be asc or desc")
    try:
        path = parse_path(name)
    except ValueError as error:
        raise refuse(str(error)) from None
    if path[0].name == COLLECTIONS.get(level) or any(step.is_any for step in path) or not _is_scalar(path, level):
        raise refuse("the attribute must be a scalar of the entity itself")
    return SortOrder(path, direction == "desc")


def sort_entities(
    entities: Sequence[tuple[str, dict[str, Any]]], order: SortOrder | None
) -> list[tuple[str, dict[str, Any]]]:
    """Return entities by an attribute and then by id; without an order, by id."""
    if order is None:
        return sorted(entities, key=lambda pair: (pair[0].casefold(), pair[0]))

    def find_key(pair: tuple[str, dict[str, Any]]) -> tuple[Any, ...]:
        value = _shorten_time(next(find_values(pair[1], order.path), None), order.path)
        rank = (0, 0.0, "")
        if isinstance(value, bool | int | float):
            rank = (1, float(value), "")
        elif isinstance(value, str):
            rank = (2, 0.0, value.casefold())
        return (*rank, pair[0].casefold(), pair[0])

    return sorted(entities, key=find_key, reverse=order.is_descending)
