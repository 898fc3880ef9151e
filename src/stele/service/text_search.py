"""Search in the texts of schemas. There is no index: each request searches a part, and returns where to continue."""

from __future__ import annotations

import time
from itertools import islice
from typing import Final, NamedTuple

from stele.core.model import Content, Version
from stele.core.traversal import list_entries, list_formats_of_text, list_versions_of_entry
from stele.service.registry import Registry

SECONDS: Final = 0.1
"""Processing time in seconds that one request spends on texts."""
MOST_HITS: Final = 50


class TextMatches(NamedTuple):
    """Result of one request.

    versions  newest version of each subject with such a text, in the order in which texts were registered
    position  number of texts searched so far, by this request and earlier ones
    total     number of all texts
    """

    versions: list[Version]
    position: int
    total: int


async def search_texts(registry: Registry, words: str, position: int = 0) -> TextMatches:
    """Return versions whose text contains some words, of subjects that the caller may read.

    Args:
        registry: Registry of the texts.
        words: Text to find, case-sensitive.
        position: Number of texts that earlier requests searched.
    """
    state = await registry.fresh_state()
    wanted = words.encode("utf-8", "surrogatepass")
    matches: list[Version] = []
    used = 0.0
    async for content in registry.time_slices.iterate(islice(state.contents.values(), position, None)):
        started = time.perf_counter()
        if wanted in state.get_text(content):
            matches += _list_readable(registry, content)
        position += 1
        used += time.perf_counter() - started
        if len(matches) >= MOST_HITS or used > SECONDS:
            break
    return TextMatches(matches, min(position, len(state.contents)), len(state.contents))


def _list_readable(registry: Registry, content: Content) -> list[Version]:
    """Return the newest version of each readable subject that has a text."""
    newest: dict[object, Version] = {}
    for each in list_formats_of_text(content):
        for entry in list_entries(each):
            for version in list_versions_of_entry(entry):
                subject = version.subject
                known = newest.get(subject.key)
                if subject.is_closed or (known is not None and known.version_number > version.version_number):
                    continue
                if registry.access.can_read(subject.key):
                    newest[subject.key] = version
    return list(newest.values())
