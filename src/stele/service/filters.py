"""Filters of CloudEvents Subscriptions, which select the events of a subscriber: validated and matched. Pure.

A filter is an object with one member, its dialect: `exact`, `prefix` and `suffix` map attributes of an event to what
they must be, begin or end with; `sql` is an expression of CESQL; `all`, `any` and `not` combine filters. An event
passes a list of filters when it passes each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stele.errors import InvalidRequest

_DEEPEST = 16
_MOST = 256
"""Maximum number of nested levels, and of filters in total."""

_COMPARE: Mapping[str, Callable[[str, str], bool]] = {
    "exact": str.__eq__,
    "prefix": str.startswith,
    "suffix": str.endswith,
}


def check_filters(filters: Any) -> None:
    """Raise `InvalidRequest` for an invalid list of filters."""
    if not isinstance(filters, list):
        raise InvalidRequest("filters must be a list")
    pending = [(entry, 1) for entry in filters]
    count = 0
    while pending:
        entry, depth = pending.pop()
        count += 1
        if count > _MOST or depth > _DEEPEST:
            raise InvalidRequest(f"there are more than {_MOST} filters, or more than {_DEEPEST} within one another")
        pending += [(inner, depth + 1) for inner in _check_filter(entry)]


def _check_filter(entry: Any) -> list[Any]:
    """Check one filter, and return the filters directly inside it."""
    if not isinstance(entry, dict) or len(entry) != 1:
        raise InvalidRequest("a filter must be an object with one member, the name of its dialect")
    ((dialect, value),) = entry.items()
    if dialect in _COMPARE:
        is_mapping = isinstance(value, dict) and all(isinstance(text, str) and text for text in value.values())
        if not is_mapping or not value or not all(value):
            raise InvalidRequest(f"{dialect} must map names of attributes to strings that are not empty")
        return []
    if dialect in {"all", "any"}:
        if not isinstance(value, list) or not value:
            raise InvalidRequest(f"{dialect} needs a list of at least one filter")
        return value
    if dialect == "not":
        return [value]
    if dialect == "sql":
        if not isinstance(value, str) or not value:
            raise InvalidRequest("sql needs an expression of CESQL")
        from stele.service.cesql.syntax import parse_expression  # a parser that few servers need

        parse_expression(value)
        return []
    known = ", ".join((*_COMPARE, "sql", "all", "any", "not"))
    raise InvalidRequest(f"{dialect[:100]!r} is not a dialect of filters; known: {known}")


def passes_filters(event: Mapping[str, str], filters: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether an event, given as its attributes by name, passes filters that `check_filters` accepts."""
    return all(_passes_filter(event, entry) for entry in filters)


def _passes_filter(event: Mapping[str, str], entry: Mapping[str, Any]) -> bool:
    ((dialect, value),) = entry.items()
    match dialect:
        case "all":
            return passes_filters(event, value)
        case "any":
            return any(_passes_filter(event, inner) for inner in value)
        case "not":
            return not _passes_filter(event, value)
        case "sql":
            from stele.service.cesql.evaluation import evaluate
            from stele.service.cesql.syntax import parse_expression

            outcome = evaluate(parse_expression(value), event)
            return outcome.error is None and outcome.value is True
    compare = _COMPARE[dialect]
    return all(name in event and compare(event[name], text) for name, text in value.items())
