"""Quoting of column, field and table names for SQL and expressions. Names can contain any characters."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["quote_name", "quote_path"]


def quote_name(name: str) -> str:
    """Return a name in backquotes."""
    return "`" + name.replace("`", "``") + "`"


def quote_path(parts: Iterable[str]) -> str:
    """Return the path to a field, or the name of a table in its catalog, each part in backquotes."""
    return ".".join(map(quote_name, parts))
