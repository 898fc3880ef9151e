"""Finds names that a schema text uses without a reference, and suggests subjects for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from stele.core import queries
from stele.core.model import SubjectKey, Version
from stele.formats.capabilities import HasImports
from stele.formats.registry import get_format
from stele.service.registry import Registry

_MOST_NAMES: Final = 100
"""Maximum number of names that are looked up."""


class MissingReference(msgspec.Struct, frozen=True):
    """A name that a text uses without a reference.

    name     the name as it stands in the text
    subject  subject of the registry that may be meant; None: none is known
    version  newest version of that subject
    """

    name: str
    subject: SubjectKey | None = None
    version: int = 0


async def find_missing_references(
    registry: Registry, namespace: str, format_name: str, text: str, known: Sequence[str]
) -> list[MissingReference]:
    """Return the names that a text uses without a reference, with the subjects that may be meant.

    Only subjects that the caller may read are suggested: one whose newest version declares that type, one that other
    schemas refer to by that name, or one with that name. Raises `UnknownFormat`, `MalformedSchema`, `TooLarge`.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    registry.limits.check_text(encoded)
    fmt = get_format(format_name)
    if not isinstance(fmt, HasImports):
        return []
    names = [name for name in await registry.run_stateless(fmt.list_imports, encoded) if name not in known]
    names = names[:_MOST_NAMES]
    if not names:
        return []
    matches = await _match_names(registry, namespace, fmt.name, frozenset(names))
    return [
        MissingReference(name, matches[name].subject.key, matches[name].version_number)
        if name in matches
        else MissingReference(name)
        for name in names
    ]


async def _match_names(
    registry: Registry, namespace: str, format_name: str, names: frozenset[str]
) -> dict[str, Version]:
    state = await registry.fresh_state()
    place = state.find_namespace(namespace)
    subjects = list(place.subjects.values()) if place is not None else []
    by_rank: dict[str, tuple[int, Version]] = {}

    def note(name: str, rank: int, version: Version) -> None:
        if name in names and (name not in by_rank or by_rank[name][0] > rank):
            by_rank[name] = (rank, version)

    async for subject in registry.time_slices.iterate(subjects):
        newest = queries.latest_version(subject)
        if newest is None or newest.kind.format != format_name or not registry.access.can_read(subject.key):
            continue
        note(newest.kind.type, 1, newest)
        note(subject.key.name, 2, newest)
        for reference in newest.schema.attachments.references:
            if reference.name in names and registry.access.can_read(reference.key):
                used = state.find_subject(reference.key)
                target = queries.latest_version(used)
                if target is not None:
                    note(reference.name, 0, target)
    return {name: version for name, (_, version) in by_rank.items()}
