"""Builds outlines: keeps paths unique, shortens long texts, and limits the number of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import takewhile
from typing import Final, TypeVar

from stele.formats.capabilities import TRUNCATED, OutlineNode

T = TypeVar("T")

MAX_NODES: Final = 20_000
"""Maximum number of declarations listed for one schema; if there are more, a node of kind `TRUNCATED` follows."""

MAX_CHARACTERS: Final = 16_000_000
"""Maximum number of characters in paths, attributes and uses together: every path repeats the names above it."""

MAX_TEXT: Final = 400
"""Maximum number of characters of an attribute that are kept.

A longer one is cut, and ends in its length and digest, so that changes behind the cut are still found.
"""


class OutlineBuilder:
    """Collects the nodes of an outline, up to its limits."""

    def __init__(self) -> None:
        self.nodes: list[OutlineNode] = []
        self._paths: set[str] = set()
        self._left = MAX_CHARACTERS
        self._is_truncated = False

    def until_full(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items until the outline is truncated."""
        return takewhile(lambda _: not self._is_truncated, items)

    def add_node(
        self,
        path: str,
        kind: str,
        attributes: Mapping[str, str],
        *,
        parent: str | None = None,
        name: str = "",
        identity: str = "",
        aliases: Iterable[str] = (),
        ordered: bool = False,
        uses: Iterable[str] = (),
    ) -> str:
        """Append a node and return its path. A path that is already used gets a suffix: `#2`, `#3` and so on.

        Empty attributes are left out. A node past the limits is not added; the outline is truncated instead.
        """
        uses = tuple(uses)
        self._left -= len(path) + sum(map(len, attributes.values())) + sum(map(len, uses))
        if len(self.nodes) >= MAX_NODES or self._left < 0:
            self.truncate()
            return path
        path = self._claim_path(path)
        texts = {word: shorten_with_digest(text) for word, text in attributes.items() if text}
        self.nodes.append(OutlineNode(path, kind, texts, identity, name, parent, tuple(aliases), ordered, uses))
        return path

    def truncate(self) -> None:
        """End the outline with a node of kind `TRUNCATED`."""
        if not self._is_truncated:
            self._is_truncated = True
            self.nodes.append(OutlineNode(TRUNCATED, TRUNCATED, {"listed": str(len(self.nodes))}))

    def _claim_path(self, path: str) -> str:
        candidate, number = path, 1
        while candidate in self._paths:
            number += 1
            candidate = f"{path}#{number}"
        self._paths.add(candidate)
        return candidate


def shorten_with_digest(text: str) -> str:
    """Return the text, or its first `MAX_TEXT` characters with the length and digest of the whole."""
    if len(text) <= MAX_TEXT:
        return text
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{text[:MAX_TEXT]}… ({len(text)} characters, {digest})"
