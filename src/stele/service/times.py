"""The present time, and times as texts."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def current_millis() -> int:
    """Return milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def format_time(milliseconds: int) -> str:
    """Return a time (milliseconds since 1970) in RFC 3339, UTC, with milliseconds."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
