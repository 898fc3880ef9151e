"""Dead letters by kind. Their reasons are sentences with ids and names in them, of which there can be any number;
there are only so many kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stele.spark.engines.reasons import TEXTS, Reason

OTHER: Final = "other"
_BY_TEXT: Final = {text: reason.name.lower() for reason, text in TEXTS.items()}
_BY_START: Final = {
    "unknown schema id": Reason.UNKNOWN_ID.name.lower(),
    "schema id": Reason.UNUSABLE_ID.name.lower(),
    "no route takes": "unrouted",
}
KINDS: Final = tuple(dict.fromkeys((*_BY_TEXT.values(), *_BY_START.values(), OTHER)))
"""Every kind, in no order that means something."""


def kind(reason: str) -> str:
    """The kind of a reason: the word of the engines' own list, `unrouted`, or `other`."""
    known = _BY_TEXT.get(reason)
    if known is not None:
        return known
    return next((word for start, word in _BY_START.items() if reason.startswith(start)), OTHER)


def by_kind(reasons: Mapping[str, int], letters: int) -> dict[str, int]:
    """Dead letters of a batch by kind; what its reasons leave out, because they were too many, counts as `other`."""
    found: dict[str, int] = {}
    for reason, count in reasons.items():
        found[kind(reason)] = found.get(kind(reason), 0) + count
    rest = letters - sum(reasons.values())
    if rest > 0:
        found[OTHER] = found.get(OTHER, 0) + rest
    return found
