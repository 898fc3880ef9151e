"""Finds schema formats by name.

Every format, the built-in ones included, comes in by the entry point group `stele.formats`: the entry point's name is
the format's name, its value an object that satisfies `stele.core.ports.Format`. One is imported when it is first asked
for, so a format that cannot be imported hinders nobody else.
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
    """Return the names of all installed formats, sorted, lower case; none is imported for this."""
    return tuple(sorted(_entry_points_by_name()))


@cache
def get_format(name: str) -> Format[Any]:
    """Return the format of that name, in any case. Raises `UnknownFormat` naming the ones there are.

    A format that is installed but cannot be loaded is an `UnknownFormat` too, which says why (a `SteleError`, such as
    `NotInstalled`, passes through).
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
        raise UnknownFormat(f"the format {name!r} ({point.value}) is no format: it has no name")
    schema_format: Format[Any] = loaded
    return schema_format


def reload_formats() -> None:
    """Look at the installed packages afresh on the next call."""
    _entry_points_by_name.cache_clear()
    get_format.cache_clear()


@cache
def _entry_points_by_name() -> dict[str, EntryPoint]:
    """Return the installed entry points by lower-case name; the first distribution that claims a name gets it."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        points.setdefault(point.name.lower(), point)
    return points
