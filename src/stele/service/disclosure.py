"""Hides secrets in the settings that answers show: only settings whose names are known to be harmless are shown.

A harmless name is not enough: a URL with a user name, a password or a query is hidden under any name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

HIDDEN: Final = "[hidden]"
"""Replaces a hidden value in answers. When it is sent back, it means the stored value."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CREDENTIALS: Final = re.compile(r"://[^/\s]*@|[?&;]")


def is_harmless(name: str, value: object, harmless_names: frozenset[str]) -> bool:
    """Return whether a setting may be shown.

    Numbers and booleans may. A text may if its name is harmless, unless it is a URL that may hold credentials.
    """
    if value is None or isinstance(value, bool | int | float):
        return True
    if not isinstance(value, str) or name.lower() not in harmless_names:
        return False
    return _URL.search(value) is None or _CREDENTIALS.search(value) is None


def hide_settings(settings: Mapping[str, Any], harmless_names: frozenset[str]) -> dict[str, Any]:
    """Return settings as answers show them, at any depth: hidden values are `HIDDEN`."""
    return {name: _hide_value(name, value, harmless_names) for name, value in settings.items()}


def _hide_value(name: str, value: Any, harmless_names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return hide_settings(value, harmless_names)
    if isinstance(value, list):
        return [_hide_value(name, row, harmless_names) for row in value]
    return value if is_harmless(name, value, harmless_names) else HIDDEN


def restore_settings(sent: Mapping[str, Any], stored: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings that were sent, with hidden values replaced by the stored ones, at any depth."""
    return {name: _restore_value(value, (stored or {}).get(name)) for name, value in sent.items()}


def _restore_value(sent: Any, stored: Any) -> Any:
    if isinstance(sent, dict):
        return restore_settings(sent, stored if isinstance(stored, dict) else None)
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        return [_restore_value(*pair) for pair in zip(sent, stored, strict=True)]
    return stored if sent == HIDDEN and stored is not None else sent


def hide_url(url: str) -> str:
    """Return a URL as answers show it: without user name, password, query and fragment."""
    try:
        parts = urlsplit(url)
        user, at, host = parts.netloc.rpartition("@")
    except ValueError:
        return HIDDEN
    if not (at or parts.query or parts.fragment):
        return url
    bare_url = parts._replace(netloc=host, query="", fragment="").geturl()
    marked = bare_url.replace("://", f"://{HIDDEN}@", 1) if user or at else bare_url
    return f"{marked}?{HIDDEN}" if parts.query or parts.fragment else marked


def restore_url(sent: str, stored: str) -> str:
    """Return the URL that was sent, or the stored one if the sent one is its hidden form."""
    return stored if HIDDEN in sent and sent == hide_url(stored) else sent
