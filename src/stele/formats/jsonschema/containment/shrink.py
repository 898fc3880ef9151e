"""Making a counter-example small: what is left of it is what matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stele.formats.jsonschema.text import Json

MAX_TRIES = 300
"""Smaller documents that are tried."""


def shrink_document(value: Json, proves: Callable[[Json], bool]) -> Json:
    """The document without the members and items that proves can do without."""
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
    """Documents with one thing less, outer ones first."""
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
