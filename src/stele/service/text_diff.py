"""The unified diff of two texts, line by line, in bounded time."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from stele.core.json_depth import is_nested_deeper

MAX_LINES: Final = 4_000
"""Maximum number of lines of one text that are compared, not counting the common beginning and end."""

MAX_PAIRS: Final = 100_000
"""Maximum number of pairs of equal lines: the comparison visits them repeatedly."""

MAX_WIDTH: Final = 2_000
"""Maximum length of a shown line, in characters."""

MAX_LAID_OUT: Final = 256 * 1024
"""Maximum size in bytes of JSON that is indented: deeply nested JSON grows a hundredfold by that."""

CONTEXT: Final = 3
"""Number of lines shown around a difference."""


def unified_diff(old: bytes, new: bytes) -> str:
    """Return the difference in unified format, '' for none. JSON is indented first.

    If the comparison would take too long, the first text is shown as replaced by the second, each cut to `MAX_LINES`.
    """
    mine, theirs = _split_lines(old), _split_lines(new)
    if mine == theirs:
        return ""
    if _is_cheap(mine, theirs):
        lines = list(difflib.unified_diff(mine, theirs, "old", "new", n=CONTEXT, lineterm=""))
    else:
        lines = [
            *("--- old", "+++ new", f"@@ too different to be compared: {len(mine)} lines, {len(theirs)} lines @@"),
            *(f"-{line}" for line in mine[:MAX_LINES]),
            *(f"+{line}" for line in theirs[:MAX_LINES]),
        ]
    return "\n".join(line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}…" for line in lines) + "\n"


def _split_lines(text: bytes) -> list[str]:
    if len(text) <= MAX_LAID_OUT and not is_nested_deeper(text):
        with suppress(msgspec.DecodeError):
            text = msgspec.json.format(text, indent=2)
    return text.decode("utf-8", "replace").splitlines()


def _is_cheap(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether the texts are short or similar enough to be compared.

    Very frequent lines of long texts do not count, because difflib skips them.
    """
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if max(len(old), len(new)) - start - end > MAX_LINES:
        return False
    mine, theirs = Counter(old), Counter(new)
    often = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    return sum(times * theirs[line] for line, times in mine.items() if theirs[line] <= often) <= MAX_PAIRS
