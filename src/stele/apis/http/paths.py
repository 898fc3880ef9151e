"""Names in paths: how a `/` inside a subject reaches an endpoint.

ASGI routes on decoded paths, where `%2F` and `/` are the same. The server therefore decodes the raw path itself, with a
private-use character in the place of every encoded slash, and endpoints turn it back.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

SLASH = "\ue000"
"""Stands for an encoded slash inside one segment of a routed path (first character of Unicode's private use area)."""

_ENCODED_SLASH = re.compile(rb"%2[fF]")


def decode_path(raw_path: bytes) -> str:
    """The path to route on: percent-decoded UTF-8, encoded slashes as `SLASH`; what is no UTF-8 becomes U+FFFD."""
    marked = _ENCODED_SLASH.sub(SLASH.encode(), raw_path)
    return unquote_to_bytes(marked).decode("utf-8", "replace")


def decode_segment(segment: str) -> str:
    """The name a segment of a routed path spells."""
    return segment.replace(SLASH, "/")
