"""Addresses of pages: the path names the object, the query holds the options of the view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from stele.core.model import SubjectKey


def qualify_name(key: SubjectKey) -> str:
    """Return a subject's name as paths have it: `orders`, or `:.sales:orders` outside the default namespace.

    `service.policies.parse_level_name` reads it.
    """
    plain = not key.namespace and not key.name.startswith(":.")
    return key.name if plain else f":.{key.namespace}:{key.name}"


def subject_path(key: SubjectKey, tab: str = "") -> str:
    """Return the path of a subject's page below `/ui`; tab is one of its views, such as `fields`."""
    path = f"/subjects/{quote(qualify_name(key), safe='')}"
    return f"{path}/{tab}" if tab else path


def add_query(path: str, values: Mapping[str, Any]) -> str:
    """Return a path with a query of all values that are not empty."""
    query = urlencode({name: value for name, value in values.items() if value not in ("", None, False)})
    return f"{path}?{query}" if query else path


def split_lines(text: str) -> list[str]:
    """Return the lines of a text field that are not empty, as they were entered."""
    return [line for row in text.split("\n") if (line := row.removesuffix("\r")).strip()]
