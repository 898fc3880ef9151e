"""Names in paths: how a `/` inside a subject reaches an endpoint.

ASGI routes on decoded paths, where `%2F` and `/` are the same. The server therefore decodes the raw path itself, with a
private-use character in the place of every encoded slash, and endpoints turn it back. Where a client sends such a
character itself, it is escaped, so that no name has two spellings.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

SLASH: Final = "\ue000"
"""Stands for an encoded slash inside one segment of a routed path (first character of Unicode's private use area)."""
EMPTY_SEGMENT: Final = "\ue001"
"""Stands for an empty path segment, which the router would skip."""
_ESCAPE: Final = "\ue002"

_ENCODED_SLASH = re.compile(rb"%2[fF]")
_ESCAPES = {ord(mark): _ESCAPE + digit for mark, digit in ((SLASH, "0"), (EMPTY_SEGMENT, "1"), (_ESCAPE, "2"))}
_MARKS = {SLASH: "/"} | {escape: chr(mark) for mark, escape in _ESCAPES.items()}
_MARK = re.compile("|".join(_MARKS))


def decode_path(raw_path: bytes) -> str:
    """The path to route on: percent-decoded UTF-8, encoded slashes as `SLASH`; what is no UTF-8 becomes U+FFFD."""
    parts = (unquote_to_bytes(part).decode("utf-8", "replace") for part in _ENCODED_SLASH.split(raw_path))
    return SLASH.join(part.translate(_ESCAPES) for part in parts)


def decode_segment(segment: str) -> str:
    """The name a segment of a routed path spells."""
    return _MARK.sub(lambda found: _MARKS[found[0]], segment)
