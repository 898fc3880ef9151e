"""Finds schema formats by name.

Every format, including the built-in ones, is registered in the entry point group `stele.formats`. The name of the entry
point is the name of the format; its value is an object that satisfies `stele.core.ports.Format`. A format is imported
when it is first requested, so a format that cannot be imported does not affect the others.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from stele.core.ports import Format
from stele.errors import SteleError, UnknownFormat

GROUP: Final = "stele.formats"
"""Name of the entry point group."""

__all__ = ["GROUP", "get_format", "list_formats", "reload_formats"]


def list_formats() -> tuple[str, ...]:
    """Return the names of all installed formats, sorted, in lower case. Does not import any of them."""
    return tuple(sorted(_entry_points_by_name()))


@cache
def get_format(name: str) -> Format[Any]:
    """Return the format with that name, in upper or lower case.

    Raises `UnknownFormat`, which lists the installed formats, for any other name. A format that is installed but cannot
    be loaded also raises `UnknownFormat`, with the reason. A `SteleError` during loading, such as `NotInstalled`, is
    raised unchanged.
    """
    point = _entry_points_by_name().get(name.lower())
    if point is None:
        raise UnknownFormat(f"no format {name!r} is installed; there are {', '.join(list_formats())}")
    try:
        loaded = point.load()
    except SteleError:
        raise
    except (ImportError, AttributeError) as error:
        raise UnknownFormat(f"the format {name!r} ({point.value}) cannot be loaded: {error}") from error
    if not isinstance(getattr(loaded, "name", None), str):
        raise UnknownFormat(f"the format {name!r} ({point.value}) is not a format: it has no name")
    schema_format: Format[Any] = loaded
    return schema_format


def reload_formats() -> None:
    """Clear the caches, so that the next call looks up the installed packages again."""
    _entry_points_by_name.cache_clear()
    get_format.cache_clear()


@cache
def _entry_points_by_name() -> dict[str, EntryPoint]:
    """Return the installed entry points by lower-case name; the first distribution that claims a name gets it."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name.lower(), point)
    return points
