"""Names with wildcards: splitting and matching them in bounded time; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

_KEPT: Final = 20_000
"""Maximum number of globs whose compiled expressions are cached."""


class GlobPiece(NamedTuple):
    """A part of a glob: plain text, or one wildcard."""

    text: str = ""
    wildcard: str = ""


_GLOB_PIECE: Final = re.compile(r"(?P<text>(?:\\.|\\\Z|[^\\*?])+)|(?P<wildcard>[*?])", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def split_glob(pattern: str) -> list[GlobPiece]:
    """Return the parts of a glob in their order, at least one."""
    pieces = [
        GlobPiece(_ESCAPED.sub(r"\1", piece["text"] or ""), piece["wildcard"] or "")
        for piece in _GLOB_PIECE.finditer(pattern)
    ]
    return pieces or [GlobPiece()]


@lru_cache(maxsize=_KEPT)
def compile_glob(glob: str) -> re.Pattern[str]:
    """Return a regular expression that matches the same names as a glob, without backtracking."""
    return compile_pieces(split_glob(glob))


def compile_pieces(pieces: Iterable[GlobPiece]) -> re.Pattern[str]:
    """Return a regular expression for text and wildcards that is matched without backtracking.

    After a `*`, the first match of the next text is used. Only the text after the last `*` must stand at the end.
    """
    parts = [""]
    for piece in pieces:
        if piece.wildcard == "*":
            parts.append("")
        else:
            parts[-1] += "." if piece.wildcard else re.escape(piece.text)
    first, *others = parts
    if not others:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return re.compile(f"{first}{middle}.*{others[-1]}", re.DOTALL)
